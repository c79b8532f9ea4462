package rpc

import (
	"io"
	"os"
	"sync"
	"time"
)

// pipeSize is how much one direction of a Pipe holds.
const pipeSize = 64 << 10

// Pipe returns the two ends of a stream in memory, each direction holding up to
// 64 KiB. Both ends have SetDeadline, SetReadDeadline and SetWriteDeadline as a
// net.Conn has, CloseWrite, and TryWrite. They use no system resource and work
// in a synctest bubble.
func Pipe() (a, b io.ReadWriteCloser) {
	ab, ba := newHalf(), newHalf()
	return &pipeEnd{r: ba, w: ab}, &pipeEnd{r: ab, w: ba}
}

type pipeEnd struct{ r, w *half }

func (e *pipeEnd) Read(p []byte) (int, error)         { return e.r.read(p) }
func (e *pipeEnd) Write(p []byte) (int, error)        { return e.w.write(p, true) }
func (e *pipeEnd) TryWrite(p []byte) (int, error)     { return e.w.write(p, false) }
func (e *pipeEnd) SetReadDeadline(t time.Time) error  { return e.r.setDeadline(&e.r.reader, t) }
func (e *pipeEnd) SetWriteDeadline(t time.Time) error { return e.w.setDeadline(&e.w.writer, t) }

func (e *pipeEnd) SetDeadline(t time.Time) error {
	e.SetReadDeadline(t)
	return e.SetWriteDeadline(t)
}

// CloseWrite ends what this end sends; the other still reads what was sent.
func (e *pipeEnd) CloseWrite() error {
	e.w.close(true, false)
	return nil
}

// Close ends both directions. The other end still reads what was sent.
func (e *pipeEnd) Close() error {
	e.w.close(true, false)
	e.r.close(false, true)
	return nil
}

// HungUp reports whether the other end reads no more.
func (e *pipeEnd) HungUp() bool {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	return e.w.reader.closed
}

// half is one direction.
type half struct {
	mu             sync.Mutex // guards what follows
	changed        *sync.Cond
	buf            []byte // a ring
	start, n       int
	reader, writer side
}

// side is one of the two who use a half.
type side struct {
	closed   bool
	deadline time.Time
	timer    *time.Timer
}

func (s *side) late() bool { return !s.deadline.IsZero() && !time.Now().Before(s.deadline) }

func newHalf() *half {
	h := &half{}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.reader.closed:
			return 0, io.ErrClosedPipe
		case h.reader.late():
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case h.n > 0:
			n := copy(p, h.buf[h.start:min(h.start+h.n, len(h.buf))])
			if n < len(p) && n < h.n {
				n += copy(p[n:], h.buf[:h.n-n])
			}
			h.start, h.n = (h.start+n)%len(h.buf), h.n-n
			h.changed.Broadcast()
			return n, nil
		case h.writer.closed:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

func (h *half) write(p []byte, wait bool) (done int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.writer.closed || h.reader.closed:
			return done, io.ErrClosedPipe
		case h.writer.late():
			return done, os.ErrDeadlineExceeded
		}
		h.grow(len(p))
		for len(p) > 0 && h.n < len(h.buf) {
			at := (h.start + h.n) % len(h.buf)
			n := copy(h.buf[at:min(at+len(h.buf)-h.n, len(h.buf))], p)
			h.n, p, done = h.n+n, p[n:], done+n
			h.changed.Broadcast()
		}
		if len(p) == 0 || !wait {
			return done, nil
		}
		h.changed.Wait()
	}
}

// grow makes room for n more bytes, up to pipeSize in all.
func (h *half) grow(n int) {
	size := max(len(h.buf), 512)
	for size < h.n+n && size < pipeSize {
		size *= 2
	}
	if size == len(h.buf) {
		return
	}
	bigger := make([]byte, size)
	m := copy(bigger, h.buf[h.start:min(h.start+h.n, len(h.buf))])
	copy(bigger[m:], h.buf[:h.n-m])
	h.buf, h.start = bigger, 0
}

func (h *half) close(writer, reader bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writer.closed = h.writer.closed || writer
	h.reader.closed = h.reader.closed || reader
	for _, s := range []*side{&h.reader, &h.writer} {
		if s.closed && s.timer != nil {
			s.timer.Stop()
		}
	}
	h.changed.Broadcast()
}

func (h *half) setDeadline(s *side, t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return io.ErrClosedPipe
	}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.deadline = t
	if !t.IsZero() {
		s.timer = time.AfterFunc(time.Until(t), func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.changed.Broadcast()
		})
	}
	h.changed.Broadcast()
	return nil
}

// Stdio joins a reader and a writer, such as a child's pipes, to one stream.
// Closing it closes both. Closing r must end a Read that waits: pipes do, a
// terminal does not.
func Stdio(r io.ReadCloser, w io.WriteCloser) io.ReadWriteCloser { return &stdio{r, w} }

type stdio struct {
	io.ReadCloser
	w io.WriteCloser
}

func (s *stdio) Write(p []byte) (int, error) { return s.w.Write(p) }

func (s *stdio) Close() error {
	err := s.w.Close()
	if e := s.ReadCloser.Close(); err == nil {
		err = e
	}
	return err
}

// endPolitely ends both directions of a socket and throws away what it still
// holds unread: a socket closed with unread bytes tells its peer of a reset
// where it should read an end. Nothing can follow, so what is thrown away is at
// most what the system had buffered.
func endPolitely(rwc io.ReadWriteCloser) {
	s, ok := rwc.(interface {
		CloseRead() error
		CloseWrite() error
	})
	if !ok || s.CloseWrite() != nil || s.CloseRead() != nil {
		return
	}
	var buf [4096]byte
	for range (1 << 20) / len(buf) {
		if _, err := rwc.Read(buf[:]); err != nil {
			return
		}
	}
}
