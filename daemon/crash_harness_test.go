//go:build unix

package daemon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/acp/acptest"
	"gladhand/proc"
)

// patience is how long a test waits for something that must come.
const patience = 60 * time.Second

// victim is a data directory with the daemon that serves it, as a process of its
// own that can be killed and started again.
type victim struct {
	t     *testing.T
	dir   string // the data directory
	cwd   string // the workspace
	place proc.Place
	argv  []string // before the daemon itself: strace
	bin   string   // the real binary; "" is this one with the scripted agent

	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed when cmd has ended; state is then in cmd
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	// Short names: the socket's path has a limit.
	base, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	return newVictimIn(t, base)
}

// newVictimIn is newVictim in a directory that it removes in the end.
func newVictimIn(t *testing.T, base string) *victim {
	t.Helper()
	base, err := filepath.EvalSymlinks(base)
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{t: t, dir: filepath.Join(base, "d"), cwd: filepath.Join(base, "w")}
	if err := os.Mkdir(v.cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	if v.place, err = proc.Locate(v.dir, "", func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if v.cmd != nil {
			v.kill()
		}
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", v.log())
		}
		_ = os.RemoveAll(base)
	})
	return v
}

func (v *victim) logPath() string { return filepath.Join(filepath.Dir(v.dir), "stderr") }

// log is the end of what the daemons of this directory wrote.
func (v *victim) log() string {
	b, _ := os.ReadFile(v.logPath())
	return string(b[max(0, len(b)-6000):])
}

// start starts a daemon, and does not wait for it.
func (v *victim) start() {
	v.t.Helper()
	bin, args := v.bin, []string{"daemon", "--data-dir", v.dir}
	if bin == "" {
		bin, args = os.Args[0], []string{"-test.run=^$"}
	}
	argv := append(append([]string{}, v.argv...), append([]string{bin}, args...)...)
	v.cmd = exec.Command(argv[0], argv[1:]...)
	v.cmd.Env = append(os.Environ(), roleEnv+"="+v.dir, "GOTRACEBACK=all")
	v.cmd.Dir = v.cwd
	if len(v.argv) > 0 { // strace does not hand a SIGKILL on: kill the group
		v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	stderr, err := os.OpenFile(v.logPath(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		v.t.Fatal(err)
	}
	defer stderr.Close()
	v.cmd.Stdout, v.cmd.Stderr = stderr, stderr
	if v.stdin, err = v.cmd.StdinPipe(); err != nil {
		v.t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	ended := make(chan struct{})
	v.ended = ended
	cmd := v.cmd
	go func() { _ = cmd.Wait(); close(ended) }()
}

// kill is kill -9, and waits for the end.
func (v *victim) kill() {
	v.t.Helper()
	if len(v.argv) > 0 {
		_ = syscall.Kill(-v.cmd.Process.Pid, syscall.SIGKILL)
	}
	_ = v.cmd.Process.Kill()
	v.wait()
	if len(v.argv) > 0 && !v.free() { // strace has ended; the daemon may not have yet
		v.t.Fatal("the daemon under strace does not end")
	}
}

// free waits until nobody holds the data directory.
func (v *victim) free() bool {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if l, err := proc.Lock(filepath.Join(v.dir, "daemon.lock")); err == nil {
			return l.Unlock() == nil
		}
		runtime.Gosched()
	}
	return false
}

// wait waits for the end of a daemon that has been told to end, or ends itself.
func (v *victim) wait() {
	v.t.Helper()
	select {
	case <-v.ended:
	case <-time.After(patience):
		v.t.Fatalf("the daemon (pid %d) does not end", v.cmd.Process.Pid)
	}
	_ = v.stdin.Close()
	for _, bad := range []string{"DATA RACE", "panic:", "fatal error:"} {
		if b, _ := os.ReadFile(v.logPath()); bytes.Contains(b, []byte(bad)) {
			v.t.Fatalf("the daemon says %q", bad)
		}
	}
}

// every calls f again and again until it is true; it reports false when that
// takes too long, or the daemon has ended.
func (v *victim) every(f func() bool) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-v.ended:
			return false
		case <-deadline.C:
			return false
		}
	}
	return true
}

// connect waits until the daemon says hello, and returns the connection.
func (v *victim) connect(version int) *wire {
	v.t.Helper()
	var w *wire
	if !v.every(func() bool {
		c, err := proc.Dial(v.t.Context(), v.place)
		if err != nil {
			return false
		}
		w = newWire(v.t, c, version)
		_, err = w.call("initialize", initializeParams(version))
		return err == nil
	}) {
		v.t.Fatalf("no daemon says hello")
	}
	return w
}

func initializeParams(version int) string {
	if version == acp.V2 {
		return `{"protocolVersion":2,"info":{"name":"crash","version":"0"},"capabilities":{}}`
	}
	return `{"protocolVersion":1,"clientInfo":{"name":"crash","version":"0"},"clientCapabilities":{}}`
}

// run is start and connect.
func (v *victim) run() *wire {
	v.t.Helper()
	v.start()
	return v.connect(acp.V1)
}

// effects counts the effects of a prompt.
func (v *victim) effects(id string) int {
	b, err := os.ReadFile(filepath.Join(v.cwd, effectsName))
	if err != nil && !os.IsNotExist(err) {
		v.t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		if strings.TrimSpace(line) == id {
			n++
		}
	}
	return n
}

// wire is a client of a daemon that may die at any moment: that the connection
// ends is news here, not a failure. All frames are held against ACP's schemas.
type wire struct {
	t       *testing.T
	conn    net.Conn
	version int
	checker *acptest.Checker

	mu    sync.Mutex // guards what follows
	cond  *sync.Cond
	lines []message
	next  int
	ended bool
}

func newWire(t *testing.T, c net.Conn, version int) *wire {
	w := &wire{t: t, conn: c, version: version, checker: acptest.New(version)}
	w.cond = sync.NewCond(&w.mu)
	read := make(chan struct{})
	go func() { defer close(read); w.read() }()
	t.Cleanup(func() { c.Close(); <-read })
	return w
}

func (w *wire) read() {
	r := bufio.NewReader(w.conn)
	for {
		line, err := r.ReadBytes('\n')
		w.mu.Lock()
		if err != nil { // what a killed daemon wrote half of is nothing
			w.ended = true
			w.cond.Broadcast()
			w.mu.Unlock()
			return
		}
		if err := w.checker.Frame(acptest.Agent, line); err != nil {
			w.t.Errorf("%v\nin %s", err, line)
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			w.t.Errorf("not JSON: %s", line)
		}
		w.lines = append(w.lines, m)
		w.cond.Broadcast()
		w.mu.Unlock()
	}
}

func (w *wire) close() { w.conn.Close() }

// send sends a request, or as much of it as there is somebody to take it.
func (w *wire) send(method, params string) (id string) {
	w.mu.Lock()
	w.next++
	id = fmt.Sprint(w.next)
	w.mu.Unlock()
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	if err := w.checker.Frame(acptest.Client, []byte(line)); err != nil {
		w.t.Errorf("the test's own frame: %v\nin %s", err, line)
	}
	_, _ = io.WriteString(w.conn, line+"\n")
	return id
}

// find waits for the first message from index on that f likes; ok is false when
// the connection ended before it came.
func (w *wire) find(from int, f func(message) bool) (m message, at int, ok bool) {
	late := false
	timer := time.AfterFunc(patience, func() { w.mu.Lock(); late = true; w.cond.Broadcast(); w.mu.Unlock() })
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := from; ; i++ {
		for i >= len(w.lines) {
			if w.ended {
				return message{}, i, false
			}
			if late {
				w.t.Errorf("nothing came for %v", patience)
				return message{}, i, false
			}
			w.cond.Wait()
		}
		if f(w.lines[i]) {
			return w.lines[i], i, true
		}
	}
}

func (w *wire) all() []message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]message(nil), w.lines...)
}

// drained waits for the end of the connection and returns all that came.
func (w *wire) drained() []message {
	w.find(0, func(message) bool { return false })
	return w.all()
}

// response waits for the answer to a request; ok is false when none came.
func (w *wire) response(id string) (message, bool) {
	m, _, ok := w.find(0, func(m message) bool { return m.Method == "" && string(m.ID) == id })
	return m, ok
}

// call sends a request and returns its result, or its error as one of ours.
func (w *wire) call(method, params string) (json.RawMessage, error) {
	m, ok := w.response(w.send(method, params))
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: the connection ended", method)
	case m.Error != nil:
		return nil, gladhand.FromWire(m.Error.Code, m.Error.Message, m.Error.Data)
	}
	return m.Result, nil
}

func (w *wire) mustCall(method, params string, result any) {
	w.t.Helper()
	raw, err := w.call(method, params)
	if err != nil {
		w.t.Fatalf("%s: %v", method, err)
	}
	if result != nil {
		if err := json.Unmarshal(raw, result); err != nil {
			w.t.Fatal(err)
		}
	}
}

// newSession makes a session that allows everything.
func (w *wire) newSession(cwd string) string {
	w.t.Helper()
	var v struct{ SessionID string }
	w.mustCall("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[],"_meta":{"gladhand":{"yes":true}}}`, cwd), &v)
	return v.SessionID
}

// attach follows a session behind a number.
func (w *wire) attach(id string, after gladhand.Seq) {
	w.t.Helper()
	w.mustCall(gladhand.MethodAttach, fmt.Sprintf(`{"sessionId":%q,"after":%d}`, id, after), nil)
}

func sendParams(session, id, text string) string {
	return fmt.Sprintf(`{"sessionId":%q,"promptId":%q,"prompt":[{"type":"text","text":%q}]}`, session, id, text)
}

// prompt sends a prompt and returns its receipt.
func (w *wire) prompt(session, id, text string) (gladhand.Receipt, error) {
	raw, err := w.call(gladhand.MethodSend, sendParams(session, id, text))
	var r gladhand.Receipt
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return r, err
}

// turnEnd waits for the end of the turn of a prompt.
func (w *wire) turnEnd(prompt string) gladhand.TurnUpdate {
	w.t.Helper()
	var u gladhand.TurnUpdate
	_, _, ok := w.find(0, func(m message) bool {
		if tagOf(m) != gladhand.TagTurnEnd {
			return false
		}
		u = updateOf[gladhand.TurnUpdate](w.t, m)
		for _, p := range u.Prompts {
			if string(p) == prompt {
				return true
			}
		}
		return false
	})
	if !ok {
		w.t.Fatalf("the turn of %s did not end", prompt)
	}
	return u
}

// updateOf decodes the update of a session/update.
func updateOf[T any](t *testing.T, m message) T {
	t.Helper()
	var v struct{ Update T }
	if err := json.Unmarshal(m.Params, &v); err != nil {
		t.Fatal(err)
	}
	return v.Update
}

func decode[T any](t *testing.T, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
