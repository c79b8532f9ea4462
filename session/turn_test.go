package session

import (
	"context"
	"slices"
	"testing"

	"gladhand"
	"gladhand/acp"
)

func hello(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
	for _, w := range []string{"hel", "lo ", "there"} {
		if err := say(ctx, t, "m"+string(t.Prompt().ID), w); err != nil {
			return "", err
		}
	}
	return gladhand.StopEndTurn, nil
}

func TestPromptRunsATurnAndEveryReaderSeesIt(t *testing.T) {
	b := newBench(t, hello, Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	rec := mustSend(t, s, person("ana"), "p1", "hi")
	if rec.State != gladhand.PromptStored || rec.Seq == 0 {
		t.Fatalf("receipt %+v", rec)
	}
	end := r.untilEnd(t, 1)
	if end.StopReason != gladhand.StopEndTurn || !slices.Equal(end.Prompts, []gladhand.PromptID{"p1"}) {
		t.Fatalf("the turn ended as %+v", end)
	}
	late := follow(t, s, person("bo"), 0)
	late.untilEnd(t, 1)
	if got, want := transcript(late.seen()), transcript(r.seen()); got != want || got != "user: hi\nagent: hello there\n" {
		t.Fatalf("a late reader has %q, a live one %q", got, want)
	}
	rec, err := s.Receipt(context.Background(), "p1")
	if err != nil || rec.State != gladhand.PromptDone || rec.Outcome != gladhand.Completed {
		t.Fatalf("receipt after the end: %+v, %v", rec, err)
	}
}

func (r *reader) seen() []Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.items)
}

// transcript is what a person reads of items.
func transcript(items []Item) string {
	out, last := "", ""
	add := func(who, id, text string) {
		if id != last {
			if out != "" && out[len(out)-1] != '\n' {
				out += "\n"
			}
			out += who + ": "
			last = id
		}
		out += text
	}
	for _, it := range items {
		switch it.Event.Tag {
		case acp.TagUserChunk:
			add("user", it.Event.ID, acp.ChunkText(it.Event))
		case acp.TagAgentChunk:
			add("agent", it.Event.ID, acp.ChunkText(it.Event))
		}
	}
	return out + "\n"
}

func TestQueueRunsInOrderOneTurnAtATime(t *testing.T) {
	running := 0
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		running++ // one at a time, or the race detector speaks
		defer func() { running-- }()
		return hello(ctx, t)
	}, Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	for i := range 10 {
		s.Send(person("ana"), gladhand.Prompt{ID: gladhand.PromptID(rune('a' + i)), Content: acp.TextContent("x")}, func(_ gladhand.Receipt, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	var order []gladhand.PromptID
	for n := range 10 {
		order = append(order, r.untilEnd(t, gladhand.TurnID(n+1)).Prompts...)
	}
	if want := []gladhand.PromptID{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}; !slices.Equal(order, want) {
		t.Fatalf("ran in the order %v", order)
	}
	check(t, r.seen(), 0, r.seen()[len(r.seen())-1].To)
}

// block is an agent that runs until it is released, or its turn is cancelled.
func block(release <-chan struct{}) agentFunc {
	return func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		select {
		case <-release:
			return hello(ctx, t)
		case <-ctx.Done():
			return gladhand.StopCancelled, nil
		}
	}
}

func TestQueueLimit(t *testing.T) {
	release := make(chan struct{})
	b := newBench(t, block(release), Options{QueueMax: 3})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "", "runs")
	r.untilTag(t, gladhand.TagTurnStart)
	for range 3 {
		mustSend(t, s, person("ana"), "", "waits")
	}
	_, err := send(s, person("ana"), "", "one too many", "")
	if gladhand.CodeOf(err) != gladhand.CodeQueueFull {
		t.Fatalf("the fourth: %v", err)
	}
	close(release)
	r.untilEnd(t, 4)
}

func TestSameIDAgain(t *testing.T) {
	b := newBench(t, hello, Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "p1", "hi")
	r.untilEnd(t, 1)
	rec, err := send(s, person("ana"), "p1", "hi", "")
	if err != nil || rec.State != gladhand.PromptDone {
		t.Fatalf("the same again: %+v, %v", rec, err)
	}
	if _, err = send(s, person("ana"), "p1", "other", ""); gladhand.CodeOf(err) != gladhand.CodeConflict {
		t.Fatalf("other text: %v", err)
	}
	mustSend(t, s, person("ana"), "p2", "hi")
	if end := r.untilEnd(t, 2); end.Prompts[0] != "p2" {
		t.Fatalf("turn 2 ran %v", end.Prompts)
	}
}

func TestSteerJoinsTheRunningTurn(t *testing.T) {
	ready, steered := make(chan struct{}), make(chan struct{})
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		close(ready)
		<-steered
		ps, err := t.Steered(ctx)
		if err != nil || len(ps) != 2 || ps[0].ID != "s1" || ps[1].ID != "s2" {
			return "", errScript
		}
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "p1", "go")
	<-ready
	mustSend(t, s, person("bo"), "q", "later")
	for _, id := range []string{"s1", "s2"} {
		if _, err := send(s, person("bo"), id, "steer "+id, gladhand.Steer); err != nil {
			t.Fatal(err)
		}
	}
	b.agent = hello
	close(steered)
	end := r.untilEnd(t, 1)
	if want := []gladhand.PromptID{"p1", "s1", "s2"}; !slices.Equal(end.Prompts, want) || end.StopReason != gladhand.StopEndTurn {
		t.Fatalf("turn 1 ended as %+v", end)
	}
}

func TestSteerWithNoSafePointLeftHeadsTheQueue(t *testing.T) {
	release := make(chan struct{})
	b := newBench(t, block(release), Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "p1", "go")
	r.untilTag(t, gladhand.TagTurnStart)
	mustSend(t, s, person("ana"), "p2", "waits")
	if _, err := send(s, person("ana"), "s", "steer", gladhand.Steer); err != nil {
		t.Fatal(err)
	}
	close(release)
	if end := r.untilEnd(t, 2); end.Prompts[0] != "s" {
		t.Fatalf("turn 2 ran %v", end.Prompts)
	}
	r.untilEnd(t, 3)
}

func TestInterruptCancelsTheRunningTurn(t *testing.T) {
	release := make(chan struct{})
	b := newBench(t, block(release), Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "p1", "go")
	r.untilTag(t, gladhand.TagTurnStart)
	mustSend(t, s, person("ana"), "p2", "waits")
	if _, err := send(s, person("bo"), "i", "stop that", gladhand.Interrupt); err != nil {
		t.Fatal(err)
	}
	if end := r.untilEnd(t, 1); end.StopReason != gladhand.StopCancelled {
		t.Fatalf("turn 1 ended as %+v", end)
	}
	close(release)
	if end := r.untilEnd(t, 2); end.Prompts[0] != "i" {
		t.Fatalf("turn 2 ran %v", end.Prompts)
	}
	r.untilEnd(t, 3)
}

// R017, R018, R020: a cancelled turn ends as cancelled, its caller's waiting
// prompts go with it, others' stay, and the next prompt runs.
func TestCancel(t *testing.T) {
	release := make(chan struct{})
	b := newBench(t, block(release), Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "p1", "go")
	r.untilTag(t, gladhand.TagTurnStart)
	mustSend(t, s, person("ana"), "mine", "waits")
	mustSend(t, s, person("bo"), "bos", "waits")
	if err := s.Cancel(person("ana")); err != nil {
		t.Fatal(err)
	}
	close(release)
	if end := r.untilEnd(t, 1); end.StopReason != gladhand.StopCancelled {
		t.Fatalf("turn 1 ended as %+v", end)
	}
	if end := r.untilEnd(t, 2); end.Prompts[0] != "bos" || end.StopReason != gladhand.StopEndTurn {
		t.Fatalf("turn 2: %+v", end)
	}
	rec, err := s.Receipt(context.Background(), "mine")
	if err != nil || rec.State != gladhand.PromptDone || rec.Outcome != gladhand.Cancelled {
		t.Fatalf("the canceller's own waiting prompt: %+v, %v", rec, err)
	}
}

// A tool call that an agent leaves open is closed by the end of its turn, and
// nothing may be emitted after it.
func TestTurnClosesWhatTheAgentLeftOpen(t *testing.T) {
	var old gladhand.Turn
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		old = t
		return gladhand.StopEndTurn, t.Emit(ctx, acp.ToolCall(acp.ToolState{ID: "t1", Title: "x", Status: "in_progress"}))
	}, Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "", "go")
	r.untilEnd(t, 1)
	var tags []string
	for _, it := range r.seen() {
		if it.Event.Turn == 1 {
			tags = append(tags, it.Event.Tag)
		}
	}
	want := []string{gladhand.TagTurnStart, acp.TagUserChunk, acp.TagToolCall, acp.TagToolCallUpdate, gladhand.TagTurnEnd}
	if !slices.Equal(tags, want) {
		t.Fatalf("the turn is %v", tags)
	}
	for _, err := range []error{
		say(context.Background(), old, "m", "late"),
		func() error { _, err := old.Steered(context.Background()); return err }(),
		func() error { _, err := old.Ask(context.Background(), gladhand.Ask{}); return err }(),
	} {
		if gladhand.CodeOf(err) != gladhand.CodeCancelled {
			t.Errorf("a late call: %v", err)
		}
	}
}

func TestAgentFailureEndsTheTurnAndTheNextOneRuns(t *testing.T) {
	n := 0
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		if n++; n == 1 {
			return "", gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "no model")
		}
		if n == 2 {
			panic("bug")
		}
		return hello(ctx, t)
	}, Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	for range 3 {
		mustSend(t, s, person("ana"), "", "go")
	}
	if end := r.untilEnd(t, 1); end.StopReason != gladhand.StopError || end.Error.Message != "no model" {
		t.Fatalf("turn 1: %+v", end)
	}
	if end := r.untilEnd(t, 2); end.StopReason != gladhand.StopError {
		t.Fatalf("turn 2: %+v", end)
	}
	if end := r.untilEnd(t, 3); end.StopReason != gladhand.StopEndTurn {
		t.Fatalf("turn 3: %+v", end)
	}
}

func TestTitleAndOptionsAreStored(t *testing.T) {
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		return gladhand.StopEndTurn, t.Emit(ctx, acp.SessionTitle("Fix the bug"))
	}, Options{})
	s := b.session()
	r := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "", "go")
	r.untilEnd(t, 1)
	if _, err := s.SetOption(person("ana"), OptionMode, ModePlan); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetOption(person("ana"), OptionMode, "wild"); gladhand.CodeOf(err) != gladhand.CodeInvalidParams {
		t.Fatalf("an unknown mode: %v", err)
	}
	r.untilTag(t, acp.TagConfigOption)
	b.stop()
	b.start()
	again, err := b.host.Open(context.Background(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if in := again.Info(); in.Title != "Fix the bug" || in.Mode != ModePlan {
		t.Fatalf("stored as %+v", in)
	}
}

func TestRights(t *testing.T) {
	b := newBench(t, hello, Options{})
	s := b.session()
	watcher := person("eve")
	watcher.Rights = gladhand.Watch
	if _, _, err := s.Attach(watcher, 0, false); err != nil {
		t.Fatal(err)
	}
	nobody := watcher
	nobody.Rights = 0
	_, err1 := send(s, watcher, "", "hi", "")
	_, err2 := s.SetOption(watcher, OptionMode, ModePlan)
	_, err3 := answerAsk(s, watcher, "x", "y")
	_, _, err4 := s.Attach(nobody, 0, false)
	for i, err := range []error{err1, err2, err3, err4, s.Cancel(watcher), s.Pause(watcher, true), b.host.Kill(context.Background(), watcher, s.ID())} {
		if gladhand.CodeOf(err) != gladhand.CodeForbidden {
			t.Errorf("%d: %v", i, err)
		}
	}
}
