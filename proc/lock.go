package proc

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// FileLock is a held lock. It is released by Unlock or by the end of the
// process, however that comes; the file stays.
type FileLock struct {
	f    *os.File
	path string
}

// Lock takes the exclusive lock of the file path without waiting. The file is
// made 0600 when absent, and must be a regular file of this user that nobody
// else may open; links are refused. An empty directory in its place, as left
// by programs that lock with mkdir, is removed.
//
// The holder's pid is written into it, for messages only.
//
// Errors: ReasonConflict when another process (or another FileLock of this
// one) holds it, with data "pid" when known; ReasonBlocked when the file is not
// safe to use.
func Lock(path string) (*FileLock, error) { return lockNote(path, "") }

// lockNote is Lock with a second line in the file, for messages.
func lockNote(path, note string) (*FileLock, error) {
	f, err := openLocked(path)
	if err != nil {
		return nil, err
	}
	l := &FileLock{f: f, path: path}
	text := strconv.Itoa(os.Getpid()) + "\n"
	if note != "" {
		text += note + "\n"
	}
	// A failed write (full disk) costs a message its pid, and nothing else.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(text), 0)
	}
	return l, nil
}

// Unlock releases the lock. A second call does nothing.
func (l *FileLock) Unlock() error {
	if l == nil || l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	return f.Close()
}

// readHolder reads what a holder wrote about itself: hearsay, for messages.
func readHolder(f *os.File) (pid int, note string) {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	first, rest, _ := strings.Cut(string(b), "\n")
	note, _, _ = strings.Cut(rest, "\n")
	pid, _ = strconv.Atoi(strings.TrimSpace(first))
	if pid < 0 {
		pid = 0
	}
	return pid, strings.TrimSpace(note)
}

func heldError(f *os.File, path string) error {
	pid, note := readHolder(f)
	if pid == 0 {
		return conflict("%s is held by another process", path)
	}
	if note != "" {
		note = " at " + strconv.Quote(note)
	}
	return conflict("%s is held by another process (pid %d%s)", path, pid, note).With("pid", pid)
}
