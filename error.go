package gladhand

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Code is a JSON-RPC error code. The −327xx ones are JSON-RPC's, some of the
// −320xx and −328xx are ACP's, the rest are ours; docs/protocol.md lists them.
type Code int

// The codes. Each has one meaning on every wire.
const (
	CodeParse          Code = -32700 // not JSON
	CodeInvalidRequest Code = -32600 // JSON, but no JSON-RPC message
	CodeNoMethod       Code = -32601
	CodeInvalidParams  Code = -32602
	CodeInternal       Code = -32603

	CodeAuthRequired Code = -32000 // ACP
	CodeNotFound     Code = -32002 // ACP: session or other resource
	CodeUnsupported  Code = -32022 // ACP v2: protocol version, data names the supported ones
	CodeCancelled    Code = -32800 // ACP

	CodeCapacity        Code = -32001 // too many sessions
	CodeUnowned         Code = -32003 // not your session
	CodeLimit           Code = -32004 // connection or in-flight limit
	CodeQueueFull       Code = -32005
	CodeConflict        Code = -32006 // same id, other text; a changed file
	CodeInitializeFirst Code = -32010
	CodeVersion         Code = -32011
	CodeForbidden       Code = -32012 // a right is missing
)

// Reason is the machine-readable word in an error's data.
type Reason string

// The reasons. Clients ignore ones they do not know.
const (
	ReasonNotFound        Reason = "not_found"
	ReasonUnowned         Reason = "unowned"
	ReasonQueueFull       Reason = "queue_full"
	ReasonPaused          Reason = "paused"
	ReasonFull            Reason = "full"
	ReasonWrongTarget     Reason = "wrong_target"
	ReasonUnsupported     Reason = "unsupported"
	ReasonGone            Reason = "gone"
	ReasonGuard           Reason = "guard"
	ReasonVersion         Reason = "version"
	ReasonConflict        Reason = "conflict"
	ReasonDisabled        Reason = "disabled"
	ReasonCapacity        Reason = "capacity"
	ReasonForbidden       Reason = "forbidden"
	ReasonInvalid         Reason = "invalid"
	ReasonBlocked         Reason = "blocked"
	ReasonMalformed       Reason = "malformed"
	ReasonExpired         Reason = "expired"
	ReasonUnavailable     Reason = "unavailable"
	ReasonModel           Reason = "model" // a model failed; data has its name and the kind of failure
	ReasonDiskFull        Reason = "disk_full"
	ReasonFrameTooLarge   Reason = "frame_too_large"
	ReasonFrameTimeout    Reason = "frame_timeout"
	ReasonConnectionLimit Reason = "connection_limit"
	ReasonInFlightLimit   Reason = "in_flight_limit"
)

// Error is the one error that crosses the wire: what happened, why, and what to
// do about it, in plain words. Anything else that reaches a connection is
// logged and answered as [CodeInternal] without its text.
type Error struct {
	Code    Code
	Reason  Reason
	Message string
	// Data holds further members of the error's data object, beside "reason".
	Data map[string]any
	// Err is the cause, for the log and errors.Is; it is never sent.
	Err error
}

// Errorf returns an [Error] whose message is for people. A %w verb sets Err.
func Errorf(code Code, reason Reason, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Reason: reason, Message: err.Error(), Err: errors.Unwrap(err)}
}

// With returns e with a further member of its data.
func (e *Error) With(key string, value any) *Error {
	if e.Data == nil {
		e.Data = map[string]any{}
	}
	e.Data[key] = value
	return e
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// WireError gives package rpc, which knows no type of ours, the members of a
// JSON-RPC error object.
func (e *Error) WireError() (code int, message string, data json.RawMessage) {
	members := map[string]any{}
	for k, v := range e.Data {
		members[k] = v
	}
	if e.Reason != "" {
		members["reason"] = e.Reason
	}
	if len(members) > 0 {
		data, _ = json.Marshal(members)
	}
	return int(e.Code), e.Message, data
}

// TurnError is e as an event or a notification carries it.
func (e *Error) TurnError() *TurnError {
	code, message, data := e.WireError()
	return &TurnError{Code: Code(code), Message: message, Data: data}
}

// FromWire is the inverse of [Error.WireError]. Data that is not an object is
// ignored.
func FromWire(code int, message string, data json.RawMessage) *Error {
	e := &Error{Code: Code(code), Message: message}
	if json.Unmarshal(data, &e.Data) == nil && e.Data != nil {
		if r, ok := e.Data["reason"].(string); ok {
			e.Reason = Reason(r)
			delete(e.Data, "reason")
		}
	}
	if len(e.Data) == 0 {
		e.Data = nil
	}
	return e
}

// ReasonOf returns the reason of the [Error] in err's chain, or "".
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// CodeOf returns the code of the [Error] in err's chain, or 0 for none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
