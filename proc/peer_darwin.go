package proc

import (
	"golang.org/x/sys/unix"
)

func peerOf(fd int) (PeerID, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return PeerID{}, err
	}
	id := PeerID{UID: int(int32(cred.Uid))}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil || pid <= 0 {
		return id, nil
	}
	id.PID = pid
	id.StartTime = startTime(pid)
	return id, nil
}

func startTime(pid int) uint64 {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return 0
	}
	t := k.Proc.P_starttime
	return uint64(t.Sec)*1e6 + uint64(t.Usec)
}
