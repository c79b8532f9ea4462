//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"gladhand"

	"golang.org/x/sys/unix"
)

// dirLock makes a process the only owner of a directory: an flock, which ends
// with the process however it ends. What the file says is only for people.
type dirLock struct{ f *os.File }

func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK) {
		return nil, unsafe("%s is a symbolic link; remove it", path)
	}
	if err != nil {
		return nil, err
	}
	if err := takeLock(f, path); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &dirLock{f}, nil
}

func takeLock(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return unsafe("%s is not a regular file; remove it", path)
	case st != nil && int(st.Uid) != os.Geteuid():
		return unsafe("%s belongs to another user (uid %d); remove it", path, st.Uid)
	case info.Mode().Perm()&0o077 != 0:
		return unsafe("%s may be used by other users (mode %#o); remove it", path, info.Mode().Perm())
	}
	// The umask may have taken bits that the next owner needs.
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return owned(f, filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	// Somebody may have removed the file meanwhile; a lock on a file that no
	// other can open is none.
	now, err := os.Lstat(path)
	if err != nil || !os.SameFile(now, info) {
		return unsafe("%s changed while it was being locked; try again", path)
	}
	// A full disk must not keep the store from opening for want of a note.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return nil
}

// owned is the error of the second owner.
func owned(f io.Reader, dir string) error {
	note, _ := io.ReadAll(io.LimitReader(f, 32))
	pid, err := strconv.Atoi(strings.TrimSpace(string(note)))
	if err != nil {
		return gladhand.Errorf(gladhand.CodeConflict, gladhand.ReasonConflict, "another gladhand uses %s; stop it, or choose another directory with --data-dir", dir)
	}
	return gladhand.Errorf(gladhand.CodeConflict, gladhand.ReasonConflict,
		"another gladhand (pid %d) uses %s; stop it, or choose another directory with --data-dir", pid, dir).With("pid", pid)
}

func (l *dirLock) release() { _ = l.f.Close() }

// checkDir refuses a directory that others could put files into.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		return unsafe("%s is a symbolic link; name the directory itself with --data-dir", dir)
	case !info.IsDir():
		return unsafe("%s is not a directory; choose another with --data-dir", dir)
	case st != nil && int(st.Uid) != os.Geteuid():
		return unsafe("%s belongs to another user (uid %d); choose a directory of your own with --data-dir", dir, st.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return unsafe("other users may write in %s (mode %#o); run \"chmod 700 %s\"", dir, info.Mode().Perm(), dir)
	}
	return nil
}
