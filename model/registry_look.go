package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// lookTime bounds one look at one provider.
	lookTime = 2 * time.Second
	// lookFresh is how long what was seen is good enough not to be looked at again
	// behind somebody's back; nobody asking is nobody looking.
	lookFresh = 10 * time.Second
	// listMax bounds a server's list of models, in bytes.
	listMax = 4 << 20
)

// look is what a provider's server, or the keyring, said last.
type look struct {
	at      time.Time
	models  []knownModel
	noTools map[string]bool
	cards   map[string]*ollamaCard // of Ollama's models, by id
	err     *Error                 // nil: it answered
}

// look has every provider that is asked for its models asked in the background,
// unless that was done a moment ago. The channel is closed when that is done; nil
// means that all is fresh.
func (r *Registry) look() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking != nil {
		return r.asking
	}
	if !r.seen.IsZero() && time.Since(r.seen) < lookFresh {
		return nil
	}
	done, epoch := make(chan struct{}), r.epoch
	r.asking = done
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*lookTime)
		defer cancel()
		r.refresh(ctx, false)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asking = nil
		if epoch == r.epoch {
			r.seen = time.Now()
		}
		close(done)
	}()
	return done
}

// stale has a provider looked at again soon.
func (r *Registry) stale(string) {
	r.mu.Lock()
	r.seen = time.Time{}
	r.mu.Unlock()
	r.look()
}

// said reports whether a source's server has said which models it has.
func (r *Registry) said(s *source) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.looks[s.id]
	return l != nil && l.err == nil && (len(l.models) > 0 || s.kind == KindOllama)
}

// Refresh asks every provider's server that is asked for its models, and looks
// whether the keyring has the keys that the settings say it has. It takes 2 s at
// most for each, all at once, or until ctx ends.
func (r *Registry) Refresh(ctx context.Context) {
	r.mu.Lock()
	asking := r.asking
	r.mu.Unlock()
	if asking != nil { // not twice at once
		select {
		case <-asking:
		case <-ctx.Done():
			return
		}
	}
	r.refresh(ctx, true)
	if ctx.Err() == nil {
		r.mu.Lock()
		r.seen = time.Now()
		r.mu.Unlock()
	}
}

func (r *Registry) refresh(ctx context.Context, keyring bool) {
	o, _ := r.options()
	var all sync.WaitGroup
	for _, s := range r.sources() {
		kind, _ := s.key.Reference()
		if s.why != "" || !s.asks && (!keyring || kind != "keyring") {
			continue
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, lookTime)
			defer cancel()
			l := r.lookAt(ctx, s)
			l.at = time.Now()
			r.mu.Lock()
			defer r.mu.Unlock()
			if sameProvider(o, r.o, s.id) {
				r.looks[s.id] = l
			}
		})
	}
	all.Wait()
}

// lookAt asks one provider.
func (r *Registry) lookAt(ctx context.Context, s *source) *look {
	l := &look{}
	e, err := r.endpoint(ctx, s, "")
	if err == nil && s.asks {
		switch s.kind {
		case KindOllama:
			r.mu.Lock()
			before := r.looks[s.id]
			r.mu.Unlock()
			err = l.askOllama(ctx, e, before)
		default:
			err = l.askOpenAI(ctx, e)
		}
	}
	if err != nil && !errors.As(err, &l.err) {
		l.err = &Error{Kind: KindOffline, Model: s.id, Text: "it did not answer in time", Mend: "Look whether it runs at " + s.url, Err: err}
	}
	return l
}

// getJSON reads what is at a path of the endpoint.
func (e *Endpoint) getJSON(ctx context.Context, vendor, path string, v any) error {
	key, err := e.key()
	if err != nil {
		return err
	}
	address, err := e.address(vendor, path)
	if err != nil {
		return err
	}
	in, err := e.get(ctx, address, openaiAuth(key))
	if err != nil {
		return err
	}
	defer in.Close()
	raw, err := in.all(listMax)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return &Error{Kind: KindRequest, Model: e.Provider, Text: "its list of models makes no sense", Mend: "Check providers." + e.Provider + ".url", Err: errFutile}
	}
	return nil
}

// askOpenAI reads the list of models of a compatible server. One without a list
// is no fault: its models are named in the settings, or used by name.
func (l *look) askOpenAI(ctx context.Context, e Endpoint) error {
	var list struct {
		Data []struct {
			ID string `json:"id"`
			// What several servers say beside it, each in its own word.
			MaxModelLen   int `json:"max_model_len"`      // vLLM
			ContextLength int `json:"context_length"`     // OpenRouter and its kin
			MaxContext    int `json:"max_context_length"` // LM Studio
			Meta          struct {
				Train int `json:"n_ctx_train"` // llama.cpp
				Now   int `json:"n_ctx"`
			} `json:"meta"`
		} `json:"data"`
	}
	err := e.getJSON(ctx, openaiURL, "/models", &list)
	var fault *Error
	if errors.As(err, &fault) && (fault.Status == http.StatusNotFound || fault.Status == http.StatusMethodNotAllowed || fault.Status == http.StatusNotImplemented) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, m := range list.Data {
		if m.ID == "" || len(m.ID) > 200 || strings.ContainsFunc(m.ID, func(r rune) bool { return r <= ' ' || r == 0x7f }) || len(l.models) >= 1000 {
			continue
		}
		window := 0
		for _, n := range []int{m.MaxModelLen, m.ContextLength, m.MaxContext, m.Meta.Now, m.Meta.Train} {
			if n > 0 {
				window = n
				break
			}
		}
		l.models = append(l.models, knownModel{id: m.ID, limits: Limits{Window: window}})
	}
	return nil
}

// askOllama reads which models are installed, and what each can do.
func (l *look) askOllama(ctx context.Context, e Endpoint, before *look) error {
	var tags struct {
		Models []struct {
			Name   string `json:"name"`
			Digest string `json:"digest"`
		} `json:"models"`
	}
	if err := e.getJSON(ctx, ollamaVendor, "/api/tags", &tags); err != nil {
		return ollamaFault(&e, err)
	}
	l.noTools, l.cards = map[string]bool{}, map[string]*ollamaCard{}
	cards := make([]*ollamaCard, len(tags.Models))
	var all sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i, m := range tags.Models {
		if before != nil {
			if c := before.cards[m.Name]; c != nil && c.digest != "" && c.digest == m.Digest {
				cards[i] = c
				continue
			}
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if c, err := showOllama(ctx, e, m.Name); err == nil {
				c.digest = m.Digest
				cards[i] = c
			}
		})
	}
	all.Wait()
	for i, m := range tags.Models {
		c := cards[i]
		if c == nil { // it did not answer for this one; it is there all the same
			l.models = append(l.models, knownModel{id: m.Name})
			continue
		}
		l.cards[m.Name] = c
		if !c.talks {
			continue // it embeds, or paints
		}
		l.noTools[m.Name] = !c.tools
		l.models = append(l.models, knownModel{id: m.Name, limits: c.limits()})
	}
	return nil
}
