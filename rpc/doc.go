// Package rpc is a JSON-RPC 2.0 peer over a byte stream: one message a line,
// both sides serve and call, strict about what it reads, ordered in what it
// writes, and bounded in what it holds. It knows no method and no transport.
//
// # Serving
//
// A [Conn] takes any [io.ReadWriteCloser]; its handler gets every request and
// notification on the read loop, in the order of arrival:
//
//	conn := rpc.New(stream, rpc.Options{Handler: func(ctx context.Context, r *rpc.Request) {
//		switch r.Method {
//		case "status":
//			r.Reply(status()) // quick: answer here
//		case "search":
//			go search(r) // slow: elsewhere, and r.Reply or r.Fail when done
//		case "session/cancel":
//			cancel(r.Params) // a notification: nothing to answer
//		default:
//			r.Fail(&rpc.Error{Code: rpc.CodeNoMethod, Message: "no method " + r.Method})
//		}
//	}})
//	err := conn.Run(ctx) // until either side ends it
//
// The handler must not block: while it runs, nothing else is read, neither a
// cancellation nor the answer to a call of ours. Reply and Fail never block, so
// a quick method may be answered in the handler itself. A request's Context
// ends when the peer cancels it ($/cancel_request), when it has been answered,
// and when the connection ends.
//
// # Calling
//
//	var sum int
//	err := conn.Call(ctx, "add", []int{1, 2}, &sum)
//
// Call waits; Start does not and returns a [Pending]. Ending Call's context
// sends $/cancel_request and returns at once. What the peer answers with as an
// error comes back as an [*Error]. The two directions are independent: the same
// id may be in flight in both.
//
// # Order
//
//  1. Requests and notifications reach the handler one at a time, in the order
//     of arrival. Responses are handled on the same loop, between them.
//  2. What was produced first is written first, whichever method produced it:
//     a notification sent before a reply stands before it on the wire. "Produced"
//     is the moment Reply, Fail, Notify, Send, Start or Call queues its frame;
//     for those that wait for room, when there was room.
//  3. Frames are never split, merged or reordered.
//
// # Pressure
//
// A peer that does not read costs at most a few MiB and nobody's time.
// Send, SendReply, Notify and Call wait while more than [Limits].Unsent bytes are
// unsent; this is what a cursor over a log wants. Reply, Fail and Start never wait: when
// they would leave more than [Limits].UnsentReplies unsent, the connection ends.
// A peer that takes nothing for [Limits].WriteStall is disconnected. On Unix
// sockets a frame is written by whoever produced it, without blocking; what the
// kernel does not take is left to a goroutine that lives as long as it is needed.
//
// # Envelopes
//
// Every frame is a JSON object with "jsonrpc":"2.0". Names that occur twice, at
// any depth, members that differ only in case from one JSON-RPC knows, and
// invalid UTF-8 are refused. Ids are kept as the bytes they came in: 1, 1.0 and
// "1" are three ids. What is wrong is treated by its direction:
//
//	not JSON                         −32700, id null
//	a request, but wrong             −32600, with its id where one can be read
//	a response, but wrong            logged without content, dropped
//	neither or both; an array        −32600, id null
//	a response nobody waits for      logged, dropped
//
// and the connection goes on. Only the limits of a frame end it: a line that is
// too long or takes too long is answered with one error, id null, then the end.
// CRLF, blank lines and one byte order mark at the very start are tolerated.
package rpc
