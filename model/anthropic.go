package model

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
)

// Where Anthropic is, and the version of its API that we speak.
const (
	anthropicURL     = "https://api.anthropic.com"
	anthropicHost    = "api.anthropic.com"
	anthropicVersion = "2026-10-21"
)

// anthropic speaks Anthropic's Messages API.
type anthropic struct{ e Endpoint }

// NewAnthropic returns a model behind Anthropic's Messages API, or a server that
// is like it.
func NewAnthropic(e Endpoint) Model { return &anthropic{e} }

func (a *anthropic) Name() string   { return a.e.Name() }
func (a *anthropic) Limits() Limits { return a.e.Limits }

// Generate implements [Model].
func (a *anthropic) Generate(ctx context.Context, r Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		in, err := a.open(ctx, r)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		defer in.Close()
		s := &anthropicReply{e: &a.e, in: in, names: newWireNames(r.Tools), yield: yield, blocks: map[int]*anthropicBlock{}}
		switch err := s.read(); {
		case err == nil:
			in.drain()
		case !errors.Is(err, errGone):
			yield(Chunk{}, err)
		}
	}
}

func (a *anthropic) open(ctx context.Context, r Request) (*reply, error) {
	key, err := a.e.key()
	if err != nil {
		return nil, err
	}
	url, err := a.e.address(anthropicURL, "/v1/messages")
	if err != nil {
		return nil, err
	}
	return a.e.post(ctx, url, a.request(r), func(h http.Header) {
		h.Set("Anthropic-Version", anthropicVersion)
		if key != "" {
			h.Set("X-Api-Key", key)
		}
	})
}

// anthropicEvent is any event of the stream.
type anthropicEvent struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message anthropicAnswer `json:"message"`
	Block   anthropicBlock  `json:"content_block"`
	Delta   struct {
		Type        string    `json:"type"`
		Text        looseText `json:"text"`
		Thinking    looseText `json:"thinking"`
		Signature   looseText `json:"signature"`
		PartialJSON looseText `json:"partial_json"`
		anthropicStop
	} `json:"delta"`
	Usage anthropicUsage `json:"usage"`
}

// anthropicKinds are the types of events that we read; others may have any shape.
var anthropicKinds = []string{"error", "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}

// anthropicAnswer is the message; its blocks are there only when the server did
// not stream.
type anthropicAnswer struct {
	Content []anthropicBlock `json:"content"`
	Usage   anthropicUsage   `json:"usage"`
	anthropicStop
}

type anthropicStop struct {
	StopReason  string `json:"stop_reason"`
	StopDetails struct {
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
}

// anthropicUsage has pointers: an event leaves out what did not change.
type anthropicUsage struct {
	Input      *int `json:"input_tokens"`
	Output     *int `json:"output_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      looseText       `json:"text"`
	Thinking  looseText       `json:"thinking"`
	Signature looseText       `json:"signature"`
	Data      looseText       `json:"data"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`

	json []byte // the input as it comes in pieces
}

// anthropicReply is a reply that is being read.
type anthropicReply struct {
	e     *Endpoint
	in    *reply
	names wireNames
	yield func(Chunk, error) bool

	blocks map[int]*anthropicBlock // open ones
	calls  []Call
	usage  Usage
	stop   anthropicStop
}

func (s *anthropicReply) send(c Chunk) error {
	if !s.yield(c, nil) {
		return errGone
	}
	return nil
}

func (s *anthropicReply) read() error {
	if s.in.isJSON() {
		return s.whole()
	}
	for {
		ev, err := s.in.next()
		if err != nil {
			if s.stop.StopReason != "" && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				return s.end() // all was said
			}
			if errors.Is(err, io.EOF) {
				return s.e.cut("the reply broke off: the stream ended in the middle", io.ErrUnexpectedEOF)
			}
			return err
		}
		var e anthropicEvent
		if err := json.Unmarshal(ev.data, &e); err != nil {
			if k := kindOf(ev.data); k != "" && !slices.Contains(anthropicKinds, k) {
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
func (s *anthropicReply) event(kind string, e *anthropicEvent, raw []byte) (done bool, err error) {
	switch kind {
	case "error":
		return true, s.e.complain(raw)
	case "message_start":
		s.count(e.Message.Usage)
	case "content_block_start":
		b := e.Block
		s.blocks[e.Index] = &b
		s.wait()
		if b.Text != "" {
			return false, s.send(Chunk{Text: string(b.Text)})
		}
		if b.Thinking != "" {
			return false, s.send(Chunk{Thought: string(b.Thinking)})
		}
	case "content_block_delta":
		return false, s.delta(e)
	case "content_block_stop":
		return false, s.close(e.Index)
	case "message_delta":
		s.count(e.Usage)
		if e.Delta.StopReason != "" {
			s.stop = e.Delta.anthropicStop
		}
	case "message_stop":
		return true, s.end()
	}
	s.wait()
	return false, nil
}

// wait gives time to a thought that the provider does not show.
func (s *anthropicReply) wait() {
	for _, b := range s.blocks {
		if b.Type == "thinking" || b.Type == "redacted_thinking" {
			s.in.patience = max(s.in.patience, orElse(s.e.First, defaultFirst))
		}
	}
}

func (s *anthropicReply) delta(e *anthropicEvent) error {
	b := s.blocks[e.Index]
	if b == nil {
		b = &anthropicBlock{}
		s.blocks[e.Index] = b
	}
	switch e.Delta.Type {
	case "text_delta":
		if e.Delta.Text != "" {
			return s.send(Chunk{Text: string(e.Delta.Text)})
		}
	case "thinking_delta":
		b.Thinking += e.Delta.Thinking
		if e.Delta.Thinking != "" {
			return s.send(Chunk{Thought: string(e.Delta.Thinking)})
		}
	case "signature_delta":
		b.Signature += e.Delta.Signature
	case "input_json_delta":
		b.json = append(b.json, e.Delta.PartialJSON...)
	}
	s.wait()
	return nil
}

// close ends a block.
func (s *anthropicReply) close(index int) error {
	b := s.blocks[index]
	delete(s.blocks, index)
	if b == nil {
		return nil
	}
	switch b.Type {
	case "thinking", "redacted_thinking":
		if state := b.state(); state != nil {
			return s.send(Chunk{State: state})
		}
	case "tool_use":
		args := json.RawMessage(b.json)
		if len(args) == 0 && string(b.Input) != "{}" {
			args = b.Input
		}
		s.calls = append(s.calls, Call{Name: b.Name, Args: slices.Clone(args)})
	}
	return nil
}

// state is a thought as Anthropic wants it back, nil when it does not.
func (b *anthropicBlock) state() json.RawMessage {
	var v any
	switch {
	case b.Type == "thinking" && b.Signature != "":
		v = anthropicThinking{"thinking", string(b.Thinking), string(b.Signature)}
	case b.Type == "redacted_thinking" && b.Data != "":
		v = anthropicRedacted{"redacted_thinking", string(b.Data)}
	default:
		return nil
	}
	raw, err := encode(v)
	if err != nil {
		return nil // strings only: it does not happen
	}
	return raw
}

func (s *anthropicReply) count(u anthropicUsage) {
	for _, c := range []struct {
		to   *int
		from *int
	}{{&s.usage.Input, u.Input}, {&s.usage.Output, u.Output}, {&s.usage.CacheRead, u.CacheRead}, {&s.usage.CacheWrite, u.CacheWrite}} {
		if c.from != nil {
			*c.to = *c.from
		}
	}
}

// whole takes a reply that came in one piece.
func (s *anthropicReply) whole() error {
	raw, err := s.in.all(maxEvent)
	if err != nil {
		return err
	}
	var m anthropicAnswer
	if c, bad := readComplaint(0, raw); bad {
		return s.e.fault(c)
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return s.e.cut("the reply makes no sense"+s.e.quote(string(raw)), err)
	}
	s.count(m.Usage)
	s.stop = m.anthropicStop
	for i, b := range m.Content {
		s.blocks[i] = &b
		if b.Text != "" || b.Thinking != "" {
			if err := s.send(Chunk{Text: string(b.Text), Thought: string(b.Thinking)}); err != nil {
				return err
			}
		}
		if err := s.close(i); err != nil {
			return err
		}
	}
	return s.end()
}

// end sends what is known only now.
func (s *anthropicReply) end() error {
	for len(s.blocks) > 0 { // of a server that does not end them
		first := -1
		for i := range s.blocks {
			if first < 0 || i < first {
				first = i
			}
		}
		if err := s.close(first); err != nil {
			return err
		}
	}
	last := Chunk{Stop: StopEnd}
	switch s.stop.StopReason {
	case "max_tokens", "model_context_window_exceeded":
		last.Stop = StopMaxTokens
	case "refusal":
		last.Stop = StopRefusal
		last.Notice = s.e.plain(s.stop.StopDetails.Explanation)
	}
	if !sendCalls(cutCalls(s.calls, last.Stop), s.names, s.yield) {
		return errGone
	}
	u := s.usage
	u.Input += u.CacheRead + u.CacheWrite
	if u.Input+u.Output > 0 {
		last.Usage = s.e.Limits.bill(u)
	}
	return s.send(last)
}
