package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
)

// openaiResponses speaks OpenAI's responses API. Nothing is kept on their side:
// reasoning comes encrypted and goes back.
type openaiResponses struct {
	e Endpoint
	m manners
}

// NewOpenAIResponses returns a model behind OpenAI's responses API.
func NewOpenAIResponses(e Endpoint) Model { return &openaiResponses{e: e} }

func (o *openaiResponses) Name() string   { return o.e.Name() }
func (o *openaiResponses) Limits() Limits { return o.e.Limits }

// Generate implements [Model].
func (o *openaiResponses) Generate(ctx context.Context, r Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		in, err := o.open(ctx, r)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		defer in.Close()
		s := &responsesReply{e: &o.e, in: in, tools: r.Tools, names: newWireNames(r.Tools), yield: yield, spoken: map[string]bool{}}
		switch err := s.read(); {
		case err == nil:
			in.drain()
		case !errors.Is(err, errGone):
			yield(Chunk{}, err)
		}
	}
}

func (o *openaiResponses) open(ctx context.Context, r Request) (*reply, error) {
	key, err := o.e.key()
	if err != nil {
		return nil, err
	}
	url, err := o.e.address(openaiURL, "/responses")
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

// responsesEvent is any event of the stream.
type responsesEvent struct {
	Type     string          `json:"type"`
	Delta    looseText       `json:"delta"`
	ItemID   string          `json:"item_id"`
	Summary  int             `json:"summary_index"`
	Item     json.RawMessage `json:"item"`
	Response responsesAnswer `json:"response"`
}

// responsesKinds are the types of events that we read; others may have any shape.
var responsesKinds = []string{
	"response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta",
	"response.reasoning_summary_part.added", "response.output_item.added", "response.output_item.done",
	"response.completed", "response.incomplete", "response.done", "response.failed", "error",
}

type responsesAnswer struct {
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *responsesUsage `json:"usage"`
}

type responsesUsage struct {
	Input   int `json:"input_tokens"`
	Output  int `json:"output_tokens"`
	Details struct {
		Cached     int `json:"cached_tokens"`
		CacheWrite int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
}

// responsesItem is an output item, as far as we read it.
type responsesItem struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	CallID    string `json:"call_id"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Text string `json:"text"`
	} `json:"summary"`
}

// responsesReply is a reply that is being read.
type responsesReply struct {
	e     *Endpoint
	in    *reply
	tools []Tool
	names wireNames
	yield func(Chunk, error) bool

	said    strings.Builder
	spoken  map[string]bool // items whose text has been sent
	calls   []Call
	items   int // items that are done
	refused bool
}

func (s *responsesReply) send(c Chunk) error {
	if !s.yield(c, nil) {
		return errGone
	}
	return nil
}

func (s *responsesReply) read() error {
	if s.in.isJSON() {
		raw, err := s.in.all(maxEvent)
		if err != nil {
			return err
		}
		var a responsesAnswer
		if c, bad := readComplaint(0, raw); bad || json.Unmarshal(raw, &a) != nil {
			return s.e.fault(c)
		}
		return s.end(a, raw)
	}
	for {
		ev, err := s.in.next()
		switch {
		case errors.Is(err, io.EOF):
			return s.e.cut("the reply broke off: the stream ended in the middle", io.ErrUnexpectedEOF)
		case err != nil:
			return err
		case bytes.Equal(ev.data, []byte("[DONE]")):
			continue
		}
		var e responsesEvent
		if err := json.Unmarshal(ev.data, &e); err != nil {
			if k := kindOf(ev.data); k != "" && !slices.Contains(responsesKinds, k) {
				continue
			}
			return s.e.cut("the reply makes no sense"+s.e.quote(string(ev.data)), err)
		}
		if done, err := s.event(orElse(e.Type, ev.name), &e, ev.data); done || err != nil {
			return err
		}
	}
}

// event takes one event; done says that it was the last. Types that we do not
// know are left out.
func (s *responsesReply) event(kind string, e *responsesEvent, raw []byte) (done bool, err error) {
	switch kind {
	case "response.output_text.delta":
		return false, s.text(e.ItemID, string(e.Delta))
	case "response.refusal.delta":
		s.refused = true
		return false, s.text(e.ItemID, string(e.Delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return false, s.thought(e.ItemID, string(e.Delta))
	case "response.reasoning_summary_part.added":
		if e.Summary > 0 {
			return false, s.thought(e.ItemID, "\n\n")
		}
	case "response.output_item.added":
		var item responsesItem
		if json.Unmarshal(e.Item, &item) == nil && item.Type == "reasoning" {
			s.in.patience = max(s.in.patience, orElse(s.e.First, defaultFirst))
		}
	case "response.output_item.done":
		return false, s.item(e.Item)
	case "response.completed", "response.incomplete", "response.done":
		return true, s.end(e.Response, raw)
	case "response.failed", "error":
		return true, s.e.complain(raw)
	}
	return false, nil
}

func (s *responsesReply) text(item, text string) error {
	if text == "" {
		return nil
	}
	s.spoken[item] = true
	s.said.WriteString(text)
	return s.send(Chunk{Text: text})
}

func (s *responsesReply) thought(item, text string) error {
	if text == "" {
		return nil
	}
	s.spoken[item] = true
	return s.send(Chunk{Thought: text})
}

// item takes a whole item; what of it did not come in pieces is sent.
func (s *responsesReply) item(raw json.RawMessage) error {
	var i responsesItem
	if err := json.Unmarshal(raw, &i); err != nil {
		return s.e.cut("the reply makes no sense"+s.e.quote(string(raw)), err)
	}
	s.items++
	switch i.Type {
	case "message":
		if s.spoken[i.ID] {
			return nil
		}
		for _, c := range i.Content {
			s.refused = s.refused || c.Refusal != ""
			if err := s.text(i.ID, c.Text+c.Refusal); err != nil {
				return err
			}
		}
	case "reasoning":
		if !s.spoken[i.ID] {
			for n, t := range i.Summary {
				if n > 0 {
					t.Text = "\n\n" + t.Text
				}
				if err := s.thought(i.ID, t.Text); err != nil {
					return err
				}
			}
		}
		if i.Encrypted != "" { // otherwise it cannot be given back
			return s.send(Chunk{State: bytes.Clone(raw)})
		}
	case "function_call":
		s.calls = append(s.calls, Call{Name: i.Name, Args: json.RawMessage(i.Arguments)})
	}
	return nil
}

// end sends what is known only now.
func (s *responsesReply) end(a responsesAnswer, raw []byte) error {
	if s.items == 0 { // a server that sends no events of items
		for _, one := range a.Output {
			if err := s.item(one); err != nil {
				return err
			}
		}
	}
	last := Chunk{Stop: StopEnd}
	switch {
	case a.Status == "failed" || a.Status == "cancelled":
		return s.e.complain(raw)
	case s.refused || a.Incomplete.Reason == "content_filter":
		last.Stop = StopRefusal
	case a.Status == "incomplete":
		last.Stop = StopMaxTokens
	}
	if u := a.Usage; u != nil {
		last.Usage = s.e.Limits.bill(Usage{Input: u.Input, Output: u.Output, CacheRead: u.Details.Cached, CacheWrite: u.Details.CacheWrite})
	}
	for _, c := range s.calls {
		if c.Name == "" {
			return s.e.cut("the model wrote a tool call without a name", nil)
		}
	}
	if !sendCalls(cutCalls(s.calls, last.Stop), s.names, s.yield) {
		return errGone
	}
	if len(s.calls) == 0 && last.Stop == StopEnd && writesCall(s.said.String(), s.tools) {
		if err := s.send(Chunk{Usage: last.Usage}); err != nil {
			return err
		}
		return s.e.cut(wroteCall, errWroteCall)
	}
	return s.send(last)
}
