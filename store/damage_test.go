package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gladhand"
)

// marked is an event whose bytes can be found in the file.
func marked(n gladhand.Seq, size int) *gladhand.Event {
	e := fact(n)
	e.Update = fmt.Appendf(nil, `{"mark":"<%d>","pad":"%s"}`, n, strings.Repeat("x", size))
	return e
}

// damage stores events 1 to n of session a and of b, lets f change the database
// file where the event that stands at each offset begins, and opens it again.
func damage(t *testing.T, n gladhand.Seq, size int, f func(file []byte, at func(gladhand.Seq) int)) (*Store, *syncBuffer) {
	t.Helper()
	dir := t.TempDir()
	s := openIn(t, dir, Options{})
	for _, id := range []gladhand.SessionID{"a", "spacer", "b"} { // so that a and b share no page
		withSession(t, s, id)
		commit(t, s, func(tx *Tx) error {
			for i := gladhand.Seq(1); i <= n; i++ {
				e := marked(i, size)
				if id != "a" {
					e = fact(i)
				}
				if err := tx.PutEvents(id, e); err != nil {
					return err
				}
			}
			return nil
		})
	}
	closeStore(t, s)
	path := filepath.Join(dir, fileName)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f(file, func(n gladhand.Seq) int {
		i := bytes.Index(file, fmt.Appendf(nil, `{"mark":"<%d>"`, n))
		if i < 0 {
			t.Fatalf("event %d is not in the file", n)
		}
		return i
	})
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	log := &syncBuffer{}
	return openIn(t, dir, Options{Log: logTo(log)}), log
}

func upTo(n gladhand.Seq) []gladhand.Seq {
	var all []gladhand.Seq
	for i := gladhand.Seq(1); i <= n; i++ {
		all = append(all, i)
	}
	return all
}

// R068: NULs over a part of one event: that one is left out, with one warning,
// the rest is read; page by page too.
func TestDamagedEvent(t *testing.T) {
	s, log := damage(t, 100, 300, func(file []byte, at func(gladhand.Seq) int) {
		clear(file[at(50)+20:][:200])
	})
	want := slices.Delete(upTo(100), 49, 50)
	diff(t, "in pages", firsts(t, s, "a"), want)
	all, err := s.Events(t.Context(), "a", 0, 1<<30)
	if err != nil || len(all) != 99 {
		t.Fatalf("%d events, %v", len(all), err)
	}
	if page, err := s.Events(t.Context(), "a", 49, 1); err != nil || len(page) != 1 || page[0].First != 51 {
		t.Errorf("behind 49: %v, %v", page, err)
	}
	_, err = s.EventAt(t.Context(), "a", 50)
	wantReason(t, err, gladhand.CodeInternal, gladhand.ReasonMalformed)
	if n := strings.Count(log.String(), "WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log)
	}
	diff(t, "the other session", firsts(t, s, "b"), upTo(100))
	// It goes on, and the damaged entry can be written again.
	commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", marked(50, 300), marked(101, 300)) })
	diff(t, "mended", firsts(t, s, "a"), upTo(101))
}

// One flipped bit is seen, in an update that stays valid JSON as in a head.
func TestFlippedBit(t *testing.T) {
	for where, offset := range map[string]int{"update": 25, "head": -3, "checksum": -20, "session's first": 0} {
		t.Run(where, func(t *testing.T) {
			s, _ := damage(t, 10, 30, func(file []byte, at func(gladhand.Seq) int) {
				file[at(5)+offset] ^= 1
			})
			diff(t, "events", firsts(t, s, "a"), slices.Delete(upTo(10), 4, 5))
		})
	}
}

// R067: pages that are damaged as a whole hide their own events and no others.
func TestDamagedPages(t *testing.T) {
	for name, pages := range map[string][]gladhand.Seq{
		"first": {1}, "middle": {500}, "last": {1000}, "several": {100, 104, 112, 400, 700},
	} {
		t.Run(name, func(t *testing.T) {
			s, log := damage(t, 1000, 300, func(file []byte, at func(gladhand.Seq) int) {
				var starts []int
				for _, n := range pages {
					starts = append(starts, at(n)/4096*4096)
				}
				for _, start := range starts {
					clear(file[start:][:4096])
				}
			})
			got := firsts(t, s, "a")
			lost := 1000 - len(got)
			if lost < len(pages) || lost > 13*len(pages) || !slices.IsSorted(got) { // a page holds 11 or 12
				t.Errorf("%d of 1000 events are lost", lost)
			}
			for _, n := range pages {
				if slices.Contains(got, n) {
					t.Errorf("event %d was read from a damaged page", n)
				}
			}
			if !strings.Contains(log.String(), "damaged") {
				t.Error("no warning")
			}
			diff(t, "the other session", firsts(t, s, "b"), upTo(1000))
			// A write into a damaged page fails alone.
			gate, errs := make(chan struct{}), make(chan error, 2)
			s.Write(func(*Tx) error { <-gate; return nil }, nil)
			s.Write(func(tx *Tx) error { return tx.PutEvents("a", marked(pages[0], 300)) }, func(err error) { errs <- err })
			s.Write(func(tx *Tx) error { return tx.PutEvents("b", fact(1001)) }, func(err error) { errs <- err })
			close(gate)
			wantReason(t, <-errs, gladhand.CodeInternal, gladhand.ReasonMalformed)
			if err := <-errs; err != nil {
				t.Error(err)
			}
			diff(t, "the other session", firsts(t, s, "b"), upTo(1001))
		})
	}
}

// A long event lies on pages of its own; damage there is seen too.
func TestDamagedOverflow(t *testing.T) {
	s, _ := damage(t, 20, 30_000, func(file []byte, at func(gladhand.Seq) int) {
		clear(file[at(10)+12_000:][:4096])
	})
	got := firsts(t, s, "a")
	if slices.Contains(got, 10) && slices.Contains(got, 11) || len(got) < 18 {
		t.Errorf("read %v", got)
	}
}

// Damage among the recent events hides those, and neither what is in its place
// nor what comes later.
func TestDamagedRecent(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, Options{fanOut: 1, recentMax: 300})
	withSession(t, s, "a")
	for n := gladhand.Seq(1); n <= 500; n++ { // 300 go to their places, 200 stay
		commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", marked(n, 300)) })
	}
	closeStore(t, s)
	path := filepath.Join(dir, fileName)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(file, []byte(`{"mark":"<400>"`))
	clear(file[at/4096*4096:][:4096])
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	log := &syncBuffer{}
	s = openIn(t, dir, Options{fanOut: 1, recentMax: 300, Log: logTo(log)})
	got := firsts(t, s, "a")
	if len(got) < 300 || !slices.Equal(got[:300], upTo(300)) || slices.Contains(got, 400) {
		t.Errorf("read %v", got)
	}
	if !strings.Contains(log.String(), "damaged") {
		t.Error("no warning")
	}
	// It goes on when there are too many recent events and they cannot be moved.
	for n := gladhand.Seq(501); n <= 700; n++ {
		commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", marked(n, 300)) })
	}
	if page, err := s.Events(t.Context(), "a", 699, 1); err != nil || len(page) != 1 {
		t.Error(page, err)
	}
	if !strings.Contains(log.String(), "cannot be moved") {
		t.Error("they were moved: the test tests nothing")
	}
	if err := s.Health(); err != nil {
		t.Error(err)
	}
	commit(t, s, func(tx *Tx) error { return tx.DeleteSession("a") })
}
