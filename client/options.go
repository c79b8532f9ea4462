package client

import (
	"context"
	"io"
	"path/filepath"
	"time"

	"gladhand/proc"
)

// Options say which daemon to talk to. Only Place is needed.
type Options struct {
	Place proc.Place
	// Config is the settings file that a daemon is started with; empty lets the
	// daemon find it. With CheckConfig a running daemon that uses another one is
	// refused.
	Config      string
	CheckConfig bool
	// Label is what this client calls itself, shown to others behind the user's
	// name. Version is ours, so that a skew can be explained.
	Label, Version string
	// NoStart fails when no daemon runs, instead of starting one.
	NoStart bool
	// Patience is how long starting and greeting a daemon may take. 0: 30 s.
	Patience time.Duration
	// Waiting, if set, is told in words for people what a connect waits for, when
	// it takes longer than half a second. It is called from other goroutines.
	Waiting func(what string)
	// Dial replaces dialling Place.
	Dial func(context.Context) (io.ReadWriteCloser, error)
	// Start replaces starting a daemon by running this binary again. The channel,
	// which may be nil, is closed when that daemon has ended.
	Start func(Options) (exited <-chan struct{}, err error)
}

const (
	defaultPatience = 30 * time.Second
	// slow is when a wait is worth a word.
	slow = 500 * time.Millisecond
	// heldBytes is how much of an attachment is held ready for Next.
	heldBytes = 4 << 20
)

func (o *Options) withDefaults() {
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Label == "" {
		o.Label = "gladhand"
	}
	if o.Dial == nil {
		place := o.Place
		o.Dial = func(ctx context.Context) (io.ReadWriteCloser, error) { return proc.Dial(ctx, place) }
	}
	if o.Start == nil {
		o.Start = startDaemon
	}
}

// LogFile is where a daemon of this place writes its log.
func LogFile(p proc.Place) string { return filepath.Join(p.DataDir, "daemon.log") }

func startDaemon(o Options) (<-chan struct{}, error) {
	args := []string{"--data-dir", o.Place.DataDir, "--socket", o.Place.Endpoint}
	if o.Config != "" {
		args = append(args, "--config", o.Config)
	}
	pid, err := proc.StartDaemon(args, LogFile(o.Place), nil)
	if err != nil {
		return nil, err
	}
	return proc.Exited(pid), nil
}
