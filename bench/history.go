package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/proc"
	"gladhand/session"
	"gladhand/store"
)

const (
	smallID = "small00000000000"
	largeID = "large00000000000"
)

// history measures what a long log costs: attaching at its end, and reading it
// from its beginning.
func (b *bench) history(ctx context.Context) (err error) {
	dir, err := b.fresh("history")
	if err != nil {
		return err
	}
	events := b.count(1_000_000)
	if err := b.fill(ctx, dir, events); err != nil {
		return err
	}
	d, place, err := b.scriptedIn("history", dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	if err := b.tails(ctx, place); err != nil {
		return err
	}
	var rates []float64
	for range 3 {
		rate, err := replay(ctx, place, events)
		if err != nil {
			return err
		}
		rates = append(rates, rate)
	}
	b.report(lineReplay, median(rates), "%d events of 300 bytes, none merged, median of %d", events, len(rates))
	return nil
}

// fill makes a session of 10 events and one of n, of which no two merge.
func (b *bench) fill(ctx context.Context, dir string, n int) (err error) {
	st, err := store.Open(ctx, dir, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	var pieces [2]*gladhand.Event
	for i, message := range []string{"a", "b"} {
		if pieces[i], err = acp.Describe(acp.V1, acp.MessageChunk(message, pieceText)); err != nil {
			return err
		}
		pieces[i].Turn, pieces[i].Opens, pieces[i].At = 1, gladhand.Seq(i+1), time.Now()
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for id, events := range map[gladhand.SessionID]int{smallID: 10, largeID: n} {
		row := store.Session{
			Info: gladhand.SessionInfo{
				ID: id, Cwd: b.dir, Agent: "gladhand", Model: "scripted", Mode: session.ModeAsk, Profile: session.ProfileCoding,
				State: gladhand.StateClosed, Created: now, Updated: now,
			},
			Turn: 1, Format: session.Format,
		}
		if err := st.Commit(ctx, func(tx *store.Tx) error { return tx.PutSession(row) }); err != nil {
			return err
		}
		const batch = 10_000
		for first := 1; first <= events; first += batch {
			if err := st.Commit(ctx, func(tx *store.Tx) error {
				for i := first; i < first+batch && i <= events; i++ {
					ev := *pieces[i%2]
					ev.First, ev.Last = gladhand.Seq(i), gladhand.Seq(i)
					if err := tx.PutEvents(id, &ev); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// tails compares attaching at the end of both sessions: of one that is open, and
// of one that has to be opened. What is reported is the worse.
func (b *bench) tails(ctx context.Context, place proc.Place) error {
	w, err := dial(ctx, place)
	if err != nil {
		return err
	}
	defer w.close()
	times := map[string][]time.Duration{}
	measure := func(id, leave, key string) error {
		begin := time.Now()
		if err := w.attach(id, -1); err != nil {
			return err
		}
		times[key] = append(times[key], time.Since(begin))
		_, err := w.call(leave, fmt.Sprintf(`{"sessionId":%q}`, id))
		return err
	}
	for range max(b.count(50), 10) {
		for id, name := range map[string]string{smallID: "small", largeID: "large"} {
			if err := measure(id, "_gladhand/detach", name); err != nil {
				return err
			}
		}
	}
	for range max(b.count(50), 10) {
		for id, name := range map[string]string{smallID: "small", largeID: "large"} {
			if _, err := w.call("session/close", fmt.Sprintf(`{"sessionId":%q}`, id)); err != nil {
				return err
			}
			if err := measure(id, "_gladhand/detach", name+" closed"); err != nil {
				return err
			}
		}
	}
	p := map[string]float64{}
	for name, list := range times {
		p[name] = ms(median(list))
	}
	more := max(p["large"]-p["small"], p["large closed"]-p["small closed"])
	b.report(lineAttach, more, "p50 %.2f ms against %.2f, opening it %.2f against %.2f", p["large"], p["small"], p["large closed"], p["small closed"])
	return nil
}

// replay reads the large session from its beginning: how many events a second. A
// client that splits lines counts them, and looks at the last one's number.
func replay(ctx context.Context, place proc.Place, events int) (float64, error) {
	w, err := dial(ctx, place)
	if err != nil {
		return 0, err
	}
	defer w.close()
	w.buf = make([]byte, 256<<10)
	begin := time.Now()
	if err := w.attach(largeID, 0); err != nil {
		return 0, err
	}
	var last []byte
	for range events {
		if last, err = w.line(); err != nil {
			return 0, err
		}
	}
	seconds := time.Since(begin).Seconds()
	if from, to, ok := numbers(last); !ok || from != to || to != uint64(events) || !bytes.Contains(last, []byte(`"replay":true`)) {
		return 0, fmt.Errorf("line %d of the replay is not event %d: %s", events, events, last)
	}
	return float64(events) / seconds, nil
}
