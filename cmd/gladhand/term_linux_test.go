package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is the binary on a pseudo-terminal of its own.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	ended  chan struct{}

	mu   sync.Mutex
	more *sync.Cond
	seen bytes.Buffer // what expect has not passed
	over bool
}

// home is where the terminals of one test live: a daemon and a workspace.
type home struct {
	t         *testing.T
	data, dir string
}

func newHome(t *testing.T) *home {
	t.Helper()
	if _, err := os.Stat("/dev/ptmx"); err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	// A short path: a socket's name is limited.
	root, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	h := &home{t: t, data: filepath.Join(root, "d"), dir: filepath.Join(root, "w")}
	t.Cleanup(func() {
		stopDaemon(t, h.data)
		os.RemoveAll(root)
	})
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *home) start(args ...string) *terminal {
	h.t.Helper()
	master, slave := openPTY(h.t)
	defer slave.Close()
	exe, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	c := &terminal{t: h.t, master: master, ended: make(chan struct{})}
	c.more = sync.NewCond(&c.mu)
	c.cmd = &exec.Cmd{
		Path: exe, Args: append([]string{"gladhand"}, args...), Dir: h.dir,
		Env:   append(os.Environ(), "HOME="+h.dir, "GLADHAND_DATA_DIR="+h.data, "NO_COLOR=1", "TERM=xterm"),
		Stdin: slave, Stdout: slave, Stderr: slave,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true},
	}
	if err := c.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go c.read()
	go func() { _ = c.cmd.Wait(); close(c.ended) }() // the status is in ProcessState
	h.t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
		master.Close()
	})
	return c
}

func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func (c *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := c.master.Read(buf)
		c.mu.Lock()
		c.seen.Write(buf[:n])
		c.over = err != nil
		c.more.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// expect waits for a match on the screen, and goes on behind it. It returns what
// matched.
func (c *terminal) expect(pattern string) string {
	c.t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.AfterFunc(30*time.Second, func() {
		c.mu.Lock()
		c.over = true
		c.more.Broadcast()
		c.mu.Unlock()
	})
	defer late.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if at := re.FindIndex(c.seen.Bytes()); at != nil {
			got := string(c.seen.Bytes()[at[0]:at[1]])
			c.seen.Next(at[1])
			return got
		}
		if c.over {
			c.t.Fatalf("%v: %q never came; the screen: %q", c.cmd.Args, pattern, c.seen.String())
		}
		c.more.Wait()
	}
}

func (c *terminal) typed(keys string) {
	c.t.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// allow answers y until it was typed long enough after the question.
func (c *terminal) allow(then string) {
	c.t.Helper()
	for {
		c.typed("y\n")
		if !strings.Contains(c.expect("does not count|"+then), "does not count") {
			return
		}
	}
}

// status waits for the end.
func (c *terminal) status() int {
	c.t.Helper()
	select {
	case <-c.ended:
		return c.cmd.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		c.t.Fatalf("%v does not end; the screen: %q", c.cmd.Args, c.seen.String())
		return -1
	}
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// A newcomer's first minutes.
func TestTerminalClient(t *testing.T) {
	h := newHome(t)
	c := h.start()
	c.expect("offline model")
	c.expect("> ")
	c.typed("run touch marker\n")
	c.expect(`\? Run touch marker`)
	c.expect(`\$ touch marker`)
	c.expect(`\[y\] Allow.*\[n\] Deny`)
	if exists(t, filepath.Join(h.dir, "marker")) {
		t.Fatal("it ran before it was allowed")
	}
	c.allow("• Run touch marker")
	c.expect("> ")
	if !exists(t, filepath.Join(h.dir, "marker")) {
		t.Fatal("it did not run")
	}

	// R045: a key typed before the question allows nothing.
	c.typed("run touch marker2\ny\ny")
	c.expect(`\[y\] Allow`)
	c.typed("n because I say so\n")
	c.expect("Denied.*because I say so")
	if exists(t, filepath.Join(h.dir, "marker2")) {
		t.Fatal("it was allowed by what was typed before it asked")
	}

	// What the daemon will run is no prompt.
	c.typed("/nonsense\n")
	c.expect("no command /nonsense")

	c.typed("count to 1000 slowly\n")
	c.expect("1 2")
	c.typed("\x03")
	c.expect("cancelling")
	c.expect(`\(cancelled\)`)
	c.expect("> ")
	c.typed("\x04")
	c.expect("left; the session goes on")
	if got := c.status(); got != exitDone {
		t.Errorf("status %d", got)
	}

	// It is picked up again, with what was said.
	c = h.start()
	c.expect("run touch marker\r\n")
	c.expect("> ")
	c.typed("\x03")
	if got := c.status(); got != exitDone {
		t.Errorf("status %d", got)
	}
}

func TestRunOnATerminal(t *testing.T) {
	h := newHome(t)
	c := h.start("run", "run touch marker")
	c.expect(`\[y\] Allow`)
	c.allow("It worked|Done")
	if got := c.status(); got != exitDone {
		t.Errorf("status %d", got)
	}
	c = h.start("run", "run touch marker2")
	c.expect(`\[y\] Allow`)
	c.typed("n\n")
	c.expect("something was")
	if got := c.status(); got != exitDenied {
		t.Errorf("status %d", got)
	}
	if exists(t, filepath.Join(h.dir, "marker2")) {
		t.Error("it ran")
	}
	c = h.start("run", "count to 1000 slowly")
	c.expect("1 2")
	c.typed("\x03")
	c.expect("cancelled: interrupted")
	if got := c.status(); got != exitCancelled {
		t.Errorf("status %d", got)
	}
}

// Two terminals on one session: each sees the other's prompts with names, and an
// ask answered in one clears in the other.
func TestTwoTerminals(t *testing.T) {
	h := newHome(t)
	one := h.start()
	one.expect("> ")
	two := h.start("attach")
	two.expect("> ")
	one.typed("run touch marker\n")
	two.expect(`\(terminal\): run touch marker`)
	one.expect(`\[y\] Allow`)
	two.expect(`\[y\] Allow`)
	two.allow("• Run touch marker")
	one.expect(`answered by .*\(attach\): allowed`)
	one.expect("> ")
	if !exists(t, filepath.Join(h.dir, "marker")) {
		t.Error("it did not run")
	}

	two.typed("say hello\n")
	one.expect(`\(attach\): say hello`)
	one.expect("hello")
}
