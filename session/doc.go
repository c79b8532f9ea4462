// Package session is the heart: a [Session] owns its log, queue, turn, asks and
// rights; the [Host] finds, opens and closes sessions.
//
// # The log is the only bus
//
// Whatever happens in a session is appended to its log under the session's one
// mutex: numbered, filed for the store, and readers woken. Nothing is published
// any other way. A reader holds a [Cursor], which is a number and a one-slot
// wake-up; it reads at its own pace and costs nobody anything.
//
// What a reader may see is bounded by one number, shown: facts, and the first
// event of each id, hide themselves and everything behind them until they are
// committed; growth is shown at once and stored within [Checkpoint].
//
// # A prompt has three moments
//
// [Session.Send] puts a prompt into the queue; its callback runs when the prompt
// is stored. When its turn comes, the prompt is inserted (TagTurnStart and the
// user's message); when the turn ends, TagTurnEnd says how. One turn runs at a
// time, on the session's runner, a goroutine that lives only while there is
// something to run.
//
// # Asks
//
// [gladhand.Turn.Ask] makes an ask durable and waits. [Session.Answer] settles it:
// the first valid answer wins, becomes an event, and is the verdict. Cancelling
// the turn settles what is open; nobody waits for the store to cancel.
//
// # Locks
//
// Session.mu guards everything in a Session, its log and turn included. Host.mu
// guards the Host's maps and is taken before a Session.mu, never after. The
// store's callbacks take Session.mu. Nobody waits for the store, a client or an
// agent while holding either.
package session
