package store

import (
	"fmt"

	"gladhand"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// applicationID marks a database as ours: "glhd".
const applicationID = 0x676c6864

// migrations lead from one version of the database to the next; the version is
// SQLite's user_version, and len(migrations) is the one that this code speaks.
// An entry never changes once it has been in a release.
var migrations = []string{
	`CREATE TABLE sessions (
		key      INTEGER PRIMARY KEY AUTOINCREMENT, -- never given out twice
		id       TEXT NOT NULL UNIQUE,
		cwd      TEXT NOT NULL,
		title    TEXT NOT NULL,
		agent    TEXT NOT NULL,
		model    TEXT NOT NULL,
		mode     TEXT NOT NULL,
		profile  TEXT NOT NULL,
		state    TEXT NOT NULL,
		flags    INTEGER NOT NULL, -- flagYes …
		created  INTEGER NOT NULL, -- times are microseconds since 1970, UTC
		updated  INTEGER NOT NULL,
		turn     INTEGER NOT NULL,
		running  INTEGER NOT NULL,
		rules    BLOB,
		format   INTEGER NOT NULL
	) STRICT;
	CREATE INDEX sessions_updated ON sessions (updated);

	-- The last number in each session's log.
	CREATE TABLE heads (
		key  INTEGER PRIMARY KEY,
		last INTEGER NOT NULL
	) STRICT;

	-- Keys of deleted sessions whose events are still to be removed.
	CREATE TABLE graves (key INTEGER PRIMARY KEY) STRICT;

	CREATE TABLE events (
		pos  INTEGER PRIMARY KEY, -- key<<36 | first
		head BLOB NOT NULL,
		upd  BLOB NOT NULL
	) STRICT;

	CREATE TABLE prompts (
		n        INTEGER PRIMARY KEY,
		session  INTEGER NOT NULL, -- key
		id       TEXT NOT NULL,
		state    TEXT NOT NULL,
		place    INTEGER NOT NULL,
		outcome  TEXT NOT NULL,
		turn     INTEGER NOT NULL,
		seq      INTEGER NOT NULL,
		at       INTEGER NOT NULL,
		delivery TEXT NOT NULL,
		by       TEXT NOT NULL, -- JSON
		content  BLOB,
		UNIQUE (session, id)
	) STRICT;
	CREATE INDEX prompts_waiting ON prompts (session, place) WHERE state = 'stored';
	CREATE INDEX prompts_started ON prompts (session, place) WHERE state = 'started';

	CREATE TABLE asks (
		n           INTEGER PRIMARY KEY,
		session     INTEGER NOT NULL, -- key
		id          TEXT NOT NULL,
		turn        INTEGER NOT NULL,
		at          INTEGER NOT NULL,
		title       TEXT NOT NULL,
		tool_call   BLOB,
		elicitation BLOB,
		options     TEXT, -- JSON
		digest      TEXT NOT NULL,
		rule        TEXT NOT NULL,
		settled     TEXT, -- NULL while open
		settled_at  INTEGER,
		settled_by  TEXT, -- JSON, NULL for the session itself
		option      TEXT,
		content     BLOB,
		reason      TEXT,
		UNIQUE (session, id)
	) STRICT;
	CREATE INDEX asks_open ON asks (session) WHERE settled IS NULL;`,

	// Events in the order they came, until there are enough to be put in their
	// place; see pending.go.
	`CREATE TABLE recent (
		n    INTEGER PRIMARY KEY,
		pos  INTEGER NOT NULL UNIQUE, -- as in events, and in place of a row there
		head BLOB NOT NULL,
		upd  BLOB NOT NULL
	) STRICT;`,

	`ALTER TABLE sessions ADD COLUMN effort TEXT NOT NULL DEFAULT '';

	-- The context kept for a session's model, in place of its log up to a number.
	CREATE TABLE snapshots (
		session INTEGER PRIMARY KEY, -- key
		seq     INTEGER NOT NULL,
		data    BLOB NOT NULL
	) STRICT;`,
}

// migrate brings the database to this code's version, each step in a
// transaction of its own.
func migrate(c *sqlite.Conn) error {
	for {
		version, app, err := stamps(c)
		if err != nil {
			return err
		}
		if err := checkStamps(version, app); err != nil {
			return err
		}
		if version == len(migrations) {
			return nil
		}
		script := fmt.Sprintf("%s;\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;", migrations[version], applicationID, version+1)
		if err := inTransaction(c, script); err != nil {
			return fmt.Errorf("change the database to version %d: %w", version+1, err)
		}
	}
}

func inTransaction(c *sqlite.Conn, script string) (err error) {
	if err := sqlitex.ExecuteTransient(c, "BEGIN IMMEDIATE", nil); err != nil {
		return err
	}
	defer func() {
		if err != nil && !c.AutocommitEnabled() {
			_ = sqlitex.ExecuteTransient(c, "ROLLBACK", nil)
		}
	}()
	if err := sqlitex.ExecuteScript(c, script, nil); err != nil {
		return err
	}
	return sqlitex.ExecuteTransient(c, "COMMIT", nil)
}

// stamps reads the version and the application id.
func stamps(c *sqlite.Conn) (version, app int, err error) {
	if version, err = pragmaInt(c, "PRAGMA user_version"); err != nil {
		return 0, 0, err
	}
	app, err = pragmaInt(c, "PRAGMA application_id")
	return version, app, err
}

func pragmaInt(c *sqlite.Conn, pragma string) (int, error) {
	st, _, err := c.PrepareTransient(pragma)
	if err != nil {
		return 0, err
	}
	defer st.Finalize()
	if _, err := st.Step(); err != nil {
		return 0, err
	}
	return st.ColumnInt(0), nil
}

// checkStamps refuses a database that is not ours or of a later version.
func checkStamps(version, app int) error {
	switch {
	case version == 0 && app == 0:
		return nil // new
	case app != applicationID || version < 0:
		return gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonMalformed,
			"the file %s was not made by gladhand; move it away, or choose another directory with --data-dir", fileName)
	case version > len(migrations):
		return gladhand.Errorf(gladhand.CodeVersion, gladhand.ReasonVersion,
			"the database is of version %d, this gladhand knows up to version %d: install a newer gladhand, or choose another directory with --data-dir (nothing was changed)",
			version, len(migrations)).With("database", version).With("supported", len(migrations))
	}
	return nil
}
