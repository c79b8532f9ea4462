//go:build unix && !linux

package proc

import (
	"os"
	"sync"
)

// executable is the path of this binary. There is no name here for a removed
// one; an upgrade that replaces the file starts the new version.
func executable() string {
	exe, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return exe
}

// closeOnExecAll keeps descriptors that this process inherited from leaking
// into what it starts. Those that Go opens never do, so once is enough.
var closeOnExecAll = sync.OnceFunc(func() { markCloseOnExec("/dev/fd") })
