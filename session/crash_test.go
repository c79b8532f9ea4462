package session

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"gladhand"
	"gladhand/acp"
	"gladhand/store"
)

// refuse makes the database refuse a sort of change until the returned function is
// called: when is a trigger's head, such as "BEFORE INSERT ON prompts". It stands
// for a disk that fails at that very moment.
func (b *bench) refuse(when string) (mend func()) {
	b.t.Helper()
	b.sql("CREATE TRIGGER refuse " + when + " BEGIN SELECT RAISE(FAIL, 'refused by the test'); END")
	return func() { b.t.Helper(); b.sql("DROP TRIGGER refuse") }
}

// sql runs a statement on the database from outside, and returns what it selects.
func (b *bench) sql(text string) (rows []string) {
	b.t.Helper()
	c, err := sqlite.OpenConn(filepath.Join(b.dir, "gladhand.db"), sqlite.OpenReadWrite)
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	c.SetBusyTimeout(20 * time.Second)
	if err := sqlitex.ExecuteTransient(c, text, &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		rows = append(rows, st.ColumnText(0))
		return nil
	}}); err != nil {
		b.t.Fatal(err)
	}
	return rows
}

// stall keeps the store from writing anything until the returned function is
// called; what comes meanwhile is written in order then.
func (b *bench) stall() (goOn func()) {
	gate, in := make(chan struct{}), make(chan struct{})
	b.store.Write(func(*store.Tx) error { close(in); <-gate; return nil }, nil)
	<-in
	return func() { close(gate) }
}

// poll waits until f is true.
func poll(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// What could not be stored is tried again before anything that came later: a turn
// does not begin while the end of the one before is missing, and no row goes back
// to what it was. R164.
func TestNothingOvertakesWhatIsTriedAgain(t *testing.T) {
	finish := make(chan struct{})
	ran := make(chan gladhand.PromptID, 4)
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		ran <- t.Prompt().ID
		if t.Prompt().ID == "p1" {
			<-finish
		}
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	watch := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "p1", "go")
	mustSend(t, s, person("ana"), "p2", "go on")
	<-ran
	mend := b.refuse("BEFORE UPDATE ON sessions WHEN NEW.running = 0")
	close(finish)
	poll(t, "the end of turn 1 is tried", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.turn == nil || s.turn.id != 1
	})
	// Until it is mended, the second turn must not run.
	for range 3 {
		c := make(chan error, 1)
		b.store.Write(func(*store.Tx) error { return nil }, func(err error) { c <- err })
		<-c
	}
	select {
	case id := <-ran:
		t.Fatalf("%s runs, and the turn before it has not ended", id)
	case <-time.After(2 * Checkpoint): // long enough for a retry to overtake
	}
	if got := b.sql("SELECT running FROM sessions"); got[0] != "1" {
		t.Fatalf("the running turn is %s", got)
	}
	mend()
	if id := <-ran; id != "p2" {
		t.Fatalf("%s runs", id)
	}
	watch.untilEnd(t, 2)
	if got := b.sql("SELECT turn || ' ' || running FROM sessions"); got[0] != "2 0" {
		t.Errorf("the row says %s", got)
	}
	if got := b.sql("SELECT count(*) FROM prompts WHERE state = 'done'"); got[0] != "2" {
		t.Errorf("%s prompts are done", got)
	}
	watch.cancel()
	<-watch.done
	check(t, watch.items, 0, watch.a.At())
	starts := 0
	for _, it := range watch.items {
		if it.Event.Tag == gladhand.TagTurnStart {
			starts++
		}
	}
	if starts != 2 {
		t.Errorf("%d turns began", starts)
	}
}

// A bad item fails alone: growth that waits for the store, and steps behind it,
// are stored though a prompt among them is one the store has already.
func TestKnownPromptFailsNothingElse(t *testing.T) {
	step := make(chan string)
	result := make(chan error)
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		if t.Prompt().ID == "old" {
			return gladhand.StopEndTurn, nil
		}
		for what := range step {
			if what == "tool" {
				result <- t.Emit(ctx, acp.ToolCall(acp.ToolState{ID: "t1", Title: "x", Status: "pending"}))
			} else {
				result <- say(ctx, t, "m1", what)
			}
		}
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	watch := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "old", "go")
	watch.untilEnd(t, 1)
	mustSend(t, s, person("ana"), "new", "go")
	for _, w := range []string{"one ", "two "} {
		step <- w
		if err := <-result; err != nil {
			t.Fatal(err)
		}
	}
	goOn := b.stall()
	step <- "three "
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	known := make(chan gladhand.Receipt, 1)
	s.Send(person("ana"), gladhand.Prompt{ID: "old", Content: acp.TextContent("go")}, func(r gladhand.Receipt, err error) {
		if err != nil {
			t.Error(err)
		}
		known <- r
	})
	step <- "tool"
	goOn()
	if err := <-result; err != nil {
		t.Errorf("a step behind a prompt that was known: %v", err)
	}
	if r := <-known; r.State != gladhand.PromptDone {
		t.Errorf("the known prompt is %+v", r)
	}
	close(step)
	watch.untilEnd(t, 2)
}

// A tool call whose start could not be stored never was: nothing ends it.
func TestToolCallThatCouldNotBegin(t *testing.T) {
	var mend func()
	var b *bench
	b = newBench(t, func(ctx context.Context, tn gladhand.Turn) (gladhand.StopReason, error) {
		mend = b.refuse("BEFORE INSERT ON events")
		err := tn.Emit(ctx, acp.ToolCall(acp.ToolState{ID: "t1", Title: "x", Status: "in_progress"}))
		mend()
		if err == nil {
			return "", errors.New("Emit returned nil, and nothing is stored")
		}
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	watch := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "p1", "go")
	if end := watch.untilEnd(t, 1); end.StopReason != gladhand.StopEndTurn {
		t.Errorf("the turn ended with %+v", end.Error)
	}
	watch.cancel()
	<-watch.done
	for _, it := range watch.items {
		if strings.HasPrefix(it.Event.Tag, "tool_call") {
			t.Errorf("the log has %s", it.Event.Update)
		}
	}
}

// A prompt that could not be stored does not leave those behind it waiting.
func TestRefusedPromptAtTheHead(t *testing.T) {
	finish := make(chan struct{})
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		if t.Prompt().ID == "p1" {
			<-finish
		}
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	watch := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "p1", "go")
	mustSend(t, s, person("ana"), "p2", "go")
	watch.untilTag(t, gladhand.TagTurnStart)
	mend := b.refuse("BEFORE INSERT ON prompts")
	goOn := b.stall()
	refused := make(chan error, 1)
	s.Send(person("ana"), gladhand.Prompt{ID: "p3", Content: acp.TextContent("now"), Delivery: gladhand.Steer},
		func(_ gladhand.Receipt, err error) { refused <- err })
	close(finish)
	poll(t, "the runner stops at the prompt that is not stored", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.runner
	})
	goOn()
	if err := <-refused; err == nil {
		t.Fatal("the prompt was taken, and is not stored")
	}
	watch.untilEnd(t, 2)
	mend()
}

// An interrupt cancels when it is accepted, not before: one that is refused, or
// was run long ago and is only sent again, touches no turn.
func TestInterruptCancelsWhenItIsAccepted(t *testing.T) {
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		if t.Prompt().ID != "p1" {
			return gladhand.StopEndTurn, nil
		}
		<-ctx.Done()
		return gladhand.StopCancelled, nil
	}, Options{})
	s := b.session()
	ana := person("ana")
	watch := follow(t, s, ana, 0)
	if _, err := send(s, ana, "i1", "now", gladhand.Interrupt); err != nil {
		t.Fatal(err)
	}
	watch.untilEnd(t, 1)
	mustSend(t, s, ana, "p1", "go")
	watch.until(t, "turn 2", func(ev *gladhand.Event) bool { return ev.Tag == gladhand.TagTurnStart && ev.Turn == 2 })
	if r, err := send(s, ana, "i1", "now", gladhand.Interrupt); err != nil || r.Outcome != gladhand.Completed {
		t.Fatalf("the first interrupt again: %+v %v", r, err)
	}
	mend := b.refuse("BEFORE INSERT ON prompts")
	if _, err := send(s, ana, "i2", "now", gladhand.Interrupt); err == nil {
		t.Fatal("the prompt was taken, and is not stored")
	}
	mend()
	s.mu.Lock()
	cancelled := s.turn == nil || s.turn.cancelled
	s.mu.Unlock()
	if cancelled {
		t.Fatal("the turn was cancelled by a prompt that was not accepted")
	}
	if _, err := send(s, ana, "i3", "now", gladhand.Interrupt); err != nil {
		t.Fatal(err)
	}
	if end := watch.untilEnd(t, 2); end.StopReason != gladhand.StopCancelled {
		t.Errorf("the interrupted turn ended with %s", end.StopReason)
	}
	if end := watch.untilEnd(t, 3); !slices.Contains(end.Prompts, "i3") {
		t.Errorf("then ran %v", end.Prompts)
	}
}

// The order of the queue survives one restart after the other. R207.
func TestQueueOrderSurvivesRestarts(t *testing.T) {
	b := newBench(t, func(context.Context, gladhand.Turn) (gladhand.StopReason, error) {
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	ana := person("ana")
	if err := s.Pause(ana, true); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"x", "y", "z", "b", "c"} {
		mustSend(t, s, ana, id, "go")
	}
	want := []gladhand.PromptID{"b", "c"}
	for _, id := range []gladhand.PromptID{"x", "y", "z"} {
		if err := s.Drop(ana, id); err != nil {
			t.Fatal(err)
		}
	}
	again := func(id gladhand.PromptID) {
		t.Helper()
		old := s.ID()
		b.stop()
		b.start()
		var err error
		if s, err = b.host.Open(context.Background(), old); err != nil {
			t.Fatal(err)
		}
		queue, _, err := s.Queue(ana)
		if err != nil {
			t.Fatal(err)
		}
		var got []gladhand.PromptID
		for _, p := range queue {
			got = append(got, p.ID)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the queue is %v, was %v", got, want)
		}
		mustSend(t, s, ana, string(id), "go")
		want = append(want, id)
	}
	again("d")
	again("e")
	if err := s.Drop(ana, "b"); err != nil {
		t.Fatal(err)
	}
	want = want[1:]
	again("f")
	again("g")
}

// ended waits for f, and fails the test when it hangs.
func ended[T any](t *testing.T, what string, f func() T) (v T) {
	t.Helper()
	c := make(chan T, 1)
	go func() { c <- f() }()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", what)
	}
	return v
}

// When the store fails, closing, killing and deleting say so instead of waiting
// for it; the session stays, its cancelled turn does not come back, and its queue
// goes on once the store does.
func TestEndingWhileTheStoreFails(t *testing.T) {
	for what, end := range map[string]func(*Host, gladhand.SessionID) error{
		"close": func(h *Host, id gladhand.SessionID) error {
			_, err := h.Close(context.Background(), person("ana"), id)
			return err
		},
		"kill":   func(h *Host, id gladhand.SessionID) error { return h.Kill(context.Background(), person("ana"), id) },
		"delete": func(h *Host, id gladhand.SessionID) error { return h.Delete(context.Background(), person("ana"), id) },
	} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
				if t.Prompt().ID == "p1" {
					<-ctx.Done()
				}
				return gladhand.StopEndTurn, nil
			}, Options{})
			s := b.session()
			watch := follow(t, s, person("ana"), 0)
			mustSend(t, s, person("ana"), "p1", "go")
			watch.untilTag(t, gladhand.TagTurnStart)
			mustSend(t, s, person("ana"), "p2", "go")
			mend := b.refuse("BEFORE UPDATE ON sessions")
			if err := ended(t, what, func() error { return end(b.host, s.ID()) }); err == nil {
				t.Fatal("it reports success, and nothing can be stored")
			}
			if b.host.Live(s.ID()) != s {
				t.Fatal("the session has gone")
			}
			mend()
			if e := watch.untilEnd(t, 1); e.StopReason != gladhand.StopCancelled {
				t.Errorf("the cancelled turn ended with %s", e.StopReason)
			}
			watch.untilEnd(t, 2)
		})
	}
}

// A daemon that stops while the store fails says what it could not store, and
// does not keep a processor busy trying.
func TestStoppingWhileTheStoreFails(t *testing.T) {
	t.Parallel() // waits for a while
	b := newBench(t, func(context.Context, gladhand.Turn) (gladhand.StopReason, error) {
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	mend := b.refuse("BEFORE UPDATE ON sessions WHEN NEW.running = 0")
	mustSend(t, s, person("ana"), "p1", "go")
	poll(t, "the end of the turn is tried", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.turn == nil && s.row.Turn == 1
	})
	before := s.handed()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := b.host.Shutdown(ctx); err == nil {
		t.Error("it stops as if all were stored")
	}
	if n := s.handed() - before; n > 200 {
		t.Errorf("it tried %d times", n)
	}
	mend()
}

func (s *Session) handed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.writing.batches
}

// Looking at a session that is not open shows what waits in it.
func TestPeekShowsTheQueue(t *testing.T) {
	b := newBench(t, func(context.Context, gladhand.Turn) (gladhand.StopReason, error) {
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	ana := person("ana")
	if err := s.Pause(ana, true); err != nil {
		t.Fatal(err)
	}
	mustSend(t, s, ana, "p1", "go")
	if _, err := b.host.Close(context.Background(), ana, s.ID()); err != nil {
		t.Fatal(err)
	}
	cold, err := b.host.Peek(context.Background(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if queue, paused, err := cold.Queue(ana); err != nil || len(queue) != 1 || !paused || cold.Info().Queued != 1 {
		t.Errorf("the queue is %+v (paused %v, %v), queued %d", queue, paused, err, cold.Info().Queued)
	}
}
