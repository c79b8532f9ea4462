package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// pids lists all processes that we can see.
func pids() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	var out []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// onlyZombies reports whether nothing but ended processes is left in a group: a
// container's first process may never reap them.
func onlyZombies(pgid int) bool {
	want := strconv.Itoa(pgid)
	for _, pid := range pids() {
		f, err := procStat(pid)
		if err == nil && string(f[2]) == want && f[0][0] != 'Z' && f[0][0] != 'X' {
			return false
		}
	}
	return true
}

// holders lists the processes, other than us, that have one of the pipes open.
func holders(outs []*drain) []int {
	var names []string
	for _, d := range outs {
		rc, err := d.r.SyscallConn()
		if err != nil {
			continue // it has ended
		}
		_ = rc.Control(func(fd uintptr) {
			var st syscall.Stat_t
			if syscall.Fstat(int(fd), &st) == nil {
				names = append(names, fmt.Sprintf("pipe:[%d]", st.Ino))
			}
		})
	}
	var out []int
	for _, pid := range pids() {
		if pid != os.Getpid() && holds(pid, names) {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

func holds(pid int, names []string) bool {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	fds, _ := d.Readdirnames(-1)
	for _, fd := range fds {
		if to, err := os.Readlink(dir + fd); err == nil && slices.Contains(names, to) {
			return true
		}
	}
	return false
}
