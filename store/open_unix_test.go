//go:build unix

package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gladhand"
)

func TestModes(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o777} {
		dir := filepath.Join(t.TempDir(), "deep", "data")
		if mask == 0o777 {
			// Only the last directory can be mended: those above are made by the umask.
			if err := os.Mkdir(filepath.Dir(dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		old := syscall.Umask(mask)
		s, err := Open(t.Context(), dir, Options{})
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		withSession(t, s, "a")
		firsts(t, s, "a")
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("umask %#o: directory has mode %v (%v)", mask, info.Mode(), err)
		}
		for _, name := range []string{fileName, fileName + "-wal", fileName + "-shm", lockName} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("umask %#o: %s has mode %v (%v)", mask, name, info.Mode(), err)
			}
		}
		closeStore(t, s)
	}
}

// A backup that was put back with other modes is made private again.
func TestLooseFilesAreTightened(t *testing.T) {
	dir := t.TempDir()
	closeStore(t, openIn(t, dir, Options{}))
	if err := os.Chmod(filepath.Join(dir, fileName), 0o644); err != nil {
		t.Fatal(err)
	}
	openIn(t, dir, Options{})
	if info, err := os.Stat(filepath.Join(dir, fileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
}

// Files and directories that others could have put there, or could write, are
// not used, and the message names them.
func TestUnsafePlaces(t *testing.T) {
	lock := func(dir string) string { return filepath.Join(dir, lockName) }
	db := func(dir string) string { return filepath.Join(dir, fileName) }
	foreign := func(t *testing.T, path string) error {
		if os.Geteuid() != 0 {
			t.Skip("only root can give a file away")
		}
		return os.Chown(path, 12345, -1)
	}
	write := func(path string) error { return os.WriteFile(path, nil, 0o600) }
	for name, prepare := range map[string]func(t *testing.T, dir string) error{
		"lock is a link":      func(_ *testing.T, dir string) error { return os.Symlink(filepath.Join(dir, "x"), lock(dir)) },
		"lock is a directory": func(_ *testing.T, dir string) error { return os.Mkdir(lock(dir), 0o700) },
		"lock is a pipe":      func(_ *testing.T, dir string) error { return syscall.Mkfifo(lock(dir), 0o600) },
		"lock is loose": func(_ *testing.T, dir string) error {
			return errors.Join(write(lock(dir)), os.Chmod(lock(dir), 0o666))
		},
		"lock is foreign": func(t *testing.T, dir string) error { return errors.Join(write(lock(dir)), foreign(t, lock(dir))) },
		"database is a link": func(_ *testing.T, dir string) error {
			return errors.Join(write(filepath.Join(dir, "x")), os.Symlink(filepath.Join(dir, "x"), db(dir)))
		},
		"database is a dangling link": func(_ *testing.T, dir string) error { return os.Symlink(filepath.Join(dir, "x"), db(dir)) },
		"database is a directory":     func(_ *testing.T, dir string) error { return os.Mkdir(db(dir), 0o700) },
		"directory is loose":          func(_ *testing.T, dir string) error { return os.Chmod(dir, 0o777) },
		"directory is foreign":        func(t *testing.T, dir string) error { return foreign(t, dir) },
		"directory is a link": func(_ *testing.T, dir string) error {
			return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir))
		},
		"directory is a file": func(_ *testing.T, dir string) error { return errors.Join(os.Remove(dir), write(dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := prepare(t, dir); err != nil {
				t.Fatal(err)
			}
			err := tryOpen(t, dir)
			wantReason(t, err, gladhand.CodeInternal, gladhand.ReasonUnavailable)
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("does not name the place: %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "x-wal")); err == nil {
				t.Error("wrote through the link")
			}
		})
	}
}
