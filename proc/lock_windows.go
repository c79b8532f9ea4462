package proc

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffset is where the locked byte is: far behind the text, which stays
// readable to others.
const lockOffset = 1 << 30

func openLocked(path string) (*os.File, error) {
	f, err := openOwn(path)
	if err != nil {
		return nil, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{Offset: lockOffset})
	if err == nil {
		return f, nil
	}
	defer f.Close()
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return nil, heldError(f, path)
	}
	return nil, failed(err, "%s cannot be locked", path)
}

// openOwn opens or makes a regular file. Who may open it follows from the data
// directory, which [PrepareDir] closed to others. No FILE_SHARE_DELETE: while it
// is open it cannot be replaced.
func openOwn(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, failed(err, "%s cannot be opened", path)
	}
	if fi, err := os.Lstat(path); err == nil && fi.IsDir() {
		// Takes an empty directory only.
		if os.Remove(path) != nil {
			return nil, blocked("%s is a directory and should be a file: remove it", path)
		}
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, nil, windows.OPEN_ALWAYS,
		windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return nil, failed(err, "%s cannot be opened", path)
	}
	f := os.NewFile(uintptr(h), path)
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		f.Close()
		return nil, failed(err, "%s cannot be examined", path)
	}
	if info.FileAttributes&(windows.FILE_ATTRIBUTE_REPARSE_POINT|windows.FILE_ATTRIBUTE_DIRECTORY) != 0 || info.NumberOfLinks > 1 {
		f.Close()
		return nil, blocked("%s is a link or no regular file: remove it", path)
	}
	return f, nil
}
