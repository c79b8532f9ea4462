package proc

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// executable is a path that runs this very binary, also after `go run` or an
// upgrade removed or replaced its file.
func executable() string {
	const self = "/proc/self/exe"
	// The real path, while it is the same file, gives the process its name in ps.
	if exe, err := os.Readlink(self); err == nil {
		a, err1 := os.Stat(self)
		b, err2 := os.Stat(exe)
		if err1 == nil && err2 == nil && os.SameFile(a, b) {
			return exe
		}
	}
	return self
}

// closeOnExecAll keeps descriptors that this process inherited from leaking
// into what it starts. Those that Go opens never do, so once is enough.
var closeOnExecAll = sync.OnceFunc(func() {
	if unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	markCloseOnExec("/proc/self/fd") // before Linux 5.11
})
