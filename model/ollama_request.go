package model

import (
	"encoding/json"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// The request of /api/chat.
type (
	ollamaRequest struct {
		Model    string          `json:"model"`
		Messages []ollamaMessage `json:"messages"`
		Tools    []ollamaTool    `json:"tools,omitempty"`
		Think    any             `json:"think,omitempty"` // true, false or a level
		Stream   bool            `json:"stream"`
		// A server that knows these says that a request is too long, instead of
		// dropping its beginning in silence; older ones know neither.
		Truncate  bool          `json:"truncate"`
		Shift     bool          `json:"shift"`
		KeepAlive string        `json:"keep_alive"`
		Options   ollamaOptions `json:"options"`
	}
	ollamaOptions struct {
		Context int `json:"num_ctx"`
		Output  int `json:"num_predict,omitempty"`
	}
	ollamaMessage struct {
		Role     string           `json:"role"`
		Content  string           `json:"content"`
		Thinking string           `json:"thinking,omitempty"`
		Images   [][]byte         `json:"images,omitempty"`
		Calls    []ollamaToolCall `json:"tool_calls,omitempty"`
		ToolName string           `json:"tool_name,omitempty"`
	}
	ollamaToolCall struct {
		Function ollamaCall `json:"function"`
	}
	ollamaCall struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"arguments"`
	}
	ollamaTool struct {
		Type     string         `json:"type"`
		Function ollamaFunction `json:"function"`
	}
	ollamaFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"parameters"`
	}
)

// keepAlive is how long a model stays loaded after a reply: a person reads, a tool
// runs, and loading takes its time.
const keepAlive = "30m"

// newOllamaRequest turns a request around, without the size of its context.
func newOllamaRequest(name string, c *ollamaCard, limits Limits, r Request) ollamaRequest {
	o := ollamaRequest{Model: name, Stream: true, KeepAlive: keepAlive, Think: c.think(r.Effort)}
	if !blank(r.System) {
		o.Messages = append(o.Messages, ollamaMessage{Role: "system", Content: r.System})
	}
	user := false
	for _, m := range r.Messages {
		for _, one := range ollamaMessages(m, limits.Images) {
			if one.Role == string(Assistant) && blank(one.Content) && one.Calls == nil {
				continue // thoughts alone
			}
			if one.Role != string(User) && !user { // templates look for a user's words, and fail without
				o.Messages = append(o.Messages, ollamaMessage{Role: string(User), Content: begins})
			}
			user = true
			o.Messages = append(o.Messages, one)
		}
	}
	if n := len(o.Messages); n == 0 || o.Messages[n-1].Role != string(User) && o.Messages[n-1].Role != "tool" {
		o.Messages = append(o.Messages, ollamaMessage{Role: string(User), Content: goOn})
	}
	if c.tools {
		for _, t := range r.Tools {
			o.Tools = append(o.Tools, ollamaTool{"function", ollamaFunction{wireName(t.Name), t.Description, ollamaSchema(t.Schema)}})
		}
	}
	return o
}

func ollamaMessages(m Message, sees bool) []ollamaMessage {
	if m.Role == ToolRole {
		return ollamaResults(m, sees)
	}
	out := ollamaMessage{Role: string(m.Role)}
	for _, p := range m.Parts {
		switch {
		case p.Text != "":
			out.Content = joined(out.Content, p.Text, m.Role == User)
		case p.Thought != nil:
			out.Thinking += p.Thought.Text
		case p.Image != nil && sees:
			out.Images = append(out.Images, p.Image.Data)
		case p.Image != nil:
			out.Content = joined(out.Content, p.Image.words(), true)
		case p.Call != nil:
			out.Calls = append(out.Calls, ollamaToolCall{ollamaCall{wireName(p.Call.Name), object(p.Call.Args)}})
		}
	}
	return []ollamaMessage{out}
}

// ollamaResults is a message for each result; images follow as the user's, since
// templates show them nowhere else.
func ollamaResults(m Message, sees bool) []ollamaMessage {
	var list []ollamaMessage
	var pictures ollamaMessage
	for _, p := range m.Parts {
		if p.Result == nil {
			continue
		}
		text := p.Result.Text
		if p.Result.Failed {
			text = "Error: " + text
		}
		for _, i := range p.Result.Images {
			if sees {
				pictures.Images = append(pictures.Images, i.Data)
				pictures.Content = joined(pictures.Content, "Image in the result of "+p.Result.Name+".", true)
			} else {
				text = joined(text, i.words(), true)
			}
		}
		list = append(list, ollamaMessage{Role: "tool", Content: text, ToolName: wireName(p.Result.Name)})
	}
	if pictures.Images != nil {
		pictures.Role = string(User)
		list = append(list, pictures)
	}
	return list
}

// joined is two texts, on lines of their own when apart.
func joined(a, b string, apart bool) string {
	if a == "" || !apart {
		return a + b
	}
	return a + "\n\n" + b
}

// ollamaSchema is a tool's schema as the server's own type of it can hold it: an
// object with properties.
func ollamaSchema(raw json.RawMessage) json.RawMessage {
	var s map[string]json.RawMessage
	if json.Unmarshal(raw, &s) != nil || s == nil {
		s = map[string]json.RawMessage{}
	}
	if s["type"] == nil {
		s["type"] = json.RawMessage(`"object"`)
	}
	if s["properties"] == nil {
		s["properties"] = json.RawMessage(`{}`)
	}
	out, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return out
}

const (
	ollamaLeast  = 8 << 10 // tokens of the smallest context that is asked for
	ollamaReply  = 4 << 10 // tokens left for a reply, when the model may have so many
	ollamaAround = 8       // tokens of a message's frame
)

// tokens is how many tokens the request is taken for, rather too many: three bytes
// each, two where the text is not Latin. Its server has no way to count, and what
// does not fit is lost in silence.
func (o *ollamaRequest) tokens() int {
	n := 0
	add := func(s string) {
		if ascii := utf8.RuneCountInString(s); ascii*5 < len(s)*4 { // more than a quarter is not ASCII
			n += len(s)/2 + 1
		} else if s != "" {
			n += len(s)/3 + 1
		}
	}
	for _, m := range o.Messages {
		n += ollamaAround + len(m.Images)*imageTokens
		add(m.Content)
		add(m.Thinking)
		add(m.ToolName)
		for _, c := range m.Calls {
			add(c.Function.Name)
			add(string(c.Function.Args))
		}
	}
	for _, t := range o.Tools {
		n += ollamaAround
		add(t.Function.Name)
		add(t.Function.Description)
		add(string(t.Function.Schema))
	}
	return n
}

// room is the context that a request of n tokens needs with its reply, of at most
// output tokens where that is known: a power of two, so that the model is not
// loaded anew for every few tokens, between 8k and most. It is 0 when the request
// does not fit.
func ollamaRoom(n, output, most int) int {
	reply := ollamaReply
	if output > 0 {
		reply = min(output, reply)
	}
	reply = min(reply, max(most/4, 1))
	if n+reply > most {
		return 0
	}
	size := 1 << bits.Len(uint(n+reply-1))
	return min(max(size, ollamaLeast), most)
}

// ollamaCard is what a server says of a model.
type ollamaCard struct {
	digest        string
	window        int // tokens; its own maximum
	talks         bool
	tools, vision bool
	thinks        bool
	levels        bool // thinks in levels, and cannot be told not to
}

func (c *ollamaCard) limits() Limits {
	l := Limits{Window: c.window, Images: c.vision}
	switch {
	case c.levels:
		l.Efforts = []string{"low", "medium", "high"}
	case c.thinks:
		l.Efforts = []string{"none", "high"}
	}
	return l
}

// think is the request's member of that name, nil to leave it out: a model that
// does not think refuses it.
func (c *ollamaCard) think(effort string) any {
	switch {
	case !c.thinks:
		return nil
	case c.levels:
		if slices.Contains(c.limits().Efforts, effort) {
			return effort
		}
		return nil
	}
	return effort != "none"
}
