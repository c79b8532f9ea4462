package model

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// The request of Anthropic's Messages API, as far as we use it.
type (
	anthropicRequest struct {
		Model      string             `json:"model"`
		MaxTokens  int                `json:"max_tokens"`
		System     []anthropicText    `json:"system,omitempty"`
		Messages   []anthropicMessage `json:"messages"`
		Tools      []anthropicTool    `json:"tools,omitempty"`
		ToolChoice *anthropicType     `json:"tool_choice,omitempty"`
		Thinking   *anthropicThink    `json:"thinking,omitempty"`
		Output     *anthropicOutput   `json:"output_config,omitempty"`
		Stream     bool               `json:"stream"`
	}
	anthropicType struct {
		Type string `json:"type"`
	}
	anthropicThink struct {
		Type    string `json:"type"`
		Budget  int    `json:"budget_tokens,omitempty"`
		Display string `json:"display,omitempty"`
	}
	anthropicOutput struct {
		Effort string `json:"effort"`
	}
	anthropicMessage struct {
		Role    string `json:"role"`
		Content []any  `json:"content"`
	}
	anthropicText struct {
		Type  string         `json:"type"`
		Text  string         `json:"text"`
		Cache *anthropicType `json:"cache_control,omitempty"`
	}
	anthropicImage struct {
		Type   string          `json:"type"`
		Source anthropicSource `json:"source"`
		Cache  *anthropicType  `json:"cache_control,omitempty"`
	}
	anthropicSource struct {
		Type string `json:"type"`
		MIME string `json:"media_type"`
		Data []byte `json:"data"` // base64, as JSON has bytes
	}
	anthropicThinking struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	anthropicRedacted struct {
		Type string `json:"type"`
		Data string `json:"data"`
	}
	anthropicUse struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
		Cache *anthropicType  `json:"cache_control,omitempty"`
	}
	anthropicResult struct {
		Type    string         `json:"type"`
		ID      string         `json:"tool_use_id"`
		Content []any          `json:"content"`
		IsError bool           `json:"is_error,omitempty"`
		Cache   *anthropicType `json:"cache_control,omitempty"`
	}
	anthropicTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"input_schema"`
		Cache       *anthropicType  `json:"cache_control,omitempty"`
	}
)

// anthropicDefaultOutput is max_tokens, which has to be sent, for a model of which
// nothing is known.
const anthropicDefaultOutput = 8192

func (a *anthropic) request(r Request) *anthropicRequest {
	l := a.e.Limits
	q := &anthropicRequest{
		Model: a.e.Model, Stream: true, Messages: anthropicMessages(r.Messages, l.Images),
		MaxTokens: orElse(l.output(r), anthropicDefaultOutput),
	}
	if !blank(r.System) {
		q.System = []anthropicText{{Type: "text", Text: r.System}}
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, anthropicTool{Name: wireName(t.Name), Description: t.Description, Schema: t.schema()})
	}
	if len(q.Tools) == 0 {
		q.usedTools(r)
	}
	a.think(q, r)
	q.mark()
	return q
}

// usedTools declares the tools that the conversation has calls of, when none is
// offered: calls of tools that are not declared are refused.
func (q *anthropicRequest) usedTools(r Request) {
	var names []string
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.Call != nil && !slices.Contains(names, p.Call.Name) {
				names = append(names, p.Call.Name)
			}
		}
	}
	for _, n := range names {
		q.Tools = append(q.Tools, anthropicTool{Name: wireName(n), Schema: Tool{}.schema()})
		q.ToolChoice = &anthropicType{"none"}
	}
}

// think sets how hard the model thinks. Models since 4.6 decide themselves how
// much and take an effort; their thoughts are asked for, so that it can be told
// from a stall. Those before think when an effort is asked for, within a budget.
func (a *anthropic) think(q *anthropicRequest, r Request) {
	effort := a.e.Limits.effort(r)
	if adaptive(a.e.Model) && len(a.e.Limits.Efforts) > 0 {
		q.Thinking = &anthropicThink{Type: "adaptive", Display: "summarized"}
		if effort != "" {
			q.Output = &anthropicOutput{effort}
		}
		return
	}
	budget := map[string]int{"minimal": 1024, "low": 4096, "medium": 10_000, "high": 20_000, "xhigh": 32_000, "max": 48_000}[effort]
	if budget = min(budget, q.MaxTokens/2); budget >= 1024 && !q.thoughtless() {
		q.Thinking = &anthropicThink{Type: "enabled", Budget: budget}
	}
}

// adaptive reports whether a model is a Claude since 4.6. Names without a version
// are newer than those with a date.
func adaptive(model string) bool {
	model = model[strings.LastIndexByte(model, '/')+1:]
	rest, ok := strings.CutPrefix(model, "claude-")
	if !ok {
		return false
	}
	var version []int
	for _, w := range strings.FieldsFunc(rest, func(r rune) bool { return r == '-' || r == '.' || r == '@' }) {
		if n, err := strconv.Atoi(w); err == nil && len(w) < 4 && len(version) < 2 {
			version = append(version, n)
		}
	}
	if len(version) == 0 {
		return !strings.HasPrefix(rest, "instant") && !strings.HasPrefix(rest, "v")
	}
	return version[0] > 4 || version[0] == 4 && len(version) > 1 && version[1] >= 6
}

// thoughtless reports whether the last reply called tools without a thought before
// them: those models then refuse to think on.
func (q *anthropicRequest) thoughtless() bool {
	last := q.Messages[len(q.Messages)-1]
	if _, results := last.Content[0].(anthropicResult); !results || len(q.Messages) < 2 {
		return false
	}
	_, thought := q.Messages[len(q.Messages)-2].Content[0].(json.RawMessage)
	return !thought
}

// mark says where a cached beginning of the request may end: behind the tools,
// the system text, and the last two messages of the user, the latter because the
// request before this one ended there. Four are allowed.
func (q *anthropicRequest) mark() {
	here := &anthropicType{"ephemeral"}
	if n := len(q.Tools); n > 0 {
		q.Tools[n-1].Cache = here
	}
	if n := len(q.System); n > 0 {
		q.System[n-1].Cache = here
	}
	left := 2
	for i := len(q.Messages) - 1; i >= 0 && left > 0; i-- {
		if q.Messages[i].Role != "user" {
			continue
		}
		last := &q.Messages[i].Content[len(q.Messages[i].Content)-1]
		switch b := (*last).(type) {
		case anthropicText:
			b.Cache = here
			*last = b
		case anthropicImage:
			b.Cache = here
			*last = b
		case anthropicResult:
			b.Cache = here
			*last = b
		}
		left--
	}
}

// anthropicMessages are the messages as Anthropic wants them: user and assistant
// in turns, from user to user; no blank text; results first in the message behind
// their calls.
func anthropicMessages(messages []Message, images bool) []anthropicMessage {
	var list []anthropicMessage
	for _, m := range messages {
		role, content := "user", anthropicContent(m, images)
		if m.Role == Assistant {
			role = "assistant"
		}
		if len(content) == 0 {
			continue
		}
		if n := len(list); n > 0 && list[n-1].Role == role {
			list[n-1].Content = append(list[n-1].Content, content...)
			continue
		}
		list = append(list, anthropicMessage{role, content})
	}
	filler := func(text string) anthropicMessage {
		return anthropicMessage{"user", []any{anthropicText{Type: "text", Text: text}}}
	}
	if len(list) == 0 || list[0].Role != "user" {
		list = slices.Insert(list, 0, filler(noText))
	}
	if list[len(list)-1].Role != "user" {
		list = append(list, filler(goOn))
	}
	return list
}

func anthropicContent(m Message, images bool) []any {
	var content []any
	for _, p := range m.Parts {
		switch {
		case p.Thought != nil:
			if b := anthropicThought(p.Thought.State); b != nil {
				content = append(content, b)
			}
		case p.Call != nil:
			content = append(content, anthropicUse{Type: "tool_use", ID: wireID(p.Call.ID, 64), Name: wireName(p.Call.Name), Input: object(p.Call.Args)})
		case p.Result != nil:
			content = append(content, anthropicToolResult(p.Result, images))
		case p.Image != nil:
			content = append(content, anthropicPicture(*p.Image, images))
		case !blank(p.Text):
			content = append(content, anthropicText{Type: "text", Text: p.Text})
		}
	}
	// A reply may not end with a thought: one that broke off there is left out.
	for m.Role == Assistant && len(content) > 0 {
		if _, thought := content[len(content)-1].(json.RawMessage); !thought {
			break
		}
		content = content[:len(content)-1]
	}
	return content
}

// anthropicThought is a thought's state when it is one of Anthropic's.
func anthropicThought(state json.RawMessage) any {
	var b anthropicBlock
	if json.Unmarshal(state, &b) != nil || b.state() == nil {
		return nil
	}
	return state
}

func anthropicPicture(i Image, images bool) any {
	if !images {
		return anthropicText{Type: "text", Text: i.words()}
	}
	return anthropicImage{Type: "image", Source: anthropicSource{"base64", i.MIME, i.Data}}
}

func anthropicToolResult(r *Result, images bool) anthropicResult {
	b := anthropicResult{Type: "tool_result", ID: wireID(r.ID, 64), IsError: r.Failed}
	if !blank(r.Text) {
		b.Content = append(b.Content, anthropicText{Type: "text", Text: r.Text})
	}
	for _, i := range r.Images {
		if r.Failed { // an error may only have text
			b.Content = append(b.Content, anthropicText{Type: "text", Text: "[an image is left out]"})
			continue
		}
		b.Content = append(b.Content, anthropicPicture(i, images))
	}
	if len(b.Content) == 0 {
		b.Content = append(b.Content, anthropicText{Type: "text", Text: noOutput})
	}
	return b
}
