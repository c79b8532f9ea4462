//go:build unix

package config

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryLock locks the directory: nothing is left behind, and a rename of the file
// does not take the lock along.
func tryLock(path string) (unlock func(), held bool, err error) {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, false, err
	}
	err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return func() { d.Close() }, false, nil
	}
	d.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, true, nil
	}
	return nil, false, err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
