package store

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"gladhand"

	"github.com/google/go-cmp/cmp"
)

var (
	ann = gladhand.Identity{Kind: gladhand.Human, Name: "ann", Label: "zed", Client: "c1", Rights: gladhand.Owner}
	bob = gladhand.Identity{Kind: gladhand.Agent, Name: "bob", Session: "s9", Task: "tidy <up> & test", Rights: gladhand.Peer}
	// when has a fraction, and is in UTC as everything that is read.
	when = time.UnixMicro(1_700_000_000_123_456).UTC()
	// raw is JSON that an encoder would write differently.
	raw = json.RawMessage(`{ "b" : "<&>\u0041  ", "a":1.0 }`)
)

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestSessionRow(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, Options{})
	full := Session{
		Info: gladhand.SessionInfo{
			ID: "a", Cwd: "/w", Title: "what \x00 is “this”", Agent: "claude", Model: "m", Mode: "edits", Profile: "sysadmin", Yes: true,
			State: gladhand.StateClosed, Created: "2026-01-02T03:04:05Z", Updated: "2026-01-02T03:04:05.25Z",
		},
		Turn: 7, Running: 6, Paused: true, OneShot: true, Rules: raw, Format: 3,
	}
	commit(t, s, func(tx *Tx) error { return tx.PutSession(full) })
	got, err := s.Session(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "stored", got, full)

	// Replacing a row keeps the log and its last number.
	commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", fact(5)) })
	plain := newSession("a")
	plain.Info.Created, plain.Info.Updated = "", ""
	commit(t, s, func(tx *Tx) error { return tx.PutSession(plain) })
	plain.Info.Seq = 5
	closeStore(t, s)
	s = openIn(t, dir, Options{})
	if got, err = s.Session(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	diff(t, "replaced", got, plain)

	_, err = s.Session(t.Context(), "b")
	wantReason(t, err, gladhand.CodeNotFound, gladhand.ReasonNotFound)
	plain.Info.Updated = "yesterday"
	err = s.Commit(t.Context(), func(tx *Tx) error { return tx.PutSession(plain) })
	wantReason(t, err, gladhand.CodeInternal, gladhand.ReasonInvalid)
}

func TestSessions(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	for id, updated := range map[gladhand.SessionID]string{"old": "2026-01-01T00:00:00Z", "new": "2026-01-01T00:00:01Z", "mid": "2026-01-01T00:00:00.5Z"} {
		row := newSession(id)
		row.Info.Updated = updated
		commit(t, s, func(tx *Tx) error { return tx.PutSession(row) })
	}
	commit(t, s, func(tx *Tx) error {
		return errors.Join(
			tx.PutEvents("mid", fact(1), fact(2)),
			tx.PutPrompt(gladhand.Prompt{ID: "p1", Session: "mid", State: gladhand.PromptStored}, 1),
			tx.PutPrompt(gladhand.Prompt{ID: "p2", Session: "mid", State: gladhand.PromptStored}, 2),
			tx.PutPrompt(gladhand.Prompt{ID: "p3", Session: "mid", State: gladhand.PromptStarted}, 3),
			tx.PutPrompt(gladhand.Prompt{ID: "p4", Session: "new", State: gladhand.PromptDone}, 3),
			tx.PutAsk(gladhand.Ask{ID: "k1", Session: "mid"}),
			tx.PutAsk(gladhand.Ask{ID: "k2", Session: "old"}),
			tx.SettleAsk("old", "k2", gladhand.SettledExpired, gladhand.Answer{}, nil),
		)
	})
	list, err := s.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		ID           gladhand.SessionID
		Seq          gladhand.Seq
		Asks, Queued int
	}
	var got []line
	for _, l := range list {
		got = append(got, line{l.Info.ID, l.Info.Seq, l.Info.Asks, l.Info.Queued})
	}
	diff(t, "sessions", got, []line{{"new", 0, 0, 0}, {"mid", 2, 1, 2}, {"old", 0, 0, 0}})
}

func TestEventRow(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	withSession(t, s, "a")
	events := []*gladhand.Event{
		{First: 1, Last: 1, Opens: 1, Class: gladhand.Fact, Version: 0, Tag: gladhand.TagPrompt, Update: raw, Base: -1, By: &ann, At: when},
		{
			First: 2, Last: 4, Opens: 2, Turn: 3, Class: gladhand.Append, Version: 1, Tag: "agent_message_chunk", ID: "agent_message:m1",
			Update: raw, Text: gladhand.Span{Start: 9, End: 20}, Lens: []uint32{5, 0, 6}, Base: 0, At: when, Prior: raw,
		},
		{
			First: 5, Last: 70_000, Opens: 2, Turn: 3, Class: gladhand.Replace, Version: 2, Tag: "a_tag_of_tomorrow", ID: "x:ä\x00",
			Update: raw, Lens: []uint32{}, Base: 1 << 30, By: &bob, At: time.Time{},
		},
		{First: 70_001, Last: maxSeq, Opens: maxSeq, Turn: 1<<64 - 1, At: when, By: &gladhand.Identity{}},
	}
	commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", events...) })
	got, err := s.Events(t.Context(), "a", 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "events", got, events)
	for _, e := range events {
		one, err := s.EventAt(t.Context(), "a", e.First)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "event", one, e)
	}
	for _, tt := range []struct{ after, want gladhand.Seq }{{0, 1}, {1, 2}, {2, 2}, {3, 2}, {4, 5}, {69_999, 5}, {70_000, 70_001}, {maxSeq - 1, 70_001}, {maxSeq, 0}, {1 << 60, 0}} {
		page, err := s.Events(t.Context(), "a", tt.after, 0)
		if err != nil || len(page) > 1 {
			t.Fatal(page, err)
		}
		first := gladhand.Seq(0)
		if len(page) > 0 {
			first = page[0].First
		}
		if first != tt.want {
			t.Errorf("after %d: entry %d, want %d", tt.after, first, tt.want)
		}
	}
	for _, first := range []gladhand.Seq{0, 3, maxSeq, maxSeq + 1, 1 << 63} {
		_, err := s.EventAt(t.Context(), "a", first)
		wantReason(t, err, gladhand.CodeNotFound, gladhand.ReasonNotFound)
	}
	if page, err := s.Events(t.Context(), "nobody", 0, 100); err != nil || page != nil {
		t.Error(page, err)
	}
	err = s.Commit(t.Context(), func(tx *Tx) error {
		return tx.PutEvents("a", &gladhand.Event{First: maxSeq + 1, Last: maxSeq + 1})
	})
	wantReason(t, err, gladhand.CodeInternal, gladhand.ReasonInvalid)
}

// What is read shares no memory that a writer or another entry could change.
func TestEventsShareNothing(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	withSession(t, s, "a")
	commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", fact(1), fact(2)) })
	page, err := s.Events(t.Context(), "a", 0, 1<<20)
	if err != nil || len(page) != 2 {
		t.Fatal(page, err)
	}
	want := string(page[1].Update)
	_ = append(page[0].Update, "xxxxxxxxxxxxxxxxxxxxxxxxxx"...)
	if string(page[1].Update) != want {
		t.Fatal("appending to one update changes the next")
	}
}

// A run that is still open is written again as it grows.
func TestGrowingEvent(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	withSession(t, s, "a")
	for last := gladhand.Seq(2); last < 50; last++ {
		e := fact(2)
		e.Last = last
		e.Update = slices.Repeat([]byte("x"), int(last)*100)
		commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", fact(1), e) })
		page, err := s.Events(t.Context(), "a", last-1, 1)
		if err != nil || len(page) != 1 {
			t.Fatal(page, err)
		}
		diff(t, "grown", page[0], e)
	}
	if got := firsts(t, s, "a"); !slices.Equal(got, []gladhand.Seq{1, 2}) {
		t.Fatal(got)
	}
}

func TestPrompts(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	withSession(t, s, "a", "b")
	p := gladhand.Prompt{ID: "p", Session: "a", Content: raw, Delivery: gladhand.Steer, By: bob, State: gladhand.PromptStored, Seq: 12, At: when}
	commit(t, s, func(tx *Tx) error { return tx.PutPrompt(p, 5) })
	got, err := s.Prompt(t.Context(), "a", "p")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "prompt", got, p)

	err = s.Commit(t.Context(), func(tx *Tx) error { return tx.PutPrompt(p, 6) })
	if !errors.Is(err, ErrExists) {
		t.Errorf("the same id again: %v", err)
	}
	other := p
	other.Session = "b" // the same id in another session is another prompt
	first := gladhand.Prompt{ID: "first", Session: "a", By: ann, State: gladhand.PromptStored, At: when}
	commit(t, s, func(tx *Tx) error { return errors.Join(tx.PutPrompt(other, 1), tx.PutPrompt(first, -3)) })
	waiting, err := s.Waiting(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "waiting", waiting, []Waiting{{first, -3}, {p, 5}})

	p.State, p.Turn = gladhand.PromptStarted, 4
	change := p
	change.Content, change.By = nil, ann // not what SetPrompt changes
	commit(t, s, func(tx *Tx) error { return tx.SetPrompt(change, 0) })
	started, err := s.Unfinished(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "started", started, []gladhand.Prompt{p})

	p.State, p.Outcome = gladhand.PromptDone, gladhand.Failed
	commit(t, s, func(tx *Tx) error { return tx.SetPrompt(p, 0) })
	if got, err = s.Prompt(t.Context(), "a", "p"); err != nil {
		t.Fatal(err)
	}
	diff(t, "done", got, p)
	if left, err := s.Unfinished(t.Context(), "a"); err != nil || len(left) != 0 {
		t.Error(left, err)
	}

	_, err = s.Prompt(t.Context(), "a", "q")
	wantReason(t, err, gladhand.CodeNotFound, gladhand.ReasonNotFound)
	err = s.Commit(t.Context(), func(tx *Tx) error { return tx.SetPrompt(gladhand.Prompt{Session: "a", ID: "q"}, 0) })
	wantReason(t, err, gladhand.CodeNotFound, gladhand.ReasonNotFound)
	err = s.Commit(t.Context(), func(tx *Tx) error { return tx.PutPrompt(gladhand.Prompt{Session: "nobody", ID: "q"}, 0) })
	wantReason(t, err, gladhand.CodeNotFound, gladhand.ReasonNotFound)
}

func TestAsks(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	withSession(t, s, "a")
	ask := gladhand.Ask{
		ID: "k", Session: "a", Turn: 2, Title: "run it?", ToolCall: raw, Elicitation: raw, Digest: "d", Rule: "r", At: when,
		Options: []gladhand.Option{{ID: "y", Name: "<yes>", Kind: gladhand.AllowOnce}},
	}
	bare := gladhand.Ask{ID: "bare", Session: "a", At: when}
	commit(t, s, func(tx *Tx) error { return errors.Join(tx.PutAsk(ask), tx.PutAsk(bare)) })
	open, err := s.OpenAsks(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "open", open, []gladhand.Ask{ask, bare})
	if err := s.Commit(t.Context(), func(tx *Tx) error { return tx.PutAsk(bare) }); !errors.Is(err, ErrExists) {
		t.Errorf("the same id again: %v", err)
	}
	_, _, err = s.AskState(t.Context(), "a", "k")
	wantReason(t, err, gladhand.CodeNotFound, gladhand.ReasonNotFound) // still open

	settle := func(id gladhand.AskID, how gladhand.Settled, by *gladhand.Identity) error {
		return s.Commit(t.Context(), func(tx *Tx) error {
			return tx.SettleAsk("a", id, how, gladhand.Answer{Option: "y", Content: raw, Reason: "why"}, by)
		})
	}
	if err := settle("k", gladhand.SettledAnswered, &bob); err != nil {
		t.Fatal(err)
	}
	how, by, err := s.AskState(t.Context(), "a", "k")
	if err != nil || how != gladhand.SettledAnswered {
		t.Fatal(how, err)
	}
	diff(t, "by", by, &bob)
	wantReason(t, settle("k", gladhand.SettledExpired, nil), gladhand.CodeConflict, gladhand.ReasonConflict) // once
	wantReason(t, settle("unknown", gladhand.SettledExpired, nil), gladhand.CodeNotFound, gladhand.ReasonNotFound)
	if err := settle("bare", gladhand.SettledExpired, nil); err != nil {
		t.Fatal(err)
	}
	if how, by, err = s.AskState(t.Context(), "a", "bare"); err != nil || how != gladhand.SettledExpired || by != nil {
		t.Error(how, by, err)
	}
	if open, err := s.OpenAsks(t.Context(), "a"); err != nil || len(open) != 0 {
		t.Error(open, err)
	}
}

func TestDelete(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	withSession(t, s, "a", "b")
	for _, id := range []gladhand.SessionID{"a", "b"} {
		commit(t, s, func(tx *Tx) error {
			return errors.Join(
				tx.PutEvents(id, fact(1)),
				tx.PutPrompt(gladhand.Prompt{ID: "p", Session: id, State: gladhand.PromptStored}, 1),
				tx.PutAsk(gladhand.Ask{ID: "k", Session: id}),
			)
		})
	}
	// A delete that is taken back deletes nothing.
	back := errors.New("back")
	if err := s.Commit(t.Context(), func(tx *Tx) error { return errors.Join(tx.DeleteSession("a"), back) }); !errors.Is(err, back) {
		t.Fatal(err)
	}
	if got := firsts(t, s, "a"); len(got) != 1 {
		t.Fatal("deleted all the same")
	}
	commit(t, s, func(tx *Tx) error { return tx.DeleteSession("a") })
	wantReason(t, s.Commit(t.Context(), func(tx *Tx) error { return tx.DeleteSession("a") }), gladhand.CodeNotFound, gladhand.ReasonNotFound)
	// An event that was on its way cannot bring it back.
	wantReason(t, s.Commit(t.Context(), func(tx *Tx) error { return tx.PutEvents("a", fact(2)) }), gladhand.CodeNotFound, gladhand.ReasonNotFound)
	for _, id := range []gladhand.SessionID{"a", "b"} {
		want := 0
		if id == "b" {
			want = 1
		}
		waiting, err := s.Waiting(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		asks, err := s.OpenAsks(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got := firsts(t, s, id); len(got) != want || len(waiting) != want || len(asks) != want {
			t.Errorf("session %s: %d events, %d prompts, %d asks; want %d each", id, len(got), len(waiting), len(asks), want)
		}
	}
}
