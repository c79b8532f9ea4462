package session

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/store"
)

// Agent runs a session's turns, one at a time. Package agent has the built-in one.
type Agent interface {
	// Run runs one turn to its end. ctx ends when the turn is cancelled, and Run
	// should return soon after; what it still emits then is refused. The reason
	// is the turn's stop reason; an error makes it StopError.
	Run(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error)
	// Close ends the agent. No Run is running.
	Close() error
}

// ServerUser is an agent that uses MCP servers which clients bring along.
type ServerUser interface {
	// UseServers names those of the session, ACP's mcpServers, from its next turn on.
	UseServers(servers json.RawMessage)
}

// Session is one conversation with one agent in one workspace. A Host makes it.
// All methods are safe for concurrent use; see the package comment for locks.
type Session struct {
	id    gladhand.SessionID
	store *store.Store
	opts  *Options
	slog  *slog.Logger

	mu  sync.Mutex
	log eventLog
	seat
	row     store.Session // as it is, or will be once its commit is through
	turn    *turn         // the running one
	runner  bool          // the runner's goroutine lives
	queue   queue
	asks    map[gladhand.AskID]*openAsk
	settled settledAsks
	clients map[gladhand.ClientID]*Attachment
	idle    signal // fires when the runner ends
	ending  error  // set while it is being killed or deleted: no prompt is taken
	gone    error  // set when the session is closed, killed, deleted or unloaded
	used    time.Time
}

// seat is who runs a session's turns, and with what.
type seat struct {
	agent Agent // nil until the first turn
	// servers are the MCP servers that a client brought along. They may hold secrets
	// and are never stored.
	servers json.RawMessage
}

// Attachment is a client on a session.
type Attachment struct {
	*Cursor
	Who gladhand.Identity
	// NoAnswer says that nobody at this client can answer an ask.
	NoAnswer bool
	declined map[gladhand.AskID]bool
}

func newSession(h *Host, row store.Session, last gladhand.Seq) *Session {
	s := &Session{
		id:      row.Info.ID,
		store:   h.store,
		opts:    &h.opts,
		slog:    h.opts.Log.With("session", row.Info.ID),
		row:     row,
		asks:    map[gladhand.AskID]*openAsk{},
		clients: map[gladhand.ClientID]*Attachment{},
		used:    time.Now(),
	}
	s.log = eventLog{
		mu: &s.mu, store: h.store, id: s.id, quota: &h.quota,
		last: last, shown: last, stored: last, tail: tail{from: last, max: tailIdle},
		opens: map[string]gladhand.Seq{},
	}
	s.log.writing.warn = func(err error) {
		s.slog.Error("a part of the log could not be stored, and is tried again", "err", err)
	}
	s.queue.paused = row.Paused
	return s
}

// ID is the session's id.
func (s *Session) ID() gladhand.SessionID { return s.id }

// Info is the session as it is now.
func (s *Session) Info() gladhand.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info()
}

func (s *Session) info() gladhand.SessionInfo {
	in := s.row.Info
	in.Seq = s.log.shown
	in.Clients = len(s.clients)
	in.Queued = s.queue.waiting()
	for _, a := range s.asks {
		if a.open() {
			in.Asks++
		}
	}
	switch {
	case in.State == gladhand.StateClosed, in.State == gladhand.StateKilled:
	case in.Asks > 0:
		in.State = gladhand.StateAsking
	case s.turn != nil:
		in.State = gladhand.StateRunning
	default:
		in.State = gladhand.StateIdle
	}
	return in
}

// Attach adds who as a client that follows the log behind after; −1 is the tail.
// The snapshot and the registration are one step: what follows the snapshot's
// number reaches the cursor. Attaching again replaces the client's cursor.
// Errors: CodeForbidden without the right to observe, CodeInvalidParams for a
// cursor beyond the log, ReasonGone.
func (s *Session) Attach(who gladhand.Identity, after int64, noAnswer bool) (*Attachment, gladhand.Snapshot, error) {
	if err := who.May(gladhand.Observe); err != nil {
		return nil, gladhand.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.log.unlock()
	if s.gone != nil {
		return nil, gladhand.Snapshot{}, s.gone
	}
	at := s.log.shown
	if after >= 0 {
		at = gladhand.Seq(after)
	}
	if at > s.log.shown && at > s.log.last {
		return nil, gladhand.Snapshot{}, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid,
			"the session has %d events; a cursor of %d is beyond them", s.log.shown, after).With("seq", s.log.shown)
	}
	a := &Attachment{Cursor: s.cursor(at), Who: who, NoAnswer: noAnswer, declined: map[gladhand.AskID]bool{}}
	_, again := s.clients[who.Client]
	s.clients[who.Client] = a
	snap := s.snapshot()
	if !again {
		s.announce(who, "joined")
	}
	s.attendance()
	return a, snap, nil
}

// Detach takes a client off. Its turns, asks and waiting prompts go on.
func (s *Session) Detach(a *Attachment) {
	s.mu.Lock()
	defer s.log.unlock()
	if s.clients[a.Who.Client] != a {
		return
	}
	delete(s.clients, a.Who.Client)
	s.used = time.Now()
	if s.gone == nil {
		s.announce(a.Who, "left")
		s.attendance()
	}
}

func (s *Session) announce(who gladhand.Identity, state string) {
	s.emit(nil, &who, gladhand.TagClient, gladhand.ClientUpdate{SessionUpdate: gladhand.TagClient, Client: who, State: state})
}

// Snapshot is the state as of its Session.Seq.
func (s *Session) Snapshot(who gladhand.Identity) (gladhand.Snapshot, error) {
	if err := who.May(gladhand.Observe); err != nil {
		return gladhand.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot(), nil
}

func (s *Session) snapshot() gladhand.Snapshot {
	snap := gladhand.Snapshot{
		Session: s.info(),
		Options: acp.ConfigOptions(acp.V1, s.opts.configOptions(s.row.Info)),
		Queue:   s.queue.prompts(),
		Paused:  s.queue.paused,
		Asks:    []gladhand.Ask{},
		Clients: []gladhand.Identity{},
	}
	if s.turn != nil {
		snap.Turn = s.turn.id
	}
	for _, a := range s.asks {
		if a.open() {
			snap.Asks = append(snap.Asks, a.Ask)
		}
	}
	slices.SortFunc(snap.Asks, func(a, b gladhand.Ask) int { return a.At.Compare(b.At) })
	for _, c := range s.clients {
		snap.Clients = append(snap.Clients, c.Who)
	}
	slices.SortFunc(snap.Clients, func(a, b gladhand.Identity) int {
		if a.Client < b.Client {
			return -1
		}
		return 1
	})
	return snap
}

// emit appends one update of ours, a fact caused by who.
func (s *Session) emit(o *op, who *gladhand.Identity, tag string, update any) *gladhand.Event {
	ev := s.own(who, tag, update)
	s.log.append(o, ev)
	return ev
}

// own makes an event of one of our own updates.
func (s *Session) own(who *gladhand.Identity, tag string, update any) *gladhand.Event {
	raw, err := json.Marshal(update)
	if err != nil {
		panic(err) // our own types marshal
	}
	ev := &gladhand.Event{Class: gladhand.Fact, Tag: tag, Update: raw, By: who, At: time.Now()}
	if s.turn != nil {
		ev.Turn = s.turn.id
	}
	return ev
}

// stamp is the time now as a row keeps it: RFC 3339 in UTC, to the microsecond.
func stamp() string { return time.Now().UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano) }

// put returns an op part that stores the session's row as it is now.
func (s *Session) put() func(*store.Tx) error {
	s.row.Info.Updated = stamp()
	row := s.row
	return func(tx *store.Tx) error { return tx.PutSession(row) }
}

// Events returns a page of the log behind after: at most limit events, and the
// cursor for the next page.
func (s *Session) Events(ctx context.Context, who gladhand.Identity, after gladhand.Seq, limit int) (items []Item, next gladhand.Seq, more bool, err error) {
	if err := who.May(gladhand.Observe); err != nil {
		return nil, 0, false, err
	}
	s.mu.Lock()
	shown := s.log.shown
	s.mu.Unlock()
	c := s.cursor(after)
	for c.told < shown && len(items) < limit {
		page, err := c.Poll(ctx)
		if err != nil {
			return nil, 0, false, err
		}
		if len(page) == 0 {
			break
		}
		items = append(items, page...)
	}
	if len(items) > limit {
		items = items[:limit]
	}
	next = after
	if n := len(items); n > 0 {
		next = items[n-1].To
	}
	return items, next, next < shown, nil
}

// EventAt returns the event that begins at the number first.
func (s *Session) EventAt(ctx context.Context, first gladhand.Seq) (*gladhand.Event, error) {
	s.mu.Lock()
	for _, e := range s.log.tail.entries {
		if e.first() == first {
			defer s.mu.Unlock()
			return e.run.Event(), nil
		}
	}
	s.mu.Unlock()
	return s.store.EventAt(ctx, s.id, first)
}

// Files lists the paths that edits of this session touched, sorted: the locations
// of its completed edits.
func (s *Session) Files(ctx context.Context, who gladhand.Identity) ([]string, error) {
	if err := who.May(gladhand.Observe); err != nil {
		return nil, err
	}
	c := s.cursor(0)
	edits, touched := map[string][]string{}, map[string]bool{}
	for {
		items, err := c.Poll(ctx)
		if err != nil && gladhand.ReasonOf(err) != gladhand.ReasonGone {
			return nil, err
		}
		if len(items) == 0 {
			return append([]string{}, slices.Sorted(keys(touched))...), nil
		}
		for _, it := range items {
			noteEdit(it.Event, edits, touched)
		}
	}
}

// noteEdit follows the edits: their paths come with the call, and count when it
// completes.
func noteEdit(ev *gladhand.Event, edits map[string][]string, touched map[string]bool) {
	if ev.Tag != acp.TagToolCall && ev.Tag != acp.TagToolCallUpdate {
		return
	}
	var v struct {
		ID        string `json:"toolCallId"`
		Kind      string `json:"kind"`
		Status    string `json:"status"`
		Locations []struct {
			Path string `json:"path"`
		} `json:"locations"`
	}
	if json.Unmarshal(ev.Update, &v) != nil {
		return
	}
	if v.Kind == "edit" || v.Kind == "delete" || v.Kind == "move" {
		edits[v.ID] = []string{}
	}
	if paths, ok := edits[v.ID]; ok {
		for _, l := range v.Locations {
			paths = append(paths, l.Path)
		}
		edits[v.ID] = paths
		if v.Status == "completed" {
			for _, p := range paths {
				touched[p] = true
			}
		}
	}
}
