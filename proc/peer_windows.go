package proc

import (
	"net"

	"golang.org/x/sys/windows"
)

// SameUser reports whether p is of the user this process acts for.
func SameUser(p PeerID) bool {
	me, err := currentSID()
	return err == nil && p.SID != "" && p.SID == me
}

// Peer asks the system who is at the other end of c, which must come from
// [Listen] or [Dial].
//
// Errors: ReasonUnsupported for a connection that is no named pipe.
func Peer(c net.Conn) (PeerID, error) {
	ask := windows.GetNamedPipeClientProcessId
	if d, ok := c.(dialed); ok {
		c, ask = d.Conn, windows.GetNamedPipeServerProcessId
	}
	h, ok := c.(interface{ Fd() uintptr })
	if !ok {
		return PeerID{}, unsupportedPeer(c)
	}
	var pid uint32
	if err := ask(windows.Handle(h.Fd()), &pid); err != nil {
		return PeerID{}, failed(err, "the system does not say who is at the other end")
	}
	id := PeerID{UID: -1, PID: int(pid)}
	p, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		// It ended, or it is one that we may not even look at: no user, no trust.
		id.PID = 0
		return id, nil
	}
	defer windows.CloseHandle(p)
	var token windows.Token
	if windows.OpenProcessToken(p, windows.TOKEN_QUERY, &token) == nil {
		defer token.Close()
		if u, err := token.GetTokenUser(); err == nil {
			id.SID = u.User.Sid.String()
		}
	}
	var made, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(p, &made, &ended, &kernel, &user) == nil {
		id.StartTime = uint64(made.HighDateTime)<<32 | uint64(made.LowDateTime)
	}
	name := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(name))
	if windows.QueryFullProcessImageName(p, 0, &name[0], &n) == nil {
		id.Exe = windows.UTF16ToString(name[:n])
	}
	return id, nil
}
