package interop

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
)

// The command line that acpx is given as its agent.
const agentCommand = "gladhand acp"

// acpx runs it and returns what it printed on standard output and its exit status.
func (h *home) acpx(args ...string) (string, int) {
	h.t.Helper()
	out, code := h.startACPX(args...)()
	h.t.Logf("acpx %s: %d\n%s", strings.Join(args, " "), code, out)
	return out, code
}

// startACPX starts it; the result waits for its end.
func (h *home) startACPX(args ...string) func() (string, int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	args = append([]string{filepath.Join(clients, "acpx", "dist", "cli.js"), "--ttl", "30", "--agent", agentCommand}, args...)
	cmd := h.start(ctx, node, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	return func() (string, int) {
		h.t.Helper()
		defer cancel()
		err := cmd.Wait()
		var exit *exec.ExitError
		if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
			h.t.Fatalf("acpx: %v %v\n%s%s", ctx.Err(), err, stdout.String(), stderr.String())
		}
		return stdout.String(), cmd.ProcessState.ExitCode()
	}
}

// acpxSession makes a session of acpx's, and ends it and its owner's process with
// the test.
func (h *home) acpxSession() gladhand.SessionID {
	h.t.Helper()
	out, code := h.acpx("sessions", "new")
	if code != 0 {
		h.t.Fatal("acpx could not make a session")
	}
	h.t.Cleanup(func() {
		if _, code := h.acpx("sessions", "close"); code != 0 {
			h.t.Error("acpx could not close its session")
		}
	})
	return gladhand.SessionID(strings.TrimSpace(out))
}

func exists(h *home, name string) bool {
	_, err := os.Stat(filepath.Join(h.cwd, name))
	return err == nil
}

// One prompt each in a session of its own; permissions are given and refused.
func TestACPXExec(t *testing.T) {
	needClients(t)
	t.Parallel()
	h := newHome(t)
	if out, code := h.acpx("exec", "read go.mod and tell me the module name"); code != 0 || !strings.Contains(out, "example.com/interop") {
		t.Errorf("%d", code)
	}
	if _, code := h.acpx("--deny-all", "exec", "run touch denied"); code != 5 || exists(h, "denied") {
		t.Errorf("denied: %d, the file is there: %v", code, exists(h, "denied"))
	}
	if out, code := h.acpx("--approve-all", "exec", "run touch approved"); code != 0 || !exists(h, "approved") || !strings.Contains(out, "end_turn") {
		t.Errorf("approved: %d, the file is there: %v", code, exists(h, "approved"))
	}
	if list := h.sessions(); len(list) != 3 {
		t.Errorf("there are %d sessions", len(list))
	}
}

// A session that lasts: prompts wait while one runs, go on in order, and a later
// acpx takes the session up again.
func TestACPXQueue(t *testing.T) {
	needClients(t)
	t.Parallel()
	h := newHome(t)
	id := h.acpxSession()
	first := h.startACPX("prompt", "count to 90 slowly")
	h.state(gladhand.StateRunning)
	out, code := h.acpx("prompt", "--no-wait", "say queued")
	if code != 0 || !strings.Contains(out, "[queued]") {
		t.Errorf("a prompt that does not wait: %d", code)
	}
	if s := h.state(gladhand.StateRunning); s.ID != id {
		t.Errorf("%s runs, not %s", s.ID, id)
	}
	if out, code := first(); code != 0 || !strings.Contains(out, "89 90") {
		t.Errorf("the first prompt: %d\n%s", code, out)
	}
	if out, code := h.acpx("prompt", "say third"); code != 0 || !strings.Contains(out, "third") {
		t.Errorf("the third prompt: %d", code)
	}
	h.state(gladhand.StateIdle)
	transcript, at := h.gladhand("show", string(id), "--transcript"), -1
	for _, part := range []string{"count to 90", "89 90", "say queued", "say third"} {
		i := strings.Index(transcript, part)
		if i <= at {
			t.Errorf("%q is not where it should be in\n%s", part, transcript)
		}
		at = i
	}
	if out, code := h.acpx("sessions", "list"); code != 0 || !strings.Contains(out, string(id)) {
		t.Errorf("the list: %d", code)
	}
	if called(t, h.record, acp.MethodSessionList) == 0 {
		t.Error("acpx listed from its own records")
	}
	if called(t, h.record, acp.MethodSessionResume)+called(t, h.record, acp.MethodSessionLoad) == 0 {
		t.Error("acpx did not take its session up again")
	}
}

// acpx cancels the prompt of another acpx.
func TestACPXCancel(t *testing.T) {
	needClients(t)
	t.Parallel()
	h := newHome(t)
	id := h.acpxSession()
	running := h.startACPX("--format", "json", "prompt", "count to 1000 slowly")
	h.state(gladhand.StateRunning)
	if out, code := h.acpx("cancel"); code != 0 || !strings.Contains(out, "cancel requested") {
		t.Errorf("cancel: %d", code)
	}
	if out, _ := running(); !strings.Contains(out, `"stopReason":"cancelled"`) {
		t.Errorf("the prompt said\n%s", out)
	}
	if s := h.state(gladhand.StateIdle); s.ID != id {
		t.Errorf("%s is idle, not %s", s.ID, id)
	}
	if called(t, h.record, acp.MethodSessionCancel) != 1 {
		t.Error("there was no session/cancel")
	}
	if out, code := h.acpx("prompt", "say on"); code != 0 || !strings.Contains(out, "on") {
		t.Errorf("after the cancel: %d", code)
	}
}
