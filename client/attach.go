package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gladhand"
)

// Attachment follows a session. Next is for one goroutine at a time; the rest is
// safe for concurrent use.
type Attachment struct {
	c    *Client
	wake chan struct{} // one slot: there may be something for Next

	// The client's mu guards what follows.
	params gladhand.AttachParams
	snap   gladhand.Snapshot
	last   gladhand.Seq // the last To
	parts  []Update     // of a span that is not complete
	queue  []Update
	held   int // bytes in queue
	err    error
}

// GapError says that updates are missing or repeated: a fault, never the normal
// end of anything.
type GapError struct {
	Session   gladhand.SessionID
	Want, Got gladhand.Seq
}

func (e *GapError) Error() string {
	if e.Got < e.Want {
		return fmt.Sprintf("session %s: update %d came again (%d was next); attach again", e.Session, e.Got, e.Want)
	}
	return fmt.Sprintf("session %s: the updates %d to %d are missing; attach again", e.Session, e.Want, e.Got-1)
}

// Attach follows a session, which opens it when it was closed. A session has one
// attachment in a client; a second replaces the first. The session's id may be
// the beginning of exactly one. Errors: the daemon's, ReasonUnavailable.
func (c *Client) Attach(ctx context.Context, p gladhand.AttachParams) (*Attachment, error) {
	a := &Attachment{c: c, wake: make(chan struct{}, 1), params: p}
	for try := 1; ; try++ {
		l, err := c.live(ctx)
		if err != nil {
			return nil, err
		}
		switch err = c.attachOn(ctx, l, a); {
		case err == nil:
			if c.follow(a, l) {
				return a, nil
			}
		case l.conn.Err() == nil || ctx.Err() != nil || try == 5:
			return nil, fromWire(err)
		default:
			<-l.conn.Done()
			c.lost(l)
		}
	}
}

// follow puts an attachment into the list of those that survive a loss. It
// reports false when the link it is on is not the client's any more.
func (c *Client) follow(a *Attachment, l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return false
	}
	id := a.params.SessionID
	c.attached = slices.DeleteFunc(c.attached, func(o *Attachment) bool {
		if o.params.SessionID == id {
			o.fail(fmt.Errorf("session %s was attached again", id))
			return true
		}
		return false
	})
	c.attached = append(c.attached, a)
	if l.dead { // before a was in the list
		a.add(Update{Link: Lost, Err: fromWire(l.conn.Err())})
	}
	return true
}

// attachOn attaches a on l behind its last number, and routes updates to it from
// the very answer on.
func (c *Client) attachOn(ctx context.Context, l *link, a *Attachment) error {
	c.mu.Lock()
	p := a.params
	again := a.snap.Session.ID != ""
	if again {
		after := int64(a.last)
		p.After = &after
	}
	c.mu.Unlock()
	c.calling(l, 1)
	defer c.calling(l, -1)

	got := make(chan error, 1)
	l.attaching.Lock()
	call, err := l.conn.Start(gladhand.MethodAttach, p)
	if err == nil {
		call.Then(func(raw json.RawMessage, err error) { got <- c.attachedOn(l, a, p, again, raw, err) })
	}
	l.attaching.Unlock()
	if err != nil {
		return err
	}
	select {
	case err := <-got:
		return err
	case <-ctx.Done():
		call.Cancel()
		<-got
		return ctx.Err()
	}
}

// attachedOn takes the answer to an attach, before any update behind it.
func (c *Client) attachedOn(l *link, a *Attachment, p gladhand.AttachParams, again bool, raw json.RawMessage, err error) error {
	if err != nil {
		return err
	}
	var r gladhand.AttachResult
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("the daemon's answer to an attach cannot be read: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.snap, a.parts = r.Snapshot, nil
	a.params.SessionID = r.Snapshot.Session.ID
	switch {
	case again:
		a.add(Update{Link: Back})
	case p.After == nil:
		a.last = 0
	case *p.After < 0:
		a.last = r.Seq
	default:
		a.last = gladhand.Seq(*p.After)
	}
	l.routes[a.params.SessionID] = a
	return nil
}

// Session is the session's whole id.
func (a *Attachment) Session() gladhand.SessionID {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	return a.params.SessionID
}

// Snapshot is the session's state as of the newest attach: after Back, that of
// the new connection.
func (a *Attachment) Snapshot() gladhand.Snapshot {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	return a.snap
}

// gone ends the attachment because the daemon's did; mu is held. A session that
// is gone only because its daemon stops comes back with the next one.
func (a *Attachment) gone(e gladhand.TurnError) {
	err := gladhand.FromWire(int(e.Code), e.Message, e.Data)
	if err.Reason == gladhand.ReasonUnavailable {
		a.c.stopped = true
		return
	}
	a.fail(err)
}

// Next waits for the next update, or for news of the connection, which it makes
// again when it was lost. It returns ctx's error when that ends first; any other
// error is the attachment's end.
func (a *Attachment) Next(ctx context.Context) (Update, error) {
	c := a.c
	for {
		c.mu.Lock()
		if len(a.queue) > 0 {
			u := a.queue[0]
			a.queue[0] = Update{}
			a.queue = a.queue[1:]
			full := a.held > heldBytes
			a.held -= len(u.Raw)
			if full {
				c.room.Broadcast()
			}
			c.mu.Unlock()
			return u, nil
		}
		err, dead := a.err, c.link.dead
		c.mu.Unlock()
		if err != nil {
			return Update{}, err
		}
		if dead {
			if _, err := c.live(ctx); err != nil {
				return Update{}, err
			}
			continue
		}
		select {
		case <-a.wake:
		case <-ctx.Done():
			return Update{}, ctx.Err()
		}
	}
}

// Detach leaves the session. Updates that Next has not returned are dropped.
func (a *Attachment) Detach(ctx context.Context) error {
	c := a.c
	c.mu.Lock()
	id, l := a.params.SessionID, c.link
	c.attached = slices.DeleteFunc(c.attached, func(o *Attachment) bool { return o == a })
	a.fail(gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonGone, "detached"))
	a.queue, a.held = nil, 0
	mine := l.routes[id] == a
	if mine {
		delete(l.routes, id)
	}
	dead := l.dead
	c.mu.Unlock()
	if dead || !mine {
		return nil
	}
	return fromWire(c.callOn(ctx, l, gladhand.MethodDetach, gladhand.SessionParams{SessionID: id}, nil))
}

// take files an update of the session behind those before it; mu is held. The
// updates of one span become visible together, so that a loss within it repeats
// none of them.
func (a *Attachment) take(u Update) {
	if a.err != nil {
		return
	}
	want := a.last + 1
	if u.Meta.From != want || u.Meta.To < want && !u.Meta.Part {
		a.fail(&GapError{Session: a.params.SessionID, Want: want, Got: u.Meta.From})
		return
	}
	if u.Meta.Part {
		a.parts = append(a.parts, u)
		return
	}
	for _, p := range a.parts {
		a.add(p)
	}
	a.parts = nil
	a.last = u.Meta.To
	a.add(u)
}

// add queues an update for Next; mu is held.
func (a *Attachment) add(u Update) {
	a.queue = append(a.queue, u)
	a.held += len(u.Raw)
	a.signal()
}

// fail ends the attachment, behind what is queued; mu is held.
func (a *Attachment) fail(err error) {
	if a.err == nil {
		a.err = err
		a.signal()
		a.c.room.Broadcast()
	}
}

func (a *Attachment) signal() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}
