package model

import "encoding/json"

// The request of the responses API, as far as we use it.
type (
	responsesRequest struct {
		Model           string           `json:"model"`
		Instructions    string           `json:"instructions,omitempty"`
		Input           []any            `json:"input"`
		Tools           []responsesTool  `json:"tools,omitempty"`
		Stream          bool             `json:"stream"`
		Store           bool             `json:"store"`
		Include         []string         `json:"include,omitempty"`
		Reasoning       *responsesReason `json:"reasoning,omitempty"`
		MaxOutputTokens int              `json:"max_output_tokens,omitempty"`
		PromptCacheKey  string           `json:"prompt_cache_key,omitempty"`
	}
	responsesReason struct {
		Effort  string `json:"effort,omitempty"`
		Summary string `json:"summary,omitempty"`
	}
	responsesTool struct {
		Type string `json:"type"`
		*openaiFunction
		// Strict is true when it is left out, and refuses most schemas.
		Strict bool `json:"strict"`
	}
	responsesMessage struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content []responsesPart `json:"content"`
	}
	responsesPart struct {
		Type     string `json:"type"`
		Text     string `json:"text,omitempty"`
		ImageURL string `json:"image_url,omitempty"`
		Detail   string `json:"detail,omitempty"`
	}
	responsesCall struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	responsesOutput struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output any    `json:"output"` // a string, or a list of parts
	}
)

func (o *openaiResponses) request(r Request) *responsesRequest {
	q := &responsesRequest{Model: o.e.Model, Stream: true, Input: responsesInput(r.Messages, o.e.Limits.Images), MaxOutputTokens: o.e.Limits.output(r)}
	if !blank(r.System) {
		q.Instructions = r.System
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, responsesTool{Type: "function", openaiFunction: &openaiFunction{wireName(t.Name), t.Description, t.schema()}})
	}
	if len(o.e.Limits.Efforts) > 0 { // it reasons; others refuse to be asked
		if !o.m.noInclude.Load() {
			q.Include = []string{"reasoning.encrypted_content"}
		}
		reason := responsesReason{}
		if !o.m.noEffort.Load() {
			reason.Effort = o.e.Limits.effort(r)
		}
		if !o.m.noSummary.Load() {
			reason.Summary = "auto"
		}
		if reason != (responsesReason{}) {
			q.Reasoning = &reason
		}
	}
	if !o.m.noCacheKey.Load() && len(r.Session) <= 64 {
		q.PromptCacheKey = r.Session
	}
	return q
}

// responsesInput is the conversation as items.
func responsesInput(messages []Message, images bool) []any {
	var list []any
	for _, m := range messages {
		switch m.Role {
		case ToolRole:
			for _, p := range m.Parts {
				if p.Result != nil {
					list = append(list, responsesResult(p.Result, images))
				}
			}
		case Assistant:
			list = append(list, responsesAssistant(m)...)
		default:
			if parts := responsesUser(m, images); len(parts) > 0 {
				list = append(list, responsesMessage{"message", "user", parts})
			}
		}
	}
	if len(list) == 0 {
		list = append(list, responsesMessage{"message", "user", []responsesPart{{Type: "input_text", Text: noText}}})
	}
	return list
}

func responsesUser(m Message, images bool) []responsesPart {
	var parts []responsesPart
	for _, p := range m.Parts {
		switch {
		case p.Image != nil:
			parts = append(parts, responsesPicture(*p.Image, images))
		case !blank(p.Text):
			parts = append(parts, responsesPart{Type: "input_text", Text: p.Text})
		}
	}
	return parts
}

func responsesPicture(i Image, images bool) responsesPart {
	if !images {
		return responsesPart{Type: "input_text", Text: i.words()}
	}
	return responsesPart{Type: "input_image", ImageURL: i.dataURL(), Detail: "auto"}
}

// responsesAssistant are a reply's items. Reasoning is only taken in front of
// what came of it, so one that the reply broke off behind is left out.
func responsesAssistant(m Message) []any {
	var list, thoughts []any
	for _, p := range m.Parts {
		var item any
		switch {
		case p.Thought != nil:
			if raw := responsesThought(p.Thought.State); raw != nil {
				thoughts = append(thoughts, raw)
			}
			continue
		case p.Call != nil:
			item = responsesCall{"function_call", wireID(p.Call.ID, 64), wireName(p.Call.Name), string(object(p.Call.Args))}
		case !blank(p.Text):
			item = responsesMessage{"message", "assistant", []responsesPart{{Type: "output_text", Text: p.Text}}}
		default:
			continue
		}
		list = append(append(list, thoughts...), item)
		thoughts = nil
	}
	return list
}

// responsesThought is a thought's state when it is one of this API's.
func responsesThought(state json.RawMessage) any {
	var i responsesItem
	if json.Unmarshal(state, &i) != nil || i.Type != "reasoning" || i.Encrypted == "" {
		return nil
	}
	return state
}

func responsesResult(r *Result, images bool) responsesOutput {
	out := responsesOutput{Type: "function_call_output", CallID: wireID(r.ID, 64), Output: r.Text}
	if blank(r.Text) {
		out.Output = noOutput
	}
	if len(r.Images) > 0 {
		var parts []responsesPart
		if !blank(r.Text) {
			parts = append(parts, responsesPart{Type: "input_text", Text: r.Text})
		}
		for _, i := range r.Images {
			parts = append(parts, responsesPicture(i, images))
		}
		out.Output = parts
	}
	return out
}
