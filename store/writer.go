package store

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"gladhand"

	"zombiezen.com/go/sqlite"
)

const (
	// maxBatch and maxBatchBytes bound one transaction, and so how long the first
	// item of a batch waits for the last.
	maxBatch      = 512
	maxBatchBytes = 4 << 20
	// busyWait is how long a batch waits for a lock that somebody outside holds.
	busyWait = 30 * time.Second
	// probeEvery is how often the writer tries a commit while the last one failed.
	probeEvery = time.Second
	// checkpointPages is how long the write-ahead log may grow before it is moved
	// into the database: 8 MiB.
	checkpointPages = 2000
	// purgeRows is how many events of a deleted session go in one transaction.
	purgeRows = 500
)

// item is a queued write.
type item struct {
	fn   func(*Tx) error
	done func(error)
	err  error // of fn itself
}

// writer owns the writing connection. All but the queue belongs to its
// goroutine, run.
type writer struct {
	c   *conn
	dir string
	log *slog.Logger
	// maxItems, busyWait and recentMax are the settings of this store.
	maxItems  int
	busyWait  time.Duration
	recentMax int

	mu     sync.Mutex // guards queue, head, closed; held for moments
	queue  []item
	head   int // queue[head:] waits
	closed bool
	wake   chan struct{} // one slot: something changed
	ended  chan struct{} // closed when run returns

	health atomic.Pointer[gladhand.Error]

	tx    Tx
	batch []item
	upkeep
}

// upkeep is what the writer remembers for the work it does beside writing.
type upkeep struct {
	purging   bool // there are graves
	commits   int  // since the last look at the write-ahead log
	bytes     int  // written since then
	ckptError bool // the last checkpoint failed
	settleAt  int  // at so many recent events they are moved to their places
}

// add queues an item, or returns false when the writer has been closed.
func (w *writer) add(it item) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.queue = append(w.queue, it)
	w.signal()
	return true
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close makes run return after what is queued.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.signal()
	w.mu.Unlock()
	<-w.ended
}

// pop takes the first item of the queue.
func (w *writer) pop() (item, bool) {
	it, ok, _ := w.next()
	return it, ok
}

// next is pop, and reports of an empty queue whether it stays so.
func (w *writer) next() (it item, ok, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head == len(w.queue) {
		return item{}, false, w.closed
	}
	it = w.queue[w.head]
	w.queue[w.head] = item{} // let go of what it holds
	w.head++
	if w.head == len(w.queue) {
		w.head = 0
		if w.queue = w.queue[:0]; cap(w.queue) > 4*maxBatch {
			w.queue = nil
		}
	}
	return it, true, false
}

// run commits batch after batch until close.
func (w *writer) run() {
	defer close(w.ended)
	probe := time.NewTimer(probeEvery)
	defer probe.Stop()
	for {
		it, ok, closed := w.next()
		if ok {
			w.commit(it)
			continue
		}
		if closed {
			return
		}
		if w.purging && w.health.Load() == nil {
			w.purge()
			continue
		}
		var due <-chan time.Time
		if w.health.Load() != nil {
			probe.Reset(probeEvery)
			due = probe.C
		}
		select {
		case <-w.wake:
		case <-due:
			w.report(w.probe())
		}
	}
}

// commit makes a transaction of first and what is queued behind it.
func (w *writer) commit(first item) {
	w.batch = w.batch[:0]
	err := typed(w.transaction(first), w.dir)
	health := err
	if isDamage(err) && len(w.batch) > 1 {
		health, err = w.singly(), nil
	}
	w.report(health)
	for i, it := range w.batch {
		w.batch[i] = item{}
		if it.err == nil {
			it.err = err
		}
		if it.done != nil {
			it.done(it.err)
		}
	}
	if health == nil {
		w.settle()
		w.checkpoint()
	}
}

// transaction fills w.batch and stores it, or nothing of it.
func (w *writer) transaction(first item) error {
	if err := w.begin(); err != nil {
		// All that waited meanwhile has waited long enough.
		for it, ok := first, true; ok; it, ok = w.pop() {
			w.batch = append(w.batch, it)
		}
		return err
	}
	err := w.fill(first)
	if err == nil {
		err = w.tx.finish()
	}
	return w.end(err)
}

// singly stores a batch one by one. SQLite commits no transaction in which a
// damaged page was met; so those that did not meet it get their own. Each item
// then has its own error; what singly returns is the store's health.
func (w *writer) singly() (health error) {
	for i := range w.batch {
		it := &w.batch[i]
		err := w.begin()
		if err == nil {
			it.err = w.apply(it.fn)
			if err = w.tx.fatal; err == nil {
				err = w.tx.finish()
			}
			err = w.end(err)
		}
		err = typed(err, w.dir)
		if it.err == nil {
			it.err = err
		}
		if !isDamage(err) {
			health = err
		}
	}
	return health
}

// end commits the open transaction, or takes it back when err is not nil or the
// commit fails.
func (w *writer) end(err error) error {
	if err == nil {
		if err = w.c.exec(qCommit); err == nil {
			w.commits++
			w.bytes += w.tx.bytes + len(w.batch)*4096 // each item some page of its own
			w.purging = w.purging || w.tx.buried
			w.tx.reset(true)
			return nil
		}
		// When only the sync failed, the pages of the failed transaction are in
		// the write-ahead log, and a crash could bring back what is reported as
		// not stored. Whatever is written next goes over them; so write.
		defer func() { _ = w.probe() }()
	}
	w.tx.reset(false)
	if !w.c.AutocommitEnabled() {
		if err := w.c.exec(qRollback); err != nil {
			w.log.Error("store: roll back", "dir", w.dir, "err", err)
		}
	}
	return err
}

// fill applies items until the queue is empty or the batch is full. Its error is
// that of the transaction.
func (w *writer) fill(it item) error {
	for {
		it.err = w.apply(it.fn)
		w.batch = append(w.batch, it)
		if w.tx.fatal != nil {
			return w.tx.fatal
		}
		if len(w.batch) >= w.maxItems || w.tx.bytes >= maxBatchBytes {
			return nil
		}
		var ok bool
		if it, ok = w.pop(); !ok {
			return nil
		}
	}
}

// apply runs fn and keeps what it did, or takes it back. What says that the
// batch cannot be stored is in tx.fatal; the item shares that error.
func (w *writer) apply(fn func(*Tx) error) error {
	err := w.call(fn)
	if w.tx.fatal != nil {
		return nil
	}
	if err != nil {
		w.tx.fatal = w.tx.takeBack()
	} else {
		w.tx.fatal = w.tx.keep()
	}
	return err
}

// call runs fn, and makes a panic an error: it must not take the other items
// with it.
func (w *writer) call(fn func(*Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("store: a write panicked", "panic", p, "stack", string(debug.Stack()))
			for _, st := range w.c.prepared {
				if st != nil {
					_ = st.Reset()
				}
			}
			err = fmt.Errorf("a write panicked: %v", p)
		}
	}()
	return fn(&w.tx)
}

// begin takes SQLite's write lock. When somebody outside holds it, it waits,
// with SQLite's back-off, and says so.
func (w *writer) begin() error {
	start := time.Now()
	warned := false
	for {
		err := w.c.exec(qBegin)
		if err == nil || !isBusy(err) || time.Since(start) >= w.busyWait {
			return err
		}
		if !warned {
			warned = true
			w.log.Warn("store: another program holds the database locked, waiting", "dir", w.dir)
		}
	}
}

// probe commits a transaction that changes nothing.
func (w *writer) probe() error { return typed(w.c.exec(qTouch), w.dir) }

// report keeps what a commit says about the store's health, and logs a change.
func (w *writer) report(err error) {
	if err == nil {
		if w.health.Swap(nil) != nil {
			w.log.Info("store: works again", "dir", w.dir)
		}
		return
	}
	e := asError(err)
	if old := w.health.Swap(e); old == nil || old.Message != e.Message {
		w.log.Error("store: nothing can be stored", "err", e.Message, "cause", e.Err)
	}
}

// checkpoint moves the write-ahead log into the database when it has grown.
func (w *writer) checkpoint() {
	if w.commits < 100 && w.bytes < checkpointPages*4096/4 {
		return
	}
	w.commits, w.bytes = 0, 0
	var pages int64
	if _, err := w.c.one(qCheckpointLook, func(st *sqlite.Stmt) { pages = st.ColumnInt64(1) }); err == nil && pages < checkpointPages {
		return
	}
	w.checkpointed(w.c.exec(qCheckpoint))
}

// checkpointed logs a failing checkpoint once. What was acknowledged is safe in
// the write-ahead log, which grows until a checkpoint succeeds.
func (w *writer) checkpointed(err error) {
	if err != nil && !w.ckptError {
		w.log.Error("store: the write-ahead log cannot be moved into the database; it stays, and grows", "dir", w.dir, "err", err)
	}
	w.ckptError = err != nil
}

// purge removes some of what deleted sessions left.
func (w *writer) purge() {
	err := w.begin()
	if err == nil {
		err = w.end(w.dig())
	}
	if isDamage(err) {
		w.purging = false // it would meet the same page again
		w.log.Warn("store: what a deleted session left cannot be removed", "dir", w.dir, "err", err)
		return
	}
	w.report(typed(err, w.dir))
	w.checkpoint()
}

func (w *writer) dig() error {
	var key int64
	found, err := w.c.one(qGrave, func(st *sqlite.Stmt) { key = st.ColumnInt64(0) })
	if err != nil || !found {
		w.purging = w.purging && found
		return err
	}
	if err := w.c.exec(qDigRecent, position(key, 0), position(key, maxSeq)); err != nil {
		return err
	}
	if err := w.c.exec(qDigGrave, position(key, 0), position(key, maxSeq), int64(purgeRows)); err != nil {
		return err
	}
	if w.c.Changes() < purgeRows {
		return w.c.exec(qDeleteGrave, key)
	}
	return nil
}
