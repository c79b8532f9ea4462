package rpc

import (
	"context"
	"encoding/json"
	"errors"
)

// errCancelled is the cause of a request's context that the peer cancelled.
var errCancelled = &Error{Code: CodeCancelled, Message: "cancelled"}

// Request is a request or a notification of the peer's.
type Request struct {
	Method string
	// Params is an object or an array, the bytes as they came; nil when absent.
	// It may be kept.
	Params json.RawMessage

	conn  *Conn
	base  context.Context
	id    json.RawMessage // nil for a notification
	idBuf [24]byte        // room for an id of usual length

	// The table's lock guards what follows.
	prev, next *Request
	answered   bool
	cancelled  bool
	ctx        context.Context
	cancel     context.CancelCauseFunc
}

// IsNotification reports whether no answer is expected. Reply and Fail then do
// nothing.
func (r *Request) IsNotification() bool { return r.id == nil }

// ID is the request's id, the bytes as they came; nil for a notification.
func (r *Request) ID() json.RawMessage { return r.id }

// Conn is the connection that the request came over.
func (r *Request) Conn() *Conn { return r.conn }

// Context ends when the peer cancels the request, when it has been answered and
// when the connection ends. Its cause after a cancellation is an [*Error] of
// CodeCancelled, good for Fail. A cancelled request still wants its answer.
func (r *Request) Context() context.Context {
	if r.id == nil {
		return r.base
	}
	t := &r.conn.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.ctx == nil {
		r.ctx, r.cancel = context.WithCancelCause(r.base)
		switch {
		case r.cancelled:
			r.cancel(errCancelled)
		case r.answered:
			r.cancel(nil)
		}
	}
	return r.ctx
}

// Cancelled reports whether the peer has cancelled the request.
func (r *Request) Cancelled() bool {
	t := &r.conn.table
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.cancelled
}

// Reply answers the request. Only the first answer counts. A json.RawMessage
// passes unchanged and must be valid; nil is null. Reply never blocks: when the
// peer reads so little that more than Limits.UnsentReplies bytes would be
// unsent, the connection ends.
func (r *Request) Reply(result any) {
	s := takeScratch()
	defer s.give()
	if s.b = r.AppendReply(s.b, result); len(s.b) > 0 {
		r.conn.push(s.b)
	}
}

// Fail answers the request with an error: an [*Error] or whatever else in err's
// chain has WireError as it has. Of any other error the peer is told "internal
// error", and the log the rest; but for the end of the context of a request
// that the peer cancelled, which is CodeCancelled.
func (r *Request) Fail(err error) {
	s := takeScratch()
	defer s.give()
	if s.b = r.AppendFail(s.b, err); len(s.b) > 0 {
		r.conn.push(s.b)
	}
}

// AppendReply is Reply for a caller that sends the frame itself, with [Conn.Send],
// and so waits for room. It appends the frame to dst; nothing when the request
// has been answered before or wants no answer.
func (r *Request) AppendReply(dst []byte, result any) []byte {
	if r.id == nil {
		return dst
	}
	n := len(dst)
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, r.id...)
	dst = append(dst, `,"result":`...)
	dst, err := encode(dst, result)
	if err != nil {
		return r.AppendFail(dst[:n], err)
	}
	if !r.conn.table.leave(r) {
		return dst[:n]
	}
	return append(dst, '}')
}

// AppendFail is Fail as AppendReply is Reply.
func (r *Request) AppendFail(dst []byte, err error) []byte {
	if r.id == nil {
		return dst
	}
	e, known := toWire(err)
	if !known && isContext(err) && r.Cancelled() {
		e, known = errCancelled, true
	}
	if !r.conn.table.leave(r) {
		return dst
	}
	if !known {
		if err == nil {
			err = errors.New("failed without an error")
		}
		r.conn.log.Error("rpc: internal error", "method", r.Method, "err", err)
	}
	return appendError(dst, r.id, e)
}
