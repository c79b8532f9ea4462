package tool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
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
	// jobOutput is how many bytes of output one of them keeps until they are read, head
	// and tail; with its room to grow an [Output] takes half as much again.
	jobOutput = 160 << 10
	// endPatience is how long command_kill and Close wait for what was told to end:
	// longer than the sandbox takes from asking to giving up.
	endPatience = 7 * time.Second
)

// Background keeps the commands that a session runs in the background. They belong to
// the session: they go on when a turn ends or is cancelled and however long nothing
// happens, and end with command_kill, or when Close is called. It is safe for
// concurrent use.
type Background struct {
	dir string // takes whole outputs

	mu     sync.Mutex // guards what follows
	jobs   []*job     // oldest first
	closed bool
}

// job is one command.
type job struct {
	id    string
	line  string
	begun time.Time
	stop  context.CancelCauseFunc
	done  chan struct{} // closed when it has ended

	// What follows is set before done is closed.
	exit sandbox.Exit
	err  error

	mu    sync.Mutex
	fresh *Output       // what was printed since the last look
	whole *Output       // keeps nothing but the file of all that was printed
	news  chan struct{} // closed when something is printed
	told  bool          // the model knows the file
}

// The reasons for which a command is ended.
var (
	errKilled = errors.New("command_kill")
	errClosed = errors.New("the end of the session")
)

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
	j := &job{
		id: "bg_" + strings.ToLower(rand.Text()), line: c.Line, begun: time.Now(), stop: stop, done: make(chan struct{}),
		fresh: NewOutput(jobOutput, ""), whole: NewOutput(0, b.dir), news: make(chan struct{}),
	}
	b.jobs = append(b.jobs, j)
	go func() {
		defer close(j.done)
		defer stop(nil)
		stdout, stderr := &decoder{to: j}, &decoder{to: j}
		c.Stdout, c.Stderr, c.Timeout = stdout, stderr, 0
		j.exit, j.err = sandbox.Run(ctx, c)
		_, _, _ = stdout.Close(), stderr.Close(), j.whole.Close()
		if cause := context.Cause(ctx); cause != nil && errors.Is(j.err, cause) {
			j.err = nil
			j.exit.Killed = cause.Error()
		}
	}()
	return j, nil
}

// Write takes what the command prints, from both of its outputs.
func (j *job) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = j.whole.Write(p)
	_, _ = j.fresh.Write(p)
	select {
	case <-j.news:
	default:
		close(j.news)
	}
	return len(p), nil
}

// take gives what was printed since it was called last.
func (j *job) take() (fresh *Output, total int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fresh, total = j.fresh, j.whole.Total()
	if fresh.Total() > 0 {
		j.fresh, j.news = NewOutput(jobOutput, ""), make(chan struct{})
	}
	return fresh, total
}

// forget removes the file of a command that has ended, when nobody was told of it.
func (j *job) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if file := j.whole.File(); file != "" && !j.told {
		_ = os.Remove(file)
	}
}

// file is where all that was printed is, as it will be told to the model.
func (j *job) file() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	file := j.whole.File()
	j.told = j.told || file != ""
	return file
}

// printed is closed as soon as there is something to take.
func (j *job) printed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.news
}

// forget makes room for another one; b.mu is held.
func (b *Background) forget() {
	for i := 0; len(b.jobs) >= maxKept && i < len(b.jobs); {
		if b.jobs[i].running() {
			i++
			continue
		}
		b.jobs[i].forget()
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

// Close ends every command that still runs and waits for that, at most 7 s.
func (b *Background) Close() error {
	b.mu.Lock()
	b.closed = true
	jobs := slices.Clone(b.jobs)
	b.mu.Unlock()
	for _, j := range jobs {
		j.stop(errClosed)
	}
	patience := time.NewTimer(endPatience)
	defer patience.Stop()
	for _, j := range jobs {
		select {
		case <-j.done:
		case <-patience.C:
			return fmt.Errorf("the command %q does not end", oneLine(j.line, 60))
		}
		j.forget()
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
func (j *job) state(running bool) string {
	if running {
		return fmt.Sprintf("running; started %s ago", seconds(time.Since(j.begun)))
	}
	var s string
	switch {
	case j.err != nil:
		return "failed: " + j.err.Error()
	case j.exit.Killed != "" && j.exit.Signal != "":
		s = fmt.Sprintf("ended by %s (signal: %s)", j.exit.Killed, j.exit.Signal)
	case j.exit.Killed != "":
		s = fmt.Sprintf("ended by %s (exit status %d)", j.exit.Killed, j.exit.Code)
	case j.exit.Signal != "":
		s = "ended by signal: " + j.exit.Signal
	default:
		s = fmt.Sprintf("ended with exit status %d", j.exit.Code)
	}
	if left := leftBehind(j.exit); left != "" {
		s += "; " + left
	}
	return s
}

// seconds is a time that a model can read: 0.3s, 42s, 1h2m3s.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
