package store

import (
	"encoding/json"
	"fmt"
	"time"

	"gladhand"

	"zombiezen.com/go/sqlite"
)

// Session is a session's row.
type Session struct {
	// Info is what is known of the session. Seq, Clients, Asks, Queued and Reason
	// are not stored; State is, as it is given (closed, killed, idle). Created
	// and Updated are kept to the microsecond.
	Info gladhand.SessionInfo
	// Turn is the last turn number given out.
	Turn gladhand.TurnID
	// Running is the turn that has started and not ended, 0 for none.
	Running gladhand.TurnID
	// Paused says that the queue is paused.
	Paused  bool
	OneShot bool
	// Rules are the remembered "always" rules.
	Rules json.RawMessage
	// Format is the version of the session's format. The store only keeps it.
	Format int
}

// The bits of sessions.flags.
const (
	flagYes = 1 << iota
	flagPaused
	flagOneShot
)

// Tx is the transaction that a function given to [Store.Write] works in. It is
// valid only until the function returns, and only on its goroutine.
//
// An error of a method that the function does not return is forgotten, and what
// its other calls did is stored; only an error of the disk always counts.
type Tx struct {
	c   *conn
	dir string
	// keys caches the keys of sessions. It is emptied on every rollback.
	keys map[gladhand.SessionID]int64
	// bytes counts what was written, to bound a batch.
	bytes int
	// fatal is the first error that says the batch cannot be stored.
	fatal error
	// saved says that the item has a savepoint: it gets one with its first
	// statement that writes, and most write events only.
	saved bool
	// events are those of the batch, stored just before its commit. marked is how
	// many of them are of the items before this one.
	events pending
	marked int
	// fanOut is the least number of sessions of a batch whose events go to the
	// table recent, 0 for never; recents is how many rows it has, at most, noted
	// how many the batch adds.
	fanOut, recents, noted int
	// by caches the last identity written with an event, as JSON.
	by     gladhand.Identity
	byJSON []byte
	// buried says that the transaction deleted a session.
	buried bool
}

// maxCachedKeys bounds Tx.keys: about 1 MB.
const maxCachedKeys = 10_000

// fail makes err typed and notes when the batch is lost.
func (tx *Tx) fail(err error) error {
	if err == nil {
		return nil
	}
	if tx.fatal == nil && fatal(err) {
		tx.fatal = err
	}
	return typed(err, tx.dir)
}

// exec runs a statement that writes.
func (tx *Tx) exec(q query, args ...any) error {
	if !tx.saved {
		if err := tx.c.exec(qSavepoint); err != nil {
			return err
		}
		tx.saved = true
	}
	return tx.c.exec(q, args...)
}

// keep ends an item: what it did is the batch's.
func (tx *Tx) keep() error {
	tx.marked = len(tx.events.rows)
	if !tx.saved {
		return nil
	}
	tx.saved = false
	return tx.c.exec(qRelease)
}

// takeBack ends an item: what it did is undone.
func (tx *Tx) takeBack() error {
	tx.events.truncate(tx.marked)
	clear(tx.keys)
	if !tx.saved {
		return nil
	}
	tx.saved = false
	if err := tx.c.exec(qRollbackTo); err != nil {
		return err
	}
	return tx.c.exec(qRelease)
}

// reset makes tx ready for another batch, whatever became of the last.
func (tx *Tx) reset(committed bool) {
	tx.bytes, tx.fatal, tx.buried, tx.saved = 0, nil, false, false
	tx.events.truncate(0)
	tx.marked = 0
	if committed {
		tx.recents += tx.noted
	} else {
		clear(tx.keys)
	}
	tx.noted = 0
}

// key returns the key of a session, CodeNotFound when there is none.
func (tx *Tx) key(id gladhand.SessionID) (int64, error) {
	if k, ok := tx.keys[id]; ok {
		return k, nil
	}
	var k int64
	found, err := tx.c.one(qKey, func(st *sqlite.Stmt) { k = st.ColumnInt64(0) }, string(id))
	if err != nil {
		return 0, tx.fail(err)
	}
	if !found {
		return 0, notFound("there is no session %q", id)
	}
	tx.remember(id, k)
	return k, nil
}

func (tx *Tx) remember(id gladhand.SessionID, key int64) {
	if len(tx.keys) >= maxCachedKeys {
		clear(tx.keys)
	}
	tx.keys[id] = key
}

// PutSession inserts or replaces a session's row. The last number of its log is
// kept by PutEvents and stays.
func (tx *Tx) PutSession(s Session) error {
	args, err := sessionArgs(s)
	if err != nil {
		return err
	}
	tx.bytes += 512 + len(s.Rules)
	if err := tx.exec(qUpdateSession, args...); err != nil {
		return tx.fail(err)
	}
	if tx.c.Changes() > 0 {
		return nil
	}
	if err := tx.exec(qInsertSession, args...); err != nil {
		return tx.fail(err)
	}
	key := tx.c.LastInsertRowID()
	if key > maxKey {
		return gladhand.Errorf(gladhand.CodeCapacity, gladhand.ReasonCapacity, "the database has no room for another session")
	}
	if err := tx.exec(qInsertHead, key); err != nil {
		return tx.fail(err)
	}
	tx.remember(s.Info.ID, key)
	return nil
}

func sessionArgs(s Session) ([]any, error) {
	created, err := parseTime(s.Info.Created)
	if err != nil {
		return nil, err
	}
	updated, err := parseTime(s.Info.Updated)
	if err != nil {
		return nil, err
	}
	var flags int64
	for bit, set := range map[int64]bool{flagYes: s.Info.Yes, flagPaused: s.Paused, flagOneShot: s.OneShot} {
		if set {
			flags |= bit
		}
	}
	i := s.Info
	return []any{
		string(i.ID), i.Cwd, i.Title, i.Agent, i.Model, i.Mode, i.Profile, string(i.State), flags,
		created, updated, int64(s.Turn), int64(s.Running), []byte(s.Rules), int64(s.Format), i.Effort,
	}, nil
}

// noTime stands for an empty time.
const noTime = 0

func parseTime(s string) (int64, error) {
	if s == "" {
		return noTime, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonInvalid, "a session's time %q is not RFC 3339", s)
	}
	return t.UnixMicro(), nil
}

func formatTime(micros int64) string {
	if micros == noTime {
		return ""
	}
	return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano)
}

// DeleteSession removes a session with its events, prompts and asks. The space
// of its events is given back later, in the writer's idle time. Deleting a
// session that is not there is CodeNotFound.
func (tx *Tx) DeleteSession(id gladhand.SessionID) error {
	key, err := tx.key(id)
	if err != nil {
		return err
	}
	delete(tx.keys, id)
	tx.buried = true
	for _, q := range []query{qDeleteSession, qDeleteHead, qDeletePrompts, qDeleteAsks, qDeleteSnapshot, qInsertGrave} {
		if err := tx.exec(q, key); err != nil {
			return tx.fail(err)
		}
	}
	return nil
}

// PutSnapshot keeps data as the context of a session's model: what its log says up
// to the number, in another form. It replaces an earlier one.
func (tx *Tx) PutSnapshot(id gladhand.SessionID, s gladhand.ContextSnapshot) error {
	key, err := tx.key(id)
	if err != nil {
		return err
	}
	tx.bytes += 128 + len(s.Data)
	return tx.fail(tx.exec(qPutSnapshot, key, int64(s.Covers), append([]byte{}, s.Data...)))
}

// identity is by as JSON, nil for nil.
func (tx *Tx) identity(by *gladhand.Identity) ([]byte, error) {
	if by == nil {
		return nil, nil
	}
	if tx.byJSON == nil || tx.by != *by {
		b, err := encodeIdentity(*by)
		if err != nil {
			return nil, err
		}
		tx.by, tx.byJSON = *by, b
	}
	return tx.byJSON, nil
}

// PutPrompt stores a prompt; place orders the queue, lower first. For an id that
// the session has already the error is [ErrExists].
func (tx *Tx) PutPrompt(p gladhand.Prompt, place int64) error {
	key, err := tx.key(p.Session)
	if err != nil {
		return err
	}
	by, err := encodeIdentity(p.By)
	if err != nil {
		return err
	}
	tx.bytes += 256 + len(p.Content)
	if err := tx.exec(qInsertPrompt, key, string(p.ID), string(p.State), place, string(p.Outcome), int64(p.Turn), int64(p.Seq),
		p.At.UnixMicro(), string(p.Delivery), string(by), []byte(p.Content)); err != nil {
		return tx.fail(err)
	}
	if tx.c.Changes() == 0 {
		return fmt.Errorf("prompt %q: %w", p.ID, ErrExists)
	}
	return nil
}

// SetPrompt updates state, outcome, turn and place of a stored prompt; its other
// fields do not change.
func (tx *Tx) SetPrompt(p gladhand.Prompt, place int64) error {
	key, err := tx.key(p.Session)
	if err != nil {
		return err
	}
	tx.bytes += 256
	if err := tx.exec(qUpdatePrompt, key, string(p.ID), string(p.State), place, string(p.Outcome), int64(p.Turn)); err != nil {
		return tx.fail(err)
	}
	if tx.c.Changes() == 0 {
		return notFound("there is no prompt %q", p.ID)
	}
	return nil
}

// PutAsk stores an open ask. For an id that the session has already the error is
// [ErrExists].
func (tx *Tx) PutAsk(a gladhand.Ask) error {
	key, err := tx.key(a.Session)
	if err != nil {
		return err
	}
	var options []byte
	if a.Options != nil {
		if options, err = json.Marshal(a.Options); err != nil {
			return err
		}
	}
	tx.bytes += 512 + len(a.ToolCall) + len(a.Elicitation)
	var opts any
	if options != nil {
		opts = string(options)
	}
	if err := tx.exec(qInsertAsk, key, string(a.ID), int64(a.Turn), a.At.UnixMicro(), a.Title, []byte(a.ToolCall), []byte(a.Elicitation),
		opts, a.Digest, a.Rule); err != nil {
		return tx.fail(err)
	}
	if tx.c.Changes() == 0 {
		return fmt.Errorf("ask %q: %w", a.ID, ErrExists)
	}
	return nil
}

// SettleAsk records how an ask ended; by is nil for the session itself. An ask
// is settled once: a second time is CodeConflict.
func (tx *Tx) SettleAsk(session gladhand.SessionID, id gladhand.AskID, how gladhand.Settled, ans gladhand.Answer, by *gladhand.Identity) error {
	key, err := tx.key(session)
	if err != nil {
		return err
	}
	var who any
	if by != nil {
		b, err := encodeIdentity(*by)
		if err != nil {
			return err
		}
		who = string(b)
	}
	tx.bytes += 256 + len(ans.Content)
	if err := tx.exec(qSettleAsk, key, string(id), string(how), time.Now().UnixMicro(), who, ans.Option, []byte(ans.Content), ans.Reason); err != nil {
		return tx.fail(err)
	}
	if tx.c.Changes() > 0 {
		return nil
	}
	found, err := tx.c.one(qAskExists, func(*sqlite.Stmt) {}, key, string(id))
	switch {
	case err != nil:
		return tx.fail(err)
	case !found:
		return notFound("there is no ask %q", id)
	}
	return gladhand.Errorf(gladhand.CodeConflict, gladhand.ReasonConflict, "the ask %q is settled already", id)
}
