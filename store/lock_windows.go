package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gladhand"

	"golang.org/x/sys/windows"
)

// dirLock makes a process the only owner of a directory. The locked byte lies
// far behind the file's end: locks on Windows keep others from reading, and the
// note at its beginning is for them.
type dirLock struct{ f *os.File }

const lockOffsetHigh = 1 << 30

func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, lockName)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, unsafe("%s is not a regular file; remove it", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{OffsetHigh: lockOffsetHigh})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		err = owned(f, dir)
		_ = f.Close()
		return nil, err
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &dirLock{f}, nil
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

// checkDir refuses what is not a directory. Who may write in it is inherited
// from the user's profile.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return unsafe("%s is not a directory; choose another with --data-dir", dir)
	}
	return nil
}
