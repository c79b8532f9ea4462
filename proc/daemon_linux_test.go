package proc

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// fdsOnly012 fails unless the descriptors are 0, 1 and 2.
func fdsOnly012(t *testing.T, fds map[string]string) {
	t.Helper()
	for _, n := range []string{"0", "1", "2"} {
		if _, ok := fds[n]; !ok {
			t.Errorf("descriptor %s is closed", n)
		}
	}
	if len(fds) != 3 {
		t.Errorf("descriptors: %v", fds)
	}
}

// leaky gives the process three descriptors that it did not open itself and
// that are not close-on-exec.
func leaky(t *testing.T, cmd *exec.Cmd) {
	f, err := os.Open("/etc/passwd")
	must(t, err)
	t.Cleanup(func() { f.Close() })
	cmd.ExtraFiles = []*os.File{f, f, f}
}

// A daemon is detached whole, and starts although the program that starts it
// has been removed, as `go run` does. R229.
func TestStartDaemon(t *testing.T) {
	d := shortDir(t)
	report, log := d+"/report", d+"/log"
	must(t, os.WriteFile(log, []byte("earlier\n"), 0o600))
	exe := copyOfSelf(t)
	cmd := exec.Command(exe)
	leaky(t, cmd)
	r := play(t, cmd, "spawner", report, log)
	said := r.line()
	r.end()
	b, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("%v; it said %s", err, said)
	}
	var got daemonReport
	must(t, json.Unmarshal(b, &got))
	if said != fmt.Sprintf("%d <nil>", got.PID) {
		t.Errorf("pid %d, StartDaemon said %s", got.PID, said)
	}
	if got.Session != got.PID {
		t.Errorf("session %d of pid %d: not its own", got.Session, got.PID)
	}
	if got.Cwd != "/" {
		t.Errorf("cwd %s", got.Cwd)
	}
	if want := []string{"gladhand", "daemon", report}; !slices.Equal(got.Args, want) {
		t.Errorf("args %q", got.Args)
	}
	fdsOnly012(t, got.FDs)
	if got.FDs["0"] != "/dev/null" || got.FDs["1"] != "/dev/null" || got.FDs["2"] != log {
		t.Errorf("descriptors: %v", got.FDs)
	}
	if !strings.HasPrefix(got.Exe, exe) || !strings.HasSuffix(got.Exe, "(deleted)") {
		t.Errorf("program %s: the test shows nothing", got.Exe)
	}
	for _, kv := range got.Env {
		if strings.HasPrefix(kv, "NOTIFY_SOCKET=") {
			t.Error(kv)
		}
	}
	if !slices.ContainsFunc(got.Env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") }) {
		t.Error("the environment is lost")
	}
	if b, _ := os.ReadFile(log); string(b) != "earlier\na line for the log\n" || modeOf(t, log) != 0o600 {
		t.Errorf("log %q, %o", b, modeOf(t, log))
	}
}

// R229: what a command gets are 0, 1 and 2, also when we inherited more.
func TestCommandDescriptors(t *testing.T) {
	cmd := exec.Command(self(t))
	leaky(t, cmd)
	r := play(t, cmd, "sleeper")
	s := r.line()
	var fds map[string]string
	if err := json.Unmarshal([]byte(s), &fds); err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	fdsOnly012(t, fds)
}
