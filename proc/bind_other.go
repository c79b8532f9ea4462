//go:build unix && !linux

package proc

import (
	"net"
	"sync"
	"syscall"
)

var umaskMu sync.Mutex

// listenPrivate binds a socket that is 0600 from the first moment. The umask is
// the whole process's, for the length of one bind: what other goroutines make
// meanwhile is at worst too private.
func listenPrivate(path string) (*net.UnixListener, error) {
	umaskMu.Lock()
	defer umaskMu.Unlock()
	old := syscall.Umask(0o177)
	defer syscall.Umask(old)
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}
