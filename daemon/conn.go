package daemon

import (
	"context"
	"log/slog"
	"sync"

	"gladhand"
	"gladhand/acp"
	"gladhand/rpc"
	"gladhand/session"
)

// conn is one connection.
type conn struct {
	d   *Daemon
	rpc *rpc.Conn
	log *slog.Logger

	// paging is held while a page is made and waits for room; taken before mu.
	paging sync.Mutex

	mu      sync.Mutex // guards what follows; taken before no other lock of ours
	who     gladhand.Identity
	version int // ACP's; 0 until initialize succeeded
	caps    acp.ClientCaps
	feeds   map[gladhand.SessionID]*feed
	left    bool
}

// identity is who the connection is, with its label.
func (c *conn) identity() gladhand.Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.who
}

// handle is rpc's handler: it runs on the read loop.
func (c *conn) handle(ctx context.Context, r *rpc.Request) {
	m := methods[r.Method]
	switch {
	case m == nil && r.IsNotification():
		c.log.Debug("an unknown notification was ignored", "method", r.Method)
	case m == nil:
		r.Fail(gladhand.Errorf(gladhand.CodeNoMethod, gladhand.ReasonUnsupported, "there is no method %q", r.Method))
	case c.version == 0 && r.Method != acp.MethodInitialize:
		r.Fail(gladhand.Errorf(gladhand.CodeInitializeFirst, gladhand.ReasonInvalid, "send initialize first"))
	case c.version != 0 && m.version != 0 && m.version != c.version:
		r.Fail(gladhand.Errorf(gladhand.CodeNoMethod, gladhand.ReasonUnsupported, "version %d of the protocol has no method %q", c.version, r.Method))
	case m.inline:
		c.call(r.Context(), m, r)
	case m.page:
		go c.page(r.Context(), m, r)
	default:
		go c.call(r.Context(), m, r)
	}
}

// call runs a handler and writes what it returns. A handler that answers by
// itself, later, returns errLater.
func (c *conn) call(ctx context.Context, m *method, r *rpc.Request) {
	result, err := m.handle(c, ctx, r)
	switch {
	case err == errLater:
	case err != nil:
		r.Fail(err)
	default:
		r.Reply(result)
	}
}

// page is call for a handler whose result may be large. The connection makes one
// at a time, and the next when there was room for the last: who asks a thousand
// times and reads nothing must not make us hold a thousand pages.
func (c *conn) page(ctx context.Context, m *method, r *rpc.Request) {
	c.paging.Lock()
	defer c.paging.Unlock()
	if ctx.Err() != nil {
		r.Fail(context.Cause(ctx))
		return
	}
	result, err := m.handle(c, ctx, r)
	if err == nil {
		err = r.SendReply(ctx, result)
	}
	if err != nil {
		r.Fail(err)
	}
}

// attach puts the connection on a session, or moves it there anew: one feed for a
// session. introduce runs between the attaching and the first thing the feed
// writes, with the snapshot: it answers the request that caused it.
func (c *conn) attach(s *session.Session, how feedOptions, introduce func(*feed, gladhand.Snapshot)) error {
	who := c.identity()
	if how.label != "" {
		who.Label = how.label
	}
	who.Task = how.task
	if how.observer {
		who.Rights &= gladhand.Watch
	}
	a, snap, err := s.Attach(who, how.after, how.noAnswer)
	if err != nil {
		return err
	}
	f := newFeed(c, s, a, how, snap)
	c.mu.Lock()
	old := c.feeds[s.ID()]
	if c.left {
		c.mu.Unlock()
		s.Detach(a)
		return gladhand.Errorf(gladhand.CodeCancelled, "", "the connection has ended")
	}
	c.feeds[s.ID()] = f
	c.mu.Unlock()
	if old != nil {
		f.inherit(old.end())
	}
	introduce(f, snap)
	go f.run()
	return nil
}

// feed returns the connection's feed of a session, or an error that says how to
// get one.
func (c *conn) feed(id gladhand.SessionID) (*feed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.feeds[id]; f != nil {
		return f, nil
	}
	if c.d.host.Live(id) != nil {
		return nil, gladhand.Errorf(gladhand.CodeUnowned, gladhand.ReasonUnowned, "this connection is not attached to session %s; load, resume or attach it first", id)
	}
	return nil, gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonNotFound, "no open session %s; load, resume or attach it first", id).With("sessionId", id)
}

// detach takes the connection off a session.
func (c *conn) detach(id gladhand.SessionID) {
	c.mu.Lock()
	f := c.feeds[id]
	delete(c.feeds, id)
	c.mu.Unlock()
	if f != nil {
		f.end()
		f.s.Detach(f.a)
	}
}

// leave takes the connection off everything: its turns and asks go on.
func (c *conn) leave() {
	c.mu.Lock()
	c.left = true
	feeds := c.feeds
	c.feeds = map[gladhand.SessionID]*feed{}
	c.mu.Unlock()
	for _, f := range feeds {
		f.end()
		f.s.Detach(f.a)
	}
}

// finish lets the feeds write what is left, and ends the connection.
func (c *conn) finish(ctx context.Context) {
	c.mu.Lock()
	feeds := make([]*feed, 0, len(c.feeds))
	for _, f := range c.feeds {
		feeds = append(feeds, f)
	}
	c.mu.Unlock()
	for _, f := range feeds {
		select {
		case <-f.done:
		case <-ctx.Done():
		}
	}
	if err := c.rpc.Flush(ctx); err != nil {
		c.log.Debug("the connection could not be flushed", "err", err)
	}
	c.rpc.Close()
}
