package tool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gladhand/sandbox"
)

// Limits of a session's commands in the background.
const (
	maxRunning = 8  // at once
	maxKept    = 32 // with those that have ended, whose output can still be read
	// endPatience is how long Close waits for commands that do not end.
	endPatience = 5 * time.Second
)

// Background keeps the commands that a session runs in the background. They belong to
// the session: they go on when a turn ends or is cancelled, and end with
// command_kill, or when Close is called. It is safe for concurrent use.
type Background struct {
	dir string // takes whole outputs

	mu     sync.Mutex // guards what follows
	jobs   []*job     // oldest first
	closed bool
}

// job is one command.
type job struct {
	id   string
	line string
	out  *Output
	stop context.CancelCauseFunc
	done chan struct{} // closed when it has ended

	// What follows is set before done is closed.
	exit sandbox.Exit
	err  error

	mu   sync.Mutex
	read int64 // how much of the output was given already
}

var errKilled = errors.New("command_kill")

// NewBackground keeps the whole output of commands that print very much in dir.
func NewBackground(dir string) *Background { return &Background{dir: dir} }

// start starts a command. The id is what command_output and command_kill take; nobody
// can guess it.
func (b *Background) start(c sandbox.Command) (*job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	running := 0
	for _, j := range b.jobs {
		if j.running() {
			running++
		}
	}
	switch {
	case b.closed:
		return nil, errors.New("the session is ending; nothing was started")
	case running >= maxRunning:
		return nil, fmt.Errorf("%d commands run in the background already; nothing was started. End one with command_kill: %s", maxRunning, b.list())
	}
	b.forget()
	ctx, stop := context.WithCancelCause(context.Background())
	j := &job{id: "bg_" + strings.ToLower(rand.Text()), line: c.Line, out: NewOutput(MaxResult, b.dir), stop: stop, done: make(chan struct{})}
	b.jobs = append(b.jobs, j)
	go func() {
		defer close(j.done)
		defer stop(nil)
		stdout, stderr := &decoder{to: j.out}, &decoder{to: j.out}
		c.Stdout, c.Stderr, c.Timeout = stdout, stderr, 0
		j.exit, j.err = sandbox.Run(ctx, c)
		_, _, _ = stdout.Close(), stderr.Close(), j.out.Close()
		if errors.Is(j.err, errKilled) {
			j.err = nil
		}
	}()
	return j, nil
}

// forget makes room for another one; b.mu is held.
func (b *Background) forget() {
	for i := 0; len(b.jobs) >= maxKept && i < len(b.jobs); {
		if b.jobs[i].running() {
			i++
			continue
		}
		b.jobs = slices.Delete(b.jobs, i, i+1)
	}
}

// find finds a command of this session.
func (b *Background) find(id string) (*job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range b.jobs {
		if j.id == id {
			return j, nil
		}
	}
	known := cmp.Or(b.list(), "there is none")
	return nil, fmt.Errorf("this session has no command %q in the background; %s", id, known)
}

// list names the commands that run; b.mu is held.
func (b *Background) list() string {
	var all []string
	for _, j := range b.jobs {
		if j.running() {
			all = append(all, fmt.Sprintf("%s (%s)", j.id, oneLine(j.line, 60)))
		}
	}
	return strings.Join(all, ", ")
}

// Close ends every command that still runs and waits for that, at most 5 s.
func (b *Background) Close() error {
	b.mu.Lock()
	b.closed = true
	jobs := slices.Clone(b.jobs)
	b.mu.Unlock()
	for _, j := range jobs {
		j.stop(errKilled)
	}
	patience := time.NewTimer(endPatience)
	defer patience.Stop()
	for _, j := range jobs {
		select {
		case <-j.done:
		case <-patience.C:
			return fmt.Errorf("the command %q does not end", oneLine(j.line, 60))
		}
	}
	return nil
}

func (j *job) running() bool {
	select {
	case <-j.done:
		return false
	default:
		return true
	}
}

// state says in a few words how far the command is.
func (j *job) state() string {
	if j.running() {
		return "running"
	}
	switch {
	case j.err != nil:
		return "failed: " + j.err.Error()
	case j.exit.Killed != "":
		return "ended by command_kill"
	case j.exit.Signal != "":
		return "ended by signal: " + j.exit.Signal
	}
	return fmt.Sprintf("ended with exit status %d", j.exit.Code)
}
