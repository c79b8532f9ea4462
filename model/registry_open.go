package model

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"gladhand"
)

// hosted is a model of a source. Its key and headers, which may be in the keyring,
// are looked for when it is asked for something, not before.
type hosted struct {
	r    *Registry
	s    *source
	name string // with the provider's
	id   string

	mu    sync.Mutex // guards what follows
	inner Model
	until time.Time // when the key is to be looked for again
}

// keyFresh is how long a key of the keyring is used before that is looked at again.
const keyFresh = time.Minute

// Name implements [Model].
func (h *hosted) Name() string { return h.name }

// Limits implements [Model]: what is known by now.
func (h *hosted) Limits() Limits {
	h.mu.Lock()
	inner := h.inner
	h.mu.Unlock()
	known := h.r.limits(h.s, h.id)
	if inner == nil {
		return known
	}
	return overlay(inner.Limits(), known)
}

// Generate implements [Model].
func (h *hosted) Generate(ctx context.Context, r Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		m, err := h.ready(ctx)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		m.Generate(ctx, r)(yield)
	}
}

// ready is the model with its key.
func (h *hosted) ready(ctx context.Context) (Model, error) {
	h.mu.Lock()
	inner, fresh := h.inner, !h.s.inKeyring() || time.Now().Before(h.until)
	h.mu.Unlock()
	if inner != nil && fresh {
		return inner, nil
	}
	e, err := h.r.endpoint(ctx, h.s, h.id)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = time.Now().Add(keyFresh)
	h.inner = speak(h.s.kind, e)
	return h.inner, nil
}

// inKeyring reports whether the key or a header is there, where it may change.
func (s *source) inKeyring() bool {
	in := func(v gladhand.Secret) bool { kind, _ := v.Reference(); return kind == "keyring" }
	for _, v := range s.headers {
		if in(v) {
			return true
		}
	}
	return in(s.key)
}

// speak is the model at an endpoint.
func speak(kind string, e Endpoint) Model {
	switch kind {
	case KindAnthropic:
		return NewAnthropic(e)
	case KindOpenAI:
		return NewOpenAIResponses(e)
	case KindGemini:
		return NewGemini(e)
	case KindOllama:
		return NewOllama(e)
	}
	return NewOpenAIChat(e)
}

// build makes a source's model.
func (r *Registry) build(s *source, id string) Model {
	return Retrying(&hosted{r: r, s: s, name: s.id + "/" + id, id: id}, Patience{})
}

// limits are what is known of a source's model by now.
func (r *Registry) limits(s *source, id string) Limits {
	r.mu.Lock()
	l := r.looks[s.id]
	r.mu.Unlock()
	list := s.models
	if l != nil {
		list = merge(list, l.models)
	}
	if i := slices.IndexFunc(list, func(m knownModel) bool { return m.id == id }); i >= 0 {
		return list[i].limits
	}
	return Limits{}
}

// endpoint is a source's, for a model, with its key and headers.
func (r *Registry) endpoint(ctx context.Context, s *source, id string) (Endpoint, error) {
	name := s.id
	if id != "" {
		name += "/" + id
	}
	keys := r.keys()
	key, err := keys.Resolve(ctx, s.key, s.id)
	if err != nil {
		return Endpoint{}, noKey(ctx, s, name, err)
	}
	e := Endpoint{
		Provider: s.id, Model: id, BaseURL: s.url, Limits: r.limits(s, id),
		Key: func() string { return key },
	}
	if s.needsKey && len(s.variables) > 0 {
		e.KeyEnv = s.variables[0]
	}
	for h, v := range s.headers {
		text, err := keys.Resolve(ctx, v, s.id)
		if err != nil {
			return Endpoint{}, noKey(ctx, s, name, err)
		}
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
		e.Headers[h] = text
	}
	r.mu.Lock()
	client := r.http
	r.mu.Unlock()
	if e.Client, err = client(); err != nil {
		return Endpoint{}, &Error{Kind: KindRequest, Model: name, Text: err.Error(), Mend: "`gladhand doctor` says more", Err: errFutile}
	}
	return e, nil
}

// noKey says that a source's key or a header is not to be found.
func noKey(ctx context.Context, s *source, name string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return ctx.Err()
	}
	mend := "Keep one: gladhand models key " + s.id
	if kind, variable := s.key.Reference(); kind == "env" {
		mend = "Set " + variable + " where the daemon is started, then: gladhand daemon restart"
	}
	return &Error{Kind: KindKey, Model: name, Text: err.Error(), Mend: mend, Err: err}
}
