//go:build unix

package tool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gladhand"
)

// background is an Env whose commands end with the test.
func background(t *testing.T) *Env {
	t.Helper()
	e := testEnv(t)
	e.Background = NewBackground(t.TempDir())
	t.Cleanup(func() {
		if err := e.Background.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func (e *Env) startJob(t *testing.T, line string) (id string, r Result) {
	t.Helper()
	r = e.must(t, "run_command", map[string]any{"command": line, "background": true})
	return r.Raw.(jobResult).ID, r
}

// poll looks at a command until want is in what it printed.
func (e *Env) poll(t *testing.T, id, want string) string {
	t.Helper()
	var all strings.Builder
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); {
		all.WriteString(e.must(t, "command_output", map[string]any{"id": id, "wait_seconds": 5}).Text)
		if strings.Contains(all.String(), want) {
			return all.String()
		}
	}
	t.Fatalf("%q did not come in %q", want, all.String())
	return ""
}

func TestBackground(t *testing.T) {
	e := background(t)
	id, r := e.startJob(t, "mkfifo gate; echo begun; read -r x < gate; echo $x; exit 3")
	if !regexp.MustCompile(`^bg_[a-z2-7]{26}$`).MatchString(id) { // 130 bits
		t.Errorf("id %q", id)
	}
	if text := r.Text + e.must(t, "command_output", map[string]any{"id": id}).Text; !strings.Contains(text, "begun\n") || !strings.Contains(text, "running") {
		t.Errorf("%q", text)
	}
	if got := e.must(t, "command_output", map[string]any{"id": id}).Text; !regexp.MustCompile(`^\[` + id + `: running; started [0-9.]+s ago; nothing new\]$`).MatchString(got) {
		t.Errorf("%q", got)
	}
	gate, err := os.OpenFile(e.Cwd+"/gate", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(gate, "went on")
	gate.Close()
	if got := e.poll(t, id, "exit status 3"); !strings.Contains(got, "went on\n") || strings.Contains(got, "begun") {
		t.Errorf("%q", got)
	}
	if got := e.must(t, "command_kill", map[string]any{"id": id}).Text; !strings.Contains(got, "had ended before") {
		t.Errorf("%q", got)
	}
}

// Another session's id is as unknown as one that never was.
func TestBackgroundIsOwned(t *testing.T) {
	a, b := background(t), background(t)
	id, _ := a.startJob(t, "sleep 60")
	for _, tool := range []string{"command_output", "command_kill"} {
		_, theirs := b.prepare(t, tool, map[string]any{"id": id})
		_, never := b.prepare(t, tool, map[string]any{"id": "bg_never"})
		if theirs == nil || never == nil || strings.ReplaceAll(theirs.Error(), id, "X") != strings.ReplaceAll(never.Error(), "bg_never", "X") {
			t.Errorf("%s: %v, %v", tool, theirs, never)
		}
	}
	e := testEnv(t)
	if _, err := e.prepare(t, "run_command", map[string]any{"command": "x", "background": true}); err == nil {
		t.Error("a command was left running where nobody ends it")
	}
}

// command_kill ends the whole group, also what ignores being asked. R071.
func TestBackgroundKill(t *testing.T) {
	e := background(t)
	id, r := e.startJob(t, `trap "" TERM; sleep 60 & echo child=$!; wait; sleep 60`)
	child, text := 0, r.Text
	if !strings.Contains(text, "child=") {
		text = e.poll(t, id, "child=")
	}
	if _, err := fmt.Sscanf(text[strings.Index(text, "child="):], "child=%d", &child); err != nil {
		t.Fatal(text, err)
	}
	if got := e.must(t, "command_kill", map[string]any{"id": id}).Text; !strings.Contains(got, "ended by command_kill (signal: killed)") {
		t.Errorf("%q", got)
	}
	for until := time.Now().Add(10 * time.Second); syscall.Kill(child, 0) == nil; {
		if time.Now().After(until) {
			t.Fatal("its child lives on")
		}
	}
}

// Eight run at once, and of those that ended the newest are kept.
func TestBackgroundLimits(t *testing.T) {
	e := background(t)
	first, _ := e.startJob(t, "true")
	e.poll(t, first, "exit status 0")
	for range maxKept - 1 {
		id, _ := e.startJob(t, "true")
		e.poll(t, id, "")
		<-e.Background.jobs[len(e.Background.jobs)-1].done
	}
	if _, err := e.prepare(t, "command_output", map[string]any{"id": first}); err != nil {
		t.Errorf("the oldest of %d is gone: %v", maxKept, err)
	}
	for range maxRunning {
		e.startJob(t, "sleep 60")
	}
	if _, err := e.prepare(t, "command_output", map[string]any{"id": first}); err == nil {
		t.Errorf("the oldest of more than %d is still there", maxKept)
	}
	if _, err := e.do(t, "run_command", map[string]any{"command": "sleep 60", "background": true}); err == nil || !strings.Contains(err.Error(), "command_kill") {
		t.Errorf("one over the limit: %v", err)
	}
	if err := e.Background.Close(); err != nil {
		t.Fatal(err)
	}
	for _, j := range e.Background.jobs {
		if j.running() {
			t.Error("a command outlived its session")
		}
	}
	if _, err := e.do(t, "run_command", map[string]any{"command": "true", "background": true}); err == nil {
		t.Error("a command was started in a closed session")
	}
}

// R145, R147: a flood stays bounded, and what is left out is said; the next look has
// the head and tail of what came since.
func TestBackgroundFlood(t *testing.T) {
	e := background(t)
	const flood = "yes 0123456789abcdef | head -c 3000000; echo; echo the end of it; read -r x < gate; "
	if err := syscall.Mkfifo(filepath.Join(e.Cwd, "gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	id, r := e.startJob(t, flood+"echo again; "+strings.ReplaceAll(flood, "read -r x < gate; ", ""))
	j, err := e.Background.find(id)
	if err != nil {
		t.Fatal(err)
	}
	check := func(got string) {
		t.Helper()
		if len(got) > jobOutput+4096 || !strings.Contains(got, "left out") || !strings.Contains(got, "the end of it\n") || !strings.Contains(got, "kept in") {
			t.Errorf("%d bytes, ends with %q", len(got), got[max(0, len(got)-200):])
		}
	}
	// The first look may have come in the middle of it.
	if text := r.Text; !strings.Contains(text, "the end of it") {
		e.poll(t, id, "the end of it")
	} else {
		check(text)
	}
	gate, err := os.OpenFile(filepath.Join(e.Cwd, "gate"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	gate.Close()
	<-j.done
	r = e.must(t, "command_output", map[string]any{"id": id})
	if check(r.Text); !strings.HasPrefix(r.Text, "again\n0123456789abcdef\n") {
		t.Errorf("begins with %q", r.Text[:80])
	}
	if fi, err := os.Stat(r.Raw.(jobResult).File); err != nil || fi.Size() < 6_000_000 || fi.Size() > maxSpill {
		t.Errorf("file %v, %v", fi, err)
	}
}

// A command that floods for as long as it runs keeps little, and so does its file.
func TestBackgroundFloodMemory(t *testing.T) {
	e := background(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	id, _ := e.startJob(t, "yes")
	j, err := e.Background.find(id)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for j.whole.Total() < 2*maxSpill { // and nobody looks
		<-tick.C
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 2<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
	j.mu.Lock()
	if n := cap(j.fresh.head) + cap(j.fresh.tail); n > 256<<10 {
		t.Errorf("%d bytes of output are kept", n)
	}
	j.mu.Unlock()
	file := j.whole.File()
	if fi, err := os.Stat(file); err != nil || fi.Size() > maxSpill {
		t.Errorf("file %v, %v", fi, err)
	}
	e.must(t, "command_kill", map[string]any{"id": id})
	if _, err := os.Stat(file); err != nil {
		t.Error("the model was told of a file that is not there")
	}
}

// Files that nobody was told of go with the command.
func TestBackgroundFilesGo(t *testing.T) {
	e := background(t)
	id, _ := e.startJob(t, "echo a little; sleep 60")
	j, err := e.Background.find(id)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(e.must(t, "command_kill", map[string]any{"id": id}).Text, "ended by command_kill") {
		t.Error("not killed")
	}
	if _, err := os.Stat(j.whole.File()); err != nil {
		t.Error(err)
	}
	if err := e.Background.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(j.whole.File()); err == nil {
		t.Error("the file is still there")
	}
}

// Waiting ends at once with the turn, with output and with the command.
func TestCommandOutputWaits(t *testing.T) {
	e := background(t)
	if err := syscall.Mkfifo(filepath.Join(e.Cwd, "gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	id, _ := e.startJob(t, "while read -r x; do echo $x; done < gate; exit 7")
	gate, err := os.OpenFile(filepath.Join(e.Cwd, "gate"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	look := func(ctx context.Context) chan Result {
		call, err := e.prepare(t, "command_output", map[string]any{"id": id, "wait_seconds": 60})
		if err != nil {
			t.Fatal(err)
		}
		if !call.Parallel {
			t.Error("it keeps others waiting")
		}
		c := make(chan Result, 1)
		go func() {
			r, err := call.Run(ctx, nil)
			if err != nil {
				r.Text = err.Error()
			}
			c <- r
		}()
		return c
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := look(ctx), look(ctx)
	cancel()
	for _, c := range []chan Result{first, second} {
		if r := <-c; r.Text != context.Canceled.Error() {
			t.Errorf("cancelled: %+v", r)
		}
	}
	news := look(t.Context())
	fmt.Fprintln(gate, "hello")
	if r := <-news; !strings.HasPrefix(r.Text, "hello\n["+id+": running; started ") || r.Raw.(jobResult).ExitCode != nil {
		t.Errorf("news: %+v", r)
	}
	end := look(t.Context())
	gate.Close()
	if r := <-end; !strings.HasPrefix(r.Text, "["+id+": ended with exit status 7") || *r.Raw.(jobResult).ExitCode != 7 || r.Failed {
		t.Errorf("end: %+v", r)
	}
	for _, bad := range []any{map[string]any{"id": id, "wait_seconds": 61}, map[string]any{"id": id, "wait_seconds": -1}, map[string]any{}} {
		if _, err := e.prepare(t, "command_output", bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

// R079: whatever ended a command is told, and nothing else ends one: not the end of the
// call or the turn that started it.
func TestBackgroundOutlivesItsTurn(t *testing.T) {
	e := background(t)
	ctx, cancel := context.WithCancel(t.Context())
	call, err := e.prepare(t, "run_command", map[string]any{"command": "echo begun; sleep 60", "background": true})
	if err != nil {
		t.Fatal(err)
	}
	if call.Parallel || call.Action.Effect != gladhand.EffectRun || call.Action.Command != "echo begun; sleep 60" {
		t.Errorf("%+v", call.Action)
	}
	r, err := call.Run(ctx, NewOutput(MaxResult, ""))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	id := r.Raw.(jobResult).ID
	j, err := e.Background.find(id)
	if err != nil || !j.running() {
		t.Fatalf("%v, %v", r, err)
	}
	if err := e.Background.Close(); err != nil {
		t.Fatal(err)
	}
	if got := e.must(t, "command_output", map[string]any{"id": id}).Text; !strings.Contains(got, "ended by the end of the session (signal: terminated)") {
		t.Errorf("%q", got)
	}
	// A cancelled call starts nothing.
	if _, err := call.Run(ctx, nil); err == nil {
		t.Error("it was started")
	}
}

// R077: what goes on printing behind the command's end does not hold it.
func TestBackgroundLeavesNothing(t *testing.T) {
	e := background(t)
	id, _ := e.startJob(t, "yes & sleep 0.01; echo the command is done; exit 0")
	j, err := e.Background.find(id)
	if err != nil {
		t.Fatal(err)
	}
	<-j.done
	if got := j.state(false); !strings.Contains(got, "exit status 0") || !strings.Contains(got, "were ended") {
		t.Error(got)
	}
}

// However a command's output is cut and looked at: each byte comes once.
func TestBackgroundTakesEachByteOnce(t *testing.T) {
	j := &job{fresh: NewOutput(jobOutput, ""), whole: NewOutput(0, ""), news: make(chan struct{})}
	var want, got strings.Builder
	for i := range 1000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		_, _ = j.Write([]byte(line))
		select {
		case <-j.printed():
		default:
			t.Fatal("it is not told that something was printed")
		}
		if i%7 == 0 {
			fresh, total := j.take()
			got.WriteString(fresh.Text(jobOutput))
			if total != int64(want.Len()) || got.String() != want.String() {
				t.Fatalf("%d bytes, %q", total, got.String())
			}
			if fresh, _ := j.take(); fresh.Total() != 0 {
				t.Fatal("it came twice")
			}
		}
	}
}
