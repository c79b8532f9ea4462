package store

import "golang.org/x/sys/unix"

// networkNames are file systems that several machines write to, by statfs's
// number: SQLite's locks and shared memory do not hold there.
var networkNames = map[uint32]string{
	0x00006969: "NFS",
	0x0000517B: "SMB",
	0xFF534D42: "CIFS",
	0xFE534D42: "SMB2",
	0x5346414F: "AFS",
	0x6B414653: "AFS",
	0x73757245: "Coda",
	0x0000564C: "NCP",
	0x00C36400: "Ceph",
	0x0BD00BD0: "Lustre",
	0x47504653: "GPFS",
	0x7461636F: "OCFS2",
	0x01161970: "GFS2",
	0x19830326: "FhGFS",
	0x786F4256: "VirtualBox shared folder",
	0xBACBACBC: "VMware shared folder",
}

// statfsType is replaced in tests.
var statfsType = func(dir string) (uint32, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return uint32(st.Type), err
}

// networkFS reports whether dir lies on a network file system, and its name.
// 9p and FUSE may be local or not: there SQLite finds out by itself.
func networkFS(dir string) (string, bool) {
	t, err := statfsType(dir)
	if err != nil {
		return "", false
	}
	name, is := networkNames[t]
	return name, is
}

// freeBytes is the space that an ordinary user can still fill where dir is.
func freeBytes(dir string) (uint64, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
