package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gladhand"
)

// form is a question to fill in: ACP's elicitation/create of mode form.
type form struct {
	Message string `json:"message"`
	Schema  struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	} `json:"requestedSchema"`
}

// field is one thing to fill in.
type field struct {
	Type  string   `json:"type"`
	Title string   `json:"title"`
	Enum  []string `json:"enum"`
	OneOf []struct {
		Const string `json:"const"`
		Title string `json:"title"`
	} `json:"oneOf"`
}

// formOf reads an ask that is a form.
func formOf(a gladhand.Ask) (f form, ok bool) {
	return f, a.Elicitation != nil && json.Unmarshal(a.Elicitation, &f) == nil
}

// only is the one field of a form that has no more.
func (f form) only() (name string, of field, ok bool) {
	for name, of = range f.Schema.Properties {
	}
	return name, of, len(f.Schema.Properties) == 1
}

// choices are the values of a field that has some, with their names.
func (f field) choices() (values, names []string) {
	for _, c := range f.OneOf {
		values, names = append(values, c.Const), append(names, c.Const)
		if c.Title != "" {
			names[len(names)-1] = c.Title
		}
	}
	if len(values) == 0 {
		return f.Enum, f.Enum
	}
	return values, names
}

// text is what people see below the question.
func (f form) text() []string {
	var text []string
	if _, of, ok := f.only(); ok {
		_, names := of.choices()
		for i, n := range names {
			text = append(text, fmt.Sprintf("    %d  %s", i+1, oneLine(n)))
		}
		return text
	}
	for _, name := range f.names() {
		of := f.Schema.Properties[name]
		values, _ := of.choices()
		line := "    " + oneLine(name) + ": " + oneLine(of.Type)
		if len(values) > 0 {
			line += ", one of " + oneLine(strings.Join(values, ", "))
		}
		text = append(text, line)
	}
	return text
}

func (f form) names() []string {
	var names []string
	for name := range f.Schema.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// hint says what may be typed.
func (f form) hint() string {
	_, of, ok := f.only()
	if values, _ := of.choices(); ok && len(values) > 0 {
		return "type a number or a name, or - to give no answer"
	}
	if ok {
		return "type your answer, or - to give none"
	}
	return "type a JSON object with these, or - to give no answer"
}

// fill makes an answer of a line. Nil content is no answer; ok is false for a line
// that fits nothing.
func (f form) fill(line string) (content json.RawMessage, ok bool) {
	line = strings.TrimSpace(line)
	if line == "-" {
		return nil, true
	}
	name, of, one := f.only()
	if !one {
		var object map[string]json.RawMessage
		return json.RawMessage(line), json.Unmarshal([]byte(line), &object) == nil && object != nil
	}
	value, ok := of.value(line)
	if !ok {
		return nil, false
	}
	content, err := json.Marshal(map[string]any{name: value})
	return content, err == nil
}

// value is what a line means for a field.
func (f field) value(line string) (any, bool) {
	values, names := f.choices()
	if len(values) > 0 {
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(values) && !slices.Contains(values, line) {
			return values[n-1], true
		}
		for i := range values {
			if strings.EqualFold(line, values[i]) || strings.EqualFold(line, names[i]) {
				return values[i], true
			}
		}
		return nil, false
	}
	switch f.Type {
	case "integer", "number", "boolean":
		var v any
		d := json.NewDecoder(bytes.NewReader([]byte(line)))
		d.UseNumber()
		err := d.Decode(&v)
		_, number := v.(json.Number)
		_, truth := v.(bool)
		return v, err == nil && (truth == (f.Type == "boolean")) && (truth || number)
	}
	return line, line != ""
}
