package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gladhand"
)

// sample is an event of about 300 bytes, as an agent's message grows.
func sample(first gladhand.Seq) *gladhand.Event {
	text := strings.Repeat("some words ", 20)
	u := `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + `"}}`
	start := strings.Index(u, text)
	return &gladhand.Event{
		First: first, Last: first, Opens: 1, Turn: 1, Class: gladhand.Append, Version: 1,
		Tag: "agent_message_chunk", ID: "agent_message:m1", Update: json.RawMessage(u),
		Text: gladhand.Span{Start: start, End: start + len(text)}, Base: -1, At: time.Now(),
	}
}

func benchStore(b *testing.B, sessions int) *Store {
	b.Helper()
	s, err := Open(b.Context(), b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := s.Commit(b.Context(), func(tx *Tx) error {
		for i := range sessions {
			if err := tx.PutSession(Session{Info: gladhand.SessionInfo{ID: benchID(i), Cwd: "/home/u/project", Title: "a title", Agent: "gladhand", Model: "offline", Mode: "ask", Profile: "coding", State: "idle", Created: "2026-01-02T03:04:05Z", Updated: "2026-01-02T03:04:05Z"}}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	return s
}

func benchID(i int) gladhand.SessionID { return gladhand.SessionID(fmt.Sprintf("session%09d", i)) }

// BenchmarkCommit is one event, stored and synced, at a time.
func BenchmarkCommit(b *testing.B) {
	s := benchStore(b, 1)
	seq := gladhand.Seq(0)
	for b.Loop() {
		seq++
		if err := s.Commit(b.Context(), func(tx *Tx) error { return tx.PutEvents(benchID(0), sample(seq)) }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkCommit128 is groups of 128 writes, to one session and to 128.
func BenchmarkCommit128(b *testing.B) {
	for _, sessions := range []int{1, 128} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			s := benchStore(b, sessions)
			seqs := make([]gladhand.Seq, sessions)
			for b.Loop() {
				var wg sync.WaitGroup
				wg.Add(128)
				for i := range 128 {
					seqs[i%sessions]++
					e, id := sample(seqs[i%sessions]), benchID(i%sessions)
					s.Write(func(tx *Tx) error { return tx.PutEvents(id, e) }, func(err error) {
						if err != nil {
							b.Error(err)
						}
						wg.Done()
					})
				}
				wg.Wait()
			}
			b.ReportMetric(128*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkPrompt is what a prompt costs: its row and its event. Clients wait
// for their own before they send the next. None of them stays in the queue,
// which is short in life too.
func BenchmarkPrompt(b *testing.B) {
	for _, clients := range []int{1, 128} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s := benchStore(b, clients)
			each := max(b.N/clients, 1)
			b.ResetTimer()
			var wg sync.WaitGroup
			for c := range clients {
				wg.Go(func() {
					for n := range each {
						p := gladhand.Prompt{ID: gladhand.PromptID(fmt.Sprint(n)), Session: benchID(c), Content: json.RawMessage(`[{"type":"text","text":"hello there"}]`), State: gladhand.PromptDone, Delivery: gladhand.Queue}
						if err := s.Commit(b.Context(), func(tx *Tx) error {
							if err := tx.PutPrompt(p, int64(n)); err != nil {
								return err
							}
							return tx.PutEvents(benchID(c), sample(gladhand.Seq(n+1)))
						}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(each*clients)/b.Elapsed().Seconds(), "prompts/s")
		})
	}
}

// BenchmarkReplay reads a log of 100,000 events in pages of 256 KiB.
func BenchmarkReplay(b *testing.B) {
	const events = 100_000
	s := benchStore(b, 1)
	if err := s.Commit(b.Context(), func(tx *Tx) error {
		for i := range gladhand.Seq(events) {
			if err := tx.PutEvents(benchID(0), sample(i+1)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		after, n := gladhand.Seq(0), 0
		for {
			page, err := s.Events(b.Context(), benchID(0), after, 256<<10)
			if err != nil {
				b.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			after = page[len(page)-1].Last
			n += len(page)
		}
		if n != events {
			b.Fatalf("read %d events", n)
		}
	}
	b.ReportMetric(events*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkSessions lists 10,000 sessions.
func BenchmarkSessions(b *testing.B) {
	s := benchStore(b, 10_000)
	for b.Loop() {
		if l, err := s.Sessions(b.Context()); err != nil || len(l) != 10_000 {
			b.Fatal(len(l), err)
		}
	}
}

// BenchmarkOpen opens and closes a store of 10,000 sessions.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := Open(b.Context(), dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
