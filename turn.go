package gladhand

import (
	"context"
	"encoding/json"
	"iter"
)

// Turn is what a session's agent sees of the turn it runs; package session
// implements it. All methods are safe for concurrent use. After the turn has
// been cancelled or has ended every method returns an error of
// [CodeCancelled], and changes nothing: a late call can never reach a newer turn.
type Turn interface {
	// ID is the turn's number.
	ID() TurnID
	// Opened are the ids of a message and of a thought that the turn's start opened:
	// text under them is shown without waiting for the store, also the first.
	Opened() (message, thought string)
	// Info is the session as it is now: mode, model and other options may change
	// between two calls.
	Info() SessionInfo
	// Prompt is what started the turn.
	Prompt() Prompt
	// Steered takes the prompts that joined the turn since the last call, in
	// order. Each has become part of the transcript when it is returned. Call it
	// at every safe point: before each model call, and once more before ending.
	Steered(context.Context) ([]Prompt, error)
	// Emit puts an ACP v1 update object into the log. Growth (text, a plan) is
	// shown at once; a fact (a tool's start or end) has been committed when Emit
	// returns nil. Emit a tool call with status in_progress, and get nil, before
	// its effect begins.
	Emit(ctx context.Context, update json.RawMessage) error
	// Ask puts a question and waits for its verdict. Session, Turn, ID and At are
	// filled in. Cancelling the turn settles it.
	Ask(context.Context, Ask) (Verdict, error)
	// Snapshot is the context last kept for the model, nil when there is none.
	Snapshot(context.Context) (*ContextSnapshot, error)
	// Reduce keeps data as the context for the model, in place of the log up to
	// and including update, an ACP v1 update that announces it. Both are one
	// commit: when it fails nothing is kept and nothing is shown.
	Reduce(ctx context.Context, data []byte, update json.RawMessage) error
	// History yields the session's events behind the cursor, oldest first. A
	// yielded error is the last.
	History(ctx context.Context, after Seq) iter.Seq2[*Event, error]
}

// SnapshotMax is how many bytes a [ContextSnapshot] may have.
const SnapshotMax = 16 << 20

// ContextSnapshot is the context kept for a session's model, in its agent's own
// form. One without data is still authoritative: the context is empty.
type ContextSnapshot struct {
	// Covers is the last number of the log that Data stands for.
	Covers Seq
	Data   []byte
}

// SessionInfo is what is known of a session without opening it.
type SessionInfo struct {
	ID    SessionID `json:"sessionId"`
	Cwd   string    `json:"cwd"` // absolute, canonical
	Title string    `json:"title,omitempty"`
	// Agent is "gladhand" for the built-in one, else the guest's name.
	Agent string `json:"agent"`
	// Model is the model's name; "offline" for the embedded one.
	Model string `json:"model"`
	// Effort is how hard the model thinks, one of its own words; empty leaves it to
	// the model.
	Effort  string `json:"effort,omitempty"`
	Mode    string `json:"mode"`    // ask, edits, plan
	Profile string `json:"profile"` // coding, sysadmin
	// Yes means that everything is allowed in this session (--yes).
	Yes bool `json:"yes,omitempty"`
	// State is one of the SessionState words.
	State SessionState `json:"state"`
	// Created and Updated are RFC 3339 in UTC.
	Created string `json:"createdAt"`
	Updated string `json:"updatedAt"`
	Seq     Seq    `json:"seq"`
	// Clients, Asks and Queued count what is attached, open and waiting now.
	Clients int `json:"clients"`
	Asks    int `json:"asks"`
	Queued  int `json:"queued"`
	// Reason says why a session that is listed cannot be opened.
	Reason string `json:"reason,omitempty"`
}

// SessionState is what a session is doing.
type SessionState string

// The states of a session.
const (
	StateIdle     SessionState = "idle"     // open, nothing runs
	StateRunning  SessionState = "running"  // a turn runs
	StateAsking   SessionState = "asking"   // a turn waits for an answer
	StateClosed   SessionState = "closed"   // kept, can be resumed
	StateKilled   SessionState = "killed"   // kept, never runs again
	StateUnusable SessionState = "unusable" // of a format or agent this version does not know
)
