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
	if r.id == nil || !r.conn.table.claim(r) {
		return
	}
	s := takeScratch()
	defer s.give()
	if err := s.reply(r.id, result); err != nil {
		s.b = appendError(s.b[:0], r.id, r.wire(err))
	}
	r.conn.push(s.b, r)
}

// SendReply is Reply for a cursor: it waits for room like [Conn.Send]. When it
// returns an error the request has not been answered, and may be answered again.
func (r *Request) SendReply(ctx context.Context, result any) error {
	if r.id == nil || !r.conn.table.claim(r) {
		return nil
	}
	s := takeScratch()
	defer s.give()
	err := s.reply(r.id, result)
	if err == nil {
		err = r.conn.out.send(ctx, [][]byte{s.b}, r)
	}
	if err != nil {
		r.conn.table.unclaim(r)
	}
	return err
}

// Fail answers the request with an error: an [*Error] or whatever else in err's
// chain has WireError as it has. Of any other error the peer is told "internal
// error", and the log the rest; but for the end of the context of a request
// that the peer cancelled, which is CodeCancelled.
func (r *Request) Fail(err error) {
	if r.id == nil || !r.conn.table.claim(r) {
		return
	}
	r.conn.pushError(r, r.id, r.wire(err))
}

// queued implements queuer: the answer is in the box.
func (r *Request) queued() { r.conn.table.leave(r) }

// wire returns what the peer is told of err, and logs what it is not.
func (r *Request) wire(err error) *Error {
	e, known := toWire(err)
	switch {
	case known:
		return e
	case isContext(err) && r.Cancelled():
		return errCancelled
	case errors.Is(err, ErrClosed):
		return e // nobody is there to be told, and why is in the log already
	case err == nil:
		err = errors.New("failed without an error")
	}
	r.conn.log.Error("rpc: internal error", "method", r.Method, "err", err)
	return e
}

// reply puts a response together.
func (s *scratch) reply(id []byte, result any) (err error) {
	s.b = append(append(append(s.b, `{"jsonrpc":"2.0","id":`...), id...), `,"result":`...)
	s.b, err = encode(s.b, result)
	s.b = append(s.b, '}')
	return err
}
