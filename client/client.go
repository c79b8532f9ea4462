package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/rpc"
)

// Client is a connection to a daemon that renews itself. All methods are safe
// for concurrent use.
type Client struct {
	o Options

	mu sync.Mutex // guards what follows and the fields of links and attachments
	// room is signalled when a read loop that waits for room may look again.
	room     *sync.Cond
	link     *link         // the newest; it may be dead
	making   chan struct{} // closed when the new link that somebody makes is done
	attached []*Attachment
	closed   bool
	stopped  bool // the last daemon said that it was stopped
}

// link is one connection of a client.
type link struct {
	conn  *rpc.Conn
	hello gladhand.HandshakeMeta

	attaching sync.Mutex // held from sending an attach until its answer has a taker

	// The client's mu guards what follows.
	routes map[gladhand.SessionID]*Attachment
	calls  int // in flight
	dead   bool
}

// errClosed is what a closed client fails with.
var errClosed = gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "this client is closed")

// Connect connects to the daemon, starting one when none runs, and returns when
// it has said hello.
//
// Errors: ReasonUnavailable when no daemon can be reached or started, or with
// CheckConfig when it uses another settings file; ReasonForbidden when it is
// another user's; ReasonVersion and ReasonConnectionLimit as the daemon says.
func Connect(ctx context.Context, o Options) (*Client, error) {
	o.withDefaults()
	c := &Client{o: o}
	c.room = sync.NewCond(&c.mu)
	if _, err := c.live(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Stream returns a raw connection to the daemon, which it starts when none runs.
// Nothing has been sent on it.
func Stream(ctx context.Context, o Options) (io.ReadWriteCloser, error) {
	c, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	defer c.Close() // after the dial, so that a daemon that counts its clients stays
	return c.o.Dial(ctx)
}

// Close ends the connection. Turns, asks and prompts go on without us.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	l := c.link
	for _, a := range c.attached {
		a.fail(errClosed)
	}
	c.room.Broadcast()
	c.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.conn.Close()
}

// Handshake is what the daemon of the newest connection said of itself.
func (c *Client) Handshake() gladhand.HandshakeMeta {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link.hello
}

// Call calls a method of the daemon. result may be nil or a pointer, also to a
// json.RawMessage. It does not repeat what a lost connection caught in
// mid-flight: that fails with ReasonUnavailable, its effect unknown.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	l, err := c.live(ctx)
	if err != nil {
		return err
	}
	return fromWire(c.callOn(ctx, l, method, params, result))
}

// callAgain is Call for methods that are safe to repeat.
func (c *Client) callAgain(ctx context.Context, method string, params, result any) error {
	for try := 1; ; try++ {
		l, err := c.live(ctx)
		if err != nil {
			return err
		}
		err = c.callOn(ctx, l, method, params, result)
		if !errors.Is(err, rpc.ErrClosed) || ctx.Err() != nil || try == 5 {
			return fromWire(err)
		}
		<-l.conn.Done()
		c.lost(l)
	}
}

func (c *Client) callOn(ctx context.Context, l *link, method string, params, result any) error {
	c.calling(l, 1)
	defer c.calling(l, -1)
	return l.conn.Call(ctx, method, params, result)
}

// calling counts the calls in flight: while there are some, the read loop never
// waits for a slow Next, or their answers would not arrive.
func (c *Client) calling(l *link, n int) {
	c.mu.Lock()
	l.calls += n
	c.room.Broadcast()
	c.mu.Unlock()
}

// fromWire makes errors of package rpc ours.
func fromWire(err error) error {
	var remote *rpc.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpc.ErrClosed):
		return gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable,
			"the connection to the daemon ended before it answered: %w", err)
	case errors.As(err, &remote):
		return gladhand.FromWire(remote.Code, remote.Message, remote.Data)
	}
	return err
}

// live returns the connection, a new one when the last has ended. One caller
// makes it, the others wait.
func (c *Client) live(ctx context.Context) (*link, error) {
	for {
		c.mu.Lock()
		switch {
		case c.closed:
			c.mu.Unlock()
			return nil, errClosed
		case c.link != nil && !c.link.dead:
			defer c.mu.Unlock()
			return c.link, nil
		case c.making == nil:
			done := make(chan struct{})
			c.making = done
			first := c.link == nil
			c.mu.Unlock()
			l, err := c.remake(ctx, first)
			c.mu.Lock()
			c.making = nil
			close(done)
			c.mu.Unlock()
			return l, err
		}
		wait := c.making
		c.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// remake makes a connection, attaches again whatever was attached, and puts it
// in place.
func (c *Client) remake(ctx context.Context, first bool) (*link, error) {
	deadline := time.Now().Add(c.o.Patience)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		l, err := c.connect(ctx, first)
		if err == nil {
			if err = c.install(ctx, l); err == nil {
				return l, nil
			}
			l.conn.Close()
		}
		again := errors.Is(err, rpc.ErrClosed) || gladhand.ReasonOf(err) == gladhand.ReasonUnavailable
		if first || !again || errors.Is(err, errOtherSettings) || ctx.Err() != nil || time.Now().After(deadline) {
			return nil, fromWire(err)
		}
		if !sleep(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// install attaches again and makes l the client's connection.
func (c *Client) install(ctx context.Context, l *link) error {
	c.mu.Lock()
	again := append([]*Attachment(nil), c.attached...)
	c.mu.Unlock()
	for _, a := range again {
		if err := c.attachOn(ctx, l, a); err != nil {
			if errors.Is(err, rpc.ErrClosed) || ctx.Err() != nil {
				return err
			}
			c.mu.Lock()
			a.fail(fromWire(err))
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return errClosed
	}
	c.link, c.stopped = l, false
	c.mu.Unlock()
	context.AfterFunc(connDone{l.conn}, func() { c.lost(l) })
	return nil
}

// lost notes the end of a connection, and tells each attachment of it once.
func (c *Client) lost(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.dead {
		return
	}
	l.dead = true
	err := l.conn.Err()
	c.stopped = c.stopped || saidStopped(err)
	if !c.closed {
		for _, a := range c.attached {
			a.add(Update{Link: Lost, Err: fromWire(err)})
		}
	}
	c.room.Broadcast()
}

// saidStopped reports whether a daemon's last word was that it is stopping.
func saidStopped(err error) bool {
	var last *rpc.Error
	return errors.As(err, &last) && gladhand.ReasonOf(gladhand.FromWire(last.Code, last.Message, last.Data)) == gladhand.ReasonUnavailable
}

// connDone is a context that ends with a connection.
type connDone struct{ conn *rpc.Conn }

func (d connDone) Deadline() (time.Time, bool) { return time.Time{}, false }
func (d connDone) Done() <-chan struct{}       { return d.conn.Done() }
func (d connDone) Value(any) any               { return nil }
func (d connDone) Err() error {
	select {
	case <-d.conn.Done():
		return context.Canceled
	default:
		return nil
	}
}

// handle takes what the daemon sends; it runs on the connection's read loop.
func (c *Client) handle(l *link, r *rpc.Request) {
	// An attach may have been answered, and its taker not yet be in place.
	l.attaching.Lock()
	//lint:ignore SA2001 waiting is the point
	l.attaching.Unlock()
	switch {
	case r.Method == acp.MethodUpdate && r.IsNotification():
		c.update(l, r.Params)
	case r.Method == gladhand.MethodGone && r.IsNotification():
		c.gone(l, r.Params)
	case !r.IsNotification():
		r.Fail(&rpc.Error{Code: rpc.CodeNoMethod, Message: "this client serves no method " + r.Method})
	}
}

// gone takes the news that the daemon has ended an attachment.
func (c *Client) gone(l *link, params json.RawMessage) {
	var p gladhand.GoneParams
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := l.routes[p.SessionID]; a != nil {
		delete(l.routes, p.SessionID)
		a.gone(p.Error)
	}
}

// update files one session/update.
func (c *Client) update(l *link, params json.RawMessage) {
	id, u, err := parseUpdate(params)
	c.mu.Lock()
	defer c.mu.Unlock()
	a := l.routes[id]
	if a == nil || a.err != nil {
		return // of a session that we are attached to in no way of ours
	}
	if err != nil {
		a.fail(err)
		return
	}
	for a.held > heldBytes && l.calls == 0 && a.err == nil && !l.dead && !c.closed {
		c.room.Wait()
	}
	a.take(u)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
