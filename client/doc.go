// Package client talks to a gladhand daemon: it starts one when none runs,
// calls its methods, follows sessions, and comes back at the same place when
// the connection or the daemon dies.
//
// # Calling
//
//	place, err := proc.Locate("", "", os.Getenv)
//	c, err := client.Connect(ctx, client.Options{Place: place, Label: "my tool"})
//	defer c.Close()
//	list, err := c.Sessions(ctx, gladhand.SessionsParams{})
//
// Connect returns when a daemon has said hello. Ten clients at once start one
// daemon. Errors of the daemon are [*gladhand.Error]s; one of
// [gladhand.ReasonUnavailable] means that no daemon can be reached.
//
// # Following a session
//
//	a, err := c.Attach(ctx, gladhand.AttachParams{SessionID: id})
//	show(a.Snapshot())
//	for {
//		u, err := a.Next(ctx)
//		switch {
//		case err != nil:
//			return err
//		case u.Link == client.Lost:
//			note("reconnecting")
//		case u.Link == client.Back:
//			show(a.Snapshot()) // what is open now: asks, queue, clients
//		default:
//			show(u.Tag, u.Raw)
//		}
//	}
//
// A client is a cursor. After a loss the updates go on behind the last one that
// Next returned or holds ready; each number is seen once, in order, and a gap is
// an error ([*GapError]), never silence.
//
// # Pressure
//
// Whoever calls Next slowly slows nobody but itself: a few MiB are held here,
// then the connection is not read, and the daemon waits at this client's cursor.
// While a call of this client is in flight reading goes on, so that its answer
// arrives.
//
// # Losing the connection
//
// The next Next or call makes a new connection, attaches again, and only then
// goes on. A call that the loss caught in mid-flight is repeated when repeating
// is safe: reading, answering, and sending a prompt, which has an id. The others
// fail with ReasonUnavailable, and their effect is unknown. A daemon that crashed
// is started again; one that was stopped is waited for, not started.
package client
