//go:build unix

package config

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gladhand"
)

// A link, as dotfile managers make them, stays one; its target is changed.
func TestLinkedFile(t *testing.T) {
	d := t.TempDir()
	must(t, os.MkdirAll(d+"/dotfiles", 0o755))
	must(t, os.WriteFile(d+"/dotfiles/c", []byte("{}"), 0o640))
	must(t, os.Symlink("dotfiles/c", d+"/link"))
	f, err := Open(d + "/link")
	must(t, err)
	must(t, set(f, "mode", `"plan"`))
	if to, err := os.Readlink(d + "/link"); err != nil || to != "dotfiles/c" {
		t.Errorf("the link is gone: %s %v", to, err)
	}
	fi, err := os.Lstat(d + "/dotfiles/c")
	if err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	if again, err := Open(d + "/dotfiles/c"); err != nil || again.Settings().Mode != "plan" {
		t.Errorf("%v", err)
	}

	must(t, os.Symlink("nowhere/c", d+"/dangling"))
	f, err = Open(d + "/dangling")
	must(t, err)
	wantReason(t, set(f, "mode", `"plan"`), gladhand.ReasonUnavailable)
}

func TestModes(t *testing.T) {
	d := t.TempDir()
	f, err := Open(d + "/new/c")
	must(t, err)
	must(t, set(f, "mode", `"plan"`))
	for p, want := range map[string]os.FileMode{"/new": 0o700, "/new/c": 0o600} {
		if fi, _ := os.Stat(d + p); fi.Mode().Perm() != want {
			t.Errorf("%s: %v", p, fi.Mode())
		}
	}
	entries, _ := os.ReadDir(d + "/new")
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	// What a crash left of an earlier change is in nobody's way, be it a link.
	must(t, os.WriteFile(d+"/victim", []byte("precious"), 0o600))
	must(t, os.Symlink(d+"/victim", d+"/new/c.new"))
	must(t, set(f, "mode", `"plan"`))
	if b, _ := os.ReadFile(d + "/victim"); string(b) != "precious" {
		t.Error("the victim was written to")
	}
}

func TestNoRegularFile(t *testing.T) {
	d := t.TempDir()
	must(t, syscall.Mkfifo(d+"/fifo", 0o600))
	_, err := Open(d + "/fifo")
	wantReason(t, err, gladhand.ReasonInvalid)
	_, err = Open(d)
	wantReason(t, err, gladhand.ReasonInvalid)
	must(t, os.WriteFile(d+"/file", nil, 0o600))
	_, err = Open(d + "/file/c")
	wantReason(t, err, gladhand.ReasonUnavailable)
	_, err = Open("")
	wantReason(t, err, gladhand.ReasonInvalid)
}

func TestWaitsForAnotherProcess(t *testing.T) {
	f := open(t, "{}")
	d, err := os.Open(filepath.Dir(f.Path()))
	must(t, err)
	defer d.Close()
	must(t, unix.Flock(int(d.Fd()), unix.LOCK_EX))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantReason(t, f.Set(ctx, "mode", []byte(`"plan"`)), gladhand.ReasonConflict)
	done := make(chan error)
	go func() { done <- set(f, "mode", `"plan"`) }()
	runtime.Gosched()
	must(t, d.Close())
	must(t, <-done)
}
