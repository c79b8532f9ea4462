//go:build unix

package proc

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openLocked opens path and takes its lock. The file may be unlinked between
// the two; a lock on a file that has no name locks nobody out, so it starts
// over then.
func openLocked(path string) (*os.File, error) {
	for range 100 {
		f, err := openOwn(path)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != nil {
			defer f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, heldError(f, path)
			}
			return nil, failed(err, "%s cannot be locked", path)
		}
		here, err1 := os.Lstat(path)
		mine, err2 := f.Stat()
		if err1 == nil && err2 == nil && os.SameFile(here, mine) {
			return f, nil
		}
		f.Close()
	}
	return nil, conflict("%s is being replaced all the time: stop whatever removes it", path)
}

// openOwn opens or makes a private regular file of this user for reading and
// writing. It changes nothing in a file that fails the checks.
func openOwn(path string) (*os.File, error) {
	open := func() (*os.File, error) {
		// O_NONBLOCK: a FIFO in its place must not block us.
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), path), nil
	}
	f, err := open()
	if errors.Is(err, unix.EISDIR) {
		// rmdir takes an empty directory only, and none but ours.
		if unix.Rmdir(path) == nil {
			f, err = open()
		} else {
			return nil, blocked("%s is a directory and should be a file: remove it", path)
		}
	}
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, blocked("%s is a symbolic link, which could make us write somewhere else: remove it", path)
	case errors.Is(err, unix.ENXIO):
		return nil, blocked("%s is not a regular file: remove it", path)
	case err != nil:
		return nil, failed(err, "%s cannot be opened", path)
	}
	if err := checkOwn(f, path); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func checkOwn(f *os.File, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return failed(err, "%s cannot be examined", path)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return blocked("%s is not a regular file: remove it", path)
	case int(st.Uid) != os.Geteuid():
		return blocked("%s belongs to user %d, not to us (%d): remove it or choose another data directory", path, st.Uid, os.Geteuid())
	case st.Nlink > 1:
		return blocked("%s has a second name (a hard link), which could make us write somewhere else: remove it", path)
	case fs.FileMode(st.Mode)&0o077 != 0:
		return blocked("%s can be opened by others (mode %04o): run chmod 600 on it", path, st.Mode&0o777)
	}
	return nil
}
