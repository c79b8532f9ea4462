package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"gladhand"
	"gladhand/acp"
	"gladhand/model"
	"gladhand/tool"
)

// forModel is how much of one tool result the model is given.
const forModel = 48 << 10

// The result of a call whose end is not known.
const interrupted = "Interrupted: this call did not end, and what it did is not known. Look before repeating it."

// transcript is the conversation as the model is given it. It is built live by
// the loop and from the log by recall, through the same methods.
type transcript struct {
	messages []model.Message
	open     []openCall // the calls of the last message
	userID   string     // what the last message was put together from, in recall
}

type openCall struct {
	id, name, text string
	failed, done   bool
}

// user adds what a person or another agent said.
func (t *transcript) user(turn gladhand.TurnID, text string) {
	t.settle()
	if text == "" {
		text = "(an empty message)"
	}
	t.messages = append(t.messages, model.Message{Role: model.User, Turn: turn, Parts: []model.Part{{Text: text}}})
}

// assistant is the message that the model's next words belong to.
func (t *transcript) assistant(turn gladhand.TurnID) *model.Message {
	n := len(t.messages)
	if n > 0 && t.messages[n-1].Turn != turn || slices.ContainsFunc(t.open, func(c openCall) bool { return c.done }) {
		t.settle()
	}
	n = len(t.messages)
	if n > 0 && t.messages[n-1].Role == model.Assistant && t.messages[n-1].Turn == turn {
		return &t.messages[n-1]
	}
	t.messages = append(t.messages, model.Message{Role: model.Assistant, Turn: turn})
	return &t.messages[n]
}

// text adds text of the model's.
func (t *transcript) text(turn gladhand.TurnID, text string) {
	if text == "" {
		return
	}
	m := t.assistant(turn)
	if n := len(m.Parts); n > 0 && m.Parts[n-1].Call == nil {
		m.Parts[n-1].Text += text
		return
	}
	m.Parts = append(m.Parts, model.Part{Text: text})
}

// call adds a call of the model's. Its arguments must be a JSON object.
func (t *transcript) call(turn gladhand.TurnID, c model.Call) {
	m := t.assistant(turn)
	m.Parts = append(m.Parts, model.Part{Call: &c})
	t.open = append(t.open, openCall{id: c.ID, name: c.Name})
}

// result ends a call. One that is not open is ignored.
func (t *transcript) result(id, text string, failed bool) {
	for i := range t.open {
		if c := &t.open[i]; c.id == id && !c.done {
			c.text, c.failed, c.done = tool.Cut(text, forModel), failed, true
		}
	}
}

// settle puts the results of the last message's calls behind it.
func (t *transcript) settle() {
	if len(t.open) == 0 {
		return
	}
	m := model.Message{Role: model.ToolRole, Turn: t.messages[len(t.messages)-1].Turn}
	for _, c := range t.open {
		if !c.done {
			c.text, c.failed = interrupted, true
		}
		m.Parts = append(m.Parts, model.Part{Result: &model.Result{ID: c.id, Name: c.name, Text: c.text, Failed: c.failed}})
	}
	t.messages, t.open = append(t.messages, m), nil
}

// conversation is what the model is given; it is not changed afterwards.
func (t *transcript) conversation() []model.Message {
	t.settle()
	return slices.Clip(t.messages)
}

// recall makes the transcript of the turns before t from the log.
func recall(ctx context.Context, t gladhand.Turn) (*transcript, error) {
	talk := &transcript{}
	shown := map[string]string{} // what each open call shows
	for e, err := range t.History(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if e.Turn == t.ID() {
			continue // this turn's prompts come from the turn itself
		}
		talk.fold(e, shown)
	}
	talk.settle()
	return talk, nil
}

// toolView is what of a tool call's updates matters to the model.
type toolView struct {
	ID        string          `json:"toolCallId"`
	Name      string          `json:"name"`
	Status    string          `json:"status"`
	RawInput  json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
	Content   []struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	} `json:"content"`
}

// fold adds one event. What is no part of the conversation is passed over.
func (t *transcript) fold(e *gladhand.Event, shown map[string]string) {
	if e.Version != acp.V1 {
		return
	}
	switch e.Tag {
	case acp.TagUserChunk:
		t.foldUser(e)
		return
	case acp.TagAgentChunk:
		t.text(e.Turn, acp.ChunkText(e))
	case acp.TagToolCall, acp.TagToolCallUpdate:
		var v toolView
		if json.Unmarshal(e.Update, &v) != nil {
			return
		}
		t.foldTool(e, v, shown)
	default:
		return
	}
	t.userID = ""
}

// foldUser adds a block of a prompt; the blocks of one prompt are one message.
func (t *transcript) foldUser(e *gladhand.Event) {
	var v struct {
		Content   json.RawMessage `json:"content"`
		MessageID string          `json:"messageId"`
	}
	if json.Unmarshal(e.Update, &v) != nil {
		return
	}
	text := acp.Text(v.Content)
	if v.MessageID != "" && v.MessageID == t.userID {
		if text != "" {
			t.messages[len(t.messages)-1].Parts[0].Text += "\n" + text
		}
		return
	}
	t.user(e.Turn, text)
	t.userID = v.MessageID
}

func (t *transcript) foldTool(e *gladhand.Event, v toolView, shown map[string]string) {
	if e.Tag == acp.TagToolCall {
		args := v.RawInput
		var object, malformed map[string]json.RawMessage
		if json.Unmarshal(args, &object) != nil || object == nil {
			args = json.RawMessage("{}")
		} else if json.Unmarshal(args, &malformed); len(malformed) == 1 && malformed["malformed"] != nil {
			args = json.RawMessage("{}")
		}
		if v.Name == "" {
			v.Name = "unknown"
		}
		t.call(e.Turn, model.Call{ID: v.ID, Name: v.Name, Args: args})
	}
	if v.Content != nil {
		var text strings.Builder
		for _, c := range v.Content {
			if c.Type == "content" {
				text.WriteString(acp.Text(c.Content))
			}
		}
		shown[v.ID] = text.String()
	}
	if v.Status == "completed" || v.Status == "failed" {
		text := shown[v.ID]
		var raw rawText
		if text == "" && json.Unmarshal(v.RawOutput, &raw) == nil {
			text = raw.Text
		}
		delete(shown, v.ID)
		t.result(v.ID, text, v.Status == "failed")
	}
}
