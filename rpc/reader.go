package rpc

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	minRead = 4 << 10  // the buffer of an idle connection
	maxRead = 64 << 10 // the largest buffer that the budget does not count
)

// reader cuts a stream into frames. It owns one buffer, which grows for a long
// frame and under load, and shrinks again.
type reader struct {
	r      io.Reader
	limits Limits
	// onTimeout is called once, in a goroutine of its own, when a frame has
	// taken too long.
	onTimeout func()
	closed    <-chan struct{} // ends a wait for the budget

	buf     []byte // buf[off:end] has been read and not been returned
	off     int
	end     int
	scanned int  // buf[off:scanned] has no line end
	begun   bool // the byte order mark has been looked for
	kept    bool // the last frame's memory was given away
	full    bool // the last read took all there was room for
	quiet   int  // reads in a row that a minimal buffer would have done for
	drawn   draw // of the budget

	mu    sync.Mutex // guards what follows
	since time.Time  // when the unfinished frame began; zero when there is none
	timer *time.Timer
}

// stop ends the reader's timer, and a wait for the budget.
func (r *reader) stop() {
	r.setPartial(false)
	r.release()
}

// next returns the next frame that is not blank, without its line end. It is
// valid until the following call, and may be kept when keep says so.
func (r *reader) next() ([]byte, error) {
	for {
		frame, err := r.line()
		if err != nil {
			return nil, err
		}
		if !r.begun {
			r.begun = true
			frame = bytes.TrimPrefix(frame, []byte("\uFEFF"))
		}
		frame = bytes.TrimRight(frame, " \t\r")
		if len(frame) > 0 {
			return frame, nil
		}
	}
}

// line returns the next line.
func (r *reader) line() ([]byte, error) {
	if r.kept {
		r.kept = false
		r.replace(max(r.usual(), r.end-r.off))
		r.shrunk()
	}
	for {
		if i := bytes.IndexByte(r.buf[r.scanned:r.end], '\n'); i >= 0 {
			line := r.buf[r.off : r.scanned+i]
			r.off = r.scanned + i + 1
			r.scanned = r.off
			r.setPartial(false)
			if !r.fits(line) {
				return nil, errFrameTooLarge
			}
			return line, nil
		}
		r.scanned = r.end
		if !r.fits(r.buf[r.off:r.end]) {
			return nil, errFrameTooLarge
		}
		if err := r.fill(); err != nil {
			if rest := r.buf[r.off:r.end]; err == io.EOF && len(rest) > 0 {
				r.off, r.scanned = r.end, r.end // a last line without its end
				return rest, nil
			}
			return nil, err
		}
	}
}

// fits reports whether a line, of which there may be more, is within the limit.
// A carriage return before its end does not count.
func (r *reader) fits(line []byte) bool {
	n := len(line)
	return n <= r.limits.Frame || n == r.limits.Frame+1 && line[n-1] == '\r'
}

// fill makes room and reads once.
func (r *reader) fill() error {
	if r.off == r.end {
		r.off, r.end, r.scanned = 0, 0, 0
		r.release()
		r.setPartial(false)
		if n := r.usual(); len(r.buf) > n {
			r.buf = make([]byte, n)
		}
	} else {
		r.setPartial(true)
	}
	if err := r.room(); err != nil {
		return err
	}
	n, err := r.r.Read(r.buf[r.end:])
	r.end += n
	r.full = r.end == len(r.buf)
	if n > minRead {
		r.quiet = 0
	} else {
		r.quiet++
	}
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

// room makes sure that there is space behind what has been read.
func (r *reader) room() error {
	held := r.end - r.off
	switch {
	case r.buf == nil:
		r.buf = make([]byte, minRead)
	case r.full && len(r.buf) < maxRead:
		r.replace(2 * len(r.buf)) // there is more where that came from
	case len(r.buf) > maxRead && held < maxRead/2:
		r.replace(maxRead)
		r.shrunk()
	case r.end < len(r.buf):
	case r.off > 0 && held <= len(r.buf)/2:
		r.end, r.scanned = copy(r.buf, r.buf[r.off:r.end]), r.scanned-r.off
		r.off = 0
	default:
		// One byte over the limit is all that is needed to know.
		size := min(2*len(r.buf), max(r.limits.Frame+2, minRead))
		if grow := int64(size - max(maxRead, len(r.buf))); grow > 0 && r.limits.Budget != nil {
			if !r.limits.Budget.acquire(&r.drawn, grow, r.closed) {
				return ErrClosed
			}
		}
		r.replace(max(size, held+1))
	}
	return nil
}

// usual is the size of a buffer that holds no long frame: large while what
// arrives makes use of it.
func (r *reader) usual() int {
	if r.quiet > 64 {
		return minRead
	}
	return max(minRead, min(len(r.buf), maxRead))
}

// replace moves what is unread into a new buffer.
func (r *reader) replace(size int) {
	old := r.buf[r.off:r.end]
	r.buf = make([]byte, size)
	r.scanned -= r.off
	r.off, r.end = 0, copy(r.buf, old)
}

// shrunk gives back what was drawn when the buffer has become small.
func (r *reader) shrunk() {
	if len(r.buf) <= maxRead {
		r.release()
	}
}

// release gives back what was drawn from the budget.
func (r *reader) release() {
	if r.drawn.held > 0 || r.drawn.borrower {
		r.limits.Budget.release(&r.drawn)
	}
}

// keep returns part, a piece of the last frame, for keeping: a copy, or for one
// that fills most of a large buffer, the buffer itself.
func (r *reader) keep(part []byte) []byte {
	if part == nil {
		return nil
	}
	if len(part) > maxRead/2 && len(part) >= len(r.buf)/2 {
		r.kept = true
		return part[:len(part):len(part)]
	}
	return bytes.Clone(part)
}

// setPartial starts the time of a frame at its first byte, and ends it.
func (r *reader) setPartial(partial bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !partial && !r.since.IsZero():
		r.since = time.Time{}
		r.timer.Stop()
	case partial && r.since.IsZero():
		r.since = time.Now()
		if r.timer == nil {
			r.timer = time.AfterFunc(r.limits.FrameTimeout, r.timeout)
		} else {
			r.timer.Reset(r.limits.FrameTimeout)
		}
	}
}

// timeout runs when a frame may have taken too long. A timer that fired for an
// earlier frame finds a younger one, or none.
func (r *reader) timeout() {
	r.mu.Lock()
	late := !r.since.IsZero() && time.Since(r.since) >= r.limits.FrameTimeout
	r.mu.Unlock()
	if late {
		r.onTimeout()
	}
}
