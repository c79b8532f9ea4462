package session

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gladhand"
)

// warnings hands on what is logged as a warning.
type warnings struct {
	slog.Handler
	c chan string
}

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		w.c <- r.Message
	}
	return nil
}
func (w warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }

// A turn whose start cannot be stored is tried until it can be, and that is logged
// once: on a full disk a line with each try would eat what is freed.
func TestAWaitingTurnIsLoggedOnce(t *testing.T) {
	log := warnings{slog.DiscardHandler, make(chan string, 16)}
	b := newBench(t, func(context.Context, gladhand.Turn) (gladhand.StopReason, error) {
		return gladhand.StopEndTurn, nil
	}, Options{Log: slog.New(log)})
	s := b.session()
	watch := follow(t, s, person("ana"), 0)
	mend := b.refuse("BEFORE UPDATE ON sessions WHEN NEW.running = 1")
	mustSend(t, s, person("ana"), "p1", "go")
	if got := <-log.c; !strings.Contains(got, "could not be stored, and waits") {
		t.Fatalf("logged %q", got)
	}
	select {
	case got := <-log.c:
		t.Fatalf("logged %q again", got)
	case <-time.After(retryBegin * 3 / 2): // long enough for another try
	}
	mend()
	watch.untilTag(t, gladhand.TagTurnEnd)
}
