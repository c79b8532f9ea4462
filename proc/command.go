package proc

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// defaultGrace is between asking a process to end and ending it.
	defaultGrace = 2 * time.Second
	// survivorGrace is the same for what a process left behind; the caller
	// already has its result and waits for nothing else.
	survivorGrace = 500 * time.Millisecond
	// pipeGrace is how long output may stay open once the group is gone: only
	// a process that left the group can hold it.
	pipeGrace = 250 * time.Millisecond
	// killPatience bounds [Process.Kill] when even SIGKILL does not end a process
	// (one that hangs in the kernel).
	killPatience = 5 * time.Second
)

// Command is a process to start. Only Path is needed.
//
// The process has no terminal and a group (on Unix also a session, on Windows a
// job) of its own, and no descriptors but 0, 1 and 2.
type Command struct {
	// Path is the program; a name without a separator is looked up in the PATH
	// of Env. Args follow it: argv is never split from or joined to a string.
	Path string
	Args []string
	// Dir is the working directory, "" for ours.
	Dir string
	// Env is the whole environment; nil means ours.
	Env []string
	// Stdin is copied to the process; nil is nothing to read. An *os.File is
	// handed over as it is. A Read that blocks for ever keeps one goroutine.
	Stdin io.Reader
	// Stdout and Stderr get the output, each from one goroutine, never after
	// Wait has returned; they may be the same only if it locks. Both are always
	// read to the end, so a process never blocks on output: nil discards, and
	// after an error of Write the rest is discarded. A Write that blocks delays
	// Wait.
	Stdout, Stderr io.Writer
	// Grace is the time between SIGTERM and SIGKILL in [Process.Kill]; 0 means
	// 2 s, less than 0 none.
	Grace time.Duration
}

// ExitStatus is how a process ended.
type ExitStatus struct {
	// Code is the exit code, −1 when a signal ended it.
	Code int
	// Signal is the name of that signal ("killed", "terminated"), else "".
	Signal string
	// Killed is the reason given to [Process.Kill], "" when nobody killed it.
	Killed string
	// Ended says that the process left others of its group behind, which were
	// ended.
	Ended bool
	// Escaped are the pids of processes that left the group, still hold the
	// output, and go on without it (Linux only).
	Escaped []int
}

// Process is a started [Command]. Its methods may be called from any goroutine.
type Process struct {
	cmd   *exec.Cmd
	pid   int
	grace time.Duration
	outs  []*drain
	stdin *os.File // our end, nil when none
	done  chan struct{}

	mu     sync.Mutex // guards what follows, and signals against settle's end
	group  group
	closed bool // the group must not be signalled any more
	reason string

	status ExitStatus // set before done is closed
	err    error
}

// Start starts the command.
//
// Errors: ReasonNotFound when the program or Dir does not exist, ReasonBlocked
// when it may not be run.
func (c *Command) Start() (*Process, error) {
	path, err := c.lookPath()
	if err != nil {
		return nil, err
	}
	if c.Dir != "" {
		if fi, err := os.Stat(c.Dir); err != nil || !fi.IsDir() {
			return nil, notFound("the working directory %s does not exist", c.Dir)
		}
	}
	closeOnExecAll()
	p := &Process{grace: c.Grace, done: make(chan struct{})}
	if p.grace == 0 {
		p.grace = defaultGrace
	}
	p.cmd = &exec.Cmd{Path: path, Args: append([]string{c.Path}, c.Args...), Dir: c.Dir, Env: c.Env}
	var theirs []*os.File // the process's ends
	fail := func(err error) (*Process, error) {
		closeAll(theirs)
		p.closeOurs()
		return nil, err
	}
	if err := p.pipes(c, &theirs); err != nil {
		return fail(failed(err, "%s cannot be started", c.Path))
	}
	p.group.prepare(p.cmd)
	if err := p.cmd.Start(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fail(notFound("the program %s, or the interpreter it names, does not exist", c.Path))
		}
		return fail(failed(unwrapPath(err), "%s cannot be started", c.Path))
	}
	p.pid = p.cmd.Process.Pid
	if err := p.group.adopt(p.cmd.Process); err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		return fail(failed(err, "%s cannot be given a group of its own", c.Path))
	}
	closeAll(theirs)
	for _, d := range p.outs {
		go d.run()
	}
	if p.stdin != nil {
		go func() {
			_, _ = io.Copy(p.stdin, c.Stdin) // a process need not read it all
			p.stdin.Close()
		}()
	}
	go p.run()
	return p, nil
}

func (p *Process) pipes(c *Command, theirs *[]*os.File) error {
	for _, o := range []struct {
		w  io.Writer
		to *io.Writer
	}{{c.Stdout, &p.cmd.Stdout}, {c.Stderr, &p.cmd.Stderr}} {
		if o.w == nil {
			continue // the null device never blocks
		}
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		*theirs = append(*theirs, w)
		*o.to = w
		p.outs = append(p.outs, &drain{r: r, w: o.w, done: make(chan struct{})})
	}
	switch in := c.Stdin.(type) {
	case nil:
	case *os.File:
		p.cmd.Stdin = in
	default:
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		*theirs = append(*theirs, r)
		p.cmd.Stdin, p.stdin = r, w
	}
	return nil
}

func (p *Process) closeOurs() {
	for _, d := range p.outs {
		d.r.Close()
	}
	if p.stdin != nil {
		p.stdin.Close()
	}
}

// PID is the main process's id. After Wait it may be another's.
func (p *Process) PID() int { return p.pid }

// Done is closed when Wait would return at once.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns when the main process has ended and its output is delivered. It
// does not wait for processes left behind: those in the group are ended
// (SIGTERM, half a second, SIGKILL), those that left it lose the output. A
// non-zero code is no error; an error is one of Stdout's or Stderr's Write.
func (p *Process) Wait() (ExitStatus, error) {
	<-p.done
	return p.status, p.err
}

// Kill ends the whole group: SIGTERM, Grace, SIGKILL; on Windows at once. The
// first reason given is kept in the status. It returns when the process has
// ended, or 5 s after SIGKILL when the kernel holds on to it. Not to be called
// from Stdout's or Stderr's Write, which Wait waits for.
func (p *Process) Kill(reason string) {
	p.mu.Lock()
	if p.reason == "" && !p.closed {
		p.reason = reason
	}
	p.mu.Unlock()
	if p.grace > 0 {
		p.signal(group.terminate)
		if p.ended(p.grace) {
			return
		}
	}
	p.signal(group.kill)
	p.ended(killPatience)
}

func (p *Process) ended(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}

func (p *Process) signal(how func(group)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		how(p.group)
	}
}

// run reaps the main process and settles what it left.
func (p *Process) run() {
	defer close(p.done)
	_ = p.cmd.Wait() // the state says it all
	p.status = statusOf(p.cmd.ProcessState)
	p.status.Ended = p.endGroup()
	if !p.drained(pipeGrace) {
		p.status.Escaped = holders(p.outs)
		for _, d := range p.outs {
			d.cut()
		}
		for _, d := range p.outs {
			<-d.done
		}
	}
	if p.stdin != nil {
		p.stdin.Close()
	}
	for _, d := range p.outs {
		p.err = errors.Join(p.err, d.err)
	}
	p.mu.Lock()
	p.status.Killed = p.reason
	p.mu.Unlock()
}

// endGroup ends what is left of the group and reports whether anything was.
// The group's number stays reserved while a process is in it; looking every few
// milliseconds, it cannot have been given to another meanwhile.
func (p *Process) endGroup() (any bool) {
	defer func() {
		p.mu.Lock()
		p.closed = true
		p.group.close()
		p.mu.Unlock()
	}()
	if !p.group.alive() {
		return false
	}
	p.signal(group.terminate)
	if !p.groupGone(survivorGrace) {
		p.signal(group.kill)
		p.groupGone(survivorGrace)
	}
	return true
}

func (p *Process) groupGone(within time.Duration) bool {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); time.Now().Before(end); <-tick.C {
		if !p.group.alive() {
			return true
		}
	}
	return false
}

func (p *Process) drained(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	for _, d := range p.outs {
		select {
		case <-d.done:
		case <-t.C:
			return false
		}
	}
	return true
}

func (c *Command) lookPath() (string, error) {
	path := c.Path
	if strings.ContainsRune(path, filepath.Separator) || strings.ContainsRune(path, '/') {
		return path, nil
	}
	missing := notFound("there is no program %q: install it, or give its whole path", path)
	if path == "" {
		return "", missing
	}
	if c.Env == nil || runtime.GOOS == "windows" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", missing
		}
		return found, nil
	}
	for _, dir := range filepath.SplitList(lookup(c.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue // what lies in a workspace is not run by its bare name
		}
		f := filepath.Join(dir, path)
		if fi, err := os.Stat(f); err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o111 != 0 {
			return f, nil
		}
	}
	return "", missing
}

// lookup returns the last value of name, as exec does for repeated ones.
func lookup(env []string, name string) string {
	value := ""
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// unwrapPath drops the "fork/exec path:" of an error; ours names the path.
func unwrapPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
