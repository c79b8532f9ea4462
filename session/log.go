package session

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/store"
)

// Limits of a log. They are the design's, and not settings.
const (
	// Checkpoint is how long growth may be shown without being stored.
	Checkpoint = 250 * time.Millisecond
	// UnsavedSession is how many bytes one session may have shown and not stored
	// before its agent waits for the store.
	UnsavedSession = 8 << 20
	// UnsavedAll is the same for all sessions of a host together.
	UnsavedAll = 64 << 20
	// EventMax is how many bytes an event's update may have.
	EventMax = 4 << 20
	// PromptMax is how many bytes a prompt's content may have, so that each of its
	// blocks fits into an event.
	PromptMax = EventMax - 1024

	tailRunning = 256 << 10 // bytes of stored events kept in memory while a turn runs
	tailIdle    = 8 << 10   // the same when none runs
	pageBytes   = 256 << 10 // one read of a cursor
)

// eventLog is the numbered log of one session: see the package comment. Its
// fields are guarded by mu, the session's mutex; methods are called with it held.
type eventLog struct {
	mu    *sync.Mutex
	store *store.Store
	id    gladhand.SessionID
	quota *quota

	last   gladhand.Seq // the highest number given out
	shown  gladhand.Seq // the highest number a reader may see
	stored gladhand.Seq // the highest number committed

	tail    tail
	writing writing
	dirty   []*entry // entries with something that the store was not handed yet
	hidden  []*entry // barriers not committed yet, oldest first
	unsaved int      // bytes appended and not committed
	room    signal   // fires when unsaved shrinks

	opens   map[string]gladhand.Seq // the first number of each id of this turn
	texts   acp.Shown               // how much of each message was shown
	timer   *time.Timer             // the checkpoint; armed while something is dirty
	waiting []*Cursor               // readers that have seen everything
	after   []func()                // to run once mu is released, in order
}

// tail is the end of the log that is in memory: every event whose Last is above
// from. What is stored and over max bytes is let go of, oldest first.
type tail struct {
	entries []*entry // oldest first
	from    gladhand.Seq
	bytes   int
	max     int
}

// entry is an event in the tail, and how far it got.
type entry struct {
	run    *acp.Run
	saved  gladhand.Seq // committed up to this number
	queued bool         // in dirty
	unsent int          // bytes of it that the store was not handed
	size   int          // bytes, about
	apart  bool         // nothing merges onto it
	op     *op
}

func (e *entry) first() gladhand.Seq { return e.run.First() }
func (e *entry) last() gladhand.Seq  { return e.run.Last() }

// op is what is stored together with one or more events, in one step.
type op struct {
	with   func(*store.Tx) error
	done   func(error) // called once with mu held: after the commit, or when it was reverted
	revert bool        // a failed commit takes the events out again; else it is tried again
}

// append numbers events and files them; o, which may be nil, belongs to all of
// them, and makes them one step. With o, or a fact, or the first of an id, what
// was appended is hidden until it is committed.
func (l *eventLog) append(o *op, events ...*gladhand.Event) {
	barrier := false
	for _, ev := range events {
		barrier = l.add(o, ev) || barrier
	}
	switch {
	case barrier || l.last-l.stored >= gladhand.SeqJump/2:
		l.flush()
	default:
		l.arm()
	}
	l.advance()
}

// add gives ev its numbers and puts it into the tail; it reports whether ev
// hides what follows.
func (l *eventLog) add(o *op, ev *gladhand.Event) (barrier bool) {
	n := l.last + 1
	span := ev.Last - ev.First // an interruption spans several
	ev.First, ev.Last, ev.Opens = n, n+span, n
	l.last = ev.Last
	barrier = o != nil || ev.Class == gladhand.Fact || ev.Turn == 0
	if acp.Unnamed(ev) {
		l.name(ev)
	}
	if ev.ID != "" {
		if first, known := l.opens[ev.ID]; known {
			ev.Opens = first
		} else {
			l.opens[ev.ID] = n
			barrier = true
		}
	}
	if ev.Base == 0 { // else it was set by who restates what was shown
		l.texts.Note(ev)
	}
	size := len(ev.Update)
	l.tail.bytes += size
	if !barrier && len(l.tail.entries) > 0 {
		e := l.tail.entries[len(l.tail.entries)-1]
		if !e.apart && e.op == nil && e.run.Add(ev) {
			e.size += size
			l.mark(e, size)
			return false
		}
	}
	e := &entry{run: acp.NewRun(ev), op: o, size: size}
	l.tail.entries = append(l.tail.entries, e)
	if barrier {
		l.hidden = append(l.hidden, e)
	}
	l.mark(e, size)
	return barrier
}

// name gives a chunk that came without a message id the one of the message it
// goes on with: adjacent chunks of one tag and turn are one message.
func (l *eventLog) name(ev *gladhand.Event) {
	if n := len(l.tail.entries); n > 0 {
		if p := l.tail.entries[n-1].run.Opening(); p.Tag == ev.Tag && p.Turn == ev.Turn && strings.HasPrefix(p.ID, ev.ID+"#") {
			ev.ID = p.ID
			return
		}
	}
	ev.ID += "#" + strconv.FormatUint(uint64(ev.First), 10)
}

func (l *eventLog) mark(e *entry, bytes int) {
	e.unsent += bytes
	l.unsaved += bytes
	l.quota.add(bytes)
	if !e.queued {
		e.queued = true
		l.dirty = append(l.dirty, e)
	}
}

// batch is what one write hands to the store: the entries of one op, or neighbours
// that have none.
type batch struct {
	n       uint64
	op      *op // may be nil
	entries []*entry
	events  []*gladhand.Event
	bytes   []int
}

// again reports whether the batch is tried again when it fails.
func (b *batch) again() bool { return b.op == nil || !b.op.revert }

func (b *batch) store(tx *store.Tx, id gladhand.SessionID) error {
	if b.op != nil && b.op.with != nil {
		if err := b.op.with(tx); err != nil {
			return err
		}
	}
	return tx.PutEvents(id, b.events...)
}

// writing is how far what was handed to the store has come. What failed and is
// tried again must not be overtaken: a row would go back to what it was, and a
// turn begin in front of the end of the one before. So every batch behind it
// fails with it, and all that is to be stored goes again, in order, once the
// store has answered for each.
type writing struct {
	batches uint64 // handed over so far
	flying  int    // not answered yet
	stuck   atomic.Pointer[stuck]
	warn    func(error) // what failed for a reason that is not the disk's
	warned  string
}

// stuck is a batch that failed and is tried again. The store's goroutine sets it
// too, where one transaction holds that batch and the next.
type stuck struct {
	batch uint64
	err   error
}

// flush hands everything that is dirty to the store, in order.
func (l *eventLog) flush() {
	if len(l.dirty) == 0 {
		return
	}
	if l.writing.stuck.Load() != nil {
		if l.writing.flying > 0 {
			l.arm()
			return
		}
		l.writing.stuck.Store(nil)
		slices.SortFunc(l.dirty, func(a, b *entry) int { return cmp.Compare(a.first(), b.first()) })
	}
	dirty := l.dirty
	l.dirty = nil
	for len(dirty) > 0 {
		n := 1
		for n < len(dirty) && dirty[n].op == dirty[0].op {
			n++
		}
		l.hand(&batch{op: dirty[0].op, entries: dirty[:n:n]})
		dirty = dirty[n:]
	}
}

// hand gives a batch to the store.
func (l *eventLog) hand(b *batch) {
	for _, e := range b.entries {
		b.events = append(b.events, e.run.Event())
		b.bytes = append(b.bytes, e.unsent)
		e.queued, e.unsent = false, 0
	}
	w := &l.writing
	w.batches++
	w.flying++
	b.n = w.batches
	l.store.Write(func(tx *store.Tx) error {
		s := w.stuck.Load()
		switch {
		case s != nil && s.batch < b.n:
			return s.err
		case s != nil && s.batch == b.n: // the store tries it once more by itself
			w.stuck.Store(nil)
		}
		err := b.store(tx, l.id)
		if err != nil && b.again() {
			w.stuck.CompareAndSwap(nil, &stuck{b.n, err})
		}
		return err
	}, func(err error) { l.committed(b, err) })
}

// committed is the store's word about a batch. It takes mu.
func (l *eventLog) committed(b *batch, err error) {
	l.mu.Lock()
	l.writing.flying--
	for i, e := range b.entries {
		l.unsaved -= b.bytes[i]
		l.quota.add(-b.bytes[i])
		switch {
		case err == nil:
			e.saved = b.events[i].Last
			l.stored = max(l.stored, e.saved)
		case b.again():
			l.mark(e, b.bytes[i])
		default:
			l.remove(e)
		}
	}
	if err != nil && b.again() {
		l.retry(b, err)
	} else {
		if b.op != nil {
			if b.op.done != nil {
				b.op.done(err)
			}
			for _, e := range b.entries {
				e.op, e.apart = nil, true
			}
		}
		if err == nil {
			l.writing.warned = ""
		}
	}
	l.room.fire()
	l.advance()
	l.trim()
	l.unlock()
}

// retry has a batch that failed tried again, in a while or with the next one.
func (l *eventLog) retry(b *batch, err error) {
	w := &l.writing
	w.stuck.CompareAndSwap(nil, &stuck{b.n, err})
	l.arm()
	// The store tells what its disk does.
	if text := err.Error(); w.stuck.Load().batch == b.n && l.store.Health() == nil && text != w.warned && w.warn != nil {
		w.warned = text
		w.warn(err)
	}
}

// arm has what is dirty stored within a Checkpoint.
func (l *eventLog) arm() {
	if l.timer == nil {
		l.timer = time.AfterFunc(Checkpoint, l.checkpoint)
	}
}

// checkpoint is the timer's: it stores the growth that was shown.
func (l *eventLog) checkpoint() {
	l.mu.Lock()
	l.timer = nil
	l.flush()
	l.unlock()
}

// unlock releases mu and runs what was put off until then.
func (l *eventLog) unlock() {
	after := l.after
	l.after = nil
	l.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// later runs f once mu is released.
func (l *eventLog) later(f func()) { l.after = append(l.after, f) }

// remove takes a reverted entry out; readers absorb its numbers.
func (l *eventLog) remove(e *entry) {
	for i := len(l.tail.entries) - 1; i >= 0; i-- {
		if l.tail.entries[i] == e {
			l.tail.entries = append(l.tail.entries[:i:i], l.tail.entries[i+1:]...)
			l.tail.bytes -= e.size
			break
		}
	}
	e.saved = e.last()
	if ev := e.run.Event(); ev.ID != "" && ev.Opens == ev.First {
		delete(l.opens, ev.ID)
	}
}

// advance moves shown on to the next barrier and wakes the readers.
func (l *eventLog) advance() {
	for len(l.hidden) > 0 && l.hidden[0].saved >= l.hidden[0].first() {
		l.hidden = l.hidden[1:]
	}
	shown := l.last
	if len(l.hidden) > 0 {
		shown = l.hidden[0].first() - 1
	}
	if shown <= l.shown {
		return
	}
	l.shown = shown
	l.wake()
}

func (l *eventLog) wake() {
	for i, c := range l.waiting {
		l.waiting[i] = nil
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	l.waiting = l.waiting[:0]
}

// trim lets go of old events that are stored, down to its max.
func (l *eventLog) trim() {
	n := 0
	for n < len(l.tail.entries) && l.tail.bytes > l.tail.max {
		e := l.tail.entries[n]
		if e.saved < e.last() || e.last() > l.shown {
			break
		}
		l.tail.bytes -= e.size
		l.tail.from = e.last()
		n++
	}
	if n > 0 {
		l.tail.entries = append([]*entry(nil), l.tail.entries[n:]...)
	}
}

// endTurn forgets what only the running turn needed.
func (l *eventLog) endTurn() {
	l.opens = map[string]gladhand.Seq{}
	l.texts.End()
	l.tail.max = tailIdle
	l.trim()
}

// signal wakes everybody who waits on its channel.
type signal struct{ c chan struct{} }

func (s *signal) wait() <-chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) fire() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// quota counts the unsaved bytes of all sessions of a host.
type quota struct {
	mu   sync.Mutex
	used int
	room signal
}

func (q *quota) add(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used += n
	if n < 0 {
		q.room.fire()
	}
}

// over returns nil while there is room, else a channel that closes when some
// was made.
func (q *quota) over() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used < UnsavedAll {
		return nil
	}
	return q.room.wait()
}
