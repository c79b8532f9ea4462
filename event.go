package gladhand

import (
	"encoding/json"
	"time"
)

// Class says how an event behaves in the log.
type Class uint8

// The classes.
const (
	// Fact is shown only once it is committed, and never merges: a prompt, a
	// tool's start and end, an ask, an answer, a turn's end, a client that came
	// or left.
	Fact Class = iota + 1
	// Append adds text to its ID. Adjacent ones of one ID merge; the text
	// concatenates and each number keeps its length. Shown at once, but for the
	// first of an ID, which is shown when committed.
	Append
	// Replace sets the state of its ID. Of adjacent ones the last stands.
	Replace
)

// Event is an entry of a session's log. It covers the numbers First..Last.
// Treat an Event, and all it points to, as immutable once it is in a log.
type Event struct {
	First, Last Seq
	// Opens is the number of the first event of ID; First itself for that one.
	Opens Seq
	Turn  TurnID
	Class Class
	// Version is the ACP version of Update's bytes, 1 or 2; 0 for our own
	// updates ("_gladhand_…"), which are the same in both.
	Version uint8
	// Tag is Update's "sessionUpdate".
	Tag string
	// ID is what Append and Replace act on, qualified by its sort
	// ("agent_message:m1", "tool:t1", "plan"); empty where nothing merges.
	ID string
	// Update is ACP's update object, the bytes as they came.
	Update json.RawMessage
	// Text is where in Update the text of an Append, or of a message that is
	// one block of text, stands: the inside of a JSON string, still escaped.
	Text Span
	// Lens has, for an Append or an extending Replace that covers several
	// numbers, the bytes of Text that each number added. Nil for one number.
	Lens []uint32
	// Base is how many bytes of Text earlier events of ID had shown already,
	// when a Replace extends them; −1 when it does not extend them.
	Base int
	// Prior is what a projection to the other version must know of earlier
	// events of ID. Package acp writes it when the event is appended and reads it
	// when the event is shown; to others it is opaque bytes to keep. Nil for most.
	Prior []byte
	// By is who caused the event; nil for the session's agent.
	By *Identity
	At time.Time
}

// Span is a half-open range of bytes.
type Span struct{ Start, End int }

// Len is the number of bytes in s.
func (s Span) Len() int { return s.End - s.Start }

// After returns the part of e that follows the cursor: e itself when it begins
// behind it, else e with First set behind the cursor and, for an Append, only
// the text that the remaining numbers added. The cursor must be below Last.
func (e *Event) After(cursor Seq) *Event {
	if cursor < e.First {
		return e
	}
	cut := *e
	cut.First = cursor + 1
	if e.Lens == nil {
		return &cut
	}
	skip := 0
	n := int(cursor - e.First + 1)
	for _, l := range e.Lens[:n] {
		skip += int(l)
	}
	cut.Lens = e.Lens[n:]
	if e.Class != Append {
		if e.Base >= 0 {
			cut.Base = e.Base + skip
		}
		return &cut
	}
	cut.Update = make(json.RawMessage, 0, len(e.Update)-skip)
	cut.Update = append(cut.Update, e.Update[:e.Text.Start]...)
	cut.Update = append(cut.Update, e.Update[e.Text.Start+skip:]...)
	cut.Text.End -= skip
	return &cut
}

// The tags of our own updates. They go only to clients that used
// _gladhand/attach; other clients see plain ACP. Each has its type in wire.go.
const (
	TagPrompt      = "_gladhand_prompt"      // a prompt was stored, dropped or moved: PromptUpdate
	TagTurnStart   = "_gladhand_turn_start"  // TurnUpdate
	TagTurnEnd     = "_gladhand_turn_end"    // TurnUpdate
	TagAsk         = "_gladhand_ask"         // an ask is open: AskUpdate
	TagAnswer      = "_gladhand_answer"      // an ask is settled: AnswerUpdate
	TagClient      = "_gladhand_client"      // a client came or left: ClientUpdate
	TagQueue       = "_gladhand_queue"       // the queue was paused or resumed: QueueUpdate
	TagInterrupted = "_gladhand_interrupted" // the daemon ended in mid-turn: InterruptedUpdate
)
