package store

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// networkFS reports whether dir lies on a network drive or share.
func networkFS(dir string) (string, bool) {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(dir) + `\`)
	if err != nil || windows.GetDriveType(root) != windows.DRIVE_REMOTE {
		return "", false
	}
	return "a network drive", true
}

// freeBytes is the space that this user can still fill where dir is.
func freeBytes(dir string) (uint64, bool) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(p, &free, nil, nil)
	return free, err == nil
}
