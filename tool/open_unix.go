//go:build unix

package tool

import (
	"errors"
	"os"
	"slices"
	"syscall"
)

// openNonblock opens for reading without waiting for a pipe's other end.
func openNonblock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// slurp reads a regular file whole, into buf where that is large enough. It follows no
// symbolic link. A search of many files spends its time here, so it makes the fewest
// system calls.
func slurp(path string, buf []byte, limit int) ([]byte, error) {
	fd, err := again(func() (int, error) {
		return syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	switch err := syscall.Fstat(fd, &st); {
	case err != nil:
		return nil, err
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Size > int64(limit):
		return nil, errNotSearched
	}
	buf = slices.Grow(buf[:0], int(st.Size)+1)
	for len(buf) <= limit {
		n, err := again(func() (int, error) { return syscall.Read(fd, buf[len(buf):cap(buf)]) })
		if err != nil || n <= 0 {
			return buf, err
		}
		if buf = buf[:len(buf)+n]; len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
	}
	return nil, errNotSearched // it is growing
}

func again(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
