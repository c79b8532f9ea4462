//go:build unix

package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// PrepareDir makes dir a private directory: real, of this user, mode 0700.
// Missing ones are made, parents too (0700). One of ours that others may enter
// is tightened. Refused with ReasonBlocked and never touched: a symbolic link,
// a file, somebody else's directory, one below a directory in which anybody may
// rename it, and one whose file system ignores modes.
func PrepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTDIR) {
		return failed(err, "the directory %s cannot be made", dir)
	}
	// Through a descriptor, so that what is checked is what is tightened.
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return dirError(dir, err)
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return failed(err, "the directory %s cannot be examined", dir)
	}
	if uid := ownerOf(fi); uid != os.Geteuid() {
		return blocked("the directory %s belongs to user %d, not to us (%d): choose another with --data-dir", dir, uid, os.Geteuid())
	}
	if fi.Mode().Perm() != 0o700 {
		if err := f.Chmod(0o700); err != nil {
			return failed(err, "the directory %s is open to others and cannot be made private", dir)
		}
		if fi, err = f.Stat(); err != nil || fi.Mode().Perm()&0o077 != 0 {
			return blocked("the directory %s stays open to others (mode %04o), its file system has no owners and modes: choose one on another with --data-dir", dir, fi.Mode().Perm())
		}
	}
	return checkAbove(dir)
}

func dirError(dir string, err error) error {
	if fi, lerr := os.Lstat(dir); lerr == nil {
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			return blocked("%s is a symbolic link, and a private directory must be a real one: name its target with --data-dir, or remove it", dir)
		case !fi.IsDir():
			return blocked("%s is not a directory: remove it, or choose another with --data-dir", dir)
		case ownerOf(fi) != os.Geteuid():
			return blocked("the directory %s belongs to user %d, not to us (%d): choose another with --data-dir", dir, ownerOf(fi), os.Geteuid())
		}
	}
	return failed(err, "the directory %s cannot be opened", dir)
}

// checkAbove refuses a directory above which anybody may rename what is below.
func checkAbove(dir string) error {
	for {
		up := filepath.Dir(dir)
		if up == dir {
			return nil
		}
		fi, err := os.Stat(up)
		if err == nil && fi.Mode().Perm()&0o002 != 0 && fi.Mode()&fs.ModeSticky == 0 {
			return blocked("anybody may replace %s, because %s is writable by all (mode %04o): run chmod o-w or chmod +t on it, or choose another place", dir, up, fi.Mode().Perm())
		}
		dir = up
	}
}

// checkSocketDir makes or examines the directory of an endpoint outside the
// data directory: it must be ours and writable by us alone, or sticky.
func checkSocketDir(dir string) error {
	link, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return PrepareDir(dir)
	}
	if err != nil {
		return failed(err, "the socket's directory %s cannot be examined", dir)
	}
	// A link is only as good as who made it: macOS's /tmp is one, root's.
	if o := ownerOf(link); o != 0 && o != os.Geteuid() {
		return blocked("the socket's directory %s belongs to user %d: choose another with --socket", dir, o)
	}
	fi, err := os.Stat(dir)
	if err != nil {
		return failed(err, "the socket's directory %s cannot be examined", dir)
	}
	o := ownerOf(fi)
	switch {
	case !fi.IsDir():
		return blocked("%s is not a directory: choose another with --socket", dir)
	case o != 0 && o != os.Geteuid():
		return blocked("the socket's directory %s belongs to user %d: choose another with --socket", dir, o)
	case fi.Mode()&fs.ModeSticky == 0 && fi.Mode().Perm()&0o022 != 0:
		return blocked("others may replace files in the socket's directory %s (mode %04o): run chmod go-w or chmod +t on it, or choose another with --socket", dir, fi.Mode().Perm())
	}
	return checkAbove(dir)
}

func ownerOf(fi os.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
