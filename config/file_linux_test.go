package config

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"gladhand"
)

// as runs f on a thread that acts on files as another user; root may do
// everything, and would see no read-only directory.
func as(t *testing.T, uid int, f func()) {
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with us
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETFSUID, uintptr(uid), 0, 0); e != 0 {
			t.Error(e)
			return
		}
		f()
	}()
	<-done
}

func TestReadOnlyDirectory(t *testing.T) {
	d, err := os.MkdirTemp("/tmp", "gh")
	must(t, err)
	defer func() { _ = os.Chmod(d, 0o700); _ = os.RemoveAll(d) }()
	path := filepath.Join(d, "c")
	must(t, os.WriteFile(path, []byte("{} // x"), 0o644))
	f, err := Open(path)
	must(t, err)
	must(t, os.Chmod(d, 0o555))
	as(t, 65534, func() {
		err := set(f, "mode", `"plan"`)
		if gladhand.ReasonOf(err) != gladhand.ReasonBlocked {
			t.Error(err)
		}
		g, err := Open(filepath.Join(d, "new", "c"))
		if err != nil {
			t.Error(err)
			return
		}
		if err := set(g, "mode", `"plan"`); gladhand.ReasonOf(err) != gladhand.ReasonBlocked {
			t.Error(err)
		}
	})
	if !same(f.Settings(), Defaults()) || onDisk(t, f) != "{} // x" {
		t.Errorf("%+v %s", f.Settings(), onDisk(t, f))
	}
	must(t, os.Chmod(d, 0o755))
	must(t, os.Chmod(path, 0o000))
	as(t, 65534, func() {
		if _, err := Open(path); gladhand.ReasonOf(err) != gladhand.ReasonBlocked {
			t.Error(err)
		}
	})
}

// A full disk changes nothing.
func TestDiskFull(t *testing.T) {
	d := t.TempDir()
	if err := syscall.Mount("tmpfs", d, "tmpfs", 0, "size=8k"); err != nil {
		t.Skip("needs the right to mount")
	}
	defer func() { _ = syscall.Unmount(d, syscall.MNT_DETACH) }()
	path := filepath.Join(d, "c")
	must(t, os.WriteFile(path, []byte("{}"), 0o600))
	f, err := Open(path)
	must(t, err)
	_ = os.WriteFile(filepath.Join(d, "ballast"), make([]byte, 64<<10), 0o600)
	wantReason(t, set(f, "mode", `"plan"`), gladhand.ReasonDiskFull)
	if !same(f.Settings(), Defaults()) || onDisk(t, f) != "{}" {
		t.Errorf("%+v %s", f.Settings(), onDisk(t, f))
	}
	must(t, os.Remove(filepath.Join(d, "ballast")))
	must(t, set(f, "mode", `"plan"`))
}
