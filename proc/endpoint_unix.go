//go:build unix

package proc

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"gladhand"
)

// probeTime is how long a start waits for an existing socket to take a
// connection. Who is slower than that is alive: a dead one refuses at once.
const probeTime = 2 * time.Second

// Listen makes p's directories, takes its locks, removes a socket that nobody
// listens on, and binds, mode 0600. The locks are held until the listener is
// closed or the process ends. Close removes the socket only while it is the one
// that Listen made.
//
// Accepted connections are of any user that reached the socket: ask [Peer] and
// [SameUser] about each.
//
// Errors: ReasonConflict when a daemon serves this data directory or endpoint,
// with data "pid" when known; ReasonBlocked when a directory, lock or socket is
// not safely ours; ReasonInvalid for a path over [MaxSocketPath].
func Listen(p Place) (net.Listener, error) {
	if len(p.Endpoint) > MaxSocketPath {
		return nil, invalid("the socket path %s is over %d bytes: choose a shorter one with --socket", p.Endpoint, MaxSocketPath)
	}
	if err := PrepareDir(p.DataDir); err != nil {
		return nil, err
	}
	l := &listener{path: p.Endpoint}
	ok := false
	defer func() {
		if !ok {
			l.unlock()
		}
	}()
	lock, err := lockDaemon(p)
	if err != nil {
		return nil, err
	}
	l.locks = append(l.locks, lock)
	if filepath.Dir(p.Endpoint) != p.DataDir {
		// Another data directory's daemon may have been given the same endpoint.
		if err := checkSocketDir(filepath.Dir(p.Endpoint)); err != nil {
			return nil, err
		}
		lock, err := lockNote(p.Endpoint+".lock", p.DataDir)
		var e *gladhand.Error
		if errors.As(err, &e) && e.Reason == gladhand.ReasonConflict {
			return nil, serving(p.Endpoint, e)
		} else if err != nil {
			return nil, err
		}
		l.locks = append(l.locks, lock)
	}
	if err := clearStale(p.Endpoint); err != nil {
		return nil, err
	}
	if err := l.bind(); err != nil {
		return nil, err
	}
	ok = true
	return l, nil
}

// clearStale removes the socket at path when nobody listens on it. The caller
// holds the lock, so nobody of ours binds meanwhile.
func clearStale(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failed(err, "the endpoint %s cannot be examined", path)
	}
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return blocked("the endpoint %s is a symbolic link: remove it", path)
	case fi.Mode()&fs.ModeSocket == 0:
		return blocked("the endpoint %s exists and is not a socket: remove it, or choose another with --socket", path)
	case ownerOf(fi) != os.Geteuid():
		return blocked("the socket %s belongs to user %d: choose another with --socket", path, ownerOf(fi))
	}
	c, err := net.DialTimeout("unix", path, probeTime)
	switch {
	case err == nil:
		id, _ := Peer(c)
		c.Close()
		if id.PID > 0 {
			return conflict("a daemon already serves %s (pid %d)", path, id.PID).With("pid", id.PID)
		}
		return conflict("a daemon already serves %s", path)
	case errors.Is(err, syscall.ENOENT):
		return nil
	case !errors.Is(err, syscall.ECONNREFUSED):
		return conflict("the socket %s is not answering (%w), but somebody may hold it: end that process, then remove the file", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(err, "the stale socket %s cannot be removed", path)
	}
	return nil
}

type listener struct {
	*net.UnixListener
	path  string
	made  os.FileInfo // the socket that bind made
	locks []*FileLock
	once  sync.Once
	err   error
}

func (l *listener) bind() error {
	nl, err := listenPrivate(l.path)
	if err != nil {
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return conflict("the endpoint %s was taken meanwhile", l.path)
		case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSYS):
			return failed(err, "the file system of %s has no sockets, choose a path on another with --socket or GLADHAND_SOCKET", l.path)
		}
		return failed(err, "the endpoint %s cannot be made", l.path)
	}
	nl.SetUnlinkOnClose(false) // it would unlink a successor's socket
	if l.made, err = os.Lstat(l.path); err != nil {
		nl.Close()
		return failed(err, "the endpoint %s vanished", l.path)
	}
	if l.made.Mode().Perm()&0o077 != 0 {
		nl.Close()
		_ = os.Remove(l.path)
		return blocked("the endpoint %s is open to others (mode %04o): choose a path on another file system with --socket", l.path, l.made.Mode().Perm())
	}
	l.UnixListener = nl
	return nil
}

// Close removes the socket if it is still ours, stops listening, and only then
// lets a successor start.
func (l *listener) Close() error {
	l.once.Do(func() {
		// An inode number may be used again; its time of making too is not.
		if fi, err := os.Lstat(l.path); err == nil && os.SameFile(fi, l.made) && fi.ModTime().Equal(l.made.ModTime()) {
			_ = os.Remove(l.path)
		}
		l.err = l.UnixListener.Close()
		l.unlock()
	})
	return l.err
}

func (l *listener) unlock() {
	for _, k := range l.locks {
		_ = k.Unlock()
	}
}

// Dial connects to the daemon of p and checks that it is of our user. It does
// not wait for one to start.
//
// Errors: ReasonUnavailable when nobody listens; ReasonForbidden when the
// listener is another user's; the context's error, wrapped, when it ends first.
func Dial(ctx context.Context, p Place) (net.Conn, error) {
	if len(p.Endpoint) > MaxSocketPath {
		return nil, invalid("the socket path %s is over %d bytes: choose a shorter one with --socket", p.Endpoint, MaxSocketPath)
	}
	c, err := dialBusy(ctx, p.Endpoint)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, unavailable("the daemon at %s did not take the connection in time: %w", p.Endpoint, ctx.Err())
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, unavailable("no daemon listens at %s: %w", p.Endpoint, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, gladhand.Errorf(gladhand.CodeForbidden, gladhand.ReasonForbidden, "the daemon at %s is another user's: %w", p.Endpoint, err)
	default:
		return nil, unavailable("the daemon at %s cannot be reached: %w", p.Endpoint, err)
	}
	id, err := Peer(c)
	if err == nil && !SameUser(id) {
		err = gladhand.Errorf(gladhand.CodeForbidden, gladhand.ReasonForbidden, "the daemon at %s belongs to user %d, not to us (%d): we do not talk to it; choose another endpoint with --socket", p.Endpoint, id.UID, os.Geteuid())
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// dialBusy dials, and tries again while the listener's queue is full, which
// Linux reports at once instead of waiting.
func dialBusy(ctx context.Context, path string) (net.Conn, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if !errors.Is(err, syscall.EAGAIN) {
			return c, err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}
