//go:build unix

package proc

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipeCapacity bounds what is read after the cut: a pipe's content at that
// moment. Somebody may be writing for ever.
const pipeCapacity = 64 << 10

// cut makes run stop waiting for the other end to close.
func (d *drain) cut() { _ = d.r.SetReadDeadline(time.Unix(1, 0)) }

// readRest reads what is in the pipe right now, without waiting. At the real
// end of the output there is nothing.
func readRest(r *os.File, buf []byte, write func([]byte)) {
	if r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	rc, err := r.SyscallConn()
	if err != nil {
		return
	}
	for left := pipeCapacity; left > 0; {
		n := 0
		err := rc.Read(func(fd uintptr) bool {
			n, _ = unix.Read(int(fd), buf[:min(len(buf), left)])
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		write(buf[:n])
		left -= n
	}
}
