package session

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/store"
)

// thinking are models of which one has efforts.
type thinking struct{ Fixed }

func (thinking) Efforts(model string) []string {
	if model == "deep" {
		return []string{"low", "high"}
	}
	return nil
}

// compacting is an agent that counts the turns it saw and can shorten its context.
type compacting struct{ turns *[]string }

func (c compacting) Run(_ context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
	*c.turns = append(*c.turns, acp.Text(t.Prompt().Content))
	return gladhand.StopEndTurn, nil
}
func (compacting) Close() error { return nil }

func (compacting) Compact(ctx context.Context, t gladhand.Turn) (string, error) {
	if err := t.Reduce(ctx, []byte("short"), acp.Compaction("c1", "completed", "", "")); err != nil {
		return "", err
	}
	return "done", nil
}

// Slash commands run in turns of their own, and the agent sees none of them.
func TestCommands(t *testing.T) {
	var saw []string
	b := newBench(t, nil, Options{})
	b.stop()
	b.opts.NewAgent = func(context.Context, gladhand.SessionInfo) (Agent, error) { return compacting{&saw}, nil }
	b.opts.Models = thinking{Fixed{{ID: "scripted"}, {ID: "deep"}}}
	b.start()
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	n := gladhand.TurnID(0)
	run := func(text string) (said string, err *gladhand.TurnError) {
		t.Helper()
		mustSend(t, s, person("ana"), "", text)
		n++
		end := r.untilEnd(t, n)
		items, _, _, e := s.Events(t.Context(), person("ana"), 0, 1000)
		if e != nil {
			t.Fatal(e)
		}
		for _, it := range items {
			if it.Event.Turn == n && it.Event.Tag == acp.TagAgentChunk {
				said += acp.ChunkText(it.Event)
			}
		}
		return said, end.Error
	}
	if said, _ := run("/help"); !strings.Contains(said, "/compact") || !strings.Contains(said, "/model") {
		t.Error(said)
	}
	if said, _ := run("/model"); !strings.Contains(said, "* scripted") || !strings.Contains(said, "deep (low, high)") {
		t.Error(said)
	}
	if said, err := run("/model deep high"); err != nil || !strings.Contains(said, "deep with effort high") || s.Info().Effort != "high" {
		t.Error(said, err, s.Info())
	}
	if _, err := run("/model nothing"); err == nil || !strings.Contains(err.Message, "nothing") {
		t.Error(err)
	}
	if _, err := run("/model deep extreme"); err == nil || s.Info().Effort != "high" {
		t.Error(err)
	}
	if _, err := run("/model scripted"); err != nil || s.Info().Effort != "" {
		t.Error(err, s.Info())
	}
	if _, err := run("/mode plan"); err != nil || s.Info().Mode != "plan" {
		t.Error(err, s.Info())
	}
	if _, err := run("/title  Two   words "); err != nil || s.Info().Title != "Two words" {
		t.Error(err, s.Info().Title)
	}
	if said, err := run("/compact"); err != nil || said != "done" {
		t.Error(said, err)
	}
	if len(saw) != 0 {
		t.Errorf("the agent saw %q", saw)
	}
	if _, err := run("/tmp/x is a file"); err != nil || len(saw) != 1 {
		t.Errorf("a path is no command: %v, %q", err, saw)
	}
	for _, c := range []struct {
		text, id string
	}{{"/nothing", "a1"}, {"/compcat now", "a2"}} {
		if _, err := send(s, person("ana"), c.id, c.text, ""); gladhand.CodeOf(err) != gladhand.CodeInvalidParams || !strings.Contains(err.Error(), "/compact") {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	snap, err := b.store.Snapshot(t.Context(), s.ID())
	if err != nil || snap == nil || string(snap.Data) != "short" || snap.Covers == 0 || snap.Covers > s.Info().Seq {
		t.Errorf("snapshot %+v, %v", snap, err)
	}
	opts := s.Options()
	if len(opts) != 2 {
		t.Errorf("a model without efforts has %d options", len(opts))
	}
	if _, err := s.SetOption(person("ana"), OptionModel, "deep"); err != nil {
		t.Fatal(err)
	}
	if opts = s.Options(); len(opts) != 3 || opts[2].Category != "thought_level" || opts[2].Value != "default" {
		t.Errorf("%+v", opts)
	}
}

// A context is kept and announced in one commit: when it cannot be stored, nothing is
// shown, and the old one stays.
func TestReduceIsOneCommit(t *testing.T) {
	results := make(chan error, 3)
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		results <- t.Reduce(ctx, []byte{}, acp.Compaction("c1", "completed", "", ""))
		results <- t.Reduce(ctx, make([]byte, gladhand.SnapshotMax+1), acp.Compaction("c2", "completed", "", ""))
		results <- t.Reduce(ctx, []byte("x"), json.RawMessage(`{"no":"tag"}`))
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "p", "go")
	r.untilEnd(t, 1)
	if err := <-results; err != nil {
		t.Fatal(err)
	}
	if err := <-results; gladhand.CodeOf(err) != gladhand.CodeInvalidParams {
		t.Errorf("over the limit: %v", err)
	}
	if err := <-results; err == nil {
		t.Error("an update without a tag was taken")
	}
	snap, err := b.store.Snapshot(t.Context(), s.ID())
	if err != nil || snap == nil || len(snap.Data) != 0 {
		t.Fatalf("an empty context is kept too: %+v, %v", snap, err)
	}
	items, _, _, err := s.Events(t.Context(), person("ana"), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, it := range items {
		if it.Event.Tag == acp.TagCompaction {
			n++
			if it.Event.Last != snap.Covers {
				t.Errorf("it is announced at %d and covers up to %d", it.Event.Last, snap.Covers)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d announcements", n)
	}
	// With the session goes its context.
	if err := b.store.Commit(t.Context(), func(tx *store.Tx) error { return tx.DeleteSession(s.ID()) }); err != nil {
		t.Fatal(err)
	}
	if snap, err := b.store.Snapshot(t.Context(), s.ID()); snap != nil || err != nil {
		t.Errorf("%+v, %v", snap, err)
	}
}
