package store

import (
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// busyTimeout is how long SQLite itself backs off before it reports a lock
// that somebody outside holds; the writer then tries again.
const busyTimeout = time.Second

// conn is a connection with its prepared statements. Not safe for concurrent use.
type conn struct {
	*sqlite.Conn
	prepared [numQueries]*sqlite.Stmt
}

// dial opens the database. Reading connections cannot write.
func dial(path string, write bool) (*conn, error) {
	flags := sqlite.OpenReadOnly
	if write {
		flags = sqlite.OpenReadWrite // never OpenCreate: the file was made with the right mode
	}
	raw, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, err
	}
	raw.SetBusyTimeout(busyTimeout)
	c := &conn{Conn: raw}
	if err := c.setUp(write); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *conn) setUp(write bool) error {
	pragmas := []string{
		"PRAGMA cell_size_check = ON", // damage is found when a page is read
		"PRAGMA trusted_schema = OFF",
		"PRAGMA temp_store = MEMORY",
		"PRAGMA cache_size = -2000",
	}
	if write {
		pragmas = append(pragmas,
			"PRAGMA synchronous = FULL",
			// On macOS fsync does not reach the platter; elsewhere these do nothing.
			"PRAGMA fullfsync = ON",
			"PRAGMA checkpoint_fullfsync = ON",
			// SQLite's own checkpoints swallow their errors; the writer makes them.
			"PRAGMA wal_autocheckpoint = 0",
			"PRAGMA journal_size_limit = 67108864",
			"PRAGMA cache_size = -8000",
		)
	}
	for _, p := range pragmas {
		if err := sqlitex.ExecuteTransient(c.Conn, p, nil); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return c.SetDefensive(true)
}

// useWAL switches to a write-ahead log, and fails where there can be none.
func (c *conn) useWAL() error {
	st, _, err := c.PrepareTransient("PRAGMA journal_mode = WAL")
	if err != nil {
		return err
	}
	defer st.Finalize()
	if _, err := st.Step(); err != nil {
		return err
	}
	if mode := st.ColumnText(0); mode != "wal" {
		return fmt.Errorf("journal mode is %q, not WAL: %w", mode, sqlite.ResultProtocol.ToError())
	}
	return nil
}

// bound returns the statement of q with its parameters set, ready to step. The
// caller resets it.
func (c *conn) bound(q query, args ...any) (*sqlite.Stmt, error) {
	st := c.prepared[q]
	if st == nil {
		var err error
		if st, err = c.Prepare(queries[q]); err != nil {
			return nil, err
		}
		c.prepared[q] = st
	}
	for i, a := range args {
		switch a := a.(type) {
		case nil:
			st.BindNull(i + 1)
		case int64:
			st.BindInt64(i+1, a)
		case string:
			st.BindText(i+1, a)
		case []byte:
			if a == nil {
				st.BindNull(i + 1)
			} else {
				st.BindBytes(i+1, a)
			}
		default:
			return nil, fmt.Errorf("store: parameter %d has type %T", i+1, a)
		}
	}
	return st, nil
}

// exec runs a statement that returns no rows.
func (c *conn) exec(q query, args ...any) error {
	return c.each(q, func(*sqlite.Stmt) error { return nil }, args...)
}

// each calls row for every row.
func (c *conn) each(q query, row func(*sqlite.Stmt) error, args ...any) error {
	st, err := c.bound(q, args...)
	if err != nil {
		return err
	}
	for {
		more, err := st.Step()
		if err != nil {
			return err
		}
		if !more {
			return st.Reset()
		}
		if err := row(st); err != nil {
			_ = st.Reset()
			return err
		}
	}
}

// one reads the single row of a query into row and reports whether there is one.
func (c *conn) one(q query, row func(*sqlite.Stmt), args ...any) (bool, error) {
	found := false
	err := c.each(q, func(st *sqlite.Stmt) error {
		found = true
		row(st)
		return nil
	}, args...)
	return found, err
}

// blob copies a column; nil for NULL and for an empty one.
func blob(st *sqlite.Stmt, col int) []byte {
	n := st.ColumnLen(col)
	if n == 0 {
		return nil
	}
	b := make([]byte, n)
	st.ColumnBytes(col, b)
	return b
}

// query numbers a prepared statement.
type query int

const (
	qBegin query = iota
	qBeginRead
	qCommit
	qRollback
	qSavepoint
	qRelease
	qRollbackTo
	qTouch
	qCheckpointLook
	qCheckpoint
	qCheckpointTruncate

	qKey
	qInsertSession
	qUpdateSession
	qInsertHead
	qDeleteSession
	qDeleteHead
	qDeletePrompts
	qDeleteAsks
	qDeleteSnapshot
	qPutSnapshot
	qInsertGrave
	qGrave
	qDigGrave
	qDeleteGrave
	qPutEvent
	qPutRecent
	qDropRecent
	qCountRecent
	qSettle
	qForget
	qDigRecent
	qRaiseHead
	qInsertPrompt
	qUpdatePrompt
	qInsertAsk
	qSettleAsk
	qAskExists

	qSession
	qSnapshot
	qSessions
	qCountAsks
	qCountWaiting
	qLast
	qPrompt
	qWaiting
	qStarted
	qOpenAsks
	qAskState
	qFirstEvent
	qFirstRecent
	qEvents
	qRecents
	qEvent
	qRecent
	qNextEvent

	numQueries
)

const (
	sessionCols = "s.id, s.cwd, s.title, s.agent, s.model, s.mode, s.profile, s.state, s.flags, s.created, s.updated, s.turn, s.running, s.rules, s.format, s.effort"
	promptCols  = "p.id, p.state, p.outcome, p.turn, p.seq, p.at, p.delivery, p.by, p.content, p.place"
	ofSession   = "(SELECT key FROM sessions WHERE id = ?1)"
)

var queries = [numQueries]string{
	qBegin:      "BEGIN IMMEDIATE",
	qBeginRead:  "BEGIN",
	qCommit:     "COMMIT",
	qRollback:   "ROLLBACK",
	qSavepoint:  "SAVEPOINT item",
	qRelease:    "RELEASE item",
	qRollbackTo: "ROLLBACK TO item",
	// Writes a page without changing anything.
	qTouch:              fmt.Sprintf("PRAGMA user_version = %d", len(migrations)),
	qCheckpointLook:     "PRAGMA wal_checkpoint(NOOP)",
	qCheckpoint:         "PRAGMA wal_checkpoint(PASSIVE)",
	qCheckpointTruncate: "PRAGMA wal_checkpoint(TRUNCATE)",

	qKey: "SELECT key FROM sessions WHERE id = ?1",
	qInsertSession: `INSERT INTO sessions (id, cwd, title, agent, model, mode, profile, state, flags, created, updated, turn, running, rules, format, effort)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)`,
	qUpdateSession: `UPDATE sessions SET cwd = ?2, title = ?3, agent = ?4, model = ?5, mode = ?6, profile = ?7, state = ?8, flags = ?9,
		created = ?10, updated = ?11, turn = ?12, running = ?13, rules = ?14, format = ?15, effort = ?16 WHERE id = ?1`,
	qInsertHead:     "INSERT INTO heads (key, last) VALUES (?1, 0)",
	qDeleteSession:  "DELETE FROM sessions WHERE key = ?1",
	qDeleteHead:     "DELETE FROM heads WHERE key = ?1",
	qDeletePrompts:  "DELETE FROM prompts WHERE session = ?1",
	qDeleteAsks:     "DELETE FROM asks WHERE session = ?1",
	qDeleteSnapshot: "DELETE FROM snapshots WHERE session = ?1",
	qPutSnapshot:    "INSERT OR REPLACE INTO snapshots (session, seq, data) VALUES (?1, ?2, ?3)",
	qInsertGrave:    "INSERT INTO graves (key) VALUES (?1)",
	qGrave:          "SELECT key FROM graves LIMIT 1",
	qDigGrave:       "DELETE FROM events WHERE pos IN (SELECT pos FROM events WHERE pos BETWEEN ?1 AND ?2 LIMIT ?3)",
	qDeleteGrave:    "DELETE FROM graves WHERE key = ?1",
	// Without an index beside it, replacing a row is one write in place.
	qPutEvent: "INSERT OR REPLACE INTO events (pos, head, upd) VALUES (?1, ?2, ?3)",
	qPutRecent: `INSERT INTO recent (pos, head, upd) VALUES (?1, ?2, ?3)
		ON CONFLICT (pos) DO UPDATE SET head = excluded.head, upd = excluded.upd`,
	qDropRecent:  "DELETE FROM recent WHERE pos = ?1",
	qCountRecent: "SELECT count(*) FROM recent",
	qSettle:      "INSERT OR REPLACE INTO events (pos, head, upd) SELECT pos, head, upd FROM recent ORDER BY pos",
	qForget:      "DELETE FROM recent",
	qDigRecent:   "DELETE FROM recent WHERE pos BETWEEN ?1 AND ?2",
	qRaiseHead:   "UPDATE heads SET last = max(last, ?2) WHERE key = ?1",
	qInsertPrompt: `INSERT INTO prompts (session, id, state, place, outcome, turn, seq, at, delivery, by, content)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (session, id) DO NOTHING`,
	qUpdatePrompt: "UPDATE prompts SET state = ?3, place = ?4, outcome = ?5, turn = ?6 WHERE session = ?1 AND id = ?2",
	qInsertAsk: `INSERT INTO asks (session, id, turn, at, title, tool_call, elicitation, options, digest, rule)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (session, id) DO NOTHING`,
	qSettleAsk: `UPDATE asks SET settled = ?3, settled_at = ?4, settled_by = ?5, option = ?6, content = ?7, reason = ?8
		WHERE session = ?1 AND id = ?2 AND settled IS NULL`,
	qAskExists: "SELECT settled FROM asks WHERE session = ?1 AND id = ?2",

	qSession:      "SELECT " + sessionCols + ", h.last FROM sessions s LEFT JOIN heads h USING (key) WHERE s.id = ?1",
	qSnapshot:     "SELECT seq, data FROM snapshots WHERE session = " + ofSession,
	qSessions:     "SELECT " + sessionCols + ", h.last, s.key FROM sessions s LEFT JOIN heads h USING (key) ORDER BY s.updated DESC, s.key DESC",
	qCountAsks:    "SELECT session, count(*) FROM asks WHERE settled IS NULL GROUP BY session",
	qCountWaiting: "SELECT session, count(*) FROM prompts WHERE state = 'stored' GROUP BY session",
	qLast:         "SELECT last FROM heads WHERE key = " + ofSession,
	qPrompt:       "SELECT " + promptCols + " FROM prompts p WHERE session = " + ofSession + " AND id = ?2",
	qWaiting:      "SELECT " + promptCols + " FROM prompts p WHERE session = " + ofSession + " AND state = 'stored' ORDER BY place, n",
	qStarted:      "SELECT " + promptCols + " FROM prompts p WHERE session = " + ofSession + " AND state = 'started' ORDER BY place, n",
	qOpenAsks: `SELECT id, turn, at, title, tool_call, elicitation, options, digest, rule FROM asks
		WHERE session = ` + ofSession + ` AND settled IS NULL ORDER BY n`,
	qAskState:    "SELECT settled, settled_by FROM asks WHERE session = " + ofSession + " AND id = ?2 AND settled IS NOT NULL",
	qFirstEvent:  "SELECT pos FROM events WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos DESC LIMIT 1",
	qFirstRecent: "SELECT pos FROM recent WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos DESC LIMIT 1",
	qRecents:     "SELECT pos, head, upd FROM recent WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos",
	qRecent:      "SELECT pos, head, upd FROM recent WHERE pos = ?1",
	qEvents:      "SELECT pos, head, upd FROM events WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos",
	qEvent:       "SELECT pos, head, upd FROM events WHERE pos = ?1",
	qNextEvent:   "SELECT pos FROM events WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos LIMIT 1",
}
