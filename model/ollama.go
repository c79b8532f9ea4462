package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const ollamaVendor = "http://127.0.0.1:11434"

// ollama speaks Ollama's own API: its compatible one cannot set the size of the
// context, and what does not fit is cut off in silence.
type ollama struct {
	e Endpoint

	mu   sync.Mutex // guards what follows
	card *ollamaCard
	// room is the largest context that was asked for: a smaller one would have the
	// model loaded anew, and the larger one again soon after.
	room int
}

// NewOllama returns an installed model of an Ollama server. Limits.Window, where it
// is known, bounds the context that is asked for; the model's own does anyway.
func NewOllama(e Endpoint) Model {
	e.Model = withTag(e.Model)
	if e.First == 0 {
		e.First = 15 * time.Minute // a large model is loaded from a slow disk, and reads at leisure
	}
	return &ollama{e: e}
}

// Name implements [Model].
func (o *ollama) Name() string { return o.e.Name() }

// Limits implements [Model].
func (o *ollama) Limits() Limits {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.card == nil {
		return o.e.Limits
	}
	return overlay(o.card.limits(), o.e.Limits)
}

// Generate implements [Model].
func (o *ollama) Generate(ctx context.Context, r Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if err := o.generate(ctx, r, func(c Chunk) bool { return yield(c, nil) }); err != nil && !errors.Is(err, errGone) {
			yield(Chunk{}, err)
		}
	}
}

func (o *ollama) generate(ctx context.Context, r Request, yield func(Chunk) bool) error {
	card, err := o.know(ctx)
	if err != nil {
		return err
	}
	for {
		in, window, err := o.ask(ctx, card, r)
		if err != nil {
			if less := card.without(err); less != nil { // it can do less than was thought
				card = less
				o.mu.Lock()
				o.card = card
				o.mu.Unlock()
				continue
			}
			return err
		}
		defer in.Close()
		return o.read(in, yield, r.Tools, window)
	}
}

// know asks once what the model can do.
func (o *ollama) know(ctx context.Context) (*ollamaCard, error) {
	o.mu.Lock()
	card := o.card
	o.mu.Unlock()
	if card != nil {
		return card, nil
	}
	card, err := showOllama(ctx, o.e, o.e.Model)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.card = card
	return card, nil
}

// ask sends the request, with a context that it fits into. R193.
func (o *ollama) ask(ctx context.Context, card *ollamaCard, r Request) (*reply, int, error) {
	limits := o.Limits()
	body := newOllamaRequest(o.e.Model, card, limits, r)
	most := orElse(limits.Window, ollamaLeast)
	if card.window > 0 {
		most = min(most, card.window)
	}
	n := body.tokens()
	room := ollamaRoom(n, limits.Output, most)
	if room == 0 {
		return nil, 0, &Error{
			Kind: KindOverflow, Model: o.e.Name(),
			Text: fmt.Sprintf("the conversation is about %d tokens, and the model takes %d with its reply", n, most),
			Mend: "Shorten it with /compact, or choose a model with a larger window",
		}
	}
	o.mu.Lock()
	o.room = min(max(o.room, room), most)
	body.Options = ollamaOptions{Context: o.room, Output: limits.Output}
	o.mu.Unlock()
	in, err := o.e.postOllama(ctx, "/api/chat", body)
	return in, body.Options.Context, err
}

// ollamaEvent is a line of a reply.
type ollamaEvent struct {
	Message struct {
		Content  string           `json:"content"`
		Thinking string           `json:"thinking"`
		Calls    []ollamaToolCall `json:"tool_calls"`
	} `json:"message"`
	Done   bool            `json:"done"`
	Reason string          `json:"done_reason"`
	Input  int             `json:"prompt_eval_count"`
	Output int             `json:"eval_count"`
	Error  json.RawMessage `json:"error"`
}

func (o *ollama) read(in *reply, yield func(Chunk) bool, tools []Tool, window int) error {
	in.useLines()
	names := newWireNames(tools)
	var text strings.Builder // R196
	called := false
	for {
		ev, err := in.next()
		if errors.Is(err, io.EOF) {
			return o.e.cut("the reply has no end", nil)
		}
		if err != nil {
			return err
		}
		var line ollamaEvent
		if err := json.Unmarshal(ev.data, &line); err != nil {
			return o.e.cut("the reply makes no sense", err)
		}
		if len(line.Error) > 0 && !bytes.Equal(line.Error, []byte("null")) {
			return ollamaFault(&o.e, o.e.complain(ev.data))
		}
		if line.Message.Thinking != "" && !yield(Chunk{Thought: line.Message.Thinking}) {
			return errGone
		}
		if line.Message.Content != "" {
			text.WriteString(line.Message.Content)
			if !yield(Chunk{Text: line.Message.Content}) {
				return errGone
			}
		}
		for _, c := range line.Message.Calls {
			called = true
			if !yield(Chunk{Call: &Call{Name: names.ours(c.Function.Name), Args: ollamaArgs(c.Function.Args)}}) {
				return errGone
			}
		}
		if line.Done {
			if !called && writesCall(text.String(), tools) {
				return o.e.cut(wroteCall, errWroteCall)
			}
			return o.end(line, yield, window)
		}
	}
}

func (o *ollama) end(line ollamaEvent, yield func(Chunk) bool, window int) error {
	if line.Input > 0 || line.Output > 0 {
		u := o.Limits().bill(Usage{Input: line.Input, Output: line.Output})
		u.Window = orElse(u.Window, window)
		if !yield(Chunk{Usage: u}) {
			return errGone
		}
	}
	stop := StopEnd
	if line.Reason == "length" {
		stop = StopMaxTokens
	}
	yield(Chunk{Stop: stop})
	return nil
}

// ollamaArgs are a call's arguments: an object, or a string that holds one.
func ollamaArgs(raw json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		raw = json.RawMessage(s)
	}
	if len(bytes.TrimSpace(raw)) == 0 || bytes.Equal(raw, []byte("null")) {
		return json.RawMessage("{}")
	}
	return raw
}

// postOllama sends a request; errors are Ollama's in words for people.
func (e *Endpoint) postOllama(ctx context.Context, path string, body any) (*reply, error) {
	key, err := e.key()
	if err != nil {
		return nil, err
	}
	address, err := e.address(ollamaVendor, path)
	if err != nil {
		return nil, err
	}
	in, err := e.post(ctx, address, body, openaiAuth(key))
	if err != nil {
		return nil, ollamaFault(e, err)
	}
	return in, nil
}

// showOllama asks what a model can do.
func showOllama(ctx context.Context, e Endpoint, name string) (*ollamaCard, error) {
	e.Model = name
	in, err := e.postOllama(ctx, "/api/show", map[string]string{"model": name})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	raw, err := in.all(listMax)
	if err != nil {
		return nil, err
	}
	var show struct {
		Capabilities []string                   `json:"capabilities"`
		Template     string                     `json:"template"`
		Info         map[string]json.RawMessage `json:"model_info"`
		Details      struct {
			Family string `json:"family"`
		} `json:"details"`
	}
	if err := json.Unmarshal(raw, &show); err != nil {
		return nil, e.cut("what the server says of the model makes no sense", err)
	}
	c := &ollamaCard{}
	for name, v := range show.Info {
		var n int
		if strings.HasSuffix(name, ".context_length") && json.Unmarshal(v, &n) == nil && n > c.window {
			c.window = n
		}
	}
	if show.Capabilities == nil { // a server of before 2025 says it in the template
		c.talks, c.tools = true, strings.Contains(show.Template, ".Tools")
		return c, nil
	}
	for _, can := range show.Capabilities {
		switch can {
		case "completion":
			c.talks = true
		case "tools":
			c.tools = true
		case "vision":
			c.vision = true
		case "thinking":
			c.thinks = true
		}
	}
	c.levels = c.thinks && strings.HasPrefix(show.Details.Family, "gptoss")
	return c, nil
}

// without is the card of a model that has refused what the card says it can do,
// or nil when err says nothing of the kind.
func (c *ollamaCard) without(err error) *ollamaCard {
	var fault *Error
	if !errors.As(err, &fault) || fault.Status != http.StatusBadRequest {
		return nil
	}
	less := *c
	switch {
	case c.tools && strings.Contains(fault.Text, "does not support tools"):
		less.tools = false
	case c.thinks && strings.Contains(fault.Text, "does not support thinking"):
		less.thinks, less.levels = false, false
	default:
		return nil
	}
	return &less
}

// ollamaFault makes an error of Ollama's what it is: its statuses are few.
func ollamaFault(e *Endpoint, err error) error {
	var fault *Error
	if !errors.As(err, &fault) {
		return err
	}
	has := func(s string) bool { return strings.Contains(strings.ToLower(fault.Text), s) }
	switch {
	case fault.Kind == KindOffline:
		fault.Text = "nobody answers at " + shownAddress(e.BaseURL, ollamaVendor) + "; is Ollama running?"
		fault.Mend = "Start it: ollama serve"
	case fault.Status == http.StatusNotFound, has("not found, try pulling it"):
		fault.Kind, fault.Mend = KindModel, "Get it: ollama pull "+e.Model
	case has("exceed_context_size"), has("exceeds the available context size"), has("context length"):
		fault.Kind, fault.Mend = KindOverflow, "Shorten the conversation with /compact, or choose a model with a larger window"
	case has("more system memory"), has("out of memory"), has("unable to load"), has("unable to allocate"):
		fault.Kind = KindRequest
		fault.Mend = "Choose a smaller model, or bound its context: the setting providers." + e.Provider + ".models with its id and a window"
	}
	return fault
}

// shownAddress is an address without anything secret in it.
func shownAddress(base, vendor string) string {
	u, err := url.Parse(orElse(base, vendor))
	if err != nil || u.Host == "" {
		return "its address"
	}
	return u.Scheme + "://" + u.Host
}

// ollamaHost makes an address of what OLLAMA_HOST may be: a host, a host and port,
// a port alone, or an address. Where a server listens on all interfaces, we reach
// it on this machine.
func ollamaHost(s string) string {
	scheme, rest, ok := strings.Cut(strings.Trim(strings.TrimSpace(s), `"'`), "://")
	port := "11434"
	switch {
	case !ok:
		scheme, rest = "http", scheme
	case scheme == "http":
		port = "80"
	case scheme == "https":
		port = "443"
	}
	hostport, path, slash := strings.Cut(rest, "/")
	host, p, err := net.SplitHostPort(hostport)
	if err == nil {
		port = p
	} else {
		host = strings.Trim(hostport, "[]")
	}
	switch host {
	case "", "0.0.0.0", "::":
		host = "127.0.0.1"
	}
	if slash {
		path = "/" + strings.TrimRight(path, "/")
	}
	out := scheme + "://" + net.JoinHostPort(host, port)
	if scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		out = strings.TrimSuffix(out, ":"+port)
	}
	return strings.TrimRight(out+path, "/")
}

// withTag is a model's name in full: Ollama's default tag is "latest".
func withTag(name string) string {
	if name == "" || strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		return name
	}
	return name + ":latest"
}
