package gladhand

import (
	"encoding/json"
	"time"
)

// Ask is a question that its turn cannot go on without. It is durable, shown to
// everyone who may answer, also to those who attach later, and settled once.
type Ask struct {
	ID      AskID     `json:"askId"`
	Session SessionID `json:"sessionId"`
	Turn    TurnID    `json:"turn"`
	// Title is the question in one line, for people.
	Title string `json:"title"`
	// ToolCall is ACP's tool call update that is asked about (v1 shape), as shown.
	ToolCall json.RawMessage `json:"toolCall,omitempty"`
	// Elicitation is ACP's elicitation/create parameters (form or url), when the
	// ask is a question to fill in and not a permission.
	Elicitation json.RawMessage `json:"elicitation,omitempty"`
	Options     []Option        `json:"options,omitempty"`
	// Digest binds an answer to what was shown: tool, arguments, directory,
	// environment and the state of the files concerned.
	Digest string `json:"digest,omitempty"`
	// Rule is what "always" would remember; empty where always is not offered.
	Rule string    `json:"rule,omitempty"`
	At   time.Time `json:"at"`
}

// OptionKind is ACP's kind of a permission option.
type OptionKind string

// The option kinds.
const (
	AllowOnce    OptionKind = "allow_once"
	AllowAlways  OptionKind = "allow_always"
	RejectOnce   OptionKind = "reject_once"
	RejectAlways OptionKind = "reject_always"
)

// Option is one way to answer an ask: ACP's permission option.
type Option struct {
	ID   string     `json:"optionId"`
	Name string     `json:"name"`
	Kind OptionKind `json:"kind"`
}

// Answer settles an ask.
type Answer struct {
	Option  string          `json:"optionId,omitempty"`
	Content json.RawMessage `json:"content,omitempty"` // of an elicitation
	// Reason is what a denier tells the agent.
	Reason string `json:"reason,omitempty"`
	// Digest must equal the ask's when it is given.
	Digest string `json:"digest,omitempty"`
}

// Settled is how an ask ended.
type Settled string

// How an ask ends. Only SettledAnswered carries an Answer.
const (
	SettledAnswered  Settled = "answered"
	SettledByRule    Settled = "by_rule"   // an "always" given to another ask matched
	SettledCancelled Settled = "cancelled" // its turn was cancelled or ended
	SettledExpired   Settled = "expired"   // nobody was there for too long
	SettledDenied    Settled = "denied"    // nobody could answer
)

// Verdict is what the agent that asked gets back.
type Verdict struct {
	Settled Settled
	Answer  Answer
	// Kind is the chosen option's kind, RejectOnce for every verdict that has none.
	Kind OptionKind
	// By is who settled it; nil for the session itself.
	By *Identity
}

// Allowed reports whether the verdict lets the asked-for effect happen.
func (v Verdict) Allowed() bool { return v.Kind == AllowOnce || v.Kind == AllowAlways }

// AnswerStatus is what the one who answers is told.
type AnswerStatus string

// The answer statuses.
const (
	AnswerAccepted AnswerStatus = "accepted"
	AnswerAlready  AnswerStatus = "already_answered"
	AnswerExpired  AnswerStatus = "expired"
	AnswerUnknown  AnswerStatus = "unknown"
)
