//go:build unix

package proc

import (
	"net"
	"os"
	"syscall"
)

// SameUser reports whether p is of the user this process acts for.
func SameUser(p PeerID) bool { return p.UID >= 0 && p.UID == os.Geteuid() }

// Peer asks the system who is at the other end of c, which must come from
// [Listen] or [Dial] (or be another Unix socket). The process is the one that
// connected or, seen from a client, that listened; a descriptor passed on
// later does not change it.
//
// Errors: ReasonUnsupported for a connection that is no socket.
func Peer(c net.Conn) (PeerID, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return PeerID{}, unsupportedPeer(c)
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return PeerID{}, failed(err, "the connection cannot be examined")
	}
	var id PeerID
	var perr error
	if err := rc.Control(func(fd uintptr) { id, perr = peerOf(int(fd)) }); err != nil {
		return PeerID{}, failed(err, "the connection cannot be examined")
	}
	if perr != nil {
		return PeerID{}, failed(perr, "the system does not say who is at the other end")
	}
	return id, nil
}
