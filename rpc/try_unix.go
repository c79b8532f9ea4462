//go:build unix

package rpc

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryWriterOf returns how to write to a stream without waiting, nil when there
// is no way. Sockets of package net never block; a file may.
func tryWriterOf(rwc io.ReadWriteCloser) TryWriter {
	switch s := rwc.(type) {
	case TryWriter:
		return s
	case *net.UnixConn, *net.TCPConn:
		if raw, err := s.(syscall.Conn).SyscallConn(); err == nil {
			w := &rawWriter{conn: raw}
			w.once = w.write
			return w
		}
	}
	return nil
}

// rawWriter writes to a socket that never blocks. Only one goroutine at a time
// uses it.
type rawWriter struct {
	conn syscall.RawConn
	once func(fd uintptr) bool // w.write; made once
	p    []byte
	n    int
	err  error
}

// TryWrite implements [TryWriter].
func (w *rawWriter) TryWrite(p []byte) (int, error) {
	w.p, w.n, w.err = p, 0, nil
	err := w.conn.Write(w.once)
	w.p = nil
	if err == nil {
		err = w.err
	}
	return w.n, err
}

// write returns true: RawConn is not to wait and call again.
func (w *rawWriter) write(fd uintptr) bool {
	for w.n < len(w.p) {
		n, err := syscall.Write(int(fd), w.p[w.n:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return true
		case err != nil:
			w.err = err
			return true
		}
		w.n += n
	}
	return true
}

// hungUp reports whether the peer of a socket is gone altogether, where it is
// known: after the end of what it sent, it may also have closed its side only.
func hungUp(rwc io.ReadWriteCloser) bool {
	switch s := rwc.(type) {
	case interface{ HungUp() bool }:
		return s.HungUp()
	case *net.UnixConn:
		raw, err := s.SyscallConn()
		if err != nil {
			return true
		}
		gone := true
		raw.Control(func(fd uintptr) {
			fds := []unix.PollFd{{Fd: int32(fd)}}
			_, err := unix.Poll(fds, 0)
			gone = err == nil && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
		})
		return gone
	}
	return false
}
