//go:build unix

package tool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestRunCommand(t *testing.T) {
	for _, c := range []struct {
		name, command string
		want          string
		failed        bool
	}{
		{"output", "echo out; echo err >&2", "out\nerr\n[exit status 0]", false},
		{"in the workspace", "basename \"$PWD\"", "", false},
		{"no output", "true", "[exit status 0; no output]", false},
		{"no final newline", "printf x", "x\n[exit status 0]", false},
		{"exit status", "echo a; exit 3", "a\n[exit status 3]", true},
		{"a signal", "kill -9 $$", "[ended by signal: killed; no output]", true},
		{"nothing to read", "cat", "[exit status 0; no output]", false},
		{"not UTF-8", `printf 'a\377b'`, "a\uFFFDb\n[exit status 0]", false},
		{"left behind", "sleep 60 & echo done", "done\n[exit status 0; processes it left in the background were ended]", false}, // R075
		{"left behind, printing", "(yes > /dev/null; true) & echo done", "done\n[exit status 0; processes it left in the background were ended]", false},
		{"left behind, nothing held", "sleep 60 > /dev/null 2>&1 & echo done", "done\n[exit status 0; processes it left in the background were ended]", false}, // R078
	} {
		t.Run(c.name, func(t *testing.T) {
			e := testEnv(t)
			r := e.must(t, "run_command", map[string]string{"command": c.command})
			if c.want == "" {
				c.want = filepath.Base(e.Cwd) + "\n[exit status 0]"
			}
			// The two streams are not ordered against each other.
			if got := strings.Replace(r.Text, "err\nout\n", "out\nerr\n", 1); got != c.want || r.Failed != c.failed {
				t.Errorf("got %q (failed %v), want %q", got, r.Failed, c.want)
			}
		})
	}
	e := testEnv(t)
	for _, bad := range []any{map[string]any{}, map[string]any{"command": " "}, map[string]any{"command": "a\x00"}, map[string]any{"command": "a", "timeout_seconds": 1 << 40}, map[string]any{"command": "a", "timeout_seconds": -1}} {
		if _, err := e.prepare(t, "run_command", bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func TestRunCommandTimeout(t *testing.T) {
	e := testEnv(t)
	r := e.must(t, "run_command", map[string]any{"command": "echo begun; sleep 60", "timeout_seconds": 1})
	if want := "begun\n[stopped: it ran longer than 1s]"; r.Text != want || !r.Failed {
		t.Errorf("got %q, want %q", r.Text, want)
	}
}

// R123: characters that come a byte at a time, on both streams at once.
func TestRunCommandSplitCharacters(t *testing.T) {
	e := testEnv(t)
	const part = `printf '\342'; sleep .02; printf '\211'; sleep .02; printf '\244\n'`
	r := e.must(t, "run_command", map[string]string{"command": "(" + part + ") & (" + part + ") >&2; wait"})
	if got := strings.Count(r.Text, "≤"); got != 2 || strings.Contains(r.Text, "\uFFFD") {
		t.Errorf("got %q", r.Text)
	}
}

// R145, R147: a flood costs constant memory, the limit holds, and the rest is in
// a file of bounded size.
func TestFlood(t *testing.T) {
	e := testEnv(t)
	dir := filepath.Join(t.TempDir(), "made", "on use")
	c, err := e.prepare(t, "run_command", map[string]any{"command": "yes", "timeout_seconds": 2})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	out := NewOutput(MaxResult, dir)
	r, err := c.Run(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 2<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
	if len(r.Text) > MaxResult || !strings.Contains(r.Text, "bytes left out") || !strings.HasPrefix(r.Text, "y\ny\n") {
		t.Errorf("%d bytes of text", len(r.Text))
	}
	raw := r.Raw.(commandResult)
	fi, err := os.Stat(raw.File)
	if err != nil || fi.Size() > maxSpill || fi.Size() < MaxResult {
		t.Errorf("file %v, %v", fi, err)
	}
	if raw.Bytes <= MaxResult {
		t.Errorf("only %d bytes came", raw.Bytes)
	}
}

// R075, R078: who left the group and holds the output does not hold the call; it is
// named, since nobody ends it.
func TestRunCommandEscaped(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("pids are found on Linux alone")
	}
	e := testEnv(t)
	r := e.must(t, "run_command", map[string]string{"command": "setsid sh -c 'echo $$ > pid; exec sleep 60' & until [ -s pid ]; do :; done; echo done"})
	pid, err := strconv.Atoi(strings.TrimSpace(e.get(t, "pid")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	if want := fmt.Sprintf("done\n[exit status 0; processes that go on on their own: [%d]]", pid); r.Text != want {
		t.Errorf("got %q, want %q", r.Text, want)
	}
	if syscall.Kill(pid, 0) != nil {
		t.Error("it was ended, and the result says that it goes on")
	}
}

// R077: what prints for ever and was left behind does not hold the call, and what it
// printed meanwhile is bounded.
func TestRunCommandLeavesFlood(t *testing.T) {
	e := testEnv(t)
	r := e.must(t, "run_command", map[string]any{"command": "yes & echo ok; exit 0", "timeout_seconds": 60})
	if raw := r.Raw.(commandResult); len(r.Text) > MaxResult || !strings.Contains(r.Text, "were ended") || raw.ExitCode != 0 || raw.TimedOut {
		t.Errorf("%d bytes, %+v", len(r.Text), raw)
	}
}

// R080, R081: both outputs are always read, whatever their lines are.
func TestRunCommandBothOutputs(t *testing.T) {
	e := testEnv(t)
	for name, line := range map[string]string{
		"8 MB on the one nobody looks at": "head -c 8000000 /dev/zero | tr '\\0' x >&2; echo ready",
		"a line of 1 MiB":                 "head -c 1048576 /dev/zero | tr '\\0' x >&2; echo ready",
	} {
		r := e.must(t, "run_command", map[string]any{"command": line, "timeout_seconds": 60})
		if !strings.Contains(r.Text, "ready\n") && !strings.Contains(r.Text, "ready[") || r.Raw.(commandResult).TimedOut || !strings.Contains(r.Text, "exit status 0") {
			t.Errorf("%s: ends with %q", name, r.Text[max(0, len(r.Text)-100):])
		}
	}
}

// R073: what ran is reaped.
func TestRunCommandReaps(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("read from /proc")
	}
	e := testEnv(t)
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for range 10 {
				if _, err := e.do(t, "run_command", map[string]string{"command": "exit 0"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, p := range stats {
		b, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])) // state ppid …
		if len(f) > 1 && f[0] == "Z" && f[1] == strconv.Itoa(os.Getpid()) {
			t.Errorf("%s is not reaped", p)
		}
	}
}

// R021: cancel ends the whole group.
func TestCancelKillsGroup(t *testing.T) {
	e := testEnv(t)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := e.prepare(t, "run_command", map[string]string{"command": "echo $$; (sleep 300; echo late > late) & sleep 300"})
	if err != nil {
		t.Fatal(err)
	}
	out := NewOutput(MaxResult, "")
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, out)
		done <- err
	}()
	<-out.Changed()
	pid := strings.TrimSpace(out.Text(100))
	cancel()
	if err := <-done; err == nil || ctx.Err() == nil {
		t.Errorf("err %v", err)
	}
	if runtime.GOOS == "linux" {
		if left := inGroup(pid); len(left) > 0 {
			t.Errorf("still there: %v", left)
		}
	}
	// R022: nothing starts once it is cancelled.
	if _, err := c.Run(ctx, NewOutput(MaxResult, "")); err == nil {
		t.Error("a cancelled call ran")
	}
}

// inGroup finds the living processes of a process group.
func inGroup(pgid string) (pids []string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, p := range stats {
		b, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])) // state ppid pgrp …
		if len(fields) > 2 && fields[2] == pgid && fields[0] != "Z" {
			pids = append(pids, p)
		}
	}
	return pids
}
