package session

import (
	"context"
	"sort"

	"gladhand"
)

// Item is an event as one reader gets it.
type Item struct {
	// From and To are the numbers the reader is told it covers: From is the last
	// To and one, so that numbers which carry nothing for it are absorbed.
	From, To gladhand.Seq
	// Event is what the reader has not seen of it. Readers at the same cursor get
	// the same pointer, so that what is made of it can be shared.
	Event *gladhand.Event
}

// Cursor reads a session's log from a number on. It is used by one goroutine.
type Cursor struct {
	s    *Session
	at   gladhand.Seq // has seen everything up to here
	told gladhand.Seq // the last To
	wake chan struct{}
}

func (s *Session) cursor(after gladhand.Seq) *Cursor {
	return &Cursor{s: s, at: after, told: after, wake: make(chan struct{}, 1)}
}

// At is the last number that Next returned.
func (c *Cursor) At() gladhand.Seq { return c.told }

// Seen is how far the cursor has come: At, or a higher number when those between
// carry nothing.
func (c *Cursor) Seen() gladhand.Seq { return c.at }

// Clone returns another cursor at the same place, for another goroutine.
func (c *Cursor) Clone() *Cursor {
	return &Cursor{s: c.s, at: c.at, told: c.told, wake: make(chan struct{}, 1)}
}

// Skip moves the cursor on to a number: its reader got everything up to there in
// another way.
func (c *Cursor) Skip(to gladhand.Seq) { c.at, c.told = max(c.at, to), max(c.told, to) }

// Wait waits until there is something behind the cursor. Its errors are those of
// [Cursor.Next].
func (c *Cursor) Wait(ctx context.Context) error {
	for {
		s := c.s
		s.mu.Lock()
		more, gone := c.at < s.log.shown, s.gone
		if !more && gone == nil {
			s.log.waiting = append(s.log.waiting, c)
		}
		s.mu.Unlock()
		switch {
		case more:
			return nil
		case gone != nil:
			return gone
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Next waits for events behind the cursor, returns a page of them (about 256 KiB,
// at least one) and moves on. Its error is ctx's, the store's, or of
// [gladhand.ReasonGone] when the session was closed and everything was read.
func (c *Cursor) Next(ctx context.Context) ([]Item, error) {
	for {
		items, err := c.Poll(ctx)
		if len(items) > 0 || err != nil {
			return items, err
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Poll is Next without waiting: no items and no error mean that the cursor has
// seen everything, and that its session will wake Next when there is more.
func (c *Cursor) Poll(ctx context.Context) ([]Item, error) {
	s := c.s
	for {
		s.mu.Lock()
		l := &s.log
		if c.at >= l.shown {
			if s.gone != nil {
				s.mu.Unlock()
				return nil, s.gone
			}
			l.waiting = append(l.waiting, c)
			s.mu.Unlock()
			return nil, nil
		}
		if c.at >= l.tail.from {
			items := c.read(l)
			s.mu.Unlock()
			if len(items) > 0 {
				return items, nil
			}
			continue
		}
		from, shown := l.tail.from, l.shown
		s.mu.Unlock()
		events, err := s.store.Events(ctx, s.id, c.at, pageBytes)
		if err != nil {
			return nil, err
		}
		if items := c.take(events, min(from, shown)); len(items) > 0 {
			return items, nil
		}
		c.at = min(from, shown) // the numbers up to there carry nothing
	}
}

// read takes a page from the tail; mu is held.
func (c *Cursor) read(l *eventLog) []Item {
	i := sort.Search(len(l.tail.entries), func(i int) bool { return l.tail.entries[i].last() > c.at })
	var items []Item
	size := 0
	for ; i < len(l.tail.entries) && size < pageBytes; i++ {
		e := l.tail.entries[i]
		if e.first() > l.shown {
			break
		}
		ev := e.run.After(c.at)
		items = append(items, c.item(ev))
		size += len(ev.Update)
	}
	if len(items) == 0 {
		c.at = l.shown
	}
	return items
}

// take turns stored events into items, up to and including limit: what is
// above it is read from the tail, which may know more.
func (c *Cursor) take(events []*gladhand.Event, limit gladhand.Seq) []Item {
	items := make([]Item, 0, len(events))
	for _, ev := range events {
		if ev.First > limit {
			break
		}
		items = append(items, c.item(ev.After(c.at)))
	}
	return items
}

func (c *Cursor) item(ev *gladhand.Event) Item {
	it := Item{From: c.told + 1, To: ev.Last, Event: ev}
	c.at, c.told = ev.Last, ev.Last
	return it
}
