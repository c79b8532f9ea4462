// Package store keeps what must outlive the daemon: sessions, the events of
// their logs, prompts and asks, in one SQLite database.
//
// # Writing
//
// Open takes a directory, and is its only owner until Close. Everything that
// changes the database goes through one goroutine, the writer:
//
//	s, err := store.Open(ctx, dir, store.Options{})
//	s.Write(func(tx *store.Tx) error {
//		if err := tx.PutPrompt(p, place); err != nil {
//			return err
//		}
//		return tx.PutEvents(session, event)
//	}, func(err error) {
//		// nil: both are on the disk, synced. Otherwise neither is.
//	})
//
// The writer takes whatever is queued, up to a bound, into one transaction and
// commits it with one sync (group commit), so that many sessions cost little
// more than one. The functions run in the order of the calls to Write, and so
// do the done functions, after the commit. Each function has a savepoint of its
// own: when it returns an error only its own changes are taken back. A function
// may be run a second time after its first run was taken back, so it should do
// nothing but call tx.
//
// A done function runs on the writer's goroutine. It must not block and must
// not wait for the store; it may call Write, which only queues. Commit is Write
// and wait, for callers that have nothing else to do.
//
// # When the disk fails
//
// A commit that fails fails every item of its batch, with a [gladhand.Error]
// that says what to do, and nothing of the batch is in the database. The writer
// goes on: the next batch is tried afresh, so a full disk needs no restart once
// it has space again. Health tells of the last failure until a commit succeeds;
// while there is one the writer also tries by itself, once a second.
//
// # Reading
//
// Reads use a few connections of their own. Each call is one short transaction
// that has ended when it returns; nothing is held between calls, so a caller
// may take as long as it likes over what it got. A read sees every write whose
// done has been called.
//
// Nothing else in the process may open the database's file: closing it would
// end SQLite's locks, which belong to the process and not to the descriptor.
//
// Each event carries a checksum. A damaged one is skipped, with a warning in
// the log; those around it stay readable.
//
// # The tables
//
// A session has a small integer key. An event's row id is key<<36 | First: the
// events of one session lie together in order, and a page of a replay is one
// range scan without an index. The row holds a head (see head.go) and the
// update's bytes as they came. The last number of every session is kept in a
// narrow table beside, so that a commit of many sessions dirties few pages and
// listing sessions reads no events. For the same reason the events of a commit
// for many sessions wait in the table "recent" until there are enough to move
// (see pending.go). Deleting a session moves its key to
// "graves"; the writer removes the events behind it in its idle time.
package store
