package proc

import (
	"context"
	"net"
	"syscall"
)

// listenPrivate binds a socket that is 0600 from the first moment: on Linux a
// socket's own mode, set before the bind, is that of its file. (umask would do
// too, but is the whole process's.)
func listenPrivate(path string) (*net.UnixListener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), 0o600) }); cerr != nil {
			return cerr
		}
		return err
	}}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}
