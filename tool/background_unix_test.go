//go:build unix

package tool

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
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
	if got := e.must(t, "command_output", map[string]any{"id": id}).Text; got != "["+id+": running; nothing new]" {
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
	if got := e.must(t, "command_kill", map[string]any{"id": id}).Text; !strings.Contains(got, "command_kill") && !strings.Contains(got, "signal") {
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

// R145, R147: a flood stays bounded, and what is left out is said.
func TestBackgroundFlood(t *testing.T) {
	e := background(t)
	id, _ := e.startJob(t, "yes 0123456789abcdef | head -c 20000000; echo; echo the end")
	j, err := e.Background.find(id)
	if err != nil {
		t.Fatal(err)
	}
	<-j.done
	got := e.must(t, "command_output", map[string]any{"id": id}).Text
	if len(got) > MaxResult || !strings.Contains(got, "left out") || !strings.Contains(got, "the end\n") || !strings.Contains(got, "kept in") {
		t.Errorf("%d bytes, ends with %q", len(got), got[max(0, len(got)-200):])
	}
}

// Since gives each byte once, however it is cut.
func TestOutputSince(t *testing.T) {
	o := NewOutput(1000, "")
	var whole, got strings.Builder
	var at int64
	for i := range 100 {
		line := fmt.Sprintf("line %d\n", i)
		whole.WriteString(line)
		_, _ = o.Write([]byte(line))
		if i%7 == 0 {
			var text string
			text, at = o.Since(at, 1000)
			got.WriteString(text)
		}
	}
	text, _ := o.Since(at, 1000)
	got.WriteString(text)
	if got.String() != whole.String() {
		t.Errorf("%q", got.String())
	}
	if text, at := o.Since(0, 1000); !strings.Contains(text, "left out") && int64(len(text)) != at {
		t.Errorf("%q", text)
	}
}
