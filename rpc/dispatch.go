package rpc

import (
	"context"
	"encoding/json"
	"strings"
)

// cancelMethod cancels a request in either direction: {"requestId": id}.
const cancelMethod = "$/cancel_request"

// dispatch handles one frame on the read loop.
func (c *Conn) dispatch(ctx context.Context, frame []byte) {
	e := parse(frame)
	if c.last.Load() != nil {
		c.last.Store(nil)
	}
	switch {
	case e.code != 0 && e.shape == response:
		c.drop(e.flaw)
	case e.code != 0:
		id := e.id
		if id == nil {
			id = nullID
		}
		c.pushError(nil, id, &Error{Code: e.code, Message: e.flaw, Data: reasonData("malformed", "", 0)})
	case e.shape == response:
		c.answered(&e)
	default:
		c.serve(ctx, &e)
	}
}

var nullID = []byte("null")

func (c *Conn) pushError(q queuer, id []byte, e *Error) {
	s := takeScratch()
	defer s.give()
	s.b = appendError(s.b, id, e)
	c.push(s.b, q)
}

// serve hands a request or a notification to the handler.
func (c *Conn) serve(ctx context.Context, e *envelope) {
	if string(e.method) == cancelMethod {
		c.cancelRequest(e)
		return
	}
	r := &Request{Method: string(e.method), Params: c.in.keep(e.params), conn: c, base: ctx}
	if e.id != nil {
		r.id = append(r.idBuf[:0:len(r.idBuf)], e.id...)
		if !c.table.enter(r) {
			limit := c.opts.Limits.InFlight
			r.Fail(&Error{
				Code:    CodeLimit,
				Message: "too many requests wait for an answer; wait for some before sending more",
				Data:    reasonData("in_flight_limit", "limit", int64(limit)),
			})
			return
		}
	}
	if c.opts.Handler == nil {
		r.Fail(&Error{Code: CodeNoMethod, Message: "there is no method " + r.Method})
		return
	}
	c.opts.Handler(ctx, r)
}

// cancelRequest handles $/cancel_request, which is a notification; one sent as
// a request is answered with null.
func (c *Conn) cancelRequest(e *envelope) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if e.params != nil && decode(e.params, &p) == nil && usableID(p.ID) {
		c.table.cancelRequest(p.ID)
	} else {
		c.drop("a cancellation without a usable requestId")
	}
	if e.id != nil {
		s := takeScratch()
		defer s.give()
		s.b = append(append(append(s.b, `{"jsonrpc":"2.0","id":`...), e.id...), `,"result":null}`...)
		c.push(s.b, nil)
	}
}

// answered hands a response to the call that waits for it.
func (c *Conn) answered(e *envelope) {
	var failure *Error
	if e.err != nil {
		failure = &Error{}
		if decode(e.err, failure) != nil {
			failure = &Error{Code: CodeInternal, Message: "the other side answered with an error that cannot be read"}
		}
	}
	id := unquote(e.id)
	p := c.table.take(id)
	switch {
	case p == nil:
		if e.id[0] == 'n' && failure != nil {
			// What the peer says before it ends the connection.
			c.last.Store(failure)
		}
		if !strings.HasPrefix(id, c.opts.Prefix) {
			c.drop("a response to no request of ours")
		} else {
			c.drop("a response that nobody waits for any more")
		}
	case failure != nil:
		p.settle(nil, failure)
	default:
		p.settle(c.in.keep(e.result), nil)
	}
}
