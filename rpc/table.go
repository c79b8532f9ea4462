package rpc

import (
	"bytes"
	"strconv"
	"sync"
)

// table has what is unanswered, in both directions. The two never mix: an id of
// ours and the same id of the peer's are two requests.
type table struct {
	prefix string
	limit  int

	mu sync.Mutex // guards what follows, and the state of every Request and Pending
	// calls are ours, by id; nil when no more can be answered, for the reason in closed.
	calls  map[string]*Pending
	closed error
	next   uint64
	// first is the oldest of the peer's requests in flight, in a ring. Cancelling
	// one is rare, so they are searched; an id that is used twice is no harm.
	first *Request
	count int
	idle  chan struct{} // closed when count falls to 0; nil when nobody waits for that
}

func (t *table) init(prefix string, limit int) {
	t.prefix, t.limit = prefix, limit
	t.calls = map[string]*Pending{}
}

// open registers a call of ours under a fresh id.
func (t *table) open(p *Pending) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		return t.closed
	}
	if len(t.calls) >= t.limit {
		return errTooManyCalls
	}
	t.next++
	p.id = t.prefix + strconv.FormatUint(t.next, 10)
	t.calls[p.id] = p
	return nil
}

// take removes a call of ours, or returns nil when there is none.
func (t *table) take(id string) *Pending {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.calls[id]
	delete(t.calls, id)
	return p
}

// failCalls fails every call of ours and all that follow.
func (t *table) failCalls(err error) {
	t.mu.Lock()
	calls := t.calls
	t.calls = nil
	if t.closed == nil {
		t.closed = err
	}
	t.mu.Unlock()
	for _, p := range calls {
		p.settle(nil, err)
	}
}

// enter notes a request of the peer's. It reports false over the limit.
func (t *table) enter(r *Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count >= t.limit {
		return false
	}
	t.count++
	if t.first == nil {
		t.first, r.prev, r.next = r, r, r
		return true
	}
	r.prev, r.next = t.first.prev, t.first
	r.prev.next, r.next.prev = r, r
	return true
}

// claim gives the right to answer a request to its first caller.
func (t *table) claim(r *Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !r.answered
	r.answered = true
	return first
}

// unclaim takes a claim back: the answer could not be sent.
func (t *table) unclaim(r *Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.answered = false
}

// leave notes that the answer to a claimed request is being queued. It is
// called at just that moment: before it, a connection that lingers for its
// answers would end without this one; after it, the peer could have the answer
// and be refused the next request for too many in flight. So this lock is taken
// with the outbox's held, and never the other way round.
func (t *table) leave(r *Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.cancel != nil {
		r.cancel(nil)
	}
	if r.next == nil {
		return // was refused on entering
	}
	if t.count--; t.count == 0 {
		t.first = nil
		if t.idle != nil {
			close(t.idle)
			t.idle = nil
		}
	} else {
		r.prev.next, r.next.prev = r.next, r.prev
		if t.first == r {
			t.first = r.next
		}
	}
	r.prev, r.next = nil, nil
}

// cancelRequest ends the context of the peer's requests with that id.
func (t *table) cancelRequest(id []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.first
	for range t.count {
		if bytes.Equal(r.id, id) {
			r.cancelled = true
			if r.cancel != nil {
				r.cancel(errCancelled)
			}
		}
		r = r.next
	}
}

// served returns nil when no request of the peer's is in flight, else a channel
// that is closed when none is.
func (t *table) served() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 {
		return nil
	}
	t.idle = make(chan struct{})
	return t.idle
}
