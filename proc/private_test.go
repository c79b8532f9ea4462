//go:build unix

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gladhand"
)

func getsid() (int, error) { return unix.Getsid(0) }

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	fi, err := os.Lstat(path)
	must(t, err)
	return fi.Mode().Perm()
}

func TestPrepareDir(t *testing.T) {
	d := shortDir(t)
	must(t, PrepareDir(d+"/a/b/c"))
	for _, p := range []string{"/a", "/a/b", "/a/b/c"} {
		if m := modeOf(t, d+p); m != 0o700 {
			t.Errorf("%s: %o", p, m)
		}
	}
	must(t, PrepareDir(d+"/a/b/c"))

	must(t, os.Mkdir(d+"/loose", 0o755), PrepareDir(d+"/loose"))
	if m := modeOf(t, d+"/loose"); m != 0o700 {
		t.Errorf("our own loose directory stays %o", m)
	}
	must(t, os.WriteFile(d+"/file", nil, 0o600))
	wantReason(t, PrepareDir(d+"/file"), gladhand.ReasonBlocked)
	wantReason(t, PrepareDir(d+"/file/below"), gladhand.ReasonUnavailable)
}

func TestPrepareDirUnderWhatAnybodyMayRename(t *testing.T) {
	d := shortDir(t)
	must(t, os.Mkdir(d+"/open", 0o777), os.Chmod(d+"/open", 0o777))
	wantReason(t, PrepareDir(d+"/open/data"), gladhand.ReasonBlocked)
	must(t, os.Chmod(d+"/open", 0o777|os.ModeSticky), PrepareDir(d+"/open/data"))
}

// R101: a link that somebody placed there is refused, its target untouched.
func TestLinksAreRefused(t *testing.T) {
	d := shortDir(t)
	victim := d + "/victim"
	must(t, os.WriteFile(victim, []byte("precious"), 0o600), os.Mkdir(d+"/victims", 0o755))

	must(t, os.Symlink(d+"/victims", d+"/data"))
	_, err := Listen(Place{d + "/data", d + "/data/daemon.sock"})
	wantReason(t, err, gladhand.ReasonBlocked)
	if m := modeOf(t, d+"/victims"); m != 0o755 {
		t.Errorf("the target's mode became %o", m)
	}
	for _, name := range []string{"daemon.lock", "daemon.sock"} {
		for i, link := range []func(string, string) error{os.Symlink, os.Link} {
			dir := fmt.Sprintf("%s/%s%d", d, name, i)
			must(t, os.Mkdir(dir, 0o700), link(victim, dir+"/"+name))
			_, err := Listen(Place{dir, dir + "/daemon.sock"})
			wantReason(t, err, gladhand.ReasonBlocked)
			if _, err := os.Lstat(dir + "/" + name); err != nil {
				t.Errorf("%s was removed", name)
			}
		}
	}
	must(t, os.Symlink(victim, d+"/log"))
	_, err = StartDaemon(nil, d+"/log", nil)
	wantReason(t, err, gladhand.ReasonBlocked)
	if b, _ := os.ReadFile(victim); string(b) != "precious" || modeOf(t, victim) != 0o600 {
		t.Errorf("the victim is now %q, %o", b, modeOf(t, victim))
	}
}

func TestWhatOthersOwnIsRefused(t *testing.T) {
	asRoot(t)
	d := shortDir(t)
	must(t, os.Mkdir(d+"/theirs", 0o700), os.Chown(d+"/theirs", nobody, nobody))
	wantReason(t, PrepareDir(d+"/theirs"), gladhand.ReasonBlocked)

	must(t, os.WriteFile(d+"/lock", nil, 0o600), os.Chown(d+"/lock", nobody, nobody))
	_, err := Lock(d + "/lock")
	wantReason(t, err, gladhand.ReasonBlocked)

	_, err = Listen(Place{d + "/data", d + "/theirs/s"})
	wantReason(t, err, gladhand.ReasonBlocked)
}

func TestLock(t *testing.T) {
	d := shortDir(t)
	path := d + "/lock"
	a, err := Lock(path)
	must(t, err)
	_, err = Lock(path)
	wantReason(t, err, gladhand.ReasonConflict)
	if pid := err.(*gladhand.Error).Data["pid"]; pid != os.Getpid() {
		t.Errorf("pid %v", pid)
	}
	must(t, a.Unlock(), a.Unlock())
	b, err := Lock(path)
	must(t, err)
	// Its name removed, the lock of the old file locks nobody out; ours of the
	// new one must not be taken for it.
	must(t, os.Remove(path))
	c, err := Lock(path)
	must(t, err)
	must(t, b.Unlock())
	_, err = Lock(path)
	wantReason(t, err, gladhand.ReasonConflict)
	must(t, c.Unlock())
}

func TestLockRefusesLooseAndOddFiles(t *testing.T) {
	d := shortDir(t)
	must(t, os.WriteFile(d+"/loose", []byte("kept"), 0o600), os.Chmod(d+"/loose", 0o644))
	_, err := Lock(d + "/loose")
	wantReason(t, err, gladhand.ReasonBlocked)
	if b, _ := os.ReadFile(d + "/loose"); string(b) != "kept" {
		t.Errorf("written to: %q", b)
	}
	must(t, syscall.Mkfifo(d+"/fifo", 0o600))
	_, err = Lock(d + "/fifo")
	wantReason(t, err, gladhand.ReasonBlocked)
	must(t, os.MkdirAll(d+"/full/pid", 0o700)) // R093: loud, not a wait for ever
	_, err = Lock(d + "/full")
	wantReason(t, err, gladhand.ReasonBlocked)
}

// R083, R091, R084: what a crash left in the lock's place stops no start, and
// the innocent bearer of a pid in it is left alone.
func TestLeftoversOfACrash(t *testing.T) {
	innocent := exec.Command("sleep", "300")
	must(t, innocent.Start())
	defer func() { _ = innocent.Process.Kill(); _ = innocent.Wait() }()
	for name, leave := range map[string]func(lock string) error{
		"pid of an innocent": func(lock string) error {
			return os.WriteFile(lock, fmt.Appendln(nil, innocent.Process.Pid), 0o600)
		},
		"empty file":      func(lock string) error { return os.WriteFile(lock, nil, 0o600) },
		"garbage":         func(lock string) error { return os.WriteFile(lock, []byte("\x00\xff{"), 0o600) },
		"empty directory": func(lock string) error { return os.Mkdir(lock, 0o700) },
		"huge file":       func(lock string) error { return os.WriteFile(lock, make([]byte, 1<<20), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			d := shortDir(t)
			must(t, leave(filepath.Join(d, "daemon.lock")))
			l, err := Listen(Place{d, d + "/daemon.sock"})
			must(t, err)
			b, _ := os.ReadFile(filepath.Join(d, "daemon.lock"))
			if !strings.HasPrefix(string(b), fmt.Sprintf("%d\n", os.Getpid())) || len(b) > 300 {
				t.Errorf("the lock says %.80q", b)
			}
			must(t, l.Close())
		})
	}
	if err := innocent.Process.Signal(syscall.Signal(0)); err != nil {
		t.Error("the innocent process was ended")
	}
}
