package proc

import (
	"errors"
	"path/filepath"

	"gladhand"
)

// lockDaemon takes the lock that makes a daemon the only one of its data
// directory, and holds it for the daemon's life.
func lockDaemon(p Place) (*FileLock, error) {
	l, err := lockNote(filepath.Join(p.DataDir, "daemon.lock"), p.Endpoint)
	var e *gladhand.Error
	if errors.As(err, &e) && e.Reason == gladhand.ReasonConflict {
		return nil, serving(p.DataDir, e)
	}
	return l, err
}

func serving(what string, cause *gladhand.Error) error {
	e := conflict("a daemon already serves %s: %w", what, cause)
	if pid, ok := cause.Data["pid"]; ok {
		e = e.With("pid", pid)
	}
	return e
}
