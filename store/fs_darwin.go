package store

import "golang.org/x/sys/unix"

// networkFS reports whether dir lies on a network file system, and its name.
func networkFS(dir string) (string, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || st.Flags&unix.MNT_LOCAL != 0 {
		return "", false
	}
	return unix.ByteSliceToString(fsTypeName(&st)), true
}

// freeBytes is the space that an ordinary user can still fill where dir is.
func freeBytes(dir string) (uint64, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}

func fsTypeName(st *unix.Statfs_t) []byte {
	b := make([]byte, 0, len(st.Fstypename))
	for _, c := range st.Fstypename {
		b = append(b, byte(c))
	}
	return b
}
