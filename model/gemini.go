package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
)

const geminiVendor = "https://generativelanguage.googleapis.com"

// gemini speaks Google's streamGenerateContent.
type gemini struct{ e Endpoint }

// NewGemini returns a model of Gemini's API, or of a server that speaks it.
func NewGemini(e Endpoint) Model {
	e.Model = strings.TrimPrefix(e.Model, "models/")
	return &gemini{e}
}

// Name implements [Model].
func (g *gemini) Name() string { return g.e.Name() }

// Limits implements [Model].
func (g *gemini) Limits() Limits { return g.e.Limits }

// Generate implements [Model].
func (g *gemini) Generate(ctx context.Context, r Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if err := g.generate(ctx, r, func(c Chunk) bool { return yield(c, nil) }); err != nil && !errors.Is(err, errGone) {
			yield(Chunk{}, err)
		}
	}
}

func (g *gemini) generate(ctx context.Context, r Request, yield func(Chunk) bool) error {
	key, err := g.e.key()
	if err != nil {
		return err
	}
	address, err := g.e.address(geminiVendor, "/v1beta/models/"+g.e.Model+":streamGenerateContent")
	if err != nil {
		return err
	}
	in, err := g.e.post(ctx, address+"?alt=sse", newGeminiRequest(g.e.Model, g.e.Limits, r), func(h http.Header) {
		if key != "" { // in a header: an address ends up in logs
			h.Set("x-goog-api-key", key)
		}
	})
	if err != nil {
		return err
	}
	defer in.Close()
	s := geminiStream{e: &g.e, names: newWireNames(r.Tools), yield: yield}
	if in.isJSON() { // a server that does not stream
		raw, err := in.all(maxEvent)
		if err != nil {
			return err
		}
		if err := s.whole(raw); err != nil {
			return err
		}
		return s.end()
	}
	for {
		ev, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return s.end()
		case err != nil:
			return err
		}
		if bytes.Equal(ev.data, []byte("[DONE]")) { // of servers that are like it
			continue
		}
		if err := s.take(ev.data); err != nil {
			return err
		}
	}
}

// geminiEvent is a piece of a reply.
type geminiEvent struct {
	Candidates []struct {
		Content geminiContent `json:"content"`
		Finish  string        `json:"finishReason"`
		Message string        `json:"finishMessage"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *geminiUsage    `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

type geminiUsage struct {
	Prompt    int `json:"promptTokenCount"`
	Tools     int `json:"toolUsePromptTokenCount"`
	Cached    int `json:"cachedContentTokenCount"`
	Candidate int `json:"candidatesTokenCount"`
	Thoughts  int `json:"thoughtsTokenCount"`
}

// geminiStream puts a reply together.
type geminiStream struct {
	e      *Endpoint
	names  wireNames
	yield  func(Chunk) bool
	finish string
	said   string // what the provider says about the finish
	usage  *geminiUsage
}

func (s *geminiStream) send(c Chunk) error {
	if !s.yield(c) {
		return errGone
	}
	return nil
}

// whole takes a reply that came in one piece, or as a list of pieces.
func (s *geminiStream) whole(raw []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, one := range list {
		if err := s.take(one); err != nil {
			return err
		}
	}
	return nil
}

func (s *geminiStream) take(raw []byte) error {
	var ev geminiEvent
	if err := json.Unmarshal(raw, &ev); err != nil {
		return s.e.cut("the reply makes no sense", err)
	}
	if len(ev.Error) > 0 && !bytes.Equal(ev.Error, []byte("null")) {
		return s.e.complain(raw)
	}
	if ev.Usage != nil {
		s.usage = ev.Usage
	}
	if b := ev.Feedback.Block; b != "" && b != "BLOCK_REASON_UNSPECIFIED" {
		s.finish = "SAFETY"
		if err := s.send(Chunk{Notice: "the provider blocked the request (" + s.e.plain(b) + ")"}); err != nil {
			return err
		}
	}
	if len(ev.Candidates) == 0 {
		return nil
	}
	c := ev.Candidates[0]
	for _, p := range c.Content.Parts {
		if err := s.part(p); err != nil {
			return err
		}
	}
	if c.Finish != "" && c.Finish != "FINISH_REASON_UNSPECIFIED" {
		s.finish, s.said = c.Finish, c.Message
	}
	return nil
}

func (s *geminiStream) part(p geminiPart) error {
	var c Chunk
	switch {
	case p.Call != nil:
		c.Call = &Call{Name: s.names.ours(p.Call.Name), Args: object(p.Call.Args), State: p.state(p.Call.ID)}
		if bytes.Equal(c.Call.Args, []byte("null")) {
			c.Call.Args = json.RawMessage("{}")
		}
		return s.send(c)
	case p.Text == nil:
	case p.Thought:
		c.Thought = *p.Text
	default:
		c.Text = *p.Text
	}
	if c.Text != "" && p.Signature != "" { // the text goes first: the state is a thought behind it
		if err := s.send(c); err != nil {
			return err
		}
		c = Chunk{}
	}
	c.State = p.state("")
	if c.Text == "" && c.Thought == "" && c.State == nil {
		return nil
	}
	return s.send(c)
}

func (p geminiPart) state(id string) json.RawMessage {
	if p.Signature == "" && id == "" {
		return nil
	}
	raw, err := json.Marshal(geminiState{p.Signature, id})
	if err != nil {
		return nil // cannot be: two strings
	}
	return raw
}

// end closes the reply.
func (s *geminiStream) end() error {
	if s.usage != nil {
		u := Usage{Input: s.usage.Prompt + s.usage.Tools, Output: s.usage.Candidate + s.usage.Thoughts, CacheRead: s.usage.Cached}
		if err := s.send(Chunk{Usage: s.e.Limits.bill(u)}); err != nil {
			return err
		}
	}
	stop := StopEnd
	switch s.finish {
	case "":
		return s.e.cut("the reply has no end", nil)
	case "STOP":
	case "MAX_TOKENS", "CONTINUATION":
		stop = StopMaxTokens
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return s.e.cut("the model wrote a tool call that makes no sense ("+s.e.plain(s.finish)+")", errors.New(s.e.plain(s.said)))
	case "OTHER":
		return s.e.cut("the reply was ended for a reason that was not told", nil)
	default: // SAFETY, RECITATION, BLOCKLIST, PROHIBITED_CONTENT, SPII, LANGUAGE, IMAGE_…, and new ones
		stop = StopRefusal
	}
	return s.send(Chunk{Stop: stop})
}
