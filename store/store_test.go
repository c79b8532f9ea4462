package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gladhand"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// openIn opens a store and closes it when the test ends.
func openIn(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func commit(t testing.TB, s *Store, fn func(*Tx) error) {
	t.Helper()
	if err := s.Commit(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func newSession(id gladhand.SessionID) Session {
	return Session{Info: gladhand.SessionInfo{
		ID: id, Cwd: "/w", Agent: "gladhand", Model: "offline", Mode: "ask", Profile: "coding", State: gladhand.StateIdle,
		Created: "2026-01-02T03:04:05Z", Updated: "2026-01-02T03:04:05.123456Z",
	}, Format: 1}
}

func withSession(t testing.TB, s *Store, ids ...gladhand.SessionID) {
	t.Helper()
	commit(t, s, func(tx *Tx) error {
		for _, id := range ids {
			if err := tx.PutSession(newSession(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// fact is an event that covers one number.
func fact(n gladhand.Seq) *gladhand.Event {
	return &gladhand.Event{
		First: n, Last: n, Opens: n, Class: gladhand.Fact, Tag: gladhand.TagPrompt, Base: -1,
		Update: fmt.Appendf(nil, `{"sessionUpdate":"_gladhand_prompt","n":%d}`, n), At: time.UnixMicro(1_700_000_000_000_000).UTC(),
	}
}

// firsts reads a whole log and returns where its entries begin.
func firsts(t testing.TB, s *Store, id gladhand.SessionID) []gladhand.Seq {
	t.Helper()
	var list []gladhand.Seq
	after := gladhand.Seq(0)
	for {
		page, err := s.Events(context.Background(), id, after, 4096)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return list
		}
		for _, e := range page {
			list = append(list, e.First)
		}
		after = page[len(page)-1].Last
	}
}

// syncBuffer is a log that goroutines write and tests read.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func logTo(w *syncBuffer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// until polls a condition; it fails the test when it does not come true.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func wantReason(t *testing.T, err error, code gladhand.Code, reason gladhand.Reason) {
	t.Helper()
	if gladhand.CodeOf(err) != code || gladhand.ReasonOf(err) != reason {
		t.Fatalf("got %v (code %d, reason %q), want code %d, reason %q", err, gladhand.CodeOf(err), gladhand.ReasonOf(err), code, reason)
	}
}

// The log of SQLite before 3.51.3 can be damaged when it is reset.
func TestSQLiteVersion(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	var version string
	if err := sqlitex.ExecuteTransient(s.w.c.Conn, "SELECT sqlite_version()", &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		version = st.ColumnText(0)
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	var a, b, c int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &a, &b, &c); err != nil || slices.Compare([]int{a, b, c}, []int{3, 51, 3}) < 0 {
		t.Fatalf("SQLite %s (%v), want at least 3.51.3", version, err)
	}
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, Options{})
	withSession(t, s, "a")
	for n := gladhand.Seq(1); n <= 100; n++ {
		commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", fact(n)) })
	}
	closeStore(t, s)
	if _, err := os.Stat(filepath.Join(dir, fileName+"-wal")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the write-ahead log is still there after Close: %v", err)
	}
	s = openIn(t, dir, Options{})
	if got := firsts(t, s, "a"); len(got) != 100 || got[99] != 100 {
		t.Fatalf("got %v", got)
	}
	if last, err := s.LastSeq(t.Context(), "a"); err != nil || last != 100 {
		t.Fatal(last, err)
	}
}

// Close stores what is queued: nothing that was given to Write gets lost.
func TestCloseDrains(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, Options{MaxBatch: 7})
	withSession(t, s, "a")
	done := 0
	for n := gladhand.Seq(1); n <= 500; n++ {
		s.Write(func(tx *Tx) error { return tx.PutEvents("a", fact(n)) }, func(err error) {
			if err != nil {
				t.Error(err)
			}
			done++
		})
	}
	closeStore(t, s)
	if done != 500 { // run has ended: no other goroutine touches it
		t.Fatalf("%d done functions were called", done)
	}
	if got := firsts(t, openIn(t, dir, Options{}), "a"); len(got) != 500 {
		t.Fatalf("%d events", len(got))
	}
}

// Done functions are called in the order of Write, those of failed items too,
// and may call Write themselves.
func TestDoneOrder(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	withSession(t, s, "a")
	bad := errors.New("bad")
	var order []int
	finished := make(chan struct{})
	for i := range 2000 {
		s.Write(func(tx *Tx) error {
			if err := tx.PutEvents("a", fact(gladhand.Seq(i+1))); err != nil {
				return err
			}
			if i%3 == 1 {
				return bad
			}
			return nil
		}, func(err error) {
			order = append(order, i)
			if (i%3 == 1) != errors.Is(err, bad) {
				t.Errorf("item %d: %v", i, err)
			}
			if i == 1999 {
				s.Write(func(*Tx) error { return nil }, func(error) { close(finished) })
			}
		})
	}
	<-finished
	if len(order) != 2000 || !slices.IsSorted(order) {
		t.Fatalf("%d in order: %v", len(order), slices.IsSorted(order))
	}
	got := firsts(t, s, "a")
	if len(got) != 1333 { // 2000 less every third
		t.Fatalf("%d events stored", len(got))
	}
}

// One item that fails, however it fails, takes nobody with it.
func TestBadItemInBatch(t *testing.T) {
	log := &syncBuffer{}
	s := openIn(t, t.TempDir(), Options{Log: logTo(log)})
	withSession(t, s, "a")
	gate := make(chan struct{})
	s.Write(func(*Tx) error { <-gate; return nil }, nil) // so that the rest is one batch
	errs := make(chan error, 10)
	done := func(err error) { errs <- err }
	put := func(n gladhand.Seq) func(*Tx) error {
		return func(tx *Tx) error { return tx.PutEvents("a", fact(n)) }
	}
	s.Write(put(1), done)
	s.Write(func(tx *Tx) error {
		_ = tx.PutEvents("a", fact(100))
		return tx.PutEvents("nobody", fact(1))
	}, done)
	s.Write(put(2), done)
	s.Write(func(tx *Tx) error {
		_ = tx.PutSession(newSession("b"))
		_ = tx.PutEvents("b", fact(1))
		panic("oops")
	}, done)
	s.Write(put(3), done)
	s.Write(func(tx *Tx) error { return tx.PutEvents("b", fact(1)) }, done) // b was taken back
	s.Write(func(tx *Tx) error { return tx.PutEvents("a", &gladhand.Event{First: 9, Last: 8}) }, done)
	s.Write(func(tx *Tx) error {
		return tx.PutEvents("a", &gladhand.Event{First: 9, Last: 9, Text: gladhand.Span{Start: 3, End: 5}})
	}, done)
	s.Write(put(4), done)
	close(gate)
	for i, wantErr := range []bool{false, true, false, true, false, true, true, true, false} {
		if err := <-errs; (err != nil) != wantErr {
			t.Errorf("item %d: %v", i, err)
		}
	}
	if got := firsts(t, s, "a"); !slices.Equal(got, []gladhand.Seq{1, 2, 3, 4}) {
		t.Errorf("stored %v", got)
	}
	if last, err := s.LastSeq(t.Context(), "a"); err != nil || last != 4 {
		t.Errorf("last number %d, %v: that of an item taken back counts", last, err)
	}
	if _, err := s.Session(t.Context(), "b"); gladhand.CodeOf(err) != gladhand.CodeNotFound {
		t.Errorf("session b: %v", err)
	}
	if err := s.Health(); err != nil {
		t.Errorf("health: %v", err)
	}
	if !strings.Contains(log.String(), "oops") {
		t.Error("the panic is not in the log")
	}
}

func TestCommitCancelled(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	withSession(t, s, "a")
	gate := make(chan struct{})
	s.Write(func(*Tx) error { <-gate; return nil }, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Commit(ctx, func(tx *Tx) error { return tx.PutEvents("a", fact(1)) }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(gate)
	commit(t, s, func(*Tx) error { return nil })
	if got := firsts(t, s, "a"); len(got) != 1 {
		t.Fatal("the write was cancelled with the waiting")
	}
}

func TestAfterClose(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	withSession(t, s, "a")
	closeStore(t, s)
	closeStore(t, s)
	var order []int
	last := make(chan error)
	for i := range 100 {
		s.Write(func(*Tx) error { t.Error("a write ran after Close"); return nil }, func(err error) {
			order = append(order, i)
			if i == 99 {
				last <- err
			}
		})
	}
	wantReason(t, <-last, gladhand.CodeInternal, gladhand.ReasonUnavailable)
	if len(order) != 100 || !slices.IsSorted(order) {
		t.Errorf("done functions called in the order %v", order)
	}
	_, err := s.Events(t.Context(), "a", 0, 1)
	wantReason(t, err, gladhand.CodeInternal, gladhand.ReasonUnavailable)
	wantReason(t, s.Commit(t.Context(), func(*Tx) error { return nil }), gladhand.CodeInternal, gladhand.ReasonUnavailable)
}

// R155: many goroutines, one database: nobody meets a lock.
func TestManyWritersAndReaders(t *testing.T) {
	s := openIn(t, t.TempDir(), Options{})
	const sessions, each = 50, 40
	var ids []gladhand.SessionID
	for i := range sessions {
		ids = append(ids, benchID(i))
	}
	withSession(t, s, ids...)
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(len(id))))
			for n := gladhand.Seq(1); n <= each; n++ {
				if err := s.Commit(t.Context(), func(tx *Tx) error { return tx.PutEvents(id, fact(n)) }); err != nil {
					t.Error(err)
					return
				}
				// A read sees what was acknowledged before it, of this session and the rest.
				page, err := s.Events(t.Context(), id, n-1, 1)
				if err != nil || len(page) != 1 || page[0].First != n {
					t.Errorf("after the acknowledgement of %d: %v, %v", n, page, err)
					return
				}
				if _, err := s.LastSeq(t.Context(), ids[rnd.IntN(sessions)]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	list, err := s.Sessions(t.Context())
	if err != nil || len(list) != sessions {
		t.Fatal(len(list), err)
	}
	for _, l := range list {
		if l.Info.Seq != each {
			t.Errorf("session %s ends at %d", l.Info.ID, l.Info.Seq)
		}
	}
}

// outside is another program's connection to the database.
func outside(t *testing.T, dir string) *sqlite.Conn {
	t.Helper()
	c, err := sqlite.OpenConn(filepath.Join(dir, fileName), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func execute(t *testing.T, c *sqlite.Conn, q string) {
	t.Helper()
	if err := sqlitex.ExecuteTransient(c, q, nil); err != nil {
		t.Fatal(err)
	}
}

// R153, R154: a lock held from outside is waited for, longer than SQLite's own
// timeout, and the write then succeeds.
func TestOutsideLockIsWaitedFor(t *testing.T) {
	dir, log := t.TempDir(), &syncBuffer{}
	s := openIn(t, dir, Options{Log: logTo(log)})
	withSession(t, s, "a")
	other := outside(t, dir)
	execute(t, other, "BEGIN IMMEDIATE")
	done := make(chan error, 1)
	s.Write(func(tx *Tx) error { return tx.PutEvents("a", fact(1)) }, func(err error) { done <- err })
	until(t, "a warning that the database is locked", func() bool { return strings.Contains(log.String(), "locked") })
	select {
	case err := <-done:
		t.Fatalf("done while the lock was held: %v", err)
	default:
	}
	if _, err := s.Sessions(t.Context()); err != nil { // readers do not wait
		t.Fatal(err)
	}
	execute(t, other, "COMMIT")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// The waiting has an end, and the store recovers by itself.
func TestOutsideLockForEver(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, Options{BusyWait: time.Millisecond})
	withSession(t, s, "a")
	other := outside(t, dir)
	execute(t, other, "BEGIN IMMEDIATE")
	err := s.Commit(t.Context(), func(tx *Tx) error { return tx.PutEvents("a", fact(1)) })
	wantReason(t, err, gladhand.CodeInternal, gladhand.ReasonUnavailable)
	if s.Health() == nil {
		t.Error("healthy")
	}
	execute(t, other, "COMMIT")
	until(t, "healthy again without a write", func() bool { return s.Health() == nil })
	if got := firsts(t, s, "a"); len(got) != 0 {
		t.Errorf("stored %v, which was reported as not stored", got)
	}
	commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", fact(1)) })
}

// The write-ahead log is moved into the database as it grows.
func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, Options{})
	withSession(t, s, "a")
	big := fact(1)
	big.Update = append(append([]byte(`"`), bytes.Repeat([]byte("x"), 1<<20)...), '"')
	for range 40 {
		commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", big) })
	}
	info, err := os.Stat(filepath.Join(dir, fileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 30<<20 {
		t.Fatalf("the write-ahead log has %d bytes", info.Size())
	}
}

// Deleting a long log takes its events in pieces, also after a restart.
func TestDeleteIsPurged(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, Options{})
	withSession(t, s, "a", "b")
	commit(t, s, func(tx *Tx) error {
		for n := gladhand.Seq(1); n <= 3*purgeRows; n++ {
			if err := errors.Join(tx.PutEvents("a", fact(n)), tx.PutEvents("b", fact(n))); err != nil {
				return err
			}
		}
		return nil
	})
	count := func(s *Store, table string) (n int) {
		err := s.read(t.Context(), func(c *conn) error {
			return sqlitex.ExecuteTransient(c.Conn, "SELECT count(*) FROM "+table, &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
				n = st.ColumnInt(0)
				return nil
			}})
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, id := range []gladhand.SessionID{"a", "b"} {
		commit(t, s, func(tx *Tx) error { return tx.DeleteSession(id) })
		if got := firsts(t, s, id); len(got) != 0 {
			t.Fatalf("%d events of a deleted session", len(got))
		}
		if id == "a" {
			withSession(t, s, "a") // the same id again starts afresh
			commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", fact(1)) })
			closeStore(t, s)
			s = openIn(t, dir, Options{})
		}
	}
	until(t, "the events are gone", func() bool { return count(s, "events") == 1 && count(s, "graves") == 0 })
	if got := firsts(t, s, "a"); !slices.Equal(got, []gladhand.Seq{1}) {
		t.Fatalf("events of the new session: %v", got)
	}
}

// A store at rest holds no goroutine but the writer's, and none after Close.
func TestNoGoroutinesLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	s := openIn(t, t.TempDir(), Options{})
	withSession(t, s, "a")
	firsts(t, s, "a")
	closeStore(t, s)
	until(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}
