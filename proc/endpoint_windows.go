package proc

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"gladhand"
)

// Listen makes p's directory, takes its lock, and makes the named pipe, open to
// this user and SYSTEM alone. The lock is held until the listener is closed or
// the process ends.
//
// Errors: ReasonConflict when a daemon serves this data directory or endpoint,
// with data "pid" when known; ReasonBlocked when directory or lock is not
// safely ours.
func Listen(p Place) (net.Listener, error) {
	if err := PrepareDir(p.DataDir); err != nil {
		return nil, err
	}
	lock, err := lockDaemon(p)
	if err != nil {
		return nil, err
	}
	user, err := currentSID()
	if err != nil {
		_ = lock.Unlock()
		return nil, failed(err, "the current user cannot be found")
	}
	l, err := winio.ListenPipe(p.Endpoint, &winio.PipeConfig{
		SecurityDescriptor: "D:P(A;;GA;;;" + user + ")(A;;GA;;;SY)",
		InputBufferSize:    64 << 10,
		OutputBufferSize:   64 << 10,
	})
	if err != nil {
		_ = lock.Unlock()
		// The first instance is made exclusively: an existing pipe denies access.
		if errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_PIPE_BUSY) {
			return nil, conflict("somebody already serves %s: %w", p.Endpoint, err)
		}
		return nil, failed(err, "the endpoint %s cannot be made", p.Endpoint)
	}
	return &listener{Listener: l, lock: lock}, nil
}

type listener struct {
	net.Listener
	lock *FileLock
	once sync.Once
	err  error
}

// Close stops listening and then lets a successor start.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.err = l.Listener.Close()
		_ = l.lock.Unlock()
	})
	return l.err
}

// dialed marks the client's end of a pipe: there the server is the peer.
type dialed struct{ net.Conn }

// Dial connects to the daemon of p and checks that it is of our user. It does
// not wait for one to start.
//
// Errors: ReasonUnavailable when nobody listens; ReasonForbidden when the
// listener is another user's; the context's error, wrapped, when it ends first.
func Dial(ctx context.Context, p Place) (net.Conn, error) {
	c, err := winio.DialPipeContext(ctx, p.Endpoint)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, unavailable("the daemon at %s did not take the connection in time: %w", p.Endpoint, ctx.Err())
	case errors.Is(err, os.ErrNotExist):
		return nil, unavailable("no daemon listens at %s: %w", p.Endpoint, err)
	case errors.Is(err, os.ErrPermission):
		return nil, gladhand.Errorf(gladhand.CodeForbidden, gladhand.ReasonForbidden, "the daemon at %s is another user's: %w", p.Endpoint, err)
	default:
		return nil, unavailable("the daemon at %s cannot be reached: %w", p.Endpoint, err)
	}
	d := dialed{c}
	id, err := Peer(d)
	if err == nil && !SameUser(id) {
		err = gladhand.Errorf(gladhand.CodeForbidden, gladhand.ReasonForbidden, "the daemon at %s belongs to another user (%s): we do not talk to it; choose another endpoint with --socket", p.Endpoint, id.SID)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return d, nil
}
