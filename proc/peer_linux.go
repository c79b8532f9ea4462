package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// peerOf reads SO_PEERCRED, and everything about its pid between two looks at
// the peer's pidfd: a pid that is alive at the second was not reused before.
func peerOf(fd int) (PeerID, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return PeerID{}, err
	}
	id := PeerID{UID: int(int32(cred.Uid)), PID: int(cred.Pid)}
	if id.PID <= 0 {
		id.PID = 0
		return id, nil
	}
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	switch {
	case err == nil:
		unix.CloseOnExec(pidfd)
		defer unix.Close(pidfd)
	case errors.Is(err, unix.ENOPROTOOPT):
		pidfd = -1 // before Linux 6.5: the pid may have been reused
	default: // ESRCH and the like: it is gone
		id.PID = 0
		return id, nil
	}
	id.StartTime, _ = startTime(id.PID)
	id.Exe, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", id.PID))
	if pidfd >= 0 && !running(pidfd) {
		id.PID, id.StartTime, id.Exe = 0, 0, ""
	}
	return id, nil
}

// running reports whether the process of a pidfd has not ended; a pidfd
// becomes readable when it has.
func running(pidfd int) bool {
	p := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && n == 0
	}
}

// procStat returns the fields of /proc/pid/stat behind the command name, which
// may itself hold spaces and parentheses: state is 0, pgrp 2, starttime 19.
func procStat(pid int) ([][]byte, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	i := bytes.LastIndexByte(b, ')')
	f := bytes.Fields(b[i+1:])
	if len(f) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat has too few fields", pid)
	}
	return f, nil
}

func startTime(pid int) (uint64, error) {
	f, err := procStat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(f[19]), 10, 64)
}
