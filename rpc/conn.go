package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options configure a connection. The zero value serves nothing, with the
// limits of the specification.
type Options struct {
	// Handler is called on the read loop, in order of arrival, for each request
	// and notification. It must not block. ctx is the connection's: it has the
	// values of Run's context and ends with the connection; a request's own is
	// [Request.Context]. Nil answers every request with CodeNoMethod.
	Handler func(ctx context.Context, r *Request)
	Limits  Limits
	// Prefix begins the ids of our own calls; "gh-" when empty, so "gh-1", ….
	Prefix string
	// Log gets what is refused, dropped or broken, never a frame's content. Nil
	// discards it.
	Log *slog.Logger
}

// Limits bound what a peer can make a connection hold. A zero field means the
// number it names; FirstFrame and Budget have none.
type Limits struct {
	// Frame is the longest line in bytes, without its end: 8,388,608. A longer
	// one is answered with one error and ends the connection; the rest of it is
	// never looked at. Our own messages may not be longer either.
	Frame int
	// FrameTimeout is how long a frame may take from its first byte: 30 s.
	FrameTimeout time.Duration
	// FirstFrame is how long after Run the connection may take until Ready is
	// called; it then ends without a word. 0 sets no limit.
	FirstFrame time.Duration
	// WriteStall is how long the peer may take to read one frame: 30 s.
	WriteStall time.Duration
	// Linger is how long the requests in flight may still be answered after the
	// peer closed its side: 1 s. (printf … | gladhand acp.)
	Linger time.Duration
	// InFlight is how many requests either side may have unanswered: 1,024.
	// One more of the peer's is answered with CodeLimit, one more of ours fails.
	InFlight int
	// Unsent is how many bytes may be unsent before Send, Notify and Call wait:
	// 128 KiB, which keeps a socket busy. More, up to the 1 MiB that the
	// specification allows, made 256 clients that lag four times slower.
	Unsent int
	// UnsentReplies is how many bytes may be unsent before a reply ends the
	// connection: 4 MiB.
	UnsentReplies int
	// Budget is shared with other connections; nil sets no common limit.
	Budget *Budget
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	defTime := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.Frame, 8<<20)
	def(&l.InFlight, 1024)
	def(&l.Unsent, 128<<10)
	def(&l.UnsentReplies, 4<<20)
	defTime(&l.FrameTimeout, 30*time.Second)
	defTime(&l.WriteStall, 30*time.Second)
	defTime(&l.Linger, time.Second)
	return l
}

// Conn is one JSON-RPC 2.0 connection over a byte stream. Both sides serve and
// call. All methods are safe for concurrent use.
type Conn struct {
	stream io.ReadWriteCloser
	opts   Options
	log    *slog.Logger
	in     reader
	out    outbox
	table  table

	ready  atomic.Bool
	closed atomic.Bool   // closeStream has begun
	done   chan struct{} // closed when closeStream is through
	polite atomic.Bool   // end the stream so that the peer still reads what we wrote

	// A peer makes us drop frames as often as it likes; the log is told of the
	// first few and then ever more rarely.
	dropped atomic.Int64

	// last is the error with id null that was the last frame read: why the peer
	// is about to end the connection. Nil after any other frame.
	last atomic.Pointer[Error]

	mu    sync.Mutex // guards what follows
	cause error      // why the connection ended; nil while it has not
	// cancel ends Run's context, giveUp the wait for the peer's last words.
	cancel context.CancelCauseFunc
	giveUp *time.Timer
}

// New returns a connection over rwc, which it owns from now on. Call Run to
// serve it. Closing rwc must end a Read or Write that waits.
func New(rwc io.ReadWriteCloser, o Options) *Conn {
	o.Limits = o.Limits.withDefaults()
	if o.Prefix == "" {
		o.Prefix = "gh-"
	}
	c := &Conn{stream: rwc, opts: o, log: o.Log, done: make(chan struct{})}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.in.r, c.in.limits, c.in.closed = rwc, o.Limits, c.done
	c.table.init(o.Prefix, o.Limits.InFlight)
	c.out = outbox{w: rwc, try: tryWriterOf(rwc), limits: o.Limits, onFail: c.writeFailed, onDrained: c.closeStream}
	return c
}

// Run reads until the connection ends and handles what it reads. It returns
// when all pending calls have failed: nil when either side closed the
// connection in order, else why it ended. Call it once.
func (c *Conn) Run(ctx context.Context) error {
	outer := ctx
	stop := context.AfterFunc(outer, func() { c.end(context.Cause(outer), nil, true) })
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(ErrClosed)
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	if d := c.opts.Limits.FirstFrame; d > 0 {
		t := time.AfterFunc(d, func() {
			if !c.ready.Load() {
				c.end(errNotReady, nil, true)
			}
		})
		defer t.Stop()
	}
	c.in.onTimeout = func() {
		c.refuseFrame("frame_timeout", "limit_ms", c.opts.Limits.FrameTimeout.Milliseconds(), "the message took too long to arrive")
	}
	defer c.in.stop()
	for {
		frame, err := c.in.next()
		switch {
		case err == nil:
			if c.out.isEnding() {
				continue // the end has been decided; read on only to see it
			}
			c.dispatch(ctx, frame)
		case errors.Is(err, errFrameTooLarge):
			c.refuseFrame("frame_too_large", "limit_bytes", int64(c.opts.Limits.Frame), "the message is larger than a frame may be")
			return c.wait()
		default:
			c.readEnded(err)
			return c.wait()
		}
	}
}

// wait waits for the end of the connection and returns what Run returns.
func (c *Conn) wait() error {
	<-c.done
	err := c.Err()
	if err == errEOF || errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// readEnded runs when no more can be read: calls fail now, the peer's requests
// may linger, what has been produced is still written.
func (c *Conn) readEnded(err error) {
	gone := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if err == io.EOF || gone {
		err = errEOF
	}
	c.because(err)
	c.table.failCalls(closedError(c.Err()))
	if idle := c.table.served(); err == errEOF && idle != nil && !gone && !hungUp(c.stream) {
		t := time.NewTimer(c.opts.Limits.Linger)
		select {
		case <-idle:
		case <-t.C:
		case <-c.done:
		}
		t.Stop()
	}
	c.end(err, nil, err != errEOF)
}

// refuseFrame ends the connection with the one error that a frame over a limit gets.
func (c *Conn) refuseFrame(reason, name string, limit int64, text string) {
	e := &Error{Code: CodeInvalidRequest, Message: text, Data: reasonData(reason, name, limit)}
	c.log.Warn("rpc: connection ended", "reason", reason)
	c.Refuse(e)
}

// Refuse ends the connection with err: it is sent in a response with id null,
// behind everything produced before; then the stream ends, and what the peer
// still sends is not read. It does not need Run, and returns at once.
func (c *Conn) Refuse(err error) {
	e, _ := toWire(err)
	c.polite.Store(true)
	c.end(e, appendError(nil, []byte("null"), e), false)
}

// end decides how the connection ends: with a last frame, and with or without
// what is still unsent. The first to decide wins.
func (c *Conn) end(cause error, last []byte, drop bool) {
	c.because(cause)
	c.out.seal(cause, last, drop)
	if drop {
		c.closeStream()
	}
}

// because notes why the connection ends; the first reason counts.
func (c *Conn) because(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
	}
}

// writeFailed runs when a write failed. The peer may have said why before it
// left, so what it sent is still read, for a while.
func (c *Conn) writeFailed(err error) {
	if errors.Is(err, errStalled) {
		c.log.Warn("rpc: connection ended", "reason", "write_stall")
		c.end(err, nil, true)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveUp = time.AfterFunc(c.opts.Limits.Linger, func() { c.end(err, nil, true) })
}

// closeStream closes the stream and tells everyone who waits for something.
func (c *Conn) closeStream() {
	if !c.closed.CompareAndSwap(false, true) {
		return // not a sync.Once: a call's Then may close the connection
	}
	if c.polite.Load() {
		endPolitely(c.stream)
	}
	c.stream.Close()
	err := closedError(c.Err())
	c.table.failCalls(err)
	c.mu.Lock()
	cancel, giveUp := c.cancel, c.giveUp
	c.mu.Unlock()
	if cancel != nil {
		cancel(err)
	}
	if giveUp != nil {
		giveUp.Stop()
	}
	close(c.done)
}

// Close ends the connection at once. What is unsent is dropped; use Flush
// before it to have it written.
func (c *Conn) Close() error {
	c.end(ErrClosed, nil, true)
	return nil
}

// Done is closed when the connection has ended: the stream is closed, pending
// calls have failed, and the contexts of requests have ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil while the connection lives, then why it ended: ErrClosed is
// in its chain after Close, an [*Error] when the peer said why it ended it.
func (c *Conn) Err() error {
	c.mu.Lock()
	cause := c.cause
	c.mu.Unlock()
	return c.explain(cause)
}

// explain replaces an end by what the peer said of it.
func (c *Conn) explain(cause error) error {
	var own wireError
	last := c.last.Load()
	if last == nil || cause == nil || errors.Is(cause, ErrClosed) || errors.As(cause, &own) || isContext(cause) {
		return cause
	}
	return last
}

// Ready lifts the limit of FirstFrame: the peer has initialized.
func (c *Conn) Ready() { c.ready.Store(true) }

// Send queues frames, each one whole message without its line end, behind
// everything produced before. It waits while more than Limits.Unsent bytes are
// unsent, until ctx ends or the connection does; frames queued until then are
// sent. The frames must be valid JSON-RPC; they are not checked.
func (c *Conn) Send(ctx context.Context, frames ...[]byte) error {
	return c.out.send(ctx, frames, nil)
}

// Flush waits until everything produced before has been handed to the system.
func (c *Conn) Flush(ctx context.Context) error { return c.out.flush(ctx) }

// push queues a frame that cannot wait.
func (c *Conn) push(frame []byte, q queuer) {
	if !c.out.push(frame, q) {
		c.log.Warn("rpc: connection ended", "reason", "unsent_replies", "limit_bytes", c.opts.Limits.UnsentReplies)
		c.end(errUnread, nil, true)
	}
}

// drop notes a frame that is dropped without an answer.
func (c *Conn) drop(why string) {
	n := c.dropped.Add(1)
	if n <= 8 || n&(n-1) == 0 {
		c.log.Warn("rpc: frame dropped", "why", why, "dropped", n)
	}
}
