package proc

import (
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

const rootDir = `C:\`

func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		HideWindow:    true,
		CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP,
	}
}

// appendOnly: the handle is at the end, and the daemon is its only writer.
func appendOnly(f *os.File) error {
	_, err := f.Seek(0, io.SeekEnd)
	return err
}

func executable() string {
	exe, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return exe
}

// closeOnExecAll has nothing to do: the handles a child gets are listed.
func closeOnExecAll() {}
