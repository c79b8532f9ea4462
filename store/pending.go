package store

import (
	"cmp"
	"math"
	"slices"

	"gladhand"
)

// pending are the events of a batch before they are stored. Putting them off
// until the commit costs an item that only has events no statement of its own,
// writes an entry that grew twice in a batch once, and writes in order.
type pending struct {
	rows  []row
	heads []byte // the heads of rows, one behind the other
}

// row is an event's row. Its head is heads[from:to].
type row struct {
	pos      int64
	last     gladhand.Seq
	from, to int
	update   []byte
}

// add appends an event of the session with this key.
func (p *pending) add(key int64, e *gladhand.Event, by []byte) {
	r := row{pos: position(key, e.First), last: e.Last, from: len(p.heads), update: e.Update}
	p.heads = appendHead(p.heads, r.pos, e, by)
	r.to = len(p.heads)
	p.rows = append(p.rows, r)
}

// truncate leaves the first n.
func (p *pending) truncate(n int) {
	if n < len(p.rows) {
		p.heads = p.heads[:p.rows[n].from]
		clear(p.rows[n:]) // let go of the updates
		p.rows = p.rows[:n]
	}
	if n == 0 && cap(p.heads) > 1<<20 {
		*p = pending{}
	}
}

// sort orders the rows by position; of several for one, the last stays.
func (p *pending) sort() {
	slices.SortStableFunc(p.rows, func(a, b row) int { return cmp.Compare(a.pos, b.pos) })
	kept := p.rows[:0]
	for i, r := range p.rows {
		if i+1 < len(p.rows) && p.rows[i+1].pos == r.pos {
			p.rows[i+1].last = max(p.rows[i+1].last, r.last)
			continue
		}
		kept = append(kept, r)
	}
	clear(p.rows[len(kept):])
	p.rows = kept
}

// PutEvents stores events of a session. An event whose First is stored already
// replaces that one: a run that is still open is written again as it grows. The
// events, and what they point to, must not change afterwards.
func (tx *Tx) PutEvents(id gladhand.SessionID, events ...*gladhand.Event) error {
	if len(events) == 0 {
		return nil
	}
	key, err := tx.key(id)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := checkEvent(e); err != nil {
			return gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonInvalid, "store: %w", err)
		}
		by, err := tx.identity(e.By)
		if err != nil {
			return err
		}
		before := len(tx.events.heads)
		tx.events.add(key, e, by)
		tx.bytes += len(tx.events.heads) - before + len(e.Update)
	}
	return nil
}

// A page of the events table holds one session's events, so a commit for many
// sessions would write as many pages, and more where pages split. Above fanOut
// sessions a commit therefore puts events that are not large into the table
// recent, one behind the other; when that has recentMax rows they are moved to
// their places together, sorted. Readers merge both tables.
const (
	fanOut      = 16
	recentMax   = 4096
	recentBytes = 2 << 10
)

// sessions counts the sessions of sorted rows.
func (p *pending) sessions() int {
	n, last := 0, int64(-1)
	for _, r := range p.rows {
		if key := r.pos >> seqBits; key != last {
			n, last = n+1, key
		}
	}
	return n
}

// finish stores what was put off until the commit.
func (tx *Tx) finish() error {
	tx.events.sort()
	rows := tx.events.rows
	wide := tx.fanOut > 0 && tx.events.sessions() >= tx.fanOut
	for i, r := range rows {
		if err := tx.store(r, wide && len(r.update) <= recentBytes); err != nil {
			return err
		}
		// The last row of a session has its last number: entries do not overlap.
		if key := r.pos >> seqBits; i+1 == len(rows) || rows[i+1].pos>>seqBits != key {
			if err := tx.c.exec(qRaiseHead, key, int64(r.last)); err != nil {
				return err
			}
		}
	}
	return nil
}

// store writes a row to the table recent or to its place.
func (tx *Tx) store(r row, recent bool) error {
	q := qPutEvent
	if recent {
		q = qPutRecent
		tx.noted++
	} else if tx.recents > 0 {
		if err := tx.c.exec(qDropRecent, r.pos); err != nil {
			return err
		}
	}
	st, err := tx.c.bound(q)
	if err != nil {
		return err
	}
	st.BindInt64(1, r.pos)
	st.BindBytes(2, tx.events.heads[r.from:r.to])
	st.BindBytes(3, r.update)
	if _, err := st.Step(); err != nil {
		return err
	}
	return st.Reset()
}

// settle moves the recent events to their places, when there are many.
func (w *writer) settle() {
	if w.tx.recents < w.settleAt {
		return
	}
	err := w.begin()
	if err == nil {
		if err = w.c.exec(qSettle); err == nil {
			err = w.c.exec(qForget)
		}
		err = w.end(err)
	}
	w.settleAt = w.recentMax
	switch {
	case err == nil:
		w.tx.recents = 0
	case isDamage(err):
		// They stay where they are, and it gets no more.
		w.tx.fanOut, w.settleAt = 0, math.MaxInt
		w.log.Warn("store: recent events cannot be moved to their places, since a part of the database is damaged", "dir", w.dir, "err", err)
		return
	default:
		w.settleAt += w.tx.recents
	}
	w.report(typed(err, w.dir))
}
