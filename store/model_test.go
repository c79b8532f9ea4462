package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gladhand"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model is what a store should hold: the same operations on maps.
type model map[gladhand.SessionID]*modelSession

type modelSession struct {
	row     Session
	events  map[gladhand.Seq]*gladhand.Event
	last    gladhand.Seq
	prompts map[gladhand.PromptID]modelPrompt
	asks    []gladhand.Ask
	settled map[gladhand.AskID]gladhand.Settled
}

type modelPrompt struct {
	gladhand.Prompt
	place int64
}

func (m model) clone() model {
	c := model{}
	for id, s := range m {
		d := *s
		d.events, d.prompts, d.settled = clonedMap(s.events), clonedMap(s.prompts), clonedMap(s.settled)
		d.asks = slices.Clone(s.asks)
		c[id] = &d
	}
	return c
}

func clonedMap[K comparable, V any](m map[K]V) map[K]V {
	c := map[K]V{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// step is one call on a Tx and the same on the model. Both say whether it fails.
type step struct {
	name string
	tx   func(*Tx) error
	m    func(model) bool
}

var modelIDs = rapid.SampledFrom([]gladhand.SessionID{"a", "b", "c"})

func drawStep(t *rapid.T) step {
	id := modelIDs.Draw(t, "session")
	switch rapid.IntRange(0, 13).Draw(t, "step") {
	case 0, 1:
		return stepSession(t, id)
	case 2:
		return step{"delete " + string(id), func(tx *Tx) error { return tx.DeleteSession(id) }, func(m model) bool {
			_, ok := m[id]
			delete(m, id)
			return ok
		}}
	case 3, 4, 5, 6, 7:
		return stepEvents(t, id)
	case 8, 9, 10:
		return stepPrompt(t, id)
	default:
		return stepAsk(t, id)
	}
}

func stepSession(t *rapid.T, id gladhand.SessionID) step {
	row := newSession(id)
	row.Info.Title = rapid.String().Draw(t, "title")
	row.Info.Updated = fmt.Sprintf("2026-01-01T00:00:0%dZ", rapid.IntRange(0, 9).Draw(t, "updated"))
	row.Turn = gladhand.TurnID(rapid.Uint32().Draw(t, "turn"))
	row.Paused = rapid.Bool().Draw(t, "paused")
	return step{"session " + string(id), func(tx *Tx) error { return tx.PutSession(row) }, func(m model) bool {
		if m[id] == nil {
			m[id] = &modelSession{events: map[gladhand.Seq]*gladhand.Event{}, prompts: map[gladhand.PromptID]modelPrompt{}, settled: map[gladhand.AskID]gladhand.Settled{}}
		}
		m[id].row = row
		return true
	}}
}

func stepEvents(t *rapid.T, id gladhand.SessionID) step {
	// Entries may only overlap as they do in a log: the same First, another Last.
	var events []*gladhand.Event
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		e := fact(gladhand.Seq(rapid.IntRange(0, 40).Draw(t, "at")*10 + 1))
		e.Last = e.First + gladhand.Seq(rapid.IntRange(0, 9).Draw(t, "more"))
		e.Update = rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "update")
		if rapid.IntRange(0, 20).Draw(t, "long") == 0 {
			e.Update = slices.Repeat(e.Update, 100)
		}
		e.Prior = []byte(rapid.StringN(1, 8, -1).Draw(t, "prior"))
		e.Lens = rapid.SliceOfN(rapid.Uint32(), 0, 5).Draw(t, "lens")
		if rapid.Bool().Draw(t, "by") {
			e.By = &bob
		}
		events = append(events, e)
	}
	return step{fmt.Sprintf("%d events %s", len(events), id), func(tx *Tx) error { return tx.PutEvents(id, events...) }, func(m model) bool {
		s := m[id]
		if s == nil {
			return false
		}
		for _, e := range events {
			s.events[e.First] = e
			s.last = max(s.last, e.Last)
		}
		return true
	}}
}

func stepPrompt(t *rapid.T, id gladhand.SessionID) step {
	p := gladhand.Prompt{
		Session: id, ID: rapid.SampledFrom([]gladhand.PromptID{"p", "q", "r", "s"}).Draw(t, "prompt"),
		State: rapid.SampledFrom([]gladhand.PromptState{gladhand.PromptStored, gladhand.PromptStarted, gladhand.PromptDone}).Draw(t, "state"),
		By:    ann, At: when, Content: []byte(`"` + rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "content") + `"`),
	}
	place := rapid.Int64().Draw(t, "place")
	if rapid.Bool().Draw(t, "put") {
		return step{fmt.Sprintf("put prompt %s %s", id, p.ID), func(tx *Tx) error { return tx.PutPrompt(p, place) }, func(m model) bool {
			if m[id] == nil || m[id].prompts[p.ID].ID != "" {
				return false
			}
			m[id].prompts[p.ID] = modelPrompt{p, place}
			return true
		}}
	}
	return step{fmt.Sprintf("set prompt %s %s", id, p.ID), func(tx *Tx) error { return tx.SetPrompt(p, place) }, func(m model) bool {
		if m[id] == nil || m[id].prompts[p.ID].ID == "" {
			return false
		}
		old := m[id].prompts[p.ID]
		old.State, old.Outcome, old.Turn, old.place = p.State, p.Outcome, p.Turn, place
		m[id].prompts[p.ID] = old
		return true
	}}
}

func stepAsk(t *rapid.T, id gladhand.SessionID) step {
	k := rapid.SampledFrom([]gladhand.AskID{"k", "l", "m"}).Draw(t, "ask")
	if rapid.Bool().Draw(t, "open") {
		a := gladhand.Ask{ID: k, Session: id, Title: "t", At: when, ToolCall: raw}
		return step{fmt.Sprintf("put ask %s %s", id, k), func(tx *Tx) error { return tx.PutAsk(a) }, func(m model) bool {
			if m[id] == nil || slices.ContainsFunc(m[id].asks, func(b gladhand.Ask) bool { return b.ID == k }) {
				return false
			}
			m[id].asks = append(m[id].asks, a)
			return true
		}}
	}
	how := rapid.SampledFrom([]gladhand.Settled{gladhand.SettledAnswered, gladhand.SettledExpired}).Draw(t, "how")
	return step{fmt.Sprintf("settle %s %s", id, k), func(tx *Tx) error { return tx.SettleAsk(id, k, how, gladhand.Answer{}, &ann) }, func(m model) bool {
		s := m[id]
		if s == nil || s.settled[k] != "" || !slices.ContainsFunc(s.asks, func(b gladhand.Ask) bool { return b.ID == k }) {
			return false
		}
		s.settled[k] = how
		return true
	}}
}

// TestModel does random writes, in items that fail as a whole when one of their
// steps does, in batches as they come, and with the store opened again in
// between: the store then holds what the model does.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, remove := tempDir(t)
		defer remove()
		open := func() *Store {
			s, err := Open(context.Background(), dir, Options{
				MaxBatch:  rapid.IntRange(1, 5).Draw(t, "batch"),
				fanOut:    rapid.IntRange(1, 3).Draw(t, "fan out"),
				recentMax: rapid.SampledFrom([]int{1, 5, 1000}).Draw(t, "recent"),
			})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s, m := open(), model{}
		defer func() { _ = s.Close() }()
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			m = writeRound(t, s, m)
			if rapid.IntRange(0, 2).Draw(t, "reopen") == 0 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open()
			}
			compare(t, s, m)
		}
	})
}

// writeRound queues some items at once and waits for them.
func writeRound(t *rapid.T, s *Store, m model) model {
	errBack := errors.New("taken back")
	type result struct {
		want bool
		got  chan error
		what []string
	}
	var results []result
	for range rapid.IntRange(1, 8).Draw(t, "items") {
		var steps []step
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			steps = append(steps, drawStep(t))
		}
		back := rapid.IntRange(0, 5).Draw(t, "take back") == 0
		r := result{want: !back, got: make(chan error, 1)}
		next := m.clone()
		for _, st := range steps {
			r.what = append(r.what, st.name)
			r.want = r.want && st.m(next)
		}
		if r.want {
			m = next
		}
		s.Write(func(tx *Tx) error {
			for _, st := range steps {
				if err := st.tx(tx); err != nil {
					return err
				}
			}
			if back {
				return errBack
			}
			return nil
		}, func(err error) { r.got <- err })
		results = append(results, r)
	}
	for _, r := range results {
		if err := <-r.got; (err == nil) != r.want {
			t.Fatalf("%v: %v, want success %v", r.what, err, r.want)
		}
	}
	return m
}

func compare(t *rapid.T, s *Store, m model) {
	ctx := context.Background()
	list, err := s.Sessions(ctx)
	if err != nil || len(list) != len(m) {
		t.Fatalf("%d sessions, want %d (%v)", len(list), len(m), err)
	}
	if !slices.IsSortedFunc(list, func(a, b Listed) int { return cmp.Compare(b.Info.Updated, a.Info.Updated) }) {
		t.Fatal("sessions are not in order")
	}
	for _, l := range list {
		want := m[l.Info.ID]
		if want == nil {
			t.Fatalf("session %s should not be there", l.Info.ID)
		}
		row := want.row
		row.Info.Seq, row.Info.Asks = want.last, len(want.asks)-len(want.settled)
		row.Info.Queued = len(want.inState(gladhand.PromptStored))
		same(t, "session", l.Session, row)
	}
	for _, id := range []gladhand.SessionID{"a", "b", "c"} {
		want := m[id]
		if want == nil {
			want = &modelSession{}
		}
		want.compare(t, s, id)
	}
}

func (want *modelSession) inState(state gladhand.PromptState) []gladhand.Prompt {
	var list []modelPrompt
	for _, p := range want.prompts {
		if p.State == state {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b modelPrompt) int { return cmp.Compare(a.place, b.place) })
	var prompts []gladhand.Prompt
	for _, p := range list {
		prompts = append(prompts, p.Prompt)
	}
	return prompts
}

func (want *modelSession) compare(t *rapid.T, s *Store, id gladhand.SessionID) {
	ctx := context.Background()
	var events []*gladhand.Event
	for _, e := range want.events {
		events = append(events, e)
	}
	slices.SortFunc(events, func(a, b *gladhand.Event) int { return cmp.Compare(a.First, b.First) })
	after := gladhand.Seq(rapid.IntRange(0, 420).Draw(t, "after"))
	events = slices.DeleteFunc(events, func(e *gladhand.Event) bool { return e.Last <= after })
	size := rapid.IntRange(0, 1000).Draw(t, "page")
	var got []*gladhand.Event
	for cursor := after; ; {
		page, err := s.Events(ctx, id, cursor, size)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		cursor = page[len(page)-1].Last
	}
	same(t, "events", got, events)

	waiting, err := bare(s.Waiting(ctx, id))
	same(t, "waiting", waiting, want.inState(gladhand.PromptStored))
	started, err2 := s.Unfinished(ctx, id)
	same(t, "started", started, want.inState(gladhand.PromptStarted))
	asks, err3 := s.OpenAsks(ctx, id)
	same(t, "asks", asks, slices.DeleteFunc(slices.Clone(want.asks), func(a gladhand.Ask) bool { return want.settled[a.ID] != "" }))
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	for k, how := range want.settled {
		if got, by, err := s.AskState(ctx, id, k); err != nil || got != how || *by != ann {
			t.Fatalf("ask %s: %v %v %v, want %v", k, got, by, err, how)
		}
	}
}

func same(t *rapid.T, what string, got, want any) {
	t.Helper()
	if d := gocmp.Diff(want, got, emptyIsNil); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}
