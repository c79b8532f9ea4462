// Package acp knows the names and shapes of the Agent Client Protocol, versions
// 1 and 2, and no more of them than is needed.
//
// # Raw in, raw out
//
// A message stays the bytes it came as. What we do not act on is never decoded,
// so an update, a field or a content block that is newer than this package
// passes through it untouched. Where we do act there is a typed view
// ([ParseInitialize], [ParseNew], [ParsePrompt], …), and what we make ourselves
// comes from a builder ([MessageChunk], [NewResult], [PermissionParams], …) as
// bytes that the protocol's schema accepts.
//
// # Into the log
//
// [Describe] reads an update just far enough to file it:
//
//	e, err := acp.Describe(1, update) // class, tag, id, where the text stands
//	e.First, e.Last = n, n            // the session numbers it
//	shown.Note(e)                     // what it means after those before it
//
// A [Run] is the end of a log that still grows: it takes adjacent events of one
// id in, and gives out the event they make, whole or from a cursor on.
//
//	if !run.Add(e) {
//		tail = append(tail, run.Event())
//		run = acp.NewRun(e)
//	}
//
// # Out of the log
//
// [Project] gives an event in a reader's version: the bytes as they came, or the
// pure projection of docs/projection.md. It depends on nothing but the event, so
// it is made once for all readers of that version. [ProjectOwn] does the same for
// our own updates, for clients that know plain ACP only, and [Fit] leaves out what a
// v1 client did not opt into.
package acp
