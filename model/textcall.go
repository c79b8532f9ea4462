package model

import (
	"encoding/json"
	"errors"
	"strings"
)

// wroteCall is what a model did that wrote a tool call into its text. Such a call
// is never run: text may be quoted from anywhere.
const wroteCall = "the model wrote a tool call as text"

// errWroteCall is the cause of that KindCut.
var errWroteCall = errors.New(wroteCall)

var (
	// callTail is an end that only a call has.
	callTail = pattern(`(?s)(</tool_call>|</function>|</function_call>|</invoke>|</tool_calls>|</(antml:)?function_calls>|<\|tool_call_end\|>|<\|tool_calls_section_end\|>|<｜tool▁calls▁end｜>|\[/TOOL_CALLS?\]|<\|/tool_call\|>)\s*$`)
	// callHead is a beginning of one.
	callHead = pattern(`<tool_call>|<function=|<function_call>|<invoke |<tool_calls>|<\|tool_call|<\|tool_calls_section_begin\|>|<｜tool▁calls?▁begin｜>|\[TOOL_CALLS?\]`)
	// fenced is what stands in code fences, fence is the fences.
	fenced = pattern("(?s)```.*?(```|$)")
	fence  = pattern("^```[a-z_]*\n|\n?```$")
)

// writesCall reports whether text, a whole reply, ends with a tool call that
// should not be text. It is careful: an answer about tool calls is none.
func writesCall(text string, tools []Tool) bool {
	text = strings.TrimSpace(text)
	if len(tools) == 0 || text == "" {
		return false
	}
	plain := strings.TrimSpace(fenced().ReplaceAllString(text, ""))
	if m := callTail().FindStringIndex(plain); m != nil {
		before := plain[:m[0]]
		return callHead().MatchString(before) || lastObject(before, func(o map[string]json.RawMessage) bool { return o["name"] != nil })
	}
	if callHead().MatchString(plain) { // without its end
		return lastObject(strings.TrimRight(plain, "] \n"), func(o map[string]json.RawMessage) bool { return isCallObject(o, tools) })
	}
	// A bare object that names a tool of ours, and nothing beside it.
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "```") && strings.HasSuffix(text, "```") {
		body := fence().ReplaceAllString(text, "")
		var o map[string]json.RawMessage
		return json.Unmarshal([]byte(body), &o) == nil && isCallObject(o, tools)
	}
	return false
}

// isCallObject reports whether o names one of the tools and has arguments.
func isCallObject(o map[string]json.RawMessage, tools []Tool) bool {
	var name string
	_ = json.Unmarshal(o["name"], &name)
	if name == "" {
		var f struct{ Name string }
		_ = json.Unmarshal(o["function"], &f)
		name = f.Name
		if o["arguments"] == nil {
			o["arguments"] = o["function"]
		}
	}
	known := false
	for _, t := range tools {
		known = known || t.Name == name || wireName(t.Name) == name
	}
	return known && (o["arguments"] != nil || o["parameters"] != nil || o["input"] != nil)
}

// lastObject reports whether text ends with a JSON object that is like that.
func lastObject(text string, like func(map[string]json.RawMessage) bool) bool {
	text = strings.TrimSpace(text)
	if !strings.HasSuffix(text, "}") {
		return false
	}
	const enough = 16 << 10
	from := max(0, len(text)-enough)
	for i := len(text) - 1; i >= from; i-- {
		if text[i] != '{' {
			continue
		}
		var o map[string]json.RawMessage
		if json.Unmarshal([]byte(text[i:]), &o) == nil && like(o) {
			return true
		}
	}
	return false
}
