package store

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"gladhand"

	"zombiezen.com/go/sqlite"
)

// pool lends reading connections, opened when they are first needed.
type pool struct {
	path   string
	slots  chan *conn // holds a nil for one that is not open
	closed chan struct{}
}

func newPool(path string, n int) *pool {
	if n <= 0 {
		n = 4
	}
	p := &pool{path: path, slots: make(chan *conn, n), closed: make(chan struct{})}
	for range n {
		p.slots <- nil
	}
	return p
}

// close waits for the reads that run, and ends the connections.
func (p *pool) close() {
	close(p.closed)
	for range cap(p.slots) {
		if c := <-p.slots; c != nil {
			_ = c.Close()
		}
	}
}

// read calls f with a connection, in a transaction. f must be quick: the
// write-ahead log cannot be reset while it runs.
func (s *Store) read(ctx context.Context, f func(*conn) error) error {
	p := s.readers
	select {
	case <-p.closed:
		return errClosed
	default:
	}
	var c *conn
	select {
	case c = <-p.slots:
	case <-p.closed:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { p.slots <- c }()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if c == nil {
		fresh, err := dial(p.path, false)
		if err != nil {
			return typed(err, s.dir)
		}
		c = fresh
	}
	err := c.exec(qBeginRead)
	if err == nil {
		err = f(c)
		// Not COMMIT: it fails after a damaged page was met, which f may have
		// gone around.
		if e := c.exec(qRollback); err == nil {
			err = e
		}
	}
	if err != nil && (!c.AutocommitEnabled() || fatal(err)) {
		_ = c.Close() // a fresh one is the surest way back
		c = nil
	}
	return typed(err, s.dir)
}

// Session returns a session's row; CodeNotFound when there is none. Info.Seq is
// filled in.
func (s *Store) Session(ctx context.Context, id gladhand.SessionID) (Session, error) {
	var row Session
	err := s.read(ctx, func(c *conn) error {
		found, err := c.one(qSession, func(st *sqlite.Stmt) { row = words{}.session(st) }, string(id))
		if err == nil && !found {
			err = notFound("there is no session %q", id)
		}
		return err
	})
	return row, err
}

// Listed is a session with Info.Seq, Info.Asks and Info.Queued filled in.
type Listed struct{ Session }

// Sessions returns all sessions, the most recently updated first.
func (s *Store) Sessions(ctx context.Context) ([]Listed, error) {
	var list []Listed
	err := s.read(ctx, func(c *conn) error {
		asks, err := counts(c, qCountAsks)
		if err != nil {
			return err
		}
		waiting, err := counts(c, qCountWaiting)
		if err != nil {
			return err
		}
		words := words{}
		return c.each(qSessions, func(st *sqlite.Stmt) error {
			row, key := words.session(st), st.ColumnInt64(17)
			row.Info.Asks, row.Info.Queued = asks[key], waiting[key]
			list = append(list, Listed{row})
			return nil
		})
	})
	return list, err
}

func counts(c *conn, q query) (map[int64]int, error) {
	m := map[int64]int{}
	err := c.each(q, func(st *sqlite.Stmt) error {
		m[st.ColumnInt64(0)] = st.ColumnInt(1)
		return nil
	})
	return m, err
}

// words holds the few words that many sessions have in common.
type words map[string]string

func (w words) word(st *sqlite.Stmt, col int) string {
	var room [64]byte
	n := st.ColumnLen(col)
	if n > len(room) {
		return st.ColumnText(col)
	}
	b := room[:st.ColumnBytes(col, room[:n])]
	if known, ok := w[string(b)]; ok {
		return known
	}
	s := string(b)
	w[s] = s
	return s
}

func (w words) session(st *sqlite.Stmt) Session {
	flags := st.ColumnInt64(8)
	return Session{
		Info: gladhand.SessionInfo{
			ID:      gladhand.SessionID(st.ColumnText(0)),
			Cwd:     w.word(st, 1),
			Title:   st.ColumnText(2),
			Agent:   w.word(st, 3),
			Model:   w.word(st, 4),
			Mode:    w.word(st, 5),
			Profile: w.word(st, 6),
			Effort:  w.word(st, 15),
			State:   gladhand.SessionState(w.word(st, 7)),
			Yes:     flags&flagYes != 0,
			Created: formatTime(st.ColumnInt64(9)),
			Updated: formatTime(st.ColumnInt64(10)),
			Seq:     gladhand.Seq(st.ColumnInt64(16)),
		},
		Paused:  flags&flagPaused != 0,
		OneShot: flags&flagOneShot != 0,
		Turn:    gladhand.TurnID(st.ColumnInt64(11)),
		Running: gladhand.TurnID(st.ColumnInt64(12)),
		Rules:   blob(st, 13),
		Format:  st.ColumnInt(14),
	}
}

// Snapshot returns the context kept for a session's model, nil when there is none.
func (s *Store) Snapshot(ctx context.Context, id gladhand.SessionID) (*gladhand.ContextSnapshot, error) {
	var snap *gladhand.ContextSnapshot
	err := s.read(ctx, func(c *conn) error {
		_, err := c.one(qSnapshot, func(st *sqlite.Stmt) {
			snap = &gladhand.ContextSnapshot{Covers: gladhand.Seq(st.ColumnInt64(0)), Data: blob(st, 1)}
		}, string(id))
		return err
	})
	return snap, err
}

// LastSeq returns the highest number stored for a session, 0 for none.
func (s *Store) LastSeq(ctx context.Context, id gladhand.SessionID) (gladhand.Seq, error) {
	var last gladhand.Seq
	err := s.read(ctx, func(c *conn) error {
		_, err := c.one(qLast, func(st *sqlite.Stmt) { last = gladhand.Seq(st.ColumnInt64(0)) }, string(id))
		return err
	})
	return last, err
}

// Prompt returns a prompt; CodeNotFound when there is none.
func (s *Store) Prompt(ctx context.Context, id gladhand.SessionID, p gladhand.PromptID) (gladhand.Prompt, error) {
	list, err := s.prompts(ctx, id, qPrompt, string(p))
	if err != nil {
		return gladhand.Prompt{}, err
	}
	if len(list) == 0 {
		return gladhand.Prompt{}, notFound("there is no prompt %q", p)
	}
	return list[0].Prompt, nil
}

// Waiting is a prompt that waits, and its place in the queue, as PutPrompt or
// SetPrompt gave it.
type Waiting struct {
	gladhand.Prompt
	Place int64
}

// Waiting returns the prompts that are stored and not started, in the order of
// their places.
func (s *Store) Waiting(ctx context.Context, id gladhand.SessionID) ([]Waiting, error) {
	return s.prompts(ctx, id, qWaiting)
}

// Unfinished returns the prompts that have started and not ended, in the order
// of their places.
func (s *Store) Unfinished(ctx context.Context, id gladhand.SessionID) ([]gladhand.Prompt, error) {
	return bare(s.prompts(ctx, id, qStarted))
}

func bare(list []Waiting, err error) ([]gladhand.Prompt, error) {
	var ps []gladhand.Prompt
	for _, w := range list {
		ps = append(ps, w.Prompt)
	}
	return ps, err
}

func (s *Store) prompts(ctx context.Context, id gladhand.SessionID, q query, more ...any) ([]Waiting, error) {
	var list []Waiting
	err := s.read(ctx, func(c *conn) error {
		return c.each(q, func(st *sqlite.Stmt) error {
			p, err := scanPrompt(st)
			if err != nil {
				// One that cannot be read must not hide the others, but it must
				// not run under a wrong name either.
				s.warn("a prompt is damaged and left out", "session", id, "prompt", p.ID, "err", err)
				return nil
			}
			p.Session = id
			list = append(list, Waiting{p, st.ColumnInt64(9)})
			return nil
		}, append([]any{string(id)}, more...)...)
	})
	return list, err
}

func scanPrompt(st *sqlite.Stmt) (gladhand.Prompt, error) {
	p := gladhand.Prompt{
		ID:       gladhand.PromptID(st.ColumnText(0)),
		State:    gladhand.PromptState(st.ColumnText(1)),
		Outcome:  gladhand.Outcome(st.ColumnText(2)),
		Turn:     gladhand.TurnID(st.ColumnInt64(3)),
		Seq:      gladhand.Seq(st.ColumnInt64(4)),
		At:       time.UnixMicro(st.ColumnInt64(5)).UTC(),
		Delivery: gladhand.Delivery(st.ColumnText(6)),
		Content:  blob(st, 8),
	}
	by, err := decodeIdentity([]byte(st.ColumnText(7)))
	if err != nil {
		return p, err
	}
	p.By = *by
	return p, nil
}

// OpenAsks returns the asks that nobody has settled, oldest first.
func (s *Store) OpenAsks(ctx context.Context, id gladhand.SessionID) ([]gladhand.Ask, error) {
	var list []gladhand.Ask
	err := s.read(ctx, func(c *conn) error {
		return c.each(qOpenAsks, func(st *sqlite.Stmt) error {
			a := gladhand.Ask{
				ID:          gladhand.AskID(st.ColumnText(0)),
				Session:     id,
				Turn:        gladhand.TurnID(st.ColumnInt64(1)),
				At:          time.UnixMicro(st.ColumnInt64(2)).UTC(),
				Title:       st.ColumnText(3),
				ToolCall:    blob(st, 4),
				Elicitation: blob(st, 5),
				Digest:      st.ColumnText(7),
				Rule:        st.ColumnText(8),
			}
			if !st.ColumnIsNull(6) {
				if err := json.Unmarshal([]byte(st.ColumnText(6)), &a.Options); err != nil {
					s.warn("an ask is damaged and left out", "session", id, "ask", a.ID, "err", err)
					return nil
				}
			}
			list = append(list, a)
			return nil
		}, string(id))
	})
	return list, err
}

// AskState returns how a settled ask ended and who settled it, nil for the
// session itself. It is CodeNotFound for one that is unknown or still open.
func (s *Store) AskState(ctx context.Context, id gladhand.SessionID, ask gladhand.AskID) (gladhand.Settled, *gladhand.Identity, error) {
	var how gladhand.Settled
	var by *gladhand.Identity
	err := s.read(ctx, func(c *conn) error {
		var scanErr error
		found, err := c.one(qAskState, func(st *sqlite.Stmt) {
			how = gladhand.Settled(st.ColumnText(0))
			if !st.ColumnIsNull(1) {
				by, scanErr = decodeIdentity([]byte(st.ColumnText(1)))
			}
		}, string(id), string(ask))
		switch {
		case err != nil:
			return err
		case !found:
			return notFound("there is no settled ask %q", ask)
		}
		return scanErr
	})
	return how, by, err
}

// damageLog remembers what was warned of, so that each is warned of once.
type damageLog struct {
	mu   sync.Mutex
	seen map[int64]bool
}

// fresh reports whether pos is new, and stops remembering at a bound.
func (d *damageLog) fresh(pos int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[pos] || len(d.seen) >= 1000 {
		return false
	}
	if d.seen == nil {
		d.seen = map[int64]bool{}
	}
	d.seen[pos] = true
	return true
}

func (s *Store) warn(msg string, args ...any) {
	s.log.Log(context.Background(), slog.LevelWarn, "store: "+msg, args...)
}
