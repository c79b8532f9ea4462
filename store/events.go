package store

import (
	"context"

	"gladhand"

	"zombiezen.com/go/sqlite"
)

// Events returns the entries of a session's log with Last > after, in order,
// stopping after about maxBytes of updates but with at least one. Entries that
// cannot be read are left out, with a warning in the log. For a session that is
// not there it returns none.
func (s *Store) Events(ctx context.Context, id gladhand.SessionID, after gladhand.Seq, maxBytes int) ([]*gladhand.Event, error) {
	if after >= maxSeq {
		return nil, nil
	}
	p := page{s: s, id: id, after: after, left: maxBytes}
	err := s.read(ctx, func(c *conn) error {
		key, found, err := sessionKey(c, id)
		if err != nil || !found {
			return err
		}
		p.end = position(key, maxSeq)
		p.next = position(key, after)
		// The entry that covers after begins at or before it.
		var first int64
		for _, q := range []query{qFirstEvent, qFirstRecent} {
			_, err := c.one(q, func(st *sqlite.Stmt) { first = max(first, st.ColumnInt64(0)) }, position(key, 0), p.next)
			if err != nil && !isDamage(err) {
				return err
			}
		}
		if first > 0 {
			p.next = first
		}
		return p.fill(c)
	})
	return p.events, err
}

// EventAt returns the entry whose First is first; CodeNotFound when there is
// none, ReasonMalformed when it is damaged.
func (s *Store) EventAt(ctx context.Context, id gladhand.SessionID, first gladhand.Seq) (*gladhand.Event, error) {
	p := page{s: s, id: id}
	err := s.read(ctx, func(c *conn) error {
		key, found, err := sessionKey(c, id)
		if err != nil {
			return err
		}
		if found = found && first > 0 && first <= maxSeq; found {
			if found, err = c.one(qRecent, p.row, position(key, first)); err == nil && !found {
				found, err = c.one(qEvent, p.row, position(key, first))
			}
		}
		switch {
		case err != nil:
			return err
		case !found:
			return notFound("session %q has no event that begins at %d", id, first)
		case len(p.events) == 0:
			return gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonMalformed, "the event %d of session %q is damaged", first, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p.events[0], nil
}

func sessionKey(c *conn, id gladhand.SessionID) (key int64, found bool, err error) {
	found, err = c.one(qKey, func(st *sqlite.Stmt) { key = st.ColumnInt64(0) }, string(id))
	return key, found, err
}

func isDamage(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultCorrupt }

// page collects entries. Events and updates are carved from blocks, since a
// replay would otherwise spend its time allocating; a block is small enough
// that one entry kept alive keeps little else.
type page struct {
	s     *Store
	id    gladhand.SessionID
	after gladhand.Seq
	left  int   // bytes of updates still wanted
	next  int64 // the position to go on from
	end   int64

	events []*gladhand.Event
	dec    decoder
	slab   []gladhand.Event
	block  []byte
	head   []byte
}

const (
	slabEvents = 64
	blockBytes = 16 << 10
)

// fill reads from p.next on, going around what is damaged.
func (p *page) fill(c *conn) error {
	for {
		err := p.scan(c, p.end, true)
		if err == nil || !isDamage(err) {
			return err
		}
		p.lost(err)
		next, ok := readable(c, p.next, p.end)
		if !ok {
			next = p.end + 1
		}
		if err := p.scan(c, next-1, false); err != nil || !ok || p.full() {
			return err
		}
		p.next = next
	}
}

// lost warns of a damaged page behind the rows that were read.
func (p *page) lost(err error) {
	if p.s.damaged.fresh(p.next) {
		p.s.warn("a part of a session's log is damaged and left out", "session", p.id, "after", firstOf(p.next), "err", err)
	}
}

func (p *page) full() bool { return p.left <= 0 && len(p.events) > 0 }

// scan reads rows up to end, in order of position, until the page is full or
// there are no more: those in the table recent and, when settled is set, those
// in their places. Of two for one position the recent one counts. Damage in
// the table recent hides only the rest of that.
func (p *page) scan(c *conn, end int64, settled bool) error {
	var places, recent cursor
	defer places.close()
	defer recent.close()
	if settled {
		if err := places.open(c, qEvents, p.next, end); err != nil {
			return err
		}
	}
	if err := p.around(recent.open(c, qRecents, p.next, end)); err != nil {
		return err
	}
	for places.ok || recent.ok {
		if !recent.ok || places.ok && places.pos < recent.pos {
			p.take(&places)
			if p.full() {
				return nil
			}
			if err := places.step(); err != nil {
				return err
			}
			continue
		}
		p.take(&recent)
		if p.full() {
			return nil
		}
		if places.ok && places.pos == recent.pos {
			if err := places.step(); err != nil {
				return err
			}
		}
		if err := p.around(recent.step()); err != nil {
			return err
		}
	}
	return nil
}

// around warns of damage in the table recent and goes on without.
func (p *page) around(err error) error {
	if isDamage(err) {
		p.lost(err)
		return nil
	}
	return err
}

func (p *page) take(k *cursor) {
	p.next = k.pos + 1
	p.row(k.st)
}

// cursor is a query that is being read.
type cursor struct {
	st  *sqlite.Stmt
	ok  bool // it stands on a row
	pos int64
}

func (k *cursor) open(c *conn, q query, from, to int64) (err error) {
	if k.st, err = c.bound(q, from, to); err != nil {
		return err
	}
	return k.step()
}

func (k *cursor) step() (err error) {
	if k.ok, err = k.st.Step(); err != nil {
		k.ok = false
	} else if k.ok {
		k.pos = k.st.ColumnInt64(0)
	}
	return err
}

func (k *cursor) close() {
	if k.st != nil {
		_ = k.st.Reset()
	}
}

// row decodes the row that st stands on, and warns when it cannot.
func (p *page) row(st *sqlite.Stmt) {
	pos := st.ColumnInt64(0)
	n := st.ColumnLen(1)
	if cap(p.head) < n {
		p.head = make([]byte, n*2)
	}
	head := p.head[:st.ColumnBytes(1, p.head[:n])]
	update := p.bytes(st.ColumnLen(2))
	update = update[:st.ColumnBytes(2, update)]
	if len(p.slab) == 0 {
		p.slab = make([]gladhand.Event, slabEvents)
	}
	e := &p.slab[0]
	if err := p.dec.decode(e, pos, head, update); err != nil {
		*e = gladhand.Event{}
		if p.s.damaged.fresh(pos) {
			p.s.warn("an event is damaged and left out", "session", p.id, "first", firstOf(pos), "err", err)
		}
		return
	}
	if e.Last <= p.after {
		return // it ends before what is wanted; the slot is used again
	}
	p.slab = p.slab[1:]
	p.left -= len(update)
	p.events = append(p.events, e)
}

// bytes returns room for n bytes, whose capacity ends where the next begins;
// nil for none.
func (p *page) bytes(n int) []byte {
	if n == 0 {
		return nil
	}
	if n > blockBytes/4 {
		return make([]byte, n)
	}
	if n > len(p.block) {
		p.block = make([]byte, blockBytes)
	}
	b := p.block[:n:n]
	p.block = p.block[n:]
	return b
}

// readable returns the first position behind bad where an entry can be read.
// The rows of a damaged page cannot be counted, so it looks further and further
// on until it meets a sound page, then goes back to where that begins.
func readable(c *conn, bad, end int64) (int64, bool) {
	seek := func(from int64) (pos int64, ok bool) {
		pos = end + 1
		_, err := c.one(qNextEvent, func(st *sqlite.Stmt) { pos = st.ColumnInt64(0) }, from, end)
		return pos, err == nil
	}
	low, step := bad, int64(1)
	for {
		from := min(low+step, end)
		if pos, ok := seek(from); ok {
			high := pos
			for high-low > 1 && from-low > 1 { // low is damaged, from is not
				mid := low + (from-low)/2
				if pos, ok := seek(mid); ok {
					from, high = mid, pos
				} else {
					low = mid
				}
			}
			return high, high <= end
		}
		if from == end {
			return 0, false
		}
		low, step = from, step*2
	}
}
