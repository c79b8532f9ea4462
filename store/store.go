package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gladhand"

	"zombiezen.com/go/sqlite"
)

// The names of the database and of the lock in a store's directory.
const (
	fileName = "gladhand.db"
	lockName = "gladhand.lock"
)

// Options are the settings of a store. The zero value works.
type Options struct {
	// Log receives warnings; nil discards them.
	Log *slog.Logger
	// MaxBatch is how many writes share a commit at most, default 512.
	MaxBatch int
	// Readers is how many reads run at once at most, default 4. Each holds up to
	// 2 MB of pages.
	Readers int
	// BusyWait is how long a write waits for a lock that another program holds,
	// default 30 seconds.
	BusyWait time.Duration

	// fanOut and recentMax replace the constants of these names in tests.
	fanOut, recentMax int
}

// Store is an open store. Its methods are safe for concurrent use.
type Store struct {
	dir     string
	log     *slog.Logger
	lock    *dirLock
	w       *writer
	readers *pool

	damaged damageLog

	rejected rejects

	closing sync.Once
	closeEr error
}

// Open opens the store in dir, making both when they are not there, and brings
// it to this code's version. It is the only owner of dir until Close.
//
// Every error is a [gladhand.Error] that says what to do: another process owns
// dir (CodeConflict, with its pid), the database is of a later version
// (CodeVersion; its file is untouched), dir cannot be written, is on a network
// file system or is another user's (ReasonUnavailable), the disk is full
// (ReasonDiskFull), the database is damaged (ReasonMalformed).
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	s, err := open(ctx, dir, o)
	if err != nil {
		return nil, typed(err, dir)
	}
	return s, nil
}

func open(ctx context.Context, dir string, o Options) (_ *Store, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = maxBatch
	}
	if o.BusyWait <= 0 {
		o.BusyWait = busyWait
	}
	if o.fanOut <= 0 {
		o.fanOut = fanOut
	}
	if o.recentMax <= 0 {
		o.recentMax = recentMax
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := prepareDir(dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.release()
		}
	}()
	path := filepath.Join(dir, fileName)
	if err := prepareFile(path); err != nil {
		return nil, err
	}
	c, err := dial(path, true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if err := retryBusy(ctx, o.BusyWait, func() error {
		if err := c.useWAL(); err != nil {
			return err
		}
		return migrate(c.Conn)
	}); err != nil {
		return nil, err
	}
	if err := tightenFiles(path); err != nil {
		return nil, err
	}
	w, err := newWriter(c, dir, o)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, log: o.Log, lock: lock, w: w, readers: newPool(path, o.Readers)}
	go w.run()
	return s, nil
}

func newWriter(c *conn, dir string, o Options) (*writer, error) {
	w := &writer{
		c: c, dir: dir, log: o.Log,
		maxItems: o.MaxBatch, busyWait: o.BusyWait, recentMax: o.recentMax,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
		tx: Tx{c: c, dir: dir, keys: map[gladhand.SessionID]int64{}, fanOut: o.fanOut},
	}
	w.settleAt = w.recentMax
	if _, err := c.one(qCountRecent, func(st *sqlite.Stmt) { w.tx.recents = st.ColumnInt(0) }); err != nil {
		return nil, err
	}
	var err error
	w.purging, err = c.one(qGrave, func(*sqlite.Stmt) {})
	return w, err
}

// retryBusy calls f again while somebody outside holds a lock. SQLite backs off
// inside f.
func retryBusy(ctx context.Context, limit time.Duration, f func() error) error {
	start := time.Now()
	for {
		err := f()
		if !isBusy(err) || time.Since(start) > limit {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
	}
}

// prepareDir makes dir, or checks that it is a real directory of ours that only
// we can write, on a file system that SQLite can lock.
func prepareDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		// The umask may have taken bits that we need.
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	if err := checkDir(dir); err != nil {
		return err
	}
	if name, is := networkFS(dir); is {
		return gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable,
			"%s is on a network file system (%s), where a database can be damaged: choose a directory on a local disk with --data-dir", dir, name)
	}
	return nil
}

func unsafe(format string, args ...any) error {
	return gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, format, args...)
}

// prepareFile makes the database file with mode 0600, so that SQLite never
// creates one with the umask's; or looks at an existing one without a write,
// since SQLite would change even what migrate then refuses.
func prepareFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Chmod(0o600)
		return errors.Join(err, f.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return unsafe("%s is not a regular file; move it away", path)
	}
	return peek(path)
}

// peek reads version and application id of an existing database. With a
// write-ahead log beside it the header may be an old one; then SQLite reads it,
// through a connection that cannot write.
func peek(path string) error {
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		raw, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
		if err != nil {
			return err
		}
		defer raw.Close()
		raw.SetBusyTimeout(busyTimeout)
		version, app, err := stamps(raw)
		if err != nil {
			return err
		}
		return checkStamps(version, app)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	header := make([]byte, 100)
	switch _, err := io.ReadFull(f, header); {
	case errors.Is(err, io.EOF):
		return nil // empty: new
	case errors.Is(err, io.ErrUnexpectedEOF), err == nil && string(header[:16]) != "SQLite format 3\x00":
		return fmt.Errorf("%s: %w", path, sqlite.ResultNotADB.ToError())
	case err != nil:
		return err
	}
	return checkStamps(int(int32(binary.BigEndian.Uint32(header[60:]))), int(int32(binary.BigEndian.Uint32(header[68:]))))
}

// tightenFiles takes from the database's files what others may do with them.
func tightenFiles(path string) error {
	for _, p := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			if err := os.Chmod(p, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// Write queues fn for the next commit and returns at once. The functions run in
// the order of the calls, on the writer's goroutine, each in a savepoint of its
// own. done, when not nil, is called on that goroutine in the same order: with
// nil after the commit, else with what kept fn's changes from being stored. It
// must not block, nor wait for the store; it may call Write.
//
// fn may run twice: its first run is taken back when another write of the same
// commit met a damaged page.
//
// The queue has no bound: callers bound what they have unsaved.
func (s *Store) Write(fn func(*Tx) error, done func(error)) {
	if !s.w.add(item{fn: fn, done: done}) {
		s.rejected.add(s.w.ended, done)
	}
}

// Commit is Write and wait. A cancelled ctx ends the waiting, not the write.
func (s *Store) Commit(ctx context.Context, fn func(*Tx) error) error {
	c := make(chan error, 1)
	s.Write(fn, func(err error) { c <- err })
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Health returns nil, or the [gladhand.Error] of the last failed commit until
// one succeeds.
func (s *Store) Health() error {
	if e := s.w.health.Load(); e != nil {
		return e
	}
	return nil
}

// Close stores what is queued, moves the write-ahead log into the database and
// gives the directory up. Later calls of other methods fail; those of Close
// return what the first did.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.w.close()
		s.readers.close()
		err := s.w.c.exec(qCheckpointTruncate)
		if isBusy(err) {
			err = nil // somebody outside reads; the log stays beside the database
		}
		err = errors.Join(err, s.w.c.Close())
		if err != nil {
			s.closeEr = typed(err, s.dir)
		}
		s.lock.release()
	})
	return s.closeEr
}

// rejects calls, in order and from one goroutine at a time, the done functions
// of writes that came after Close.
type rejects struct {
	mu      sync.Mutex
	queue   []func(error)
	running bool
}

func (r *rejects) add(after <-chan struct{}, done func(error)) {
	if done == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, done)
	if !r.running {
		r.running = true
		go r.run(after)
	}
}

func (r *rejects) run(after <-chan struct{}) {
	<-after // the writer calls its own first
	for {
		r.mu.Lock()
		queue := r.queue
		r.queue = nil
		r.running = len(queue) > 0
		r.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, done := range queue {
			done(errClosed)
		}
	}
}
