//go:build unix

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gladhand"
)

// finish waits for a process; one that hangs fails the test instead.
func finish(t *testing.T, p *Process) (ExitStatus, error) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		buf := make([]byte, 1<<16)
		t.Fatalf("Wait does not return\n%s", buf[:runtime.Stack(buf, true)])
	}
	return p.Wait()
}

// sh runs a script and returns its standard output.
func sh(t *testing.T, script string) (string, ExitStatus) {
	t.Helper()
	var out bytes.Buffer
	p, err := (&Command{Path: "sh", Args: []string{"-c", script}, Stdout: &out, Dir: t.TempDir()}).Start()
	must(t, err)
	st, err := finish(t, p)
	must(t, err)
	return out.String(), st
}

func gone(pid int) bool {
	if runtime.GOOS == "linux" {
		f, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true
		}
		_, rest, _ := strings.Cut(string(f), ") ")
		return rest[0] == 'Z' // a container's first process may not reap
	}
	return syscall.Kill(pid, 0) != nil
}

func TestCommandPlain(t *testing.T) {
	var out, errs bytes.Buffer
	odd := []string{"a b", "ü'\"$HOME\\", "", "-n", "日本\n"}
	p, err := (&Command{
		Path: "sh", Args: append([]string{"-c", `printf '<%s>' "$@"; cat; echo problem >&2; exit 3`, "sh"}, odd...),
		Stdin: strings.NewReader("input"), Stdout: &out, Stderr: &errs,
	}).Start()
	must(t, err)
	st, err := finish(t, p)
	must(t, err)
	if want := "<" + strings.Join(odd, "><") + ">input"; out.String() != want || errs.String() != "problem\n" {
		t.Errorf("%q %q", out.String(), errs.String())
	}
	if st.Code != 3 || st.Signal != "" || st.Killed != "" || st.Ended || st.Escaped != nil {
		t.Errorf("%+v", st)
	}
}

func TestCommandErrors(t *testing.T) {
	d := t.TempDir()
	must(t, os.WriteFile(d+"/plain", []byte("x"), 0o644), os.WriteFile(d+"/tool", []byte("#!/bin/sh\necho here\n"), 0o755))
	for _, c := range []struct {
		cmd  Command
		want gladhand.Reason
	}{
		{Command{Path: "no-such-program-at-all"}, gladhand.ReasonNotFound},
		{Command{Path: ""}, gladhand.ReasonNotFound},
		{Command{Path: "plain", Env: []string{"PATH=" + d}}, gladhand.ReasonNotFound},
		{Command{Path: "sh", Dir: d + "/none"}, gladhand.ReasonNotFound},
		{Command{Path: "sh", Dir: d + "/plain"}, gladhand.ReasonNotFound},
		{Command{Path: d + "/none"}, gladhand.ReasonNotFound},
		{Command{Path: d + "/plain"}, gladhand.ReasonBlocked},
	} {
		_, err := c.cmd.Start()
		wantReason(t, err, c.want)
	}
	// The program is looked up where its environment says.
	var out bytes.Buffer
	p, err := (&Command{Path: "tool", Env: []string{"PATH=/bin", "PATH=/bin:/usr/bin:" + d}, Stdout: &out}).Start()
	must(t, err)
	if _, err := finish(t, p); err != nil || out.String() != "here\n" {
		t.Errorf("%q %v", out.String(), err)
	}
	// A name without a separator never means the working directory.
	t.Chdir(d)
	_, err = (&Command{Path: "tool", Env: []string{"PATH=.:"}}).Start()
	wantReason(t, err, gladhand.ReasonNotFound)
}

// R075: the result comes although something still holds the output, and what
// is left in the group is ended.
func TestBackgroundDoesNotHoldTheResult(t *testing.T) {
	out, st := sh(t, "sleep 300 & echo $!")
	pid, _ := strconv.Atoi(strings.TrimSpace(out))
	if pid == 0 || st.Code != 0 || !st.Ended || st.Escaped != nil {
		t.Fatalf("%q %+v", out, st)
	}
	until(t, "the survivor has ended", func() bool { return gone(pid) })

	// One that holds no output, and one that does not listen to SIGTERM.
	out, st = sh(t, `sleep 300 >/dev/null 2>&1 & echo $!`)
	pid, _ = strconv.Atoi(strings.TrimSpace(out))
	if pid == 0 || !st.Ended {
		t.Fatalf("%q %+v", out, st)
	}
	until(t, "the silent survivor has ended", func() bool { return gone(pid) })

	out, st = sh(t, `(trap '' TERM; : >ready; while :; do sleep 1; done) & while [ ! -e ready ]; do :; done; echo $!`)
	pid, _ = strconv.Atoi(strings.TrimSpace(out))
	if pid == 0 || !st.Ended {
		t.Fatalf("%q %+v", out, st)
	}
	until(t, "the deaf survivor has ended", func() bool { return gone(pid) })
}

// R075: setsid leaves the group; the result comes all the same and names it.
func TestEscapedSurvivor(t *testing.T) {
	for name, busy := range map[string]string{"idle": "exec sleep 300", "writing for ever": "exec yes"} { // R077
		t.Run(name, func(t *testing.T) {
			out, st := sh(t, `setsid sh -c 'echo $$ >pid; mv pid pid.whole; `+busy+`' & while [ ! -e pid.whole ]; do :; done; printf 'pid %s.' $(cat pid.whole)`)
			pid := 0
			if i := strings.Index(out, "pid "); i >= 0 {
				digits, _, _ := strings.Cut(out[i+4:], ".")
				pid, _ = strconv.Atoi(digits)
			}
			if pid == 0 {
				t.Fatalf("the main process's own output is lost: %.200q", out)
			}
			defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
			if runtime.GOOS == "linux" && !slices.Contains(st.Escaped, pid) && !gone(pid) {
				t.Errorf("survivor %d is not in %+v", pid, st)
			}
		})
	}
}

// R077: a flood from the background ends with the main process.
func TestFlood(t *testing.T) {
	var n atomic.Int64
	var after atomic.Bool
	p, err := (&Command{Path: "sh", Args: []string{"-c", "yes & echo ok"}, Stdout: writerFunc(func(b []byte) (int, error) {
		if after.Load() {
			t.Error("a write after Wait")
		}
		n.Add(int64(len(b)))
		return len(b), nil
	})}).Start()
	must(t, err)
	st, err := finish(t, p)
	after.Store(true)
	if err != nil || !st.Ended || n.Load() < 3 {
		t.Errorf("%+v %v, %d bytes", st, err, n.Load())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// R080: no output blocks the process, whoever wants it.
func TestOutputIsAlwaysDrained(t *testing.T) {
	const size = 8 << 20
	failure := errors.New("full")
	for name, w := range map[string]io.Writer{
		"nobody": nil, "counted": &bytes.Buffer{},
		"failing": writerFunc(func([]byte) (int, error) { return 0, failure }),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p, err := (&Command{Path: "sh", Args: []string{"-c", fmt.Sprintf("head -c %d /dev/zero >&2; echo done", size)}, Stdout: &out, Stderr: w}).Start()
			must(t, err)
			st, err := finish(t, p)
			if st.Code != 0 || out.String() != "done\n" {
				t.Errorf("%+v %q", st, out.String())
			}
			if b, ok := w.(*bytes.Buffer); ok && b.Len() != size {
				t.Errorf("%d bytes arrived", b.Len())
			}
			if errors.Is(err, failure) != (name == "failing") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What the main process wrote last arrives whole, however slow the reader, and
// although somebody else keeps the output open.
func TestLastWordsArrive(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	defer w.Close()
	n, blocked, first := 0, make(chan struct{}), make(chan struct{})
	d := &drain{r: r, done: make(chan struct{}), w: writerFunc(func(b []byte) (int, error) {
		if n == 0 {
			close(blocked)
			<-first
		}
		n += len(b)
		return len(b), nil
	})}
	go d.run()
	for range 60 {
		_, err := w.Write(make([]byte, 1000))
		must(t, err)
	}
	<-blocked
	d.cut()
	close(first)
	<-d.done
	if n != 60000 {
		t.Errorf("%d bytes of 60000", n)
	}
}

func TestInputIsNotForced(t *testing.T) {
	p, err := (&Command{Path: "true", Stdin: bytes.NewReader(make([]byte, 10<<20))}).Start()
	must(t, err)
	if st, err := finish(t, p); err != nil || st.Code != 0 {
		t.Errorf("%+v %v", st, err)
	}
	var out bytes.Buffer
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
	p, err = (&Command{Path: "cat", Stdin: bytes.NewReader(big), Stdout: &out}).Start()
	must(t, err)
	if _, err := finish(t, p); err != nil || !bytes.Equal(out.Bytes(), big) {
		t.Errorf("%d bytes of %d, %v", out.Len(), len(big), err)
	}
	r, w := io.Pipe() // never ends
	defer w.Close()
	p, err = (&Command{Path: "true", Stdin: r}).Start()
	must(t, err)
	if st, err := finish(t, p); err != nil || st.Code != 0 {
		t.Errorf("%+v %v", st, err)
	}
}

func TestKill(t *testing.T) {
	for name, c := range map[string]struct {
		script, signal string
		grace          time.Duration
	}{
		"polite":   {"sleep 300 & echo $!; wait", "terminated", 0},
		"deaf":     {"trap '' TERM; sleep 300 & echo $!; while :; do sleep 300; done", "killed", 50 * time.Millisecond},
		"at once":  {"trap '' TERM; sleep 300 & echo $!; while :; do sleep 300; done", "killed", -1},
		"stopped":  {"sleep 300 & echo $!; kill -STOP $$", "terminated", 0},
		"children": {"sh -c 'sh -c \"sleep 300 & echo \\$!; wait\"; wait'; wait", "terminated", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			p, err := (&Command{Path: "sh", Args: []string{"-c", c.script}, Stdout: w, Grace: c.grace}).Start()
			must(t, err)
			b := make([]byte, 20)
			n, err := r.Read(b)
			must(t, err)
			pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
			must(t, err)
			go func() { _, _ = io.Copy(io.Discard, r) }()
			var wg sync.WaitGroup
			p.Kill("first")
			for range 4 {
				wg.Go(func() { p.Kill("later") })
			}
			wg.Wait()
			st, err := finish(t, p)
			if err != nil || st.Signal != c.signal || st.Code != -1 || st.Killed != "first" {
				t.Errorf("%+v %v", st, err)
			}
			until(t, "the whole group has ended", func() bool { return gone(pid) })
			p.Kill("too late")
			if st, _ := p.Wait(); st.Killed != "first" {
				t.Errorf("%+v", st)
			}
		})
	}
}

// Kill races with the end; nothing hangs, and what ended by itself was not
// killed by a later word.
func TestKillRacesTheEnd(t *testing.T) {
	for range 50 {
		p, err := (&Command{Path: "true", Stdout: io.Discard}).Start()
		must(t, err)
		go p.Kill("race")
		if _, err := finish(t, p); err != nil {
			t.Fatal(err)
		}
	}
	p, err := (&Command{Path: "true"}).Start()
	must(t, err)
	_, _ = finish(t, p)
	p.Kill("late")
	if st, _ := p.Wait(); st.Killed != "" || st.Code != 0 {
		t.Errorf("%+v", st)
	}
}

// R073: processes that nobody waits for are reaped.
func TestNoZombies(t *testing.T) {
	var ps []*Process
	for range 200 {
		p, err := (&Command{Path: "true"}).Start()
		must(t, err)
		ps = append(ps, p)
	}
	for _, p := range ps {
		until(t, "it is reaped", func() bool {
			return errors.Is(syscall.Kill(p.PID(), 0), syscall.ESRCH)
		})
	}
}

// A command has no terminal to ask for a password on: it leads a session.
func TestNoTerminal(t *testing.T) {
	p, err := (&Command{Path: "sleep", Args: []string{"300"}}).Start()
	must(t, err)
	defer p.Kill("done")
	if sid, err := unix.Getsid(p.PID()); err != nil || sid != p.PID() {
		t.Errorf("session %d of %d, %v", sid, p.PID(), err)
	}
}
