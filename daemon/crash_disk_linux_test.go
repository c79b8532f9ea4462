package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gladhand"
)

// strace returns the arguments that run a daemon under strace, which writes to
// log; it skips the test where strace cannot work.
func strace(t *testing.T, log string, args ...string) []string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: the disk's calls are not watched")
	}
	if out, err := exec.Command(path, "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here (%s): the disk's calls are not watched", strings.TrimSpace(string(out)))
	}
	return append([]string{path, "-f", "-o", log}, args...)
}

var (
	callLine    = regexp.MustCompile(`^(\d+) +(\w+)\(\d+<([^>]*)>(.*)$`)
	resumedLine = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
)

// theEffect is the mark of the line in the effects file.
const theEffect = "\x00effect"

// trail follows one mark, which is in the data of calls, through a trace: it was
// written to the write-ahead log, that was synced, and only then did anybody
// outside see it.
type trail struct {
	mark            string
	written, synced bool
	seen            int // writes outside that hold it
}

// A sync is seen before every word on the wire that says that something is
// stored, and before every effect.
func TestSyncBeforeEveryAck(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	trace := filepath.Join(filepath.Dir(v.dir), "trace")
	v.argv = strace(t, trace, "-y", "-s", "70000", "-e", "trace=write,pwrite64,fsync,fdatasync")
	w := v.run()
	p := &point{v: v, t: t, session: w.newSession(v.cwd)}
	w.attach(p.session, 0)
	const n = 8
	var marks []string
	for i := range n {
		id := fmt.Sprintf("mark%dx", i)
		p.prompts = append(p.prompts, &sent{id: id, text: "work", request: w.send(gladhand.MethodSend, sendParams(p.session, id, "work"))})
		// The receipt and its event; the turn's start; the message's first event; the
		// call, its step to the effect, the effect, its end; the turn's end.
		for _, m := range []string{`"promptId":"`, `"promptIds":["`, `"toolCallId":"t-`} {
			marks = append(marks, m+id)
		}
		for _, m := range []string{`"text":"I `, `in_progress`, theEffect, `appended`, `"stopReason"`} {
			marks = append(marks, m+"@"+id)
		}
	}
	for _, s := range p.prompts {
		w.turnEnd(s.id)
	}
	w.mustCall(gladhand.MethodStop, `{}`, nil)
	v.exited(0)
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	watch(t, string(b), filepath.Join(v.dir, "gladhand.db-wal"), marks)
}

// watch goes through a trace and follows the marks. "a@b" is seen where both a
// and b are in one event.
func watch(t *testing.T, trace, wal string, marks []string) {
	t.Helper()
	var trails []*trail
	for _, m := range marks {
		trails = append(trails, &trail{mark: m})
	}
	open := map[string]string{} // thread → path of a call that has not returned
	data := map[string]string{} // and its data
	for line := range strings.Lines(trace) {
		line = strings.TrimSuffix(line, "\n")
		if m := resumedLine.FindStringSubmatch(line); m != nil {
			returned(trails, m[2], open[m[1]] == wal, data[m[1]])
			continue
		}
		m := callLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		thread, call, path, rest := m[1], m[2], m[3], m[4]
		if call == "write" && (strings.HasPrefix(path, "UNIX") || strings.HasPrefix(path, "socket") || strings.HasSuffix(path, effectsName)) {
			outside(t, trails, strings.HasSuffix(path, effectsName), unescape(rest))
		}
		if strings.HasSuffix(rest, "<unfinished ...>") {
			open[thread], data[thread] = path, unescape(rest)
			continue
		}
		returned(trails, call, path == wal, unescape(rest))
	}
	for _, tr := range trails {
		if tr.seen == 0 {
			t.Errorf("%q was never seen outside", tr.mark)
		}
	}
}

func unescape(s string) string { return strings.ReplaceAll(s, `\"`, `"`) }

// returned notes a call to the write-ahead log that has come back.
func returned(trails []*trail, call string, wal bool, data string) {
	if !wal {
		return
	}
	for _, tr := range trails {
		switch call {
		case "pwrite64":
			tr.written = tr.written || tr.in(data)
		case "fsync", "fdatasync":
			tr.synced = tr.synced || tr.written
		}
	}
}

// in reports whether one event of what is written holds the mark.
func (tr *trail) in(data string) bool {
	a, b, both := strings.Cut(tr.mark, "@")
	if !both {
		return strings.Contains(data, a)
	}
	if a == theEffect { // an effect is allowed by the event before it
		a = "in_progress"
	}
	for _, event := range strings.Split(data, `"sessionUpdate"`) {
		if strings.Contains(event, a) && strings.Contains(event, b) {
			return true
		}
	}
	return false
}

func outside(t *testing.T, trails []*trail, effect bool, data string) {
	t.Helper()
	for _, tr := range trails {
		var is bool
		if id, ok := strings.CutPrefix(tr.mark, theEffect+"@"); ok {
			is = effect && strings.Contains(data, id)
		} else {
			is = !effect && tr.in(data)
		}
		if !is {
			continue
		}
		tr.seen++
		if !tr.synced {
			t.Errorf("%q was seen outside before it was synced (written: %v):\n%.300s", tr.mark, tr.written, data)
		}
	}
}

// The disk fails under a daemon, for a while. Whoever sends a prompt is told, with
// the reason; the daemon goes on by itself when the disk does; nothing that was
// acknowledged is lost and nothing runs twice; and all of that is also what the
// next daemon finds. R164, R165.
//
// strace counts a thread's calls, and the store's writer moves from one thread to
// another: when a call fails is a matter of chance.
func TestFaultyDisk(t *testing.T) {
	for _, tt := range []struct {
		name, inject string
		reason       gladhand.Reason
		dies         bool // while the disk fails
	}{
		{"failing syncs", "fsync,fdatasync:error=EIO:when=6..10", gladhand.ReasonUnavailable, false},
		{"a failing sync now and then", "fsync,fdatasync:error=EIO:when=5+4", gladhand.ReasonUnavailable, false},
		{"failing writes", "pwrite64:error=EIO:when=40..47", gladhand.ReasonUnavailable, false},
		{"a full disk", "pwrite64:error=ENOSPC:when=40..47", gladhand.ReasonDiskFull, false},
		{"a full disk now and then", "pwrite64:error=ENOSPC:when=30+43", gladhand.ReasonDiskFull, false},
		{"a full disk, and a crash", "pwrite64:error=ENOSPC:when=40+3", gladhand.ReasonDiskFull, true},
		{"failing syncs, and a crash", "fsync,fdatasync:error=EIO:when=6+2", gladhand.ReasonUnavailable, true},
		{"short writes now and then", "pwrite64:retval=0:when=30+41", gladhand.ReasonDiskFull, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			v.run().close() // the files are there, and known to strace by their path
			v.kill()
			trace := filepath.Join(filepath.Dir(v.dir), "trace")
			v.argv = strace(t, trace, "-P", filepath.Join(v.dir, "gladhand.db-wal"),
				"-e", "trace=pwrite64,fsync,fdatasync", "-e", "inject="+tt.inject)
			w := v.run()
			p := &point{v: v, t: t, session: faultySession(t, w, v.cwd, tt.reason)}
			w.attach(p.session, 0)
			refused := 0
			for i := range times(16, 60) {
				s := &sent{id: fmt.Sprint("f", i), text: "work"}
				r, err := w.prompt(p.session, s.id, s.text)
				switch reason := gladhand.ReasonOf(err); {
				case err == nil:
					s.receipt = &r
					p.prompts = append(p.prompts, s)
				case reason == gladhand.ReasonQueueFull:
				case reason == tt.reason:
					refused++
				default:
					t.Fatalf("%s was refused with %v (%s), want %s", s.id, err, reason, tt.reason)
				}
				if i%3 == 0 && err == nil && !tt.dies {
					w.turnEnd(s.id)
				}
			}
			if !tt.dies { // by itself, without another start
				w.turnEnd(p.prompts[len(p.prompts)-1].id)
			}
			v.kill()
			p.before = w.drained()
			p.cursor = contiguous(t, p.before, p.session, 0)
			b, err := os.ReadFile(trace)
			if err != nil || !strings.Contains(string(b), "(INJECTED)") {
				t.Fatalf("nothing was injected (%v)", err)
			}
			v.argv = nil
			w = v.run()
			p.faultyCheck(w)
			t.Logf("%d prompts taken, %d refused", len(p.prompts), refused)
		})
	}
}

func faultySession(t *testing.T, w *wire, cwd string, reason gladhand.Reason) string {
	t.Helper()
	for range 20 {
		raw, err := w.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, cwd))
		if err == nil {
			return decode[struct{ SessionID string }](t, raw).SessionID
		}
		if gladhand.ReasonOf(err) != reason {
			t.Fatalf("session/new: %v", err)
		}
	}
	t.Fatal("session/new always fails")
	return ""
}

// faultyCheck is check for turns that may have failed: a prompt whose turn could
// not be written down says so, and has at most one effect.
func (p *point) faultyCheck(w *wire) {
	p.t.Helper()
	w.attach(p.session, p.cursor)
	p3 := &sent{id: "f-next", text: "work"}
	p.prompts = append(p.prompts, p3)
	for _, s := range p.prompts {
		var err error
		if s.final, err = w.prompt(p.session, s.id, s.text); err != nil {
			p.t.Fatalf("%s: %v", s.id, err)
		}
		if s.receipt != nil && s.final.Seq != s.receipt.Seq {
			p.t.Errorf("%s was acknowledged as %d, and is now %d: it was forgotten", s.id, s.receipt.Seq, s.final.Seq)
		}
	}
	if end := w.turnEnd(p3.id); end.StopReason != gladhand.StopEndTurn {
		p.t.Errorf("the next prompt's turn ended with %s %v", end.StopReason, end.Error)
	}
	for _, s := range p.prompts[:len(p.prompts)-1] {
		var err error
		if s.final, err = w.prompt(p.session, s.id, s.text); err != nil {
			p.t.Fatalf("%s at last: %v", s.id, err)
		}
		n := p.v.effects(s.id)
		switch done := s.final.State == gladhand.PromptDone; {
		case done && s.final.Outcome == gladhand.Completed && n == 1:
		case done && s.final.Outcome == gladhand.Failed && n <= 1:
		case s.final.State == gladhand.PromptInterrupted && n <= 1:
		default:
			p.t.Errorf("%s is %s %s, with %d effects", s.id, s.final.State, s.final.Outcome, n)
		}
	}
	contiguous(p.t, w.all(), p.session, p.cursor)
	p.history()
	for version := 1; version <= 2; version++ {
		p.replay(version)
	}
}
