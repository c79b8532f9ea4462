package model

import (
	"fmt"
	"time"

	"gladhand"
)

// Kind is the sort of a [Error]: what people can do about it differs.
type Kind string

// The kinds.
const (
	KindKey      Kind = "key"      // no key, or one that is refused
	KindQuota    Kind = "quota"    // money or a long-term limit is used up
	KindModel    Kind = "model"    // no such model, or not for this key
	KindOverflow Kind = "overflow" // the conversation is longer than the window
	KindRequest  Kind = "request"  // the provider does not take the request
	KindRate     Kind = "rate"     // too many requests for now
	KindOverload Kind = "overload" // the provider is too busy, or broken
	KindOffline  Kind = "offline"  // the provider cannot be reached
	KindStall    Kind = "stall"    // it stopped sending in mid-reply
	KindCut      Kind = "cut"      // the reply broke off, or makes no sense
)

// Retryable reports whether the same request may well succeed a little later.
func (k Kind) Retryable() bool {
	switch k {
	case KindRate, KindOverload, KindOffline, KindStall, KindCut:
		return true
	}
	return false
}

// Error is why a model gave no reply, or only part of one.
type Error struct {
	Kind Kind
	// Model is its name.
	Model string
	// Status is the HTTP status, 0 when there was none.
	Status int
	// Text is what happened, in words for people; what the provider said is quoted
	// in it, at most 500 bytes, and never a key.
	Text string
	// Mend is what to do about it, one sentence for people.
	Mend string
	// RetryAfter is how long the provider asks to wait; 0 when it does not say.
	RetryAfter time.Duration
	// Err is the cause, for errors.Is and the log.
	Err error
}

func (e *Error) Error() string {
	if e.Mend == "" {
		return fmt.Sprintf("%s: %s", e.Model, e.Text)
	}
	return fmt.Sprintf("%s: %s. %s", e.Model, e.Text, e.Mend)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// As makes e a [gladhand.Error] for those who look for one: it is what people
// are told of a turn that failed.
func (e *Error) As(target any) bool {
	g, ok := target.(**gladhand.Error)
	if !ok {
		return false
	}
	*g = gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonModel, "%s", e.Error()).With("kind", e.Kind).With("model", e.Model)
	if e.Kind == KindKey {
		(*g).Code = gladhand.CodeAuthRequired
	}
	return true
}
