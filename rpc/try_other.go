//go:build !unix

package rpc

import "io"

// tryWriterOf returns how to write to a stream without waiting, nil when there
// is no way.
func tryWriterOf(rwc io.ReadWriteCloser) TryWriter {
	w, _ := rwc.(TryWriter)
	return w
}

// hungUp reports whether the peer is gone altogether, where it is known: after
// the end of what it sent, it may also have closed its side only.
func hungUp(rwc io.ReadWriteCloser) bool {
	s, ok := rwc.(interface{ HungUp() bool })
	return ok && s.HungUp()
}
