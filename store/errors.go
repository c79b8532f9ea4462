package store

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"gladhand"

	"zombiezen.com/go/sqlite"
)

// ErrExists is in the chain of the error for an id that is taken.
var ErrExists = errors.New("this id exists already")

// errClosed answers what comes after Close.
var errClosed = gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "the store is closed: gladhand is stopping")

func notFound(format string, args ...any) *gladhand.Error {
	return gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonNotFound, format, args...)
}

// lowSpace is the number of free bytes below which an error of the disk is
// taken for a full one: a failed sync does not say ENOSPC.
const lowSpace = 64 << 10

// typed makes an error of SQLite or of the file system one that people can act
// on. An error that has its words already passes.
func typed(err error, dir string) error {
	if err == nil {
		return nil
	}
	var known *gladhand.Error
	if errors.As(err, &known) {
		return err
	}
	reason, text := describe(err, dir)
	return &gladhand.Error{Code: gladhand.CodeInternal, Reason: reason, Message: text, Err: err}
}

func describe(err error, dir string) (gladhand.Reason, string) {
	const full = "the disk is full: free some space where %s is, it is tried again by itself"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return gladhand.ReasonDiskFull, at(full, dir)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return gladhand.ReasonUnavailable, at("cannot write in %s: it is read-only for you; choose another directory with --data-dir", dir)
	}
	code := sqlite.ErrCode(err)
	switch code {
	case sqlite.ResultIOErrShortRead, sqlite.ResultIOErrLock, sqlite.ResultIOErrSHMOpen, sqlite.ResultIOErrSHMMap, sqlite.ResultIOErrSHMLock, sqlite.ResultIOErrReadLock:
		return gladhand.ReasonUnavailable, at("locking or sharing memory does not work in %s: is it on a network file system? Choose a directory on a local disk with --data-dir", dir)
	case sqlite.ResultIOErrSHMSize:
		return gladhand.ReasonDiskFull, at(full, dir)
	}
	switch code.ToPrimary() {
	case sqlite.ResultFull:
		return gladhand.ReasonDiskFull, at(full, dir)
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return gladhand.ReasonUnavailable, at("another program holds the database in %s locked; end it and try again", dir)
	case sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultCantOpen, sqlite.ResultAuth:
		return gladhand.ReasonUnavailable, at("the database in %s cannot be opened for writing: check who owns its files, or choose another directory with --data-dir", dir)
	case sqlite.ResultProtocol, sqlite.ResultNoLFS:
		return gladhand.ReasonUnavailable, at("locking does not work in %s: is it on a network file system? Choose a directory on a local disk with --data-dir", dir)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return gladhand.ReasonMalformed, at("the database in %s is damaged: keep a copy, then mend it with \"sqlite3 gladhand.db .recover\", or move it away to start afresh", dir)
	case sqlite.ResultIOErr:
		if free, ok := freeBytes(dir); ok && free < lowSpace {
			return gladhand.ReasonDiskFull, at(full, dir)
		}
		return gladhand.ReasonUnavailable, at("the disk that holds %s reports an error; look at the system's log", dir)
	}
	return gladhand.ReasonUnavailable, at("the database in %s does not work", dir)
}

// fatal reports whether err says that the transaction as a whole cannot go on:
// the fault is the disk's, not the item's.
// Damage is the item's, but SQLite then commits nothing of the transaction.
func fatal(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultFull, sqlite.ResultIOErr, sqlite.ResultNoMem, sqlite.ResultReadOnly,
		sqlite.ResultCantOpen, sqlite.ResultNotADB, sqlite.ResultInterrupt, sqlite.ResultBusy, sqlite.ResultProtocol:
		return true
	}
	return false
}

func isBusy(err error) bool {
	p := sqlite.ErrCode(err).ToPrimary()
	return p == sqlite.ResultBusy || p == sqlite.ResultLocked
}

func at(format, dir string) string { return strings.ReplaceAll(format, "%s", dir) }

func asError(err error) *gladhand.Error {
	var e *gladhand.Error
	if errors.As(err, &e) {
		return e
	}
	return &gladhand.Error{Code: gladhand.CodeInternal, Reason: gladhand.ReasonUnavailable, Message: err.Error(), Err: err}
}
