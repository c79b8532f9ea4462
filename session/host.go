package session

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gladhand"
	"gladhand/store"
)

// Format is the version of what a session's rows and events mean. A stored
// session of another one is listed, left untouched and refused.
const Format = 1

// Options are those of a Host. NewAgent is needed; the rest has defaults.
type Options struct {
	// NewAgent makes the agent of a session, when its first turn begins.
	NewAgent func(context.Context, gladhand.SessionInfo) (Agent, error)
	// Knows reports whether an agent of this name can be made. Nil: any.
	Knows func(agent string) bool
	// Models are what a session may choose from. Needed.
	Models Models
	// Effort is that of new sessions whose model knows it; nil is none.
	Effort func() string
	// QueueMax is how many prompts may wait in one session. 0: 16.
	QueueMax int
	// AskExpiry is how long an ask waits while nobody is there. 0: 30 minutes.
	AskExpiry time.Duration
	// MaxOpen is how many sessions may be in memory at once; unused ones are let go
	// of before it is reached. 0: 2,000.
	MaxOpen int
	// Log receives what people should know of. Nil discards.
	Log *slog.Logger

	stopping chan struct{}
}

// Host finds, makes, opens and ends sessions. All methods are safe for
// concurrent use.
type Host struct {
	store *store.Store
	opts  Options
	quota quota

	mu      sync.Mutex // before any Session.mu
	open    map[gladhand.SessionID]*Session
	loading map[gladhand.SessionID]*loading
	stopped bool
}

// loading reserves the id of a session that is being opened.
type loading struct {
	done chan struct{}
	s    *Session
	err  error
}

// NewHost returns a host of the sessions in st.
func NewHost(st *store.Store, o Options) *Host {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Knows == nil {
		o.Knows = func(string) bool { return true }
	}
	o.QueueMax = cmp.Or(o.QueueMax, 16)
	o.AskExpiry = cmp.Or(o.AskExpiry, 30*time.Minute)
	o.MaxOpen = cmp.Or(o.MaxOpen, 2000)
	o.stopping = make(chan struct{})
	return &Host{
		store: st, opts: o,
		open:    map[gladhand.SessionID]*Session{},
		loading: map[gladhand.SessionID]*loading{},
	}
}

// Recover opens every session that a crash interrupted, or whose queue is not
// empty, so that the queue goes on. Sessions that cannot be opened are logged.
func (h *Host) Recover(ctx context.Context) error {
	rows, err := h.store.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Running == 0 && row.Info.Queued == 0 || row.Info.State == gladhand.StateKilled {
			continue
		}
		if row.Running == 0 && row.Info.State == gladhand.StateClosed {
			continue
		}
		if _, err := h.Open(ctx, row.Info.ID); err != nil {
			h.opts.Log.Warn("a session with work left cannot be opened", "session", row.Info.ID, "err", err)
		}
	}
	return nil
}

// Create makes a session. cwd must be an absolute path of a directory; it is
// kept with symbolic links resolved. It needs the right to prompt.
func (h *Host) Create(ctx context.Context, who gladhand.Identity, cwd string, m gladhand.NewSessionMeta) (*Session, error) {
	if err := who.May(gladhand.Prompting); err != nil {
		return nil, err
	}
	dir, err := workspace(cwd)
	if err != nil {
		return nil, err
	}
	now := stamp()
	row := store.Session{
		Info: gladhand.SessionInfo{
			ID: gladhand.SessionID(gladhand.NewID()), Cwd: dir,
			Agent: m.Agent, Model: m.Model, Effort: m.Effort, Mode: cmp.Or(m.Mode, ModeAsk), Profile: cmp.Or(m.Profile, ProfileCoding), Yes: m.Yes,
			State: gladhand.StateIdle, Created: now, Updated: now,
		},
		OneShot: m.OneShot, Format: Format,
	}
	if err := h.check(&row.Info); err != nil {
		return nil, err
	}
	s := newSession(h, row, 0)
	if err := h.room(s); err != nil {
		return nil, err
	}
	if err := h.store.Commit(ctx, func(tx *store.Tx) error { return tx.PutSession(row) }); err != nil {
		h.forget(s)
		return nil, err
	}
	return s, nil
}

// workspace canonicalises a session's directory.
func workspace(cwd string) (string, error) {
	if !filepath.IsAbs(cwd) {
		return "", gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "cwd must be an absolute path, not %q", cwd)
	}
	dir, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return "", gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "the workspace %s cannot be used: %w", cwd, err)
	}
	st, err := os.Stat(dir)
	if err != nil {
		return "", gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "the workspace %s cannot be used: %w", cwd, err)
	}
	if !st.IsDir() {
		return "", gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "the workspace %s is not a directory", cwd)
	}
	return dir, nil
}

// room registers a session, unless too many are open.
func (h *Host) room(s *Session) error {
	for {
		h.mu.Lock()
		if h.stopped {
			h.mu.Unlock()
			return errStopping
		}
		if len(h.open) < h.opts.MaxOpen {
			h.open[s.id] = s
			h.mu.Unlock()
			return nil
		}
		h.mu.Unlock()
		if !h.makeRoom() {
			return gladhand.Errorf(gladhand.CodeCapacity, gladhand.ReasonCapacity,
				"%d sessions are in use; close one", h.opts.MaxOpen).With("limit", h.opts.MaxOpen)
		}
	}
}

var errStopping = gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "the daemon is stopping; try again in a moment")

func (h *Host) forget(s *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[s.id] == s {
		delete(h.open, s.id)
	}
}

// Live returns a session that is open, or nil.
func (h *Host) Live(id gladhand.SessionID) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[id]
}

// Open returns the session, brought into memory if it was not. Two calls for one
// id make one session; different ids open side by side. Errors: CodeNotFound
// (with ReasonGone for a killed one, ReasonUnsupported for one of another
// version), CodeCapacity, the store's.
func (h *Host) Open(ctx context.Context, id gladhand.SessionID) (*Session, error) {
	h.mu.Lock()
	if s := h.open[id]; s != nil {
		h.mu.Unlock()
		s.touch()
		return s, nil
	}
	l := h.loading[id]
	if l == nil {
		l = &loading{done: make(chan struct{})}
		h.loading[id] = l
		go func() {
			l.s, l.err = h.load(context.WithoutCancel(ctx), id)
			if l.err == nil {
				l.err = h.room(l.s)
			}
			h.mu.Lock()
			delete(h.loading, id)
			h.mu.Unlock()
			if l.err == nil {
				l.s.mu.Lock()
				l.s.kick()
				l.s.mu.Unlock()
			}
			close(l.done)
		}()
	}
	h.mu.Unlock()
	select {
	case <-l.done:
		return l.s, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// touch keeps the session in memory for a while.
func (s *Session) touch() {
	s.mu.Lock()
	s.used = time.Now()
	s.mu.Unlock()
}

// Find returns the id that text names: an id, or the beginning of exactly one.
func (h *Host) Find(ctx context.Context, text string) (gladhand.SessionID, error) {
	if h.Live(gladhand.SessionID(text)) != nil {
		return gladhand.SessionID(text), nil
	}
	rows, err := h.store.Sessions(ctx)
	if err != nil {
		return "", err
	}
	var found []gladhand.SessionID
	for _, r := range rows {
		if r.Info.ID == gladhand.SessionID(text) {
			return r.Info.ID, nil
		}
		if text != "" && strings.HasPrefix(string(r.Info.ID), text) {
			found = append(found, r.Info.ID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonNotFound, "there is no session %q; `gladhand ls --all` lists them", text)
	}
	return "", gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "%q is the beginning of %d sessions; type more of the id", text, len(found))
}

// List lists the sessions of a directory, or of all for "", most recently active
// first; closed and killed ones only with all. It needs the right to observe.
func (h *Host) List(ctx context.Context, who gladhand.Identity, cwd string, all bool) ([]gladhand.SessionInfo, error) {
	if err := who.May(gladhand.Observe); err != nil {
		return nil, err
	}
	rows, err := h.store.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	if cwd != "" {
		if dir, err := filepath.EvalSymlinks(cwd); err == nil {
			cwd = dir
		}
	}
	infos := []gladhand.SessionInfo{}
	for _, r := range rows {
		in := r.Info
		if cwd != "" && in.Cwd != cwd {
			continue
		}
		if s := h.Live(in.ID); s != nil {
			in = s.Info()
		} else if err := h.usable(r.Session); err != nil && in.State != gladhand.StateKilled {
			in.State, in.Reason = gladhand.StateUnusable, err.Error()
		}
		if all || in.State != gladhand.StateClosed && in.State != gladhand.StateKilled {
			infos = append(infos, in)
		}
	}
	slices.SortStableFunc(infos, func(a, b gladhand.SessionInfo) int { return cmp.Compare(b.Updated, a.Updated) })
	return infos, nil
}

// Asks lists the open asks of all sessions that who may answer.
func (h *Host) Asks(who gladhand.Identity) []gladhand.Ask {
	asks := []gladhand.Ask{}
	for _, s := range h.all() {
		asks = append(asks, s.Asks(who)...)
	}
	slices.SortFunc(asks, func(a, b gladhand.Ask) int { return a.At.Compare(b.At) })
	return asks
}

// Counts is what a host has open now.
type Counts struct{ Sessions, Running, Asks int }

// Counts counts.
func (h *Host) Counts() Counts {
	var c Counts
	for _, s := range h.all() {
		in := s.Info()
		c.Sessions++
		c.Asks += in.Asks
		if in.State != gladhand.StateIdle {
			c.Running++
		}
	}
	return c
}

func (h *Host) all() []*Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*Session, 0, len(h.open))
	for _, s := range h.open {
		list = append(list, s)
	}
	return list
}
