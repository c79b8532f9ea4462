// Package daemon serves gladhand's one protocol: ACP, v1 and v2, and a few
// methods of our own, over any byte stream.
//
// The whole surface is the table in table.go. A request is decoded once, looked
// up there, and handed to a handler that has no thought in it: it parses, calls
// package session, which decides, and answers. Errors are mapped in package rpc,
// once for all.
//
// # What a connection may be sent
//
// Whatever concerns a session, updates, questions, their withdrawal and the
// responses to prompts alike, is written by a feed: one goroutine for a session
// on a connection, with one cursor. It passes the log's events in order and
// writes what each means to this client, so that a client sees a turn's last
// update before the response that ends its prompt. Nothing else writes for a
// session. A feed that cannot write waits; it holds no queue, and costs nobody
// else anything.
//
// Feeds that are live and show the same kind of client the same session share a
// stream (stream.go): the first of them reads the log and makes the frames, the
// others copy. Those too far behind share another one until they have caught up.
//
// # Requests
//
// Handlers marked inline run on the connection's read loop, in the order in which
// requests arrived, and must not wait: cancelling, prompting and answering. The
// others have a goroutine each.
package daemon
