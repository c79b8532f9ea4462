package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

var errTooManyCalls = errors.New("too many calls wait for the other side's answer")

// Pending is a call of ours that has been sent.
type Pending struct {
	conn *Conn
	id   string
	done chan struct{}
	// Written before done is closed, read after.
	result json.RawMessage
	err    error
	then   func(json.RawMessage, error) // guarded by the table's lock
}

// Call sends a request and waits for its answer. An error of the peer's comes
// back as an [*Error]; one of the connection has ErrClosed in its chain. When
// ctx ends, Call sends $/cancel_request and returns ctx's error at once. It
// waits for room like [Conn.Send]. result may be nil, a *json.RawMessage, or
// what encoding/json would take; unknown members are ignored.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	s := takeScratch()
	defer s.give()
	p, err := c.prepare(s, method, params)
	if err != nil {
		return err
	}
	if err := c.out.send(ctx, [][]byte{s.b}, nil); err != nil {
		c.table.take(p.id)
		return err
	}
	err = p.Wait(ctx, result)
	if err != nil && ctx.Err() != nil {
		p.Cancel() // does nothing when the answer is there
	}
	return err
}

// Start sends a request and does not wait, neither for the answer nor for room:
// like a reply, it ends the connection when too much is unsent.
func (c *Conn) Start(method string, params any) (*Pending, error) {
	s := takeScratch()
	defer s.give()
	p, err := c.prepare(s, method, params)
	if err != nil {
		return nil, err
	}
	c.push(s.b, nil)
	return p, nil
}

// prepare registers a call and encodes it into s.
func (c *Conn) prepare(s *scratch, method string, params any) (*Pending, error) {
	p := &Pending{conn: c, done: make(chan struct{})}
	if err := c.table.open(p); err != nil {
		return nil, err
	}
	var err error
	if s.b, err = appendCall(s.b, p.id, method, params); err != nil {
		c.table.take(p.id)
		return nil, err
	}
	return p, nil
}

// Notify sends a notification. It waits for room like [Conn.Send]. Nil params are
// left out; a json.RawMessage passes as it is.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	s := takeScratch()
	defer s.give()
	var err error
	if s.b, err = appendCall(s.b, "", method, params); err != nil {
		return err
	}
	return c.out.send(ctx, [][]byte{s.b}, nil)
}

// ID is the call's id: a string, here without its quotes.
func (p *Pending) ID() string { return p.id }

// Done is closed when the call has been answered, cancelled, or lost with its
// connection.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Result returns the answer. Call it after Done is closed.
func (p *Pending) Result() (json.RawMessage, error) { return p.result, p.err }

// Wait waits for the answer as Call does, but for the end of ctx, which leaves
// the call as it is.
func (p *Pending) Wait(ctx context.Context, result any) error {
	select {
	case <-p.done:
	default:
		select {
		case <-p.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if p.err != nil || result == nil {
		return p.err
	}
	if raw, ok := result.(*json.RawMessage); ok {
		*raw = p.result
		return nil
	}
	if err := decode(p.result, result); err != nil {
		return fmt.Errorf("the other side's answer cannot be read: %w", err)
	}
	return nil
}

// Then has f called once with the answer: on the read loop, where it must not
// block, or at once when the answer is there. A second Then replaces the first.
func (p *Pending) Then(f func(result json.RawMessage, err error)) {
	t := &p.conn.table
	t.mu.Lock()
	select {
	case <-p.done:
		t.mu.Unlock()
		f(p.result, p.err)
	default:
		p.then = f
		t.mu.Unlock()
	}
}

// Cancel gives the call up: the peer gets $/cancel_request, the call ends with
// an [*Error] of CodeCancelled, and an answer that still comes is dropped. It
// does nothing when the call has ended.
func (p *Pending) Cancel() {
	if p.conn.table.take(p.id) == nil {
		return
	}
	p.settle(nil, errCancelled)
	p.conn.push([]byte(`{"jsonrpc":"2.0","method":"`+cancelMethod+`","params":{"requestId":"`+p.id+`"}}`), nil)
}

// settle ends the call. Only who took it out of the table calls it.
func (p *Pending) settle(result json.RawMessage, err error) {
	t := &p.conn.table
	t.mu.Lock()
	p.result, p.err = result, err
	then := p.then
	close(p.done)
	t.mu.Unlock()
	if then != nil {
		then(result, err)
	}
}

// appendCall appends a request, or a notification when id is empty.
func appendCall(dst []byte, id, method string, params any) ([]byte, error) {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if id != "" {
		dst = append(append(append(dst, `"id":"`...), id...), `",`...)
	}
	dst = append(dst, `"method":`...)
	dst, err := jsontext.AppendQuote(dst, method)
	if err != nil {
		return dst, err
	}
	if raw, ok := params.(json.RawMessage); params != nil && !(ok && len(raw) == 0) {
		dst = append(dst, `,"params":`...)
		n := len(dst)
		if dst, err = encode(dst, params); err != nil {
			return dst, err
		}
		if c := dst[n]; c != '{' && c != '[' {
			return dst, fmt.Errorf("params of %s must be an object or an array", method)
		}
	}
	return append(dst, '}'), nil
}

// appendError appends an error response.
func appendError(dst, id []byte, e *Error) []byte {
	dst = append(append(append(dst, `{"jsonrpc":"2.0","id":`...), id...), `,"error":`...)
	dst, err := encode(dst, e)
	if err != nil { // Data is no JSON
		dst, _ = encode(dst, &Error{Code: e.Code, Message: e.Message})
	}
	return append(dst, '}')
}
