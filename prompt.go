package gladhand

import (
	"encoding/json"
	"time"
)

// Delivery says how a prompt joins what is running.
type Delivery string

// The deliveries.
const (
	Queue     Delivery = "queue"     // runs when those before it have ended (the default)
	Steer     Delivery = "steer"     // joins the running turn at its next safe point, else heads the queue
	Interrupt Delivery = "interrupt" // cancels the running turn first
)

// PromptState is what became of a prompt. Only stored and started change.
type PromptState string

// The states of a prompt.
const (
	PromptStored      PromptState = "stored"      // committed, waiting
	PromptStarted     PromptState = "started"     // in a turn
	PromptDone        PromptState = "done"        // its turn ended; Outcome says how
	PromptInterrupted PromptState = "interrupted" // the daemon died in its turn: effect unknown, never run again
)

// Outcome is how a turn, or a prompt that never had one, ended.
type Outcome string

// The outcomes.
const (
	Completed Outcome = "completed"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
)

// Prompt is an input that starts or joins a turn. Each accepted prompt runs at
// most once.
type Prompt struct {
	ID      PromptID  `json:"promptId"`
	Session SessionID `json:"sessionId"`
	// Content is an array of ACP content blocks, the bytes as they came.
	Content  json.RawMessage `json:"prompt"`
	Delivery Delivery        `json:"delivery"`
	By       Identity        `json:"by"`
	State    PromptState     `json:"state"`
	Outcome  Outcome         `json:"outcome,omitempty"`
	Turn     TurnID          `json:"turn,omitempty"`
	// Seq is the number of the event that stored it.
	Seq Seq       `json:"seq"`
	At  time.Time `json:"at"`
}

// Receipt is what became of a prompt or a handed-over message. It never says
// more than is true.
type Receipt struct {
	Prompt  PromptID    `json:"promptId"`
	State   PromptState `json:"state"`
	Outcome Outcome     `json:"outcome,omitempty"`
	// Position is the place in the queue, from 1; 0 for one that is running or done.
	Position int `json:"position"`
	Seq      Seq `json:"seq"`
}

// StopReason is ACP's reason why a turn ended.
type StopReason string

// ACP's stop reasons, v1's five; v2 adds "error".
const (
	StopEndTurn     StopReason = "end_turn"
	StopMaxTokens   StopReason = "max_tokens"
	StopMaxRequests StopReason = "max_turn_requests"
	StopRefusal     StopReason = "refusal"
	StopCancelled   StopReason = "cancelled"
	StopError       StopReason = "error" // v2; on v1 the prompt's response is an error
)
