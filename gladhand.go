// Package gladhand holds the words that every other package speaks: ids,
// identities and rights, the numbered events of a session's log, prompts,
// asks and answers, and the one error type with its codes.
//
// # The picture
//
// A session is one conversation with one agent in one workspace. It lives in
// the daemon and outlives every client. Whatever happens in it is an [Event]
// in its log; an event covers the numbers First..Last, and the events of a log
// partition the number line. A client is a cursor: "give me what follows N" is
// the first attach, a slow client, and a reconnect alike.
//
// A client puts a [Prompt] in; the session queues it, runs it as a turn, and
// the turn's agent emits updates, asks questions ([Ask]) and ends. An ask is
// settled once, by an [Answer], whoever was first.
//
// What a caller may do is in its [Identity]: who it is was stamped by the
// daemon from how it reached us, never from what it says of itself.
//
// The package imports nothing of the module, and knows neither the wire nor
// the disk; wire.go has the parameters and results of our own methods, shared
// by the daemon that serves them and the client that calls them.
package gladhand

import (
	"crypto/rand"
	"strings"
)

// SessionID names a session for its life. It is opaque; ours are 16 lower-case
// letters and digits.
type SessionID string

// PromptID names a prompt within its session. A client may choose it (1 to 100
// characters of [A-Za-z0-9_.-]); the same id sent again finds the first prompt.
type PromptID string

// AskID names an ask for its life.
type AskID string

// ClientID names one attached connection for its life.
type ClientID string

// TurnID numbers the turns of a session from 1. 0 means "in no turn".
type TurnID uint64

// Seq is the number of an event in its session's log. The first is 1; 0 is the
// cursor of a client that has seen nothing.
type Seq uint64

// SeqJump is how far numbering goes on behind the last stored number after an
// unclean end: what was shown and lost stays below it, so no number is ever
// given to two texts. A log checkpoints before it runs this far ahead.
const SeqJump = 65536

// NewID returns a fresh opaque id: 16 lower-case letters and digits, 80 random
// bits.
func NewID() string { return strings.ToLower(rand.Text()[:16]) }

// ValidID reports whether s may name a prompt or a message: 1 to 100
// characters of [A-Za-z0-9_.-].
func ValidID(s string) bool {
	if len(s) == 0 || len(s) > 100 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}
