//go:build linux || darwin

package tool

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// copyXattrs copies extended attributes, and with them Linux's ACLs. Security
// labels are left to the system, which gives a new file its own.
func copyXattrs(from, to string) error {
	size, err := unix.Listxattr(from, nil)
	if errors.Is(err, unix.ENOTSUP) || size == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	names := make([]byte, size)
	if size, err = unix.Listxattr(from, names); err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names[:size]), "\x00"), "\x00") {
		if name == "" || strings.HasPrefix(name, "security.") || strings.HasPrefix(name, "com.apple.provenance") {
			continue
		}
		n, err := unix.Getxattr(from, name, nil)
		if err != nil {
			return err
		}
		value := make([]byte, n)
		if n, err = unix.Getxattr(from, name, value); err != nil {
			return err
		}
		if err := unix.Setxattr(to, name, value[:n], 0); err != nil {
			return err
		}
	}
	return nil
}
