package rpc

import "sync"

// Budget bounds the bytes that the unfinished frames of all connections that
// share it hold, each beyond its first 64 KiB. A connection that finds it used
// up waits, and its frame's time runs.
//
// Connections that each hold a part of a frame and wait for the rest could wait
// for each other. So a part of the budget is lent whole, to one at a time: that
// one finishes, and what it held serves the others.
type Budget struct {
	reserve int64 // what is lent whole

	mu      sync.Mutex // guards what follows
	free    int64      // of what is not lent whole
	lent    bool
	waiting []*draw // oldest first
}

// draw is what one connection holds of a budget. Only its reader uses it.
type draw struct {
	held     int64 // of what is not lent whole
	borrowed int64 // of the reserve
	borrower bool

	want  int64
	ready chan struct{} // closed when want was granted; guarded by the budget
}

// NewBudget returns a budget of that many bytes. The largest frame should be at
// most a sixteenth of it, to be sure that one can always finish.
func NewBudget(bytes int64) *Budget {
	reserve := bytes / 16
	return &Budget{reserve: reserve, free: bytes - reserve}
}

// acquire adds n bytes to d, and waits for them until stop is closed. It
// reports whether it got them.
func (b *Budget) acquire(d *draw, n int64, stop <-chan struct{}) bool {
	b.mu.Lock()
	if d.borrower && d.borrowed+n <= b.reserve {
		d.borrowed += n // ahead of those who wait for it to finish
		b.mu.Unlock()
		return true
	}
	d.want, d.ready = n, make(chan struct{})
	b.waiting = append(b.waiting, d)
	b.grant()
	b.mu.Unlock()
	select {
	case <-d.ready:
		return true
	case <-stop:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiting {
		if other == d {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.grant()
			return false
		}
	}
	return true
}

// grant gives to those who wait, in order, what there is.
func (b *Budget) grant() {
	for len(b.waiting) > 0 {
		d := b.waiting[0]
		switch {
		case d.want <= b.free:
			b.free -= d.want
			d.held += d.want
		case !b.lent && d.want <= b.reserve:
			b.lent, d.borrower, d.borrowed = true, true, d.want
		default:
			return
		}
		close(d.ready)
		b.waiting[0] = nil
		b.waiting = b.waiting[1:]
	}
	b.waiting = nil
}

// release gives back all that d holds.
func (b *Budget) release(d *draw) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += d.held
	if d.borrower {
		b.lent = false
	}
	*d = draw{}
	b.grant()
}
