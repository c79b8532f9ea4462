package model

import (
	"encoding/json"
	"slices"
)

// The request of chat completions, as far as every server takes it.
type (
	chatRequest struct {
		Model               string             `json:"model"`
		Messages            []chatMessage      `json:"messages"`
		Tools               []openaiTool       `json:"tools,omitempty"`
		Stream              bool               `json:"stream"`
		StreamOptions       *chatStreamOptions `json:"stream_options,omitempty"`
		MaxTokens           int                `json:"max_tokens,omitempty"`
		MaxCompletionTokens int                `json:"max_completion_tokens,omitempty"`
		ReasoningEffort     string             `json:"reasoning_effort,omitempty"`
		PromptCacheKey      string             `json:"prompt_cache_key,omitempty"`
	}
	chatStreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	chatMessage struct {
		Role string `json:"role"`
		// Content is a string, a list of parts, or null beside calls.
		Content          any               `json:"content"`
		ToolCalls        []chatCall        `json:"tool_calls,omitempty"`
		ToolCallID       string            `json:"tool_call_id,omitempty"`
		ReasoningContent string            `json:"reasoning_content,omitempty"`
		Reasoning        string            `json:"reasoning,omitempty"`
		ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
	}
	chatCall struct {
		ID       string           `json:"id"`
		Type     string           `json:"type"`
		Function chatCallFunction `json:"function"`
	}
	chatCallFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	chatPart struct {
		Type     string        `json:"type"`
		Text     string        `json:"text,omitempty"`
		ImageURL *chatImageURL `json:"image_url,omitempty"`
	}
	chatImageURL struct {
		URL string `json:"url"`
	}
)

func (o *openaiChat) request(r Request) *chatRequest {
	official := o.e.official(openaiHost)
	q := &chatRequest{Model: o.e.Model, Stream: true, Messages: chatMessages(r, o.e.Limits.Images, !o.m.noState.Load())}
	if o.m.bridge.Load() {
		q.bridge()
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, openaiTool{"function", &openaiFunction{wireName(t.Name), t.Description, t.schema()}})
	}
	if !o.m.noStreamOptions.Load() {
		q.StreamOptions = &chatStreamOptions{true}
	}
	// OpenAI's newer models take the longer name only, other servers the shorter.
	if limit := o.e.Limits.output(r); official != o.m.swapMax.Load() {
		q.MaxCompletionTokens = limit
	} else {
		q.MaxTokens = limit
	}
	if !o.m.noEffort.Load() {
		q.ReasoningEffort = o.e.Limits.effort(r)
	}
	if official && !o.m.noCacheKey.Load() {
		q.PromptCacheKey = r.Session
	}
	return q
}

// bridge puts a word of the assistant between results and what the user says
// next, for servers whose templates want it there.
func (q *chatRequest) bridge() {
	for i := len(q.Messages) - 1; i > 0; i-- {
		if q.Messages[i].Role == "user" && q.Messages[i-1].Role == "tool" {
			q.Messages = slices.Insert(q.Messages, i, chatMessage{Role: "assistant", Content: "I see."})
		}
	}
}

// chatMessages are the messages as all servers take them: system first, user and
// assistant in turns, results right behind their calls and in text, their images
// in a message of the user behind them, no message without content.
func chatMessages(r Request, images, state bool) []chatMessage {
	var list []chatMessage
	if !blank(r.System) {
		list = append(list, chatMessage{Role: "system", Content: r.System})
	}
	said := false // somebody has spoken
	for _, m := range r.Messages {
		switch m.Role {
		case ToolRole:
			list = append(list, chatResults(m, images)...)
		case Assistant:
			a := chatAssistant(m, state)
			if a.Content == nil && len(a.ToolCalls) == 0 {
				continue
			}
			if !said {
				list = append(list, chatMessage{Role: "user", Content: noText})
			}
			list = joinChat(list, a)
		default:
			if parts := chatParts(m, images); len(parts) > 0 {
				list = joinChat(list, chatMessage{Role: "user", Content: parts})
			} else {
				continue
			}
		}
		said = true
	}
	if last := len(list) - 1; last < 0 || list[last].Role == "assistant" || list[last].Role == "system" {
		text := goOn
		if !said {
			text = noText
		}
		list = append(list, chatMessage{Role: "user", Content: text})
	}
	for i := range list { // text alone is a string: not all servers take a list
		parts, _ := list[i].Content.([]chatPart)
		if len(parts) == 1 && parts[0].Type == "text" {
			list[i].Content = parts[0].Text
		}
	}
	return list
}

// joinChat appends m, to the last message when that is of the same role.
func joinChat(list []chatMessage, m chatMessage) []chatMessage {
	n := len(list)
	if n == 0 || list[n-1].Role != m.Role {
		return append(list, m)
	}
	last := &list[n-1]
	if m.Role == "user" {
		a, _ := last.Content.([]chatPart)
		b, _ := m.Content.([]chatPart)
		if text, ok := last.Content.(string); ok {
			a = []chatPart{{Type: "text", Text: text}}
		}
		both := slices.Concat(a, b)
		if !slices.ContainsFunc(both, func(p chatPart) bool { return p.Type != "text" }) {
			text := both[0].Text
			for _, p := range both[1:] {
				text += "\n\n" + p.Text
			}
			both = []chatPart{{Type: "text", Text: text}}
		}
		last.Content = both
		return list
	}
	a, _ := last.Content.(string)
	b, _ := m.Content.(string)
	if a != "" && b != "" {
		a += "\n\n"
	}
	if a += b; a != "" {
		last.Content = a
	}
	last.ToolCalls = append(last.ToolCalls, m.ToolCalls...)
	last.ReasoningContent += m.ReasoningContent
	last.Reasoning += m.Reasoning
	last.ReasoningDetails = append(last.ReasoningDetails, m.ReasoningDetails...)
	return list
}

func chatAssistant(m Message, state bool) chatMessage {
	a := chatMessage{Role: "assistant"}
	text := ""
	for _, p := range m.Parts {
		switch {
		case p.Thought != nil:
			if state {
				a.think(p.Thought)
			}
		case p.Call != nil:
			a.ToolCalls = append(a.ToolCalls, chatCall{chatID(p.Call.ID), "function", chatCallFunction{wireName(p.Call.Name), string(object(p.Call.Args))}})
		default:
			text += p.Text
		}
	}
	if !blank(text) {
		a.Content = text
	}
	return a
}

// think gives a thought back, to a server that named it.
func (a *chatMessage) think(t *Thought) {
	var s chatState
	if json.Unmarshal(t.State, &s) != nil {
		return
	}
	switch s.Field {
	case "reasoning_content":
		a.ReasoningContent += t.Text
	case "reasoning":
		a.Reasoning += t.Text
	}
	a.ReasoningDetails = append(a.ReasoningDetails, s.Details...)
}

// chatID is a call's id: nine letters and digits, the only form that all servers
// take.
func chatID(id string) string { return digest(id, 9) }

func chatResults(m Message, images bool) []chatMessage {
	var list []chatMessage
	var pictures []chatPart
	for _, p := range m.Parts {
		r := p.Result
		if r == nil {
			continue
		}
		text := r.Text
		for _, i := range r.Images {
			if !images {
				text += "\n" + i.words()
				continue
			}
			if len(pictures) == 0 {
				pictures = append(pictures, chatPart{Type: "text", Text: "The images of the results above:"})
			}
			pictures = append(pictures, chatPart{Type: "image_url", ImageURL: &chatImageURL{i.dataURL()}})
		}
		switch {
		case blank(text) && len(r.Images) > 0:
			text = "(an image, below)"
		case blank(text):
			text = noOutput
		}
		list = append(list, chatMessage{Role: "tool", ToolCallID: chatID(r.ID), Content: text})
	}
	if len(pictures) > 0 {
		list = append(list, chatMessage{Role: "user", Content: pictures})
	}
	return list
}

func chatParts(m Message, images bool) []chatPart {
	var parts []chatPart
	for _, p := range m.Parts {
		switch {
		case p.Image != nil && images:
			parts = append(parts, chatPart{Type: "image_url", ImageURL: &chatImageURL{p.Image.dataURL()}})
		case p.Image != nil:
			parts = append(parts, chatPart{Type: "text", Text: p.Image.words()})
		case !blank(p.Text):
			parts = append(parts, chatPart{Type: "text", Text: p.Text})
		}
	}
	return parts
}
