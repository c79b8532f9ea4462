package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"time"
)

// openaiChat speaks OpenAI's chat completions, as so many servers do.
type openaiChat struct {
	e Endpoint
	m manners
}

// NewOpenAIChat returns a model behind OpenAI's chat completions, or one of the
// many servers that are like them. BaseURL has the version: "http://host:8080/v1".
func NewOpenAIChat(e Endpoint) Model { return &openaiChat{e: e} }

func (o *openaiChat) Name() string   { return o.e.Name() }
func (o *openaiChat) Limits() Limits { return o.e.Limits }

// Generate implements [Model].
func (o *openaiChat) Generate(ctx context.Context, r Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		in, err := o.open(ctx, r)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		defer in.Close()
		s := &chatReply{e: &o.e, in: in, tools: r.Tools, names: newWireNames(r.Tools), yield: yield}
		switch err := s.read(); {
		case err == nil:
			in.drain()
		case !errors.Is(err, errGone):
			yield(Chunk{}, err)
		}
	}
}

func (o *openaiChat) open(ctx context.Context, r Request) (*reply, error) {
	key, err := o.e.key()
	if err != nil {
		return nil, err
	}
	url, err := o.e.address(openaiURL, "/chat/completions")
	if err != nil {
		return nil, err
	}
	for {
		in, err := o.e.post(ctx, url, o.request(r), openaiAuth(key))
		if err == nil || !o.m.learn(err) {
			return in, err
		}
	}
}

// chatEvent is a piece of a reply, or, with Message in a choice, a whole one.
type chatEvent struct {
	Choices []struct {
		Delta        chatDelta  `json:"delta"`
		Message      *chatDelta `json:"message"`
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage      `json:"usage"`
	Error json.RawMessage `json:"error"`
	// A server's own way to say that it failed.
	Object  string `json:"object"`
	Message string `json:"message"`
}

type chatDelta struct {
	Content          looseText         `json:"content"`
	Refusal          string            `json:"refusal"`
	ReasoningContent string            `json:"reasoning_content"`
	Reasoning        looseText         `json:"reasoning"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []chatCallDelta   `json:"tool_calls"`
}

type chatCallDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached     int `json:"cached_tokens"`
		CacheWrite int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit int `json:"prompt_cache_hit_tokens"` // DeepSeek
}

// chatReply is a reply that is being read.
type chatReply struct {
	e     *Endpoint
	in    *reply
	tools []Tool
	names wireNames
	yield func(Chunk, error) bool

	said    strings.Builder // the text, to find calls in it
	thought chatThought
	slots   []*chatSlot
	usage   *chatUsage
	finish  string
	refused bool
	some    bool // something came
}

// chatSlot is a call that is being put together.
type chatSlot struct {
	index    int // -1: the server sends none
	id, name string
	args     []byte
}

// lingering is how long the usage may take behind the last word.
const lingering = 5 * time.Second

func (s *chatReply) send(c Chunk) error {
	if !s.yield(c, nil) {
		return errGone
	}
	return nil
}

func (s *chatReply) read() error {
	if s.in.isJSON() { // a server that does not stream
		raw, err := s.in.all(maxEvent)
		if err != nil {
			return err
		}
		if err := s.take(raw); err != nil {
			return err
		}
		return s.end()
	}
	for {
		if s.finish != "" {
			s.in.patience = lingering
		}
		ev, err := s.in.next()
		switch {
		case err != nil && s.in.ctx.Err() != nil:
			return err
		case err != nil && s.finish != "":
			return s.end() // all was said
		case errors.Is(err, io.EOF):
			return s.e.cut("the reply broke off: the stream ended in the middle", io.ErrUnexpectedEOF)
		case err != nil:
			return err
		case bytes.Equal(bytes.TrimSpace(ev.data), []byte("[DONE]")):
			if !s.some {
				return s.e.cut("the reply is empty", nil)
			}
			return s.end()
		case ev.name == "error":
			return s.e.complain(ev.data)
		}
		if err := s.take(ev.data); err != nil {
			return err
		}
	}
}

// take takes one piece.
func (s *chatReply) take(raw []byte) error {
	var e chatEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return s.e.cut("the reply makes no sense"+s.e.quote(string(raw)), err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" || e.Object == "error" || len(e.Choices) == 0 && e.Usage == nil && e.Message != "" {
		return s.e.complain(raw)
	}
	if e.Usage != nil {
		s.usage = e.Usage
	}
	if len(e.Choices) == 0 {
		return nil
	}
	c := e.Choices[0]
	s.some = true
	d := c.Delta
	if c.Message != nil {
		d = *c.Message
	}
	if c.FinishReason != "" {
		s.finish = c.FinishReason
	}
	return s.delta(d)
}

func (s *chatReply) delta(d chatDelta) error {
	if t := s.thought.add(d); t != "" {
		if err := s.send(Chunk{Thought: t}); err != nil {
			return err
		}
	}
	text := string(d.Content)
	if d.Refusal != "" {
		s.refused = true
		text += d.Refusal
	}
	if text != "" || len(d.ToolCalls) > 0 {
		if err := s.thinkingEnds(); err != nil {
			return err
		}
	}
	if text != "" {
		s.said.WriteString(text)
		if err := s.send(Chunk{Text: text}); err != nil {
			return err
		}
	}
	for _, c := range d.ToolCalls {
		s.call(c)
	}
	return nil
}

func (s *chatReply) thinkingEnds() error {
	if state := s.thought.end(); state != nil {
		return s.send(Chunk{State: state})
	}
	return nil
}

// call adds a piece of a call to the one it belongs to. Servers agree on little:
// ids and indexes are left out or repeated, names are repeated, calls come whole.
func (s *chatReply) call(d chatCallDelta) {
	slot := s.slot(d)
	if d.ID != "" {
		slot.id = d.ID
	}
	if slot.name == "" {
		slot.name = d.Function.Name
	}
	args := d.Function.Arguments
	var text string
	switch {
	case len(args) == 0 || string(args) == "null":
	case json.Unmarshal(args, &text) == nil:
		slot.args = append(slot.args, text...)
	default: // an object instead of its text
		slot.args = append(slot.args[:0], args...)
	}
}

// slot finds the call that d goes on with, or begins one.
func (s *chatReply) slot(d chatCallDelta) *chatSlot {
	var last *chatSlot
	if n := len(s.slots); n > 0 {
		last = s.slots[n-1]
	}
	index := -1
	if d.Index != nil {
		index = *d.Index
		last = nil
		for _, one := range s.slots {
			if one.index == index {
				last = one
			}
		}
	}
	switch {
	case last == nil,
		d.ID != "" && last.id != "" && d.ID != last.id, // an index that stands still
		index < 0 && d.Function.Name != "" && isObject(last.args),
		d.ID == "" && d.Function.Name != "" && d.Function.Name != last.name && isObject(last.args):
		last = &chatSlot{index: index}
		s.slots = append(s.slots, last)
	}
	return last
}

// end sends what is known only now.
func (s *chatReply) end() error {
	if err := s.thinkingEnds(); err != nil {
		return err
	}
	last := Chunk{Stop: StopEnd}
	switch s.finish {
	case "length", "max_tokens", "model_length":
		last.Stop = StopMaxTokens
	case "content_filter", "refusal", "sensitive":
		last.Stop = StopRefusal
	case "error", "insufficient_system_resource", "network_error":
		return s.e.fault(complaint{code: "server_error", message: s.finish})
	}
	if s.refused {
		last.Stop = StopRefusal
	}
	if s.usage != nil && s.usage.Prompt+s.usage.Completion > 0 {
		u := s.usage
		last.Usage = s.e.Limits.bill(Usage{
			Input: u.Prompt, Output: u.Completion,
			CacheRead: max(u.Details.Cached, u.CacheHit), CacheWrite: u.Details.CacheWrite,
		})
	}
	var calls []Call
	for _, c := range s.slots {
		if c.name == "" {
			return s.e.cut("the model wrote a tool call without a name", nil)
		}
		calls = append(calls, Call{Name: c.name, Args: c.args})
	}
	if !sendCalls(cutCalls(calls, last.Stop), s.names, s.yield) {
		return errGone
	}
	if len(calls) == 0 && last.Stop == StopEnd && writesCall(s.said.String(), s.tools) {
		if err := s.send(Chunk{Usage: last.Usage}); err != nil {
			return err
		}
		return s.e.cut(wroteCall, errWroteCall)
	}
	return s.send(last)
}

// chatThought collects what a server wants back of a thought: its text under the
// name that it came under, and OpenRouter's details.
type chatThought struct {
	field   string
	text    strings.Builder
	details []json.RawMessage
}

// chatState is a Thought's state.
type chatState struct {
	Field   string            `json:"field,omitempty"`
	Details []json.RawMessage `json:"details,omitempty"`
}

func (t *chatThought) add(d chatDelta) string {
	s := d.ReasoningContent
	field := "reasoning_content"
	if s == "" && d.Reasoning != "" {
		s, field = string(d.Reasoning), "reasoning"
	}
	if s != "" {
		t.field = field
		t.text.WriteString(s)
	}
	for _, one := range d.ReasoningDetails {
		t.detail(one)
	}
	return s
}

// detail adds a piece; pieces of one index are one detail.
func (t *chatThought) detail(raw json.RawMessage) {
	var next map[string]any
	if json.Unmarshal(raw, &next) != nil {
		return
	}
	if n := len(t.details); n > 0 {
		var last map[string]any
		if json.Unmarshal(t.details[n-1], &last) == nil && last["type"] == next["type"] && next["index"] != nil && last["index"] == next["index"] {
			for k, v := range next {
				old, _ := last[k].(string)
				more, isText := v.(string)
				switch {
				case isText && (k == "text" || k == "summary" || k == "data"):
					last[k] = old + more
				case v != nil:
					last[k] = v
				}
			}
			if merged, err := encode(last); err == nil {
				t.details[n-1] = merged
			}
			return
		}
	}
	t.details = append(t.details, bytes.Clone(raw))
}

// end is the thought's state, nil when there is no thought.
func (t *chatThought) end() json.RawMessage {
	if t.field == "" && len(t.details) == 0 {
		return nil
	}
	raw, err := encode(chatState{t.field, t.details})
	*t = chatThought{}
	if err != nil {
		return nil
	}
	return raw
}
