//go:build unix

package daemon

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gladhand"
	"gladhand/proc"
	"gladhand/store"
)

// exited checks how the daemon ended.
func (v *victim) exited(code int) {
	v.t.Helper()
	v.wait()
	if got := v.cmd.ProcessState.ExitCode(); got != code {
		v.t.Fatalf("the daemon ended with %v, want %d", v.cmd.ProcessState, code)
	}
}

// SIGTERM lets the running turn go on to its end, keeps what waits, and leaves
// nothing behind that hinders the next start; nothing of it is an interruption.
func TestSIGTERMDrains(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	w := v.run()
	for i := range times(2, 20) {
		p := begin(v, w, fmt.Sprint("t", i), "work", "work", "work")
		for _, s := range p.prompts { // accepted, all of them
			if m, ok := w.response(s.request); !ok || m.Error != nil {
				t.Fatalf("%s: %v", s.id, m.Error)
			}
		}
		if err := v.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		v.exited(0)
		if _, err := os.Lstat(v.place.Endpoint); !os.IsNotExist(err) {
			t.Errorf("the socket was left behind (%v)", err)
		}
		p.died(w)
		for _, m := range p.before {
			if tagOf(m) == gladhand.TagTurnEnd && updateOf[gladhand.TurnUpdate](t, m).StopReason != gladhand.StopEndTurn {
				t.Errorf("a turn was not let go on: %s", m.Params)
			}
		}
		w = v.run()
		p.check(w)
		for _, s := range p.prompts {
			if s.final.Outcome != gladhand.Completed {
				t.Errorf("%s is %+v", s.id, s.final)
			}
		}
		if t.Failed() {
			t.Fatalf("stop %d", i)
		}
	}
}

// A turn that goes on for longer is cancelled, and the daemon ends all the same;
// what waits behind it runs in the next one.
func TestStopCancelsWhatGoesOn(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	w := v.run()
	p := begin(v, w, "c", "hold", "work")
	w.find(0, func(m message) bool { return strings.Contains(string(m.Params), "holding") })
	w.mustCall(gladhand.MethodStop, `{"drainMs":50}`, nil)
	v.exited(0)
	p.died(w)
	w = v.run()
	w.attach(p.session, p.cursor)
	if end := w.turnEnd("c-p2"); end.StopReason != gladhand.StopEndTurn {
		t.Errorf("the waiting prompt's turn: %+v", end)
	}
	for id, want := range map[string]gladhand.Receipt{
		"c-p1": {State: gladhand.PromptDone, Outcome: gladhand.Cancelled},
		"c-p2": {State: gladhand.PromptDone, Outcome: gladhand.Completed},
	} {
		text := map[string]string{"c-p1": "hold", "c-p2": "work"}[id]
		if r, err := w.prompt(p.session, id, text); err != nil || r.State != want.State || r.Outcome != want.Outcome {
			t.Errorf("%s: %+v %v", id, r, err)
		}
	}
	contiguous(t, w.all(), p.session, p.cursor)
	p.prompts = slices.Clip(p.prompts)
	p.history()
}

// After a SIGKILL, with the socket left behind, the very first start works. R085,
// R087, R057.
func TestStartAfterKill(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	for i := range 20 {
		v.start()
		w := v.connect(1)
		var st gladhand.StatusResult
		w.mustCall(gladhand.MethodStatus, `{}`, &st)
		if st.PID != v.cmd.Process.Pid {
			t.Fatalf("start %d: pid %d answers, %d was started", i, st.PID, v.cmd.Process.Pid)
		}
		v.kill()
		if _, err := os.Lstat(v.place.Endpoint); err != nil {
			t.Fatalf("the socket should be left behind: %v", err)
		}
	}
}

// A second daemon on a data directory ends with an error that names the first,
// which is not disturbed. R065, R088.
func TestSecondDaemon(t *testing.T) {
	t.Parallel()
	first := newVictim(t)
	w := first.run()
	p := begin(first, w, "d", "work")
	second := *first
	second.start()
	second.exited(1)
	if log, want := second.log(), fmt.Sprintf("pid %d", first.cmd.Process.Pid); !strings.Contains(log, want) || !strings.Contains(log, first.dir) {
		t.Errorf("the second says\n%s\nwithout %q", log, want)
	}
	// Even with another endpoint, and past that lock: the store has its own.
	elsewhere := proc.Place{DataDir: first.dir, Endpoint: first.place.Endpoint + "2"}
	err := Run(t.Context(), Options{Place: elsewhere, Config: first.dir + "/config.jsonc"})
	if gladhand.ReasonOf(err) != gladhand.ReasonConflict {
		t.Errorf("a second daemon with its own endpoint: %v", err)
	}
	if _, err := store.Open(context.Background(), first.dir, store.Options{}); gladhand.ReasonOf(err) != gladhand.ReasonConflict ||
		!strings.Contains(err.Error(), fmt.Sprint(first.cmd.Process.Pid)) {
		t.Errorf("a second store: %v", err)
	}
	w.turnEnd(p.prompts[0].id)
	if r, err := w.prompt(p.session, "d-p2", "work"); err != nil || r.Prompt != "d-p2" {
		t.Errorf("the first daemon: %+v %v", r, err)
	}
	w.turnEnd("d-p2")
}
