package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/store"
)

// agentFunc is a scripted agent.
type agentFunc func(context.Context, gladhand.Turn) (gladhand.StopReason, error)

func (f agentFunc) Run(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
	return f(ctx, t)
}
func (agentFunc) Close() error { return nil }

// bench is a host over a real store in a temporary directory.
type bench struct {
	t     *testing.T
	dir   string
	store *store.Store
	host  *Host
	agent agentFunc
	opts  Options
}

func newBench(t *testing.T, agent agentFunc, o Options) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), agent: agent, opts: o}
	b.opts.NewAgent = func(context.Context, gladhand.SessionInfo) (Agent, error) { return b.agent, nil }
	b.opts.Models = Fixed{{ID: "scripted"}}
	b.start()
	t.Cleanup(func() { b.stop() })
	return b
}

func (b *bench) start() {
	b.t.Helper()
	st, err := store.Open(context.Background(), b.dir, store.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.store, b.host = st, NewHost(st, b.opts)
}

func (b *bench) stop() {
	if b.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := b.host.Shutdown(ctx); err != nil {
		b.t.Error(err)
	}
	if err := b.store.Close(); err != nil {
		b.t.Error(err)
	}
	b.store = nil
}

func person(name string) gladhand.Identity {
	return gladhand.Identity{Kind: gladhand.Human, Name: name, Client: gladhand.ClientID("c-" + name), Rights: gladhand.Owner}
}

func (b *bench) session() *Session {
	b.t.Helper()
	s, err := b.host.Create(context.Background(), person("ana"), b.t.TempDir(), gladhand.NewSessionMeta{})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// send puts a prompt in and waits until it is stored.
func send(s *Session, who gladhand.Identity, id, text string, d gladhand.Delivery) (gladhand.Receipt, error) {
	type result struct {
		r   gladhand.Receipt
		err error
	}
	c := make(chan result, 1)
	s.Send(who, gladhand.Prompt{ID: gladhand.PromptID(id), Content: acp.TextContent(text), Delivery: d},
		func(r gladhand.Receipt, err error) { c <- result{r, err} })
	got := <-c
	return got.r, got.err
}

func mustSend(t *testing.T, s *Session, who gladhand.Identity, id, text string) gladhand.Receipt {
	t.Helper()
	r, err := send(s, who, id, text, "")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func answerAsk(s *Session, who gladhand.Identity, id gladhand.AskID, option string) (gladhand.AnswerResult, error) {
	type result struct {
		r   gladhand.AnswerResult
		err error
	}
	c := make(chan result, 1)
	s.Answer(who, id, gladhand.Answer{Option: option}, func(r gladhand.AnswerResult, err error) { c <- result{r, err} })
	got := <-c
	return got.r, got.err
}

// reader follows a session in the background and keeps what it saw.
type reader struct {
	a      *Attachment
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	items []Item
	more  signal
}

func follow(t *testing.T, s *Session, who gladhand.Identity, after int64) *reader {
	t.Helper()
	a, _, err := s.Attach(who, after, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &reader{a: a, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for {
			items, err := a.Next(ctx)
			if err != nil {
				return
			}
			r.mu.Lock()
			r.items = append(r.items, items...)
			r.more.fire()
			r.mu.Unlock()
		}
	}()
	t.Cleanup(func() { cancel(); <-r.done })
	return r
}

// until waits for an event that f likes, and returns it.
func (r *reader) until(t *testing.T, what string, f func(*gladhand.Event) bool) *gladhand.Event {
	t.Helper()
	deadline := time.After(20 * time.Second)
	next := 0
	for {
		r.mu.Lock()
		for ; next < len(r.items); next++ {
			if f(r.items[next].Event) {
				defer r.mu.Unlock()
				return r.items[next].Event
			}
		}
		more := r.more.wait()
		r.mu.Unlock()
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (r *reader) untilTag(t *testing.T, tag string) *gladhand.Event {
	t.Helper()
	return r.until(t, tag, func(ev *gladhand.Event) bool { return ev.Tag == tag })
}

// untilEnd waits for the end of turn n.
func (r *reader) untilEnd(t *testing.T, n gladhand.TurnID) gladhand.TurnUpdate {
	t.Helper()
	ev := r.until(t, fmt.Sprintf("the end of turn %d", n), func(ev *gladhand.Event) bool {
		return ev.Tag == gladhand.TagTurnEnd && ev.Turn == n
	})
	return decode[gladhand.TurnUpdate](t, ev)
}

func decode[T any](t testing.TB, ev *gladhand.Event) (v T) {
	t.Helper()
	if err := json.Unmarshal(ev.Update, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// check fails the test unless items cover from+1 to to, each number once.
func check(t testing.TB, items []Item, from, to gladhand.Seq) {
	t.Helper()
	at := from
	for _, it := range items {
		if it.From != at+1 || it.To < it.From {
			t.Fatalf("an item covers %d..%d behind %d", it.From, it.To, at)
		}
		at = it.To
	}
	if at != to {
		t.Fatalf("the items end at %d, not at %d", at, to)
	}
}

func chunk(id, text string) json.RawMessage { return acp.MessageChunk(id, text) }

func say(ctx context.Context, t gladhand.Turn, id, text string) error {
	return t.Emit(ctx, chunk(id, text))
}

var errScript = errors.New("the script failed")
