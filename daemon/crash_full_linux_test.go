package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gladhand"
	"gladhand/proc"
)

// tmpfsEnv is set where the test runs again as root of namespaces of its own.
const tmpfsEnv = "GLADHAND_CRASH_TMPFS"

// A disk that is really full, round after round: prompts are refused with
// disk_full, at once and not in silence; whoever reads is still served; a second
// start says what is wrong; with space again the open daemon goes on, and after a
// kill the history is exactly what was acknowledged. R163, R164.
func TestFullDisk(t *testing.T) {
	if base := os.Getenv(tmpfsEnv); base != "" {
		fullDisk(t, base)
		return
	}
	base, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v", fmt.Sprint("-long=", *long))
	cmd.Env = append(os.Environ(), tmpfsEnv+"="+base)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), strings.Contains(string(out), cannotMount):
		t.Skipf("namespaces or mounts are not allowed here, so no disk is filled: %v", err)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	}
	t.Logf("%s", out)
}

const cannotMount = "a small file system cannot be mounted"

func fullDisk(t *testing.T, base string) {
	if err := syscall.Mount("tmpfs", base, "tmpfs", 0, "size=4m,mode=700"); err != nil {
		t.Skip(cannotMount, err)
	}
	v := newVictimIn(t, base)
	filler := filepath.Join(base, "filler")
	w := v.run()
	p := &point{v: v, t: t, session: w.newSession(v.cwd)}
	w.attach(p.session, 0)
	n := 0
	// put sends a prompt that says something, and keeps it when it is taken.
	put := func() error {
		n++
		s := &sent{id: fmt.Sprint("f", n), text: "say " + strings.Repeat("x", 3000)}
		r, err := w.prompt(p.session, s.id, s.text)
		if err == nil {
			s.receipt = &r
			p.prompts = append(p.prompts, s)
		}
		return err
	}
	for round := range times(3, 12) {
		if err := put(); err != nil {
			t.Fatalf("round %d, with space: %v", round, err)
		}
		w.turnEnd(p.prompts[len(p.prompts)-1].id)
		fill(filler)
		var err error
		for range 3000 { // the write-ahead log has room of its own at first
			if err = put(); err == nil {
				continue
			}
			if gladhand.ReasonOf(err) == gladhand.ReasonDiskFull {
				break
			}
			if gladhand.ReasonOf(err) != gladhand.ReasonQueueFull {
				t.Fatalf("round %d, full: %v", round, err)
			}
			// Its turns cannot go on when the disk is full: then health says so.
			var st gladhand.StatusResult
			w.mustCall(gladhand.MethodStatus, `{}`, &st)
			if strings.Contains(st.Store, "disk is full") {
				break
			}
		}
		if !strings.Contains(fmt.Sprint(err), "disk is full") && gladhand.ReasonOf(err) != gladhand.ReasonQueueFull {
			t.Fatalf("round %d, full: %v", round, err)
		}
		t.Logf("round %d: %d prompts taken; the next: %v", round, len(p.prompts), err)
		p.readWhileFull(filler)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		// By itself: the queue empties, and prompts are taken again.
		w.turnEnd(p.prompts[len(p.prompts)-1].id)
		if !v.every(func() bool { return put() == nil }) {
			t.Fatalf("round %d: with space again no prompt is taken", round)
		}
	}
	w.turnEnd(p.prompts[len(p.prompts)-1].id)
	v.kill()
	p.before = w.drained()
	p.cursor = contiguous(t, p.before, p.session, 0)
	w = v.run()
	w.attach(p.session, p.cursor)
	for _, s := range p.prompts {
		r, err := w.prompt(p.session, s.id, s.text)
		if err != nil || r.State != gladhand.PromptDone || r.Seq != s.receipt.Seq {
			t.Errorf("%s: %+v %v, was acknowledged as %d", s.id, r, err, s.receipt.Seq)
		}
	}
	p.history()
	for version := 1; version <= 2; version++ {
		p.replay(version)
	}
}

// readWhileFull looks at everything that needs no space.
func (p *point) readWhileFull(filler string) {
	p.t.Helper()
	fill(filler) // what rolling back has freed
	w := p.v.connect(2)
	defer w.close()
	for method, params := range map[string]string{
		gladhand.MethodSessions: `{"all":true}`,
		gladhand.MethodShow:     fmt.Sprintf(`{"sessionId":%q}`, p.session),
		gladhand.MethodEvents:   fmt.Sprintf(`{"sessionId":%q,"after":0}`, p.session),
		gladhand.MethodAttach:   fmt.Sprintf(`{"sessionId":%q,"after":0}`, p.session),
	} {
		if raw, err := w.call(method, params); err != nil || len(raw) < 10 {
			p.t.Errorf("%s on a full disk: %s %v", method, raw, err)
		}
	}
	elsewhere := filepath.Join(filepath.Dir(p.v.dir), "e")
	place, err := proc.Locate(elsewhere, "", func(string) string { return "" })
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	cancel() // should it start, it ends
	if err := Run(ctx, Options{Place: place, Config: filepath.Join(elsewhere, "config.jsonc")}); gladhand.ReasonOf(err) != gladhand.ReasonDiskFull {
		p.t.Errorf("a start on a full disk: %v", err)
	}
}

// fill takes all the space there is.
func fill(path string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		b := make([]byte, size)
		for {
			if n, err := f.Write(b); err != nil || n < size {
				break
			}
		}
	}
}
