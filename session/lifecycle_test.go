package session

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"gladhand"
	"gladhand/acp"
	"gladhand/store"
)

// hold takes the database's write lock from outside, as a backup or a person's
// sqlite3 does, until the returned function is called.
func (b *bench) hold() (release func()) {
	b.t.Helper()
	c, err := sqlite.OpenConn(filepath.Join(b.dir, "gladhand.db"), sqlite.OpenReadWrite)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(c, "BEGIN IMMEDIATE", nil); err != nil {
		b.t.Fatal(err)
	}
	done := false
	release = func() {
		if !done {
			done = true
			if err := sqlitex.ExecuteTransient(c, "ROLLBACK", nil); err != nil {
				b.t.Error(err)
			}
			c.Close()
		}
	}
	b.t.Cleanup(release)
	return release
}

// R154: a store that somebody else keeps busy delays; nothing is lost, and
// cancelling waits for nobody.
func TestCancelDoesNotWaitForTheStore(t *testing.T) {
	begun := make(chan struct{}, 2)
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return gladhand.StopCancelled, nil
	}, Options{})
	s := b.session()
	watch := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "", "go")
	<-begun
	release := b.hold()
	if err := s.Cancel(person("bo")); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	cancelled := s.turn == nil || s.turn.cancelled
	s.mu.Unlock()
	if !cancelled {
		t.Fatal("the turn is not cancelled while the store is busy")
	}
	release()
	if end := watch.untilEnd(t, 1); end.StopReason != gladhand.StopCancelled {
		t.Fatalf("%+v", end)
	}
}

// An agent that floods waits for the store, not for clients; a cancel ends the
// wait.
func TestAppendingWaitsForTheStore(t *testing.T) {
	flooding := make(chan error, 1)
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		word := strings.Repeat("x", 32<<10)
		for {
			if err := say(ctx, t, "m", word); err != nil {
				flooding <- err
				return gladhand.StopCancelled, nil
			}
		}
	}, Options{})
	s := b.session()
	never, _, err := s.Attach(person("reads nothing"), 0, false) // costs nobody anything
	if err != nil {
		t.Fatal(err)
	}
	mustSend(t, s, person("ana"), "", "go")
	watch := follow(t, s, person("ana"), 0)
	watch.untilTag(t, acp.TagAgentChunk)
	release := b.hold()
	for full := false; !full; {
		select {
		case err := <-flooding:
			t.Fatal(err)
		case <-time.After(time.Millisecond): // a condition with the test's deadline
		}
		s.mu.Lock()
		full = s.log.unsaved >= UnsavedSession
		if s.log.unsaved > UnsavedSession+1<<20 {
			t.Errorf("%d bytes are unsaved", s.log.unsaved)
		}
		s.mu.Unlock()
	}
	if err := s.Cancel(person("ana")); err != nil {
		t.Fatal(err)
	}
	if err := <-flooding; gladhand.CodeOf(err) != gladhand.CodeCancelled {
		t.Fatalf("the flood ended with %v", err)
	}
	release()
	watch.untilEnd(t, 1)
	s.mu.Lock()
	kept := s.log.tail.bytes
	s.mu.Unlock()
	if kept > tailIdle+RunSlack {
		t.Fatalf("%d bytes stay in memory after the turn", kept)
	}
	items, err := never.Next(context.Background())
	if err != nil || len(items) == 0 || items[0].From != 1 {
		t.Fatalf("the reader that read nothing: %d items, %v", len(items), err)
	}
}

// RunSlack is one run: the newest event stays whole.
const RunSlack = acp.RunLimit + 1024

func TestLimitsOfSizes(t *testing.T) {
	emitted := make(chan error, 4)
	b := newBench(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		empty := len(acp.MessageChunk("m", ""))
		emitted <- say(ctx, t, "m", strings.Repeat("x", EventMax-empty))
		emitted <- say(ctx, t, "m", strings.Repeat("x", EventMax-empty+1))
		return gladhand.StopEndTurn, nil
	}, Options{})
	s := b.session()
	empty := len(acp.TextContent(""))
	mustSend(t, s, person("ana"), "", strings.Repeat("x", PromptMax-empty))
	_, err := send(s, person("ana"), "", strings.Repeat("x", PromptMax-empty+1), "")
	if gladhand.CodeOf(err) != gladhand.CodeInvalidParams {
		t.Fatalf("a prompt over the limit: %v", err)
	}
	if err := <-emitted; err != nil {
		t.Fatalf("an update at the limit: %v", err)
	}
	if err := <-emitted; gladhand.CodeOf(err) != gladhand.CodeInvalidParams {
		t.Fatalf("an update over the limit: %v", err)
	}
}

func TestCloseOnlyDetachesWhenOthersNeedTheSession(t *testing.T) {
	release := make(chan struct{})
	b := newBench(t, block(release), Options{})
	s := b.session()
	ctx := context.Background()
	bo := follow(t, s, person("bo"), 0)
	if detached, err := b.host.Close(ctx, person("ana"), s.ID()); err != nil || !detached {
		t.Fatalf("with another attached: %v %v", detached, err)
	}
	s.Detach(bo.a)
	mustSend(t, s, person("bo"), "", "go")
	if detached, err := b.host.Close(ctx, person("ana"), s.ID()); err != nil || !detached {
		t.Fatalf("with another's work: %v %v", detached, err)
	}
	// A prompt that has not begun would stay, and run when the session is opened.
	follow(t, s, person("bo"), 0).untilTag(t, gladhand.TagTurnStart)
	if detached, err := b.host.Close(ctx, person("bo"), s.ID()); err != nil || detached {
		t.Fatalf("by the last: %v %v", detached, err)
	}
	if b.host.Live(s.ID()) != nil {
		t.Fatal("the closed session is still open")
	}
	infos, err := b.host.List(ctx, person("ana"), "", true)
	if err != nil || len(infos) != 1 || infos[0].State != gladhand.StateClosed {
		t.Fatalf("listed as %+v, %v", infos, err)
	}
	again, err := b.host.Open(ctx, s.ID())
	if err != nil || again.Info().State != gladhand.StateIdle {
		t.Fatalf("opened again: %v", err)
	}
}

// Kill and delete cancel first, end the session for everybody, and refuse what
// comes later.
func TestKillAndDelete(t *testing.T) {
	b := newBench(t, block(nil), Options{})
	ctx := context.Background()
	for name, end := range map[string]func(context.Context, gladhand.Identity, gladhand.SessionID) error{"kill": b.host.Kill, "delete": b.host.Delete} {
		s := b.session()
		watch := follow(t, s, person("bo"), 0)
		mustSend(t, s, person("bo"), "", "runs")
		mustSend(t, s, person("bo"), "", "waits")
		if err := end(ctx, person("ana"), s.ID()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := watch.untilEnd(t, 1); got.StopReason != gladhand.StopCancelled {
			t.Fatalf("%s: the turn ended as %+v", name, got)
		}
		<-watch.done // told that it is gone
		if _, err := send(s, person("bo"), "", "late", ""); gladhand.ReasonOf(err) != gladhand.ReasonGone {
			t.Fatalf("%s: a late prompt: %v", name, err)
		}
		if _, err := b.host.Open(ctx, s.ID()); gladhand.CodeOf(err) != gladhand.CodeNotFound {
			t.Fatalf("%s: opening it: %v", name, err)
		}
		events, err := b.store.Events(ctx, s.ID(), 0, 1<<20)
		if kept := err == nil && len(events) > 0; kept != (name == "kill") {
			t.Fatalf("%s: %d events are kept, %v", name, len(events), err)
		}
	}
}

// R220: unused sessions make room; ones in use do not.
func TestUnusedSessionsMakeRoom(t *testing.T) {
	b := newBench(t, hello, Options{MaxOpen: 2})
	one, two := b.session(), b.session()
	if _, err := b.host.Create(context.Background(), person("ana"), t.TempDir(), gladhand.NewSessionMeta{}); gladhand.CodeOf(err) != gladhand.CodeCapacity {
		t.Fatalf("a third, with two just made: %v", err)
	}
	follow(t, two, person("ana"), 0)
	for _, s := range []*Session{one, two} {
		s.mu.Lock()
		s.used = time.Now().Add(-2 * unloadAfter)
		s.mu.Unlock()
	}
	b.session()
	if b.host.Live(one.ID()) != nil || b.host.Live(two.ID()) == nil {
		t.Fatal("the wrong session was let go of")
	}
	if infos, err := b.host.List(context.Background(), person("ana"), "", false); err != nil || len(infos) != 3 {
		t.Fatalf("%d sessions are listed, %v", len(infos), err)
	}
}

// A stored session of a format or agent that is not known is listed, refused with
// the reason, and not touched.
func TestUnknownFormatIsLeftUntouched(t *testing.T) {
	b := newBench(t, hello, Options{Knows: func(a string) bool { return a == "gladhand" }})
	ctx := context.Background()
	var rows []store.Session
	for _, change := range []func(*store.Session){
		func(r *store.Session) { r.Format = Format + 1 },
		func(r *store.Session) { r.Info.Agent = "unheard-of" },
	} {
		s := b.session()
		s.mu.Lock()
		row := s.row
		s.mu.Unlock()
		b.host.forget(s)
		change(&row)
		if err := b.store.Commit(ctx, func(tx *store.Tx) error { return tx.PutSession(row) }); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	infos, err := b.host.List(ctx, person("ana"), "", false)
	if err != nil || len(infos) != 2 {
		t.Fatalf("%d sessions are listed, %v", len(infos), err)
	}
	for _, in := range infos {
		if in.State != gladhand.StateUnusable || in.Reason == "" {
			t.Fatalf("listed as %+v", in)
		}
	}
	for _, row := range rows {
		if _, err := b.host.Open(ctx, row.Info.ID); gladhand.ReasonOf(err) != gladhand.ReasonUnsupported {
			t.Fatalf("opening it: %v", err)
		}
		if _, err := b.host.Close(ctx, person("ana"), row.Info.ID); gladhand.ReasonOf(err) != gladhand.ReasonUnsupported {
			t.Fatalf("closing it: %v", err)
		}
		got, err := b.store.Session(ctx, row.Info.ID)
		if err != nil || got.Format != row.Format || got.Info.State != row.Info.State || got.Info.Updated != row.Info.Updated {
			t.Fatalf("it was touched: %+v, %v", got, err)
		}
	}
}

// Two opens of one id make one session; different ids open side by side.
func TestOpeningReservesTheID(t *testing.T) {
	b := newBench(t, hello, Options{})
	ids := []gladhand.SessionID{b.session().ID(), b.session().ID()}
	b.stop()
	b.start()
	got := make(chan *Session, 16)
	for i := range 16 {
		go func() {
			s, err := b.host.Open(context.Background(), ids[i%2])
			if err != nil {
				t.Error(err)
			}
			got <- s
		}()
	}
	distinct := map[*Session]bool{}
	for range 16 {
		distinct[<-got] = true
	}
	if len(distinct) != 2 {
		t.Fatalf("%d sessions for two ids", len(distinct))
	}
}

func TestShutdownKeepsTheQueue(t *testing.T) {
	release := make(chan struct{})
	b := newBench(t, block(release), Options{})
	s := b.session()
	mustSend(t, s, person("ana"), "p1", "runs")
	mustSend(t, s, person("ana"), "p2", "waits")
	b.stop()
	close(release)
	b.start()
	if err := b.host.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	again := b.host.Live(s.ID())
	if again == nil {
		t.Fatal("a session with a waiting prompt was not opened")
	}
	watch := follow(t, again, person("bo"), 0)
	if end := watch.untilEnd(t, 2); end.Prompts[0] != "p2" || end.StopReason != gladhand.StopEndTurn {
		t.Fatalf("the waiting prompt: %+v", end)
	}
	if rec, err := again.Receipt(context.Background(), "p1"); err != nil || rec.Outcome != gladhand.Cancelled {
		t.Fatalf("the running prompt: %+v, %v", rec, err)
	}
	check(t, watch.seen(), 0, watch.seen()[len(watch.seen())-1].To)
}

func TestQueueCommands(t *testing.T) {
	release := make(chan struct{})
	b := newBench(t, block(release), Options{})
	s := b.session()
	watch := follow(t, s, person("ana"), 0)
	mustSend(t, s, person("ana"), "p0", "runs")
	watch.untilTag(t, gladhand.TagTurnStart)
	for _, id := range []string{"p1", "p2", "p3", "p4"} {
		mustSend(t, s, person("ana"), id, "waits")
	}
	if err := s.Move(person("ana"), "p4", 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Move(person("ana"), "p1", 99); err != nil {
		t.Fatal(err)
	}
	if err := s.Drop(person("bo"), "p2"); err != nil {
		t.Fatal(err)
	}
	if err := s.Drop(person("bo"), "p2"); gladhand.CodeOf(err) != gladhand.CodeNotFound {
		t.Fatalf("dropping it again: %v", err)
	}
	if err := s.Pause(person("bo"), true); err != nil {
		t.Fatal(err)
	}
	close(release)
	watch.untilEnd(t, 1)
	b.stop() // the order and the pause survive
	b.start()
	if err := b.host.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	again, err := b.host.Open(context.Background(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	ps, paused, err := again.Queue(person("ana"))
	var order []string
	for _, p := range ps {
		order = append(order, string(p.ID))
	}
	if err != nil || !paused || strings.Join(order, " ") != "p4 p3 p1" {
		t.Fatalf("paused %v, queue %v, %v", paused, order, err)
	}
	watch = follow(t, again, person("ana"), 0)
	if err := again.Pause(person("bo"), false); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"p4", "p3", "p1"} {
		if end := watch.untilEnd(t, gladhand.TurnID(i+2)); string(end.Prompts[0]) != want {
			t.Fatalf("turn %d ran %v", i+2, end.Prompts)
		}
	}
}
