//go:build unix

package tool

import (
	"errors"
	"os"
	"syscall"
)

func links(_ string, fi os.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 1
}

// copyAttributes gives to the owner, mode and extended attributes of from. What
// cannot be copied is a permission error, or errors.ErrUnsupported.
func copyAttributes(from, to string, fi os.FileInfo) error {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		have, err := os.Lstat(to)
		if err != nil {
			return err
		}
		if h, ok := have.Sys().(*syscall.Stat_t); ok && (h.Uid != st.Uid || h.Gid != st.Gid) {
			if err := os.Lchown(to, int(st.Uid), int(st.Gid)); err != nil {
				return err
			}
		}
	}
	// After chown, which clears set-user-id bits.
	if err := os.Chmod(to, fi.Mode()); err != nil {
		return err
	}
	if err := copyXattrs(from, to); err != nil {
		return errors.Join(errors.ErrUnsupported, err)
	}
	return nil
}

// syncDir makes a rename or a new name durable, where the system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
