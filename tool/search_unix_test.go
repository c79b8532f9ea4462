//go:build unix

package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"
)

// fakeRipgrep is a script in place of rg, outside of the workspace.
func fakeRipgrep(t *testing.T, e *Env, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rg"), []byte("#!/bin/sh\nPATH=/bin:/usr/bin\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	e.Environ = []string{"PATH=" + dir, "RIPGREP_CONFIG_PATH=" + dir + "/config", "SECRET_TOKEN=x"}
	return dir
}

// ripgrep gets nothing of the environment, no settings, no preprocessor, and the pattern
// as one argument that is no option.
func TestRipgrepIsCalledPlainly(t *testing.T) {
	e := testEnv(t)
	e.put(t, "f", "--pre=touch\n")
	dir := fakeRipgrep(t, e, `env > "$(dirname "$0")/env"; for a; do echo "$a"; done > "$(dirname "$0")/args"; exit 1`)
	e.must(t, "grep", map[string]any{"pattern": "--pre=touch"})
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || strings.Contains(string(env), "RIPGREP") || strings.Contains(string(env), "SECRET") {
		t.Errorf("%s, %v", env, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "args"))
	args := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if err != nil || !slices.Contains(args, "--no-config") || !slices.Equal(args[len(args)-2:], []string{"--", "./"}) {
		t.Errorf("%q, %v", args, err)
	}
	for _, a := range args {
		if strings.HasPrefix(a, "--pre") {
			t.Errorf("%s", a)
		}
	}
}

// What ripgrep does not do, we do ourselves.
func TestRipgrepThatFails(t *testing.T) {
	for name, script := range map[string]string{
		"an old one":     "echo 'error: Found argument' >&2; exit 2",
		"killed":         "kill -9 $$",
		"not executable": "",
	} {
		t.Run(name, func(t *testing.T) {
			e := testEnv(t)
			e.put(t, "f", "needle\n")
			dir := fakeRipgrep(t, e, script)
			if script == "" {
				if err := os.Chmod(filepath.Join(dir, "rg"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := e.must(t, "grep", map[string]any{"pattern": "needle"}).Text; got != "f:1:needle\n[1 line in 1 file]" {
				t.Errorf("%q", got)
			}
		})
	}
	e := testEnv(t)
	fakeRipgrep(t, e, `printf './f\0001:needle\n'; exit 2`)
	if got := e.must(t, "grep", map[string]any{"pattern": "needle"}).Text; got != "f:1:needle\n[1 line in 1 file; some files could not be read]" {
		t.Errorf("%q", got)
	}
}

// A flood of hits ends the search, with ripgrep and without; what is given is bounded.
func TestGrepFlood(t *testing.T) {
	e := testEnv(t)
	fakeRipgrep(t, e, `while :; do printf './f\0001:needle\n./f\0002:needle\n'; done`)
	got := e.must(t, "grep", map[string]any{"pattern": "needle"}).Text
	if !strings.HasSuffix(got, "[at least 20000 lines in 1 file; the first 500 are given, narrow the search to see others]") {
		t.Error(got[max(0, len(got)-200):])
	}
	fakeRipgrep(t, e, `printf './f\0001:'; head -c 100000000 /dev/zero; echo; printf './f\0002:needle\n'`)
	if got := e.must(t, "grep", map[string]any{"pattern": "needle"}).Text; len(got) > 2*maxMatchLine || !strings.Contains(got, "f:2:needle\n") {
		t.Errorf("%d bytes", len(got))
	}
	e.Environ = []string{"PATH="}
	for i := range 3 {
		e.put(t, fmt.Sprint("many", i), strings.Repeat("x\n", maxGathered/2))
	}
	got = e.must(t, "grep", map[string]any{"pattern": "x"}).Text
	if !strings.Contains(got, "[at least 20000 lines in 2 files; the first 500") {
		t.Error(got[max(0, len(got)-200):])
	}
}

// A search that takes too long says so, and gives what it has.
func TestGrepLate(t *testing.T) {
	e := testEnv(t)
	path := e.put(t, "f", "needle\n")
	q, err := newQuery(grepArgs{Pattern: "needle", Mode: modeContent})
	if err != nil {
		t.Fatal(err)
	}
	const want = "[stopped after 1ns, until then: nothing found; what git ignores, and files over 32 MiB, are left out]"
	q.patience = 1
	for _, path := range []string{e.Cwd, path} {
		for _, environ := range [][]string{nil, {"PATH="}} {
			e.Environ = environ
			if got, err := q.search(t.Context(), e, path); err != nil || got != want {
				t.Errorf("%q, %v", got, err)
			}
		}
	}
	fakeRipgrep(t, e, `printf './f\0001:needle\n'; sleep 300`)
	q.patience = 2 * time.Second
	if got, err := q.search(t.Context(), e, e.Cwd); err != nil || got != "f:1:needle\n[stopped after 2s, until then: 1 line in 1 file]" {
		t.Errorf("%q, %v", got, err)
	}
}

// Cancelling ends a search that runs, and ripgrep with it.
func TestGrepCancelled(t *testing.T) {
	e := testEnv(t)
	fakeRipgrep(t, e, "echo $$ > pid; sleep 300")
	call, err := e.prepare(t, "grep", map[string]any{"pattern": "x"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := call.Run(ctx, nil)
		done <- err
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	pid := ""
	for until := time.Now().Add(20 * time.Second); pid == "" && time.Now().Before(until); <-tick.C {
		b, _ := os.ReadFile(filepath.Join(e.Cwd, "pid"))
		pid = strings.TrimSpace(string(b))
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left := inGroup(pid); pid == "" || len(left) > 0 {
		t.Errorf("pid %q, still there: %v", pid, left)
	}
}

// R148: what is no regular file does not hold a search up, and links lead nowhere.
func TestSearchOddFiles(t *testing.T) {
	e := testEnv(t)
	outside := testEnv(t)
	outside.put(t, "secret", "needle\n")
	e.put(t, "f", "needle\n")
	if err := syscall.Mkfifo(filepath.Join(e.Cwd, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"loop/self": ".", "loop/up": "..", "out": outside.Cwd, "file": filepath.Join(outside.Cwd, "secret"), "zero": "/dev/zero"} {
		path := filepath.Join(e.Cwd, from)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(to, path)); err != nil {
			t.Fatal(err)
		}
	}
	both(t, e, map[string]any{"pattern": "needle"}, func(t testing.TB, text string) {
		if text != "f:1:needle\n[1 line in 1 file]" {
			t.Error(text)
		}
	})
	if got := e.must(t, "glob", map[string]any{"pattern": "**"}).Text; got != "f\n[1 file]" {
		t.Error(got)
	}
	for _, path := range []string{"pipe", "zero"} {
		if _, err := e.do(t, "grep", map[string]any{"pattern": "x", "path": path}); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	// A link that is named is followed: what is decided on is where it leads.
	call, err := e.prepare(t, "grep", map[string]any{"pattern": "needle", "path": "out"})
	if err != nil || call.Action.Paths[0] != outside.Cwd {
		t.Errorf("%+v, %v", call, err)
	}
}

// R148: one file of any size is searched in bounded memory.
func TestGrepLargeFile(t *testing.T) {
	e := testEnv(t)
	path := e.put(t, "sparse", strings.Repeat("a line\n", 20_000)+"needle\n")
	if err := os.Truncate(path, 3*maxSearched); err != nil {
		t.Skip(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "\nneedle at the end\n")
	f.Close()
	if got := e.must(t, "grep", map[string]any{"pattern": "needle", "path": "sparse"}).Text; got != "sparse:20001:needle\nsparse:20003:needle at the end\n[2 lines in 1 file]" {
		t.Errorf("%.300q", got)
	}
	e.put(t, "bin", "\x00needle")
	if _, err := e.do(t, "grep", map[string]any{"pattern": "needle", "path": "bin"}); err == nil || !strings.Contains(err.Error(), "binary") {
		t.Error(err)
	}
}

// A file that is searched in parts gives what it gives as a whole.
func TestGrepParts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "\n", "needle\n", "xneedley\r\n", "needle"}), 0, 60).Draw(rt, "lines"), "")
		if strings.Contains(text, "needleneedleneedle") {
			return // a line longer than a part
		}
		q, err := newQuery(grepArgs{
			Pattern: rapid.SampledFrom([]string{"needle", "n.+e", "^a$", "^$", "b|needle", "a*"}).Draw(rt, "pattern"),
			Context: rapid.IntRange(0, 2).Draw(rt, "context"), Mode: rapid.SampledFrom([]string{modeContent, modeCount}).Draw(rt, "mode"),
		})
		if err != nil {
			rt.Fatal(err)
		}
		s := scan{q: q, path: "f", line: 1}
		s.file([]byte(text))
		f, err := q.large(t.Context(), "f", iotest.OneByteReader(strings.NewReader(text)), rapid.IntRange(60, 200).Draw(rt, "part"))
		if err != nil || !slices.Equal(f.hits, s.hits) {
			rt.Fatalf("%q\nwhole: %+v\nparts: %+v, %v", text, s.hits, f.hits, err)
		}
	})
}

// What ripgrep prints is read the same however it is cut.
func TestRipgrepOutputCut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]string{modeContent, modeFiles, modeCount}).Draw(rt, "mode")
		var out []byte
		var want []hit
		for i := range rapid.IntRange(0, 8).Draw(rt, "hits") {
			name := rapid.SampledFrom([]string{"a", "dir/b", "new\nline", "1:2", "ü"}).Draw(rt, "name")
			text := rapid.SampledFrom([]string{"", "x", "1:y", "-", "a\x00b", strings.Repeat("ü", 700)}).Draw(rt, "text")
			h := hit{path: filepath.Join("/w", name)}
			switch mode {
			case modeFiles:
				h.count = 1
				out = append(out, "./"+name+"\x00"...)
			case modeCount:
				h.count = i + 1
				out = fmt.Appendf(out, "./%s\x00%d\n", name, i+1)
			default:
				h.line, h.near, h.text = i+1, i%2 == 1, shortLine([]byte(text))
				out = fmt.Appendf(out, "./%s\x00%d%c%s\n", name, i+1, ":-"[i%2], text)
			}
			want = append(want, h)
		}
		q, err := newQuery(grepArgs{Pattern: "x", Mode: mode})
		if err != nil {
			rt.Fatal(err)
		}
		r := &rgOutput{q: q, dir: "/w"}
		for rest := out; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
			_, _ = r.Write(rest[:n])
			rest = rest[n:]
		}
		if !slices.Equal(r.found.hits, want) {
			rt.Fatalf("%q\ngot  %+v\nwant %+v", out, r.found.hits, want)
		}
	})
}
