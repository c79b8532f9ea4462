package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// TryWriter is an optional method of a stream. TryWrite writes what can be
// written without waiting and returns how much that was; (0, nil) means that
// the stream is full. With it, a frame is written by whoever produced it;
// without it, by a goroutine. New finds it by itself for Unix and TCP sockets;
// a wrapper that changes the bytes of one must not pass the inner socket's on.
type TryWriter interface {
	TryWrite(p []byte) (n int, err error)
}

const (
	// chunk is the most that one blocking write takes, so that the stall limit
	// speaks of one frame: only a single longer frame is written whole.
	chunk = 64 << 10
	// firstChunk is the buffer that a connection keeps; one that never has more
	// to write at a time needs no other.
	firstChunk = 4 << 10
	// burst is how soon after a producer wrote by itself the next frame is left
	// to a goroutine: who produces several in a row gets them written together.
	// An answer to a request never comes so soon after the one before.
	burst = 5 * time.Microsecond
	// directRounds is how often a producer writes for others who produced
	// meanwhile, before it leaves them to a goroutine.
	directRounds = 2
)

var errFrameTooLarge = errors.New("the message is larger than a frame may be")

// outbox is the one ordered writer of a connection: a queue of buffers, filled
// at its end by whoever produces and emptied at its head by whoever writes.
type outbox struct {
	w      io.Writer
	try    TryWriter // nil: every write may block
	limits Limits
	// onFail is called once, without the lock, when a write fails or stalls
	// before the end was decided.
	onFail func(error)
	// onDrained is called without the lock when the end was decided (seal) and
	// everything has been written or given up. It may be called twice.
	onDrained func()

	mu sync.Mutex // guards what follows
	// bufs holds what was produced and is not in the writer's hands yet: whole
	// frames, up to chunk bytes each, or one longer frame.
	bufs  [][]byte
	room  [1][]byte // where bufs begins, while one is enough
	spare []byte    // a written buffer of firstChunk bytes
	// unsent counts the bytes in bufs and in the hands of the writer.
	unsent int
	// busy: somebody writes. Only the writer touches the stream.
	busy   bool
	ending bool  // the end has been decided: onDrained is due
	sealed bool  // nothing more is accepted
	cause  error // why it was sealed
	broken bool  // nothing more is written
	// waiters are the sends that wait for room, oldest first.
	waiters []*waiter
	stall   stallWatch
	// wroteAt is when a producer last wrote everything itself.
	wroteAt time.Time
}

// stallWatch ends a write that takes too long.
type stallWatch struct {
	timer *time.Timer
	since time.Time // when the blocking write that runs now began; zero for none
}

// waiter is a send that waits for room.
type waiter struct {
	frames [][]byte      // what is left of it
	q      queuer        // told when nothing is; may be nil
	empty  bool          // a flush: waits until nothing is unsent
	done   chan struct{} // closed when all its frames are in the box, or err is set
	err    error
}

// queuer is told when its frames are in the box, before any of the last can have
// reached the peer. It is called with the box's lock and must not come back.
type queuer interface{ queued() }

// send queues frames in order and waits while there is no room for them. It
// tells q, if not nil, when they all are in the box.
func (o *outbox) send(ctx context.Context, frames [][]byte, q queuer) error {
	for _, f := range frames {
		if len(f) > o.limits.Frame {
			return errFrameTooLarge
		}
	}
	o.mu.Lock()
	if o.sealed {
		defer o.mu.Unlock()
		return closedError(o.cause)
	}
	if len(o.waiters) == 0 {
		if frames = o.admit(frames); len(frames) == 0 {
			if q != nil {
				q.queued()
			}
			o.kick()
			return nil
		}
	}
	return o.wait(ctx, &waiter{frames: frames, q: q})
}

// flush waits until everything produced so far has been written.
func (o *outbox) flush(ctx context.Context) error {
	o.mu.Lock()
	if o.unsent == 0 && len(o.waiters) == 0 {
		defer o.mu.Unlock()
		if o.broken {
			return closedError(o.cause)
		}
		return nil
	}
	return o.wait(ctx, &waiter{empty: true})
}

// wait queues w behind the other waiters. Called with the lock, which it releases.
func (o *outbox) wait(ctx context.Context, w *waiter) error {
	w.done = make(chan struct{})
	o.waiters = append(o.waiters, w)
	o.kick()
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, other := range o.waiters {
		if other == w {
			o.waiters = append(o.waiters[:i], o.waiters[i+1:]...)
			o.admitWaiters() // those behind it may be smaller
			o.kickLocked()
			return ctx.Err()
		}
	}
	return w.err // it got through at the same moment
}

// push queues a frame without waiting and tells q, if not nil, in any case. It
// reports false when the frame would leave more than the limit of replies unsent.
func (o *outbox) push(frame []byte, q queuer) bool {
	o.mu.Lock()
	if q != nil {
		q.queued() // nothing is written while the lock is held
	}
	if o.sealed {
		o.mu.Unlock()
		return true // nobody will read it; the end has been noted elsewhere
	}
	if o.unsent+len(frame)+1 > o.limits.UnsentReplies {
		o.mu.Unlock()
		return false
	}
	o.add(frame)
	o.kick()
	return true
}

// seal accepts last, if not nil, and then nothing more. What is queued is still
// written, unless drop is set or writing has failed already; then, now or later,
// onDrained is called. A second seal can only drop.
func (o *outbox) seal(cause error, last []byte, drop bool) {
	o.mu.Lock()
	first := !o.ending
	o.ending = true
	if !o.sealed {
		if last != nil {
			o.add(last)
		}
		o.sealed, o.cause = true, cause
		o.failWaiters()
	}
	if drop && !o.broken {
		o.fail(cause)
	}
	if o.broken || !o.busy && len(o.bufs) == 0 {
		o.mu.Unlock()
		if first {
			o.onDrained()
		}
		return
	}
	o.kick()
}

// isEnding reports whether the end has been decided.
func (o *outbox) isEnding() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ending
}

// fail drops everything. Called with the lock.
func (o *outbox) fail(cause error) {
	o.sealed, o.broken = true, true
	if o.cause == nil {
		o.cause = cause
	}
	o.bufs = nil
	o.failWaiters()
}

func (o *outbox) failWaiters() {
	for _, w := range o.waiters {
		w.err = closedError(o.cause)
		close(w.done)
	}
	o.waiters = nil
}

// add appends one frame to the box. Called with the lock.
func (o *outbox) add(frame []byte) {
	if bytes.IndexByte(frame, '\n') >= 0 {
		frame = oneLine(frame)
	}
	last := len(o.bufs) - 1
	if last < 0 || len(o.bufs[last])+len(frame)+1 > cap(o.bufs[last]) {
		o.bufs = append(o.bufs, o.buffer(len(frame)+1))
		last++
	}
	b := append(append(o.bufs[last], frame...), '\n')
	o.bufs[last] = b
	o.unsent += len(frame) + 1
}

// buffer returns an empty buffer for n bytes and, when they are few, more.
func (o *outbox) buffer(n int) []byte {
	switch {
	case len(o.bufs) == 0 && n <= firstChunk:
		if b := o.spare; b != nil {
			o.spare = nil
			return b
		}
		return make([]byte, 0, firstChunk)
	case n > chunk:
		return make([]byte, 0, n)
	}
	return takeChunk()
}

// take hands the oldest buffer to the caller, the writer. Called with the lock.
func (o *outbox) take() []byte {
	b := o.bufs[0]
	o.bufs[0] = nil
	if o.bufs = o.bufs[1:]; len(o.bufs) == 0 {
		o.bufs = o.room[:0]
	}
	return b
}

// oneLine removes the line ends from JSON: white space in somebody's raw value
// would end the frame early.
func oneLine(frame []byte) []byte {
	v := jsontext.Value(bytes.Clone(frame))
	if v.Compact() != nil {
		return bytes.ReplaceAll(frame, []byte("\n"), []byte(" "))
	}
	return v
}

// admit moves frames into the box while there is room, and returns the others.
// Called with the lock.
func (o *outbox) admit(frames [][]byte) [][]byte {
	for i, f := range frames {
		if o.unsent > 0 && o.unsent+len(f)+1 > o.limits.Unsent {
			return frames[i:]
		}
		o.add(f)
	}
	return nil
}

// admitWaiters lets those who wait go on, in order. Called with the lock.
func (o *outbox) admitWaiters() {
	for len(o.waiters) > 0 {
		w := o.waiters[0]
		w.frames = o.admit(w.frames)
		if len(w.frames) > 0 || w.empty && o.unsent > 0 {
			return
		}
		if w.q != nil {
			w.q.queued()
		}
		close(w.done)
		o.waiters[0] = nil
		o.waiters = o.waiters[1:]
	}
	o.waiters = nil
}

// wrote notes that n bytes are on their way. Called with the lock.
func (o *outbox) wrote(n int) {
	o.unsent -= n
	if len(o.waiters) > 0 {
		o.admitWaiters()
	}
}

// kickLocked is kick for a caller that keeps the lock.
func (o *outbox) kickLocked() {
	if !o.busy && len(o.bufs) > 0 {
		o.busy = true
		go o.drain(nil, 0)
	}
}

// kick has what is in the box written, by the caller when that cannot block.
// Called with the lock, which it releases.
func (o *outbox) kick() {
	if o.busy || len(o.bufs) == 0 {
		o.mu.Unlock() // whoever is writing takes it along
		return
	}
	o.busy = true
	if o.try == nil || time.Since(o.wroteAt) < burst {
		o.mu.Unlock()
		go o.drain(nil, 0)
		return
	}
	for range directRounds {
		b := o.take()
		o.mu.Unlock()
		n, err := o.try.TryWrite(b)
		if err != nil {
			o.end(err)
			return
		}
		o.mu.Lock()
		o.wrote(n)
		if n < len(b) {
			o.mu.Unlock()
			go o.drain(b, n)
			return
		}
		o.recycle(b)
		if len(o.bufs) == 0 {
			o.wroteAt = time.Now()
			o.idle()
			return
		}
	}
	o.mu.Unlock()
	go o.drain(nil, 0)
}

// recycle keeps a buffer that has been written. Called with the lock.
func (o *outbox) recycle(b []byte) {
	switch cap(b) {
	case firstChunk:
		o.spare = b[:0]
	case chunk:
		giveChunk(b)
	}
}

// idle ends the caller's time as the writer. Called with the lock, which it releases.
func (o *outbox) idle() {
	o.busy = false
	drained := o.ending
	o.mu.Unlock()
	if drained {
		o.onDrained()
	}
}

// end is idle after a failed write.
func (o *outbox) end(err error) {
	o.mu.Lock()
	fresh := !o.broken
	if fresh {
		o.fail(err)
	}
	o.busy = false
	ending := o.ending
	o.mu.Unlock()
	switch {
	case ending:
		o.onDrained()
	case fresh:
		o.onFail(err)
	}
}

// drain writes what its producer could not, b from done on, then what else
// there is, until nothing is left.
func (o *outbox) drain(b []byte, done int) {
	for {
		if done < len(b) {
			o.startBlocking()
			n, err := o.w.Write(b[done:])
			if o.stopBlocking(n); err != nil {
				o.end(err)
				return
			}
		}
		o.mu.Lock()
		o.recycle(b)
		if len(o.bufs) == 0 {
			o.idle()
			return
		}
		b, done = o.take(), 0
		o.mu.Unlock()
	}
}

// startBlocking starts the stall limit for one write.
func (o *outbox) startBlocking() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stall.since = time.Now()
	if o.stall.timer == nil {
		o.stall.timer = time.AfterFunc(o.limits.WriteStall, o.stalled)
	} else {
		o.stall.timer.Reset(o.limits.WriteStall)
	}
}

func (o *outbox) stopBlocking(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stall.since = time.Time{}
	o.stall.timer.Stop()
	o.wrote(n)
}

// stalled runs when a write has taken too long. A timer that fired for an
// earlier write finds a younger one, or none.
func (o *outbox) stalled() {
	o.mu.Lock()
	if o.stall.since.IsZero() || time.Since(o.stall.since) < o.limits.WriteStall || o.broken {
		o.mu.Unlock()
		return
	}
	o.fail(errStalled)
	o.mu.Unlock()
	o.onFail(errStalled)
}

var chunks sync.Pool // of *[]byte with a capacity of chunk

func takeChunk() []byte {
	if b, ok := chunks.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, chunk)
}

func giveChunk(b []byte) {
	b = b[:0]
	chunks.Put(&b)
}
