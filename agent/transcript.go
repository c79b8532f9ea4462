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
}

type openCall struct {
	id, name, text string
	images         []model.Image
	failed, done   bool
}

// user adds what a person or another agent said.
func (t *transcript) user(turn gladhand.TurnID, parts []model.Part) {
	t.settle()
	if len(parts) == 0 {
		parts = []model.Part{{Text: "(an empty message)"}}
	}
	t.messages = append(t.messages, model.Message{Role: model.User, Turn: turn, Parts: parts})
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
	// Calls are shown, and so recalled, behind all that their reply says.
	n := len(m.Parts)
	for n > 0 && m.Parts[n-1].Call != nil {
		n--
	}
	if n > 0 && m.Parts[n-1].Text != "" {
		m.Parts[n-1].Text += text
		return
	}
	m.Parts = slices.Insert(m.Parts, n, model.Part{Text: text})
}

// thought adds to what the model thinks; a state ends the thought.
func (t *transcript) thought(turn gladhand.TurnID, text string, state json.RawMessage) {
	m := t.assistant(turn)
	if n := len(m.Parts); n > 0 && m.Parts[n-1].Thought != nil && m.Parts[n-1].Thought.State == nil {
		th := *m.Parts[n-1].Thought
		th.Text += text
		th.State = state
		m.Parts[n-1].Thought = &th
		return
	}
	m.Parts = append(m.Parts, model.Part{Thought: &model.Thought{Text: text, State: state}})
}

// forget drops what belongs to a turn alone: the model's thoughts, and what a
// provider wants back with its calls.
func (t *transcript) forget() {
	t.settle()
	kept := t.messages[:0:0]
	for _, m := range t.messages {
		parts := m.Parts[:0:0]
		for _, p := range m.Parts {
			if p.Thought != nil {
				continue
			}
			if p.Call != nil && p.Call.State != nil {
				c := *p.Call
				c.State = nil
				p.Call = &c
			}
			parts = append(parts, p)
		}
		if m.Parts = parts; len(parts) > 0 {
			kept = append(kept, m)
		}
	}
	t.messages = kept
}

// mark is a place in the conversation between two replies.
type mark struct{ messages, parts, text int }

func (t *transcript) mark() mark {
	m := mark{messages: len(t.messages)}
	if n := len(t.messages); n > 0 {
		parts := t.messages[n-1].Parts
		if m.parts = len(parts); m.parts > 0 {
			m.text = len(parts[m.parts-1].Text)
		}
	}
	return m
}

// backTo forgets what came after a mark. At a mark no call is open.
func (t *transcript) backTo(m mark) {
	if len(t.open) > 0 && len(t.messages) > m.messages {
		t.open = nil
	}
	t.messages = t.messages[:m.messages:m.messages]
	if m.messages == 0 {
		return
	}
	last := &t.messages[m.messages-1]
	last.Parts = slices.Clone(last.Parts[:m.parts])
	if m.parts > 0 {
		last.Parts[m.parts-1].Text = last.Parts[m.parts-1].Text[:m.text]
	}
}

// remark adds a remark of ours to the last result.
func (t *transcript) remark(text string) {
	if n := len(t.open); n > 0 && t.open[n-1].done {
		t.open[n-1].text += "\n" + text
	}
}

// call adds a call of the model's. Its arguments must be a JSON object.
func (t *transcript) call(turn gladhand.TurnID, c model.Call) {
	m := t.assistant(turn)
	m.Parts = append(m.Parts, model.Part{Call: &c})
	t.open = append(t.open, openCall{id: c.ID, name: c.Name})
}

// result ends a call. One that is not open is ignored.
func (t *transcript) result(id, text string, images []tool.Image, failed bool) {
	for i := range t.open {
		if c := &t.open[i]; c.id == id && !c.done {
			c.text, c.failed, c.done = tool.Cut(text, forModel), failed, true
			for _, img := range images {
				c.images = append(c.images, model.Image(img))
			}
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
		m.Parts = append(m.Parts, model.Part{Result: &model.Result{ID: c.id, Name: c.name, Text: c.text, Images: c.images, Failed: c.failed}})
	}
	t.messages, t.open = append(t.messages, m), nil
}

// conversation is what the model is given; it is not changed afterwards.
func (t *transcript) conversation() []model.Message {
	t.settle()
	return slices.Clip(t.messages)
}

// recall makes the transcript of the turns before t from the snapshot and the log
// behind it. It also returns what the session has used, as far as the log tells.
func recall(ctx context.Context, t gladhand.Turn) (*transcript, spent, error) {
	talk, total := &transcript{}, spent{}
	snap, err := t.Snapshot(ctx)
	if err != nil {
		return nil, total, err
	}
	var after gladhand.Seq
	if snap != nil {
		if talk.messages, err = decodeSnapshot(snap.Data); err != nil {
			return nil, total, err
		}
		after = snap.Covers
	}
	f := fold{transcript: talk, shown: map[string]shownCall{}}
	for e, err := range t.History(ctx, after) {
		if err != nil {
			return nil, total, err
		}
		if e.Tag == acp.TagUsage {
			total = spentOf(e, total)
		}
		if e.Turn == t.ID() {
			continue // this turn's prompts come from the turn itself
		}
		f.event(e)
	}
	talk.settle()
	return talk, total, nil
}

// spentOf reads what a usage update of ours says of the session.
func spentOf(e *gladhand.Event, before spent) spent {
	var u struct {
		Meta struct {
			Gladhand *usageMeta `json:"gladhand"`
		} `json:"_meta"`
	}
	if json.Unmarshal(e.Update, &u) != nil || u.Meta.Gladhand == nil {
		return before
	}
	return u.Meta.Gladhand.Session
}

// fold puts a transcript together from the events of a log.
type fold struct {
	*transcript
	shown map[string]shownCall // what each open call shows
	// userID is what the last message was put together from.
	userID string
	// command is the turn of a slash command, which is no part of the conversation.
	command gladhand.TurnID
}

type shownCall struct {
	text   string
	images []tool.Image
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

// event adds one event. What is no part of the conversation is passed over.
func (f *fold) event(e *gladhand.Event) {
	if e.Tag == gladhand.TagTurnStart {
		var u gladhand.TurnUpdate
		if json.Unmarshal(e.Update, &u) == nil && u.Command != "" {
			f.command = e.Turn
		}
	}
	if e.Version != acp.V1 || e.Turn != 0 && e.Turn == f.command {
		return
	}
	switch e.Tag {
	case acp.TagUserChunk:
		f.user(e)
		return
	case acp.TagAgentChunk:
		f.text(e.Turn, acp.ChunkText(e))
	case acp.TagToolCall, acp.TagToolCallUpdate:
		var v toolView
		if json.Unmarshal(e.Update, &v) != nil {
			return
		}
		f.tool(e, v)
	default:
		return
	}
	f.userID = ""
}

// user adds a block of a prompt; the blocks of one prompt are one message.
func (f *fold) user(e *gladhand.Event) {
	var v struct {
		Content   json.RawMessage `json:"content"`
		MessageID string          `json:"messageId"`
	}
	if json.Unmarshal(e.Update, &v) != nil {
		return
	}
	parts := content(v.Content)
	if v.MessageID != "" && v.MessageID == f.userID {
		m := &f.messages[len(f.messages)-1]
		m.Parts = joinParts(m.Parts, parts)
		return
	}
	f.transcript.user(e.Turn, parts)
	f.userID = v.MessageID
}

func (f *fold) tool(e *gladhand.Event, v toolView) {
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
		f.call(e.Turn, model.Call{ID: v.ID, Name: v.Name, Args: args})
	}
	if v.Content != nil {
		f.shown[v.ID] = v.shown()
	}
	if v.Status == "completed" || v.Status == "failed" {
		shown := f.shown[v.ID]
		var raw rawText
		if shown.text == "" && json.Unmarshal(v.RawOutput, &raw) == nil {
			shown.text = raw.Text
		}
		delete(f.shown, v.ID)
		f.result(v.ID, shown.text, shown.images, v.Status == "failed")
	}
}

// shown is what a call's content says, and the images in it.
func (v toolView) shown() shownCall {
	var text strings.Builder
	var s shownCall
	for _, c := range v.Content {
		if c.Type != "content" {
			continue
		}
		parts := content(c.Content)
		for _, p := range parts {
			if p.Image != nil {
				s.images = append(s.images, tool.Image(*p.Image))
			}
			text.WriteString(p.Text)
		}
	}
	s.text = text.String()
	return s
}
