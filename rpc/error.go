package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// The error codes that this package itself produces.
const (
	CodeParse          = -32700 // not JSON
	CodeInvalidRequest = -32600 // JSON, but no JSON-RPC message; a frame over a limit
	CodeNoMethod       = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeLimit          = -32004 // too many requests in flight
	CodeCancelled      = -32800 // $/cancel_request
)

// ErrClosed is in the chain of every error that a connection's end causes.
var ErrClosed = errors.New("the connection is closed")

// errEOF is the cause when the peer closed its side.
var errEOF = errors.New("the other side closed the connection")

// errStalled is the cause when the peer read nothing for Limits.WriteStall.
var errStalled = errors.New("the other side stopped reading")

// errUnread is the cause when replies pile up over Limits.UnsentReplies.
var errUnread = errors.New("the other side does not read its replies")

// errNotReady is the cause when Limits.FirstFrame passed before Ready.
var errNotReady = errors.New("the other side did not initialize in time")

// Error is the wire's error object.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("error %d", e.Code)
	}
	return e.Message
}

// WireError returns the members of the error object.
func (e *Error) WireError() (code int, message string, data json.RawMessage) {
	return e.Code, e.Message, e.Data
}

// wireError is what an error of another package satisfies to be sent as it is.
type wireError interface {
	error
	WireError() (code int, message string, data json.RawMessage)
}

// toWire returns what is sent for err. An error that is none of the wire's has
// known false, and its text is not sent.
func toWire(err error) (e *Error, known bool) {
	var own wireError
	if errors.As(err, &own) {
		e = &Error{}
		e.Code, e.Message, e.Data = own.WireError()
		return e, true
	}
	return &Error{Code: CodeInternal, Message: "internal error"}, false
}

// isContext reports whether err only says that a context ended.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// closedError is what calls on an ended connection fail with.
func closedError(cause error) error {
	if cause == nil || errors.Is(cause, ErrClosed) {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, cause)
}

// reasonData is an error's data with its reason and one number.
func reasonData(reason, name string, n int64) json.RawMessage {
	if name == "" {
		return json.RawMessage(`{"reason":"` + reason + `"}`)
	}
	return fmt.Appendf(nil, `{"reason":%q,%q:%d}`, reason, name, n)
}
