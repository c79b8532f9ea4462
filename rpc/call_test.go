package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// openCalls is how many calls wait for an answer.
func openCalls(c *Conn) int {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return len(c.table.calls)
}

// Both sides serve and call, at once, with the same ids in flight.
func TestBothDirections(t *testing.T) {
	for name := range transports {
		t.Run(name, func(t *testing.T) {
			a, b := connect(t, name, echoHandler, echoHandler)
			var all sync.WaitGroup
			for i, c := range []*Conn{a, b, a, b} {
				all.Go(func() {
					for n := range 200 {
						want := fmt.Sprintf(`{"from":%d,"n":%d}`, i, n)
						var got json.RawMessage
						if err := c.Call(t.Context(), "echo", json.RawMessage(want), &got); err != nil || string(got) != want {
							t.Errorf("got %s, %v", got, err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// Our ids count from 1 behind the prefix, and results come back typed.
func TestCall(t *testing.T) {
	s := serve(t, transports["pipe"], Options{})
	call := func(result any, answer string) error {
		done := make(chan error, 1)
		go func() { done <- s.conn.Call(t.Context(), "sum", []int{1, 2}, result) }()
		m := parseMessage(t, s.line())
		if m.Method != "sum" || string(m.Params) != "[1,2]" {
			t.Errorf("method %s, params %s", m.Method, m.Params)
		}
		s.write(fmt.Sprintf(head+`"id":%s,%s}`+"\n", m.ID, answer))
		return <-done
	}
	var n int
	if err := call(&n, `"result":3`); err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
	if err := call(nil, `"result":null`); err != nil {
		t.Errorf("null is a success: %v", err)
	}
	var p *int
	if err := call(&p, `"result":null`); err != nil || p != nil {
		t.Errorf("null is a success: %v", err)
	}
	var e *Error
	if err := call(&n, `"error":{"code":-7,"message":"m","data":{"reason":"r"}}`); !errors.As(err, &e) || e.Code != -7 || e.Message != "m" || string(e.Data) != `{"reason":"r"}` {
		t.Errorf("%v", err)
	}
	if err := call(&n, `"error":{"code":"x"}`); !errors.As(err, &e) || e.Code != CodeInternal {
		t.Errorf("%v", err)
	}
	if err := call(&n, `"result":"three"`); err == nil || errors.As(err, &e) && e.Code == CodeInternal {
		t.Errorf("%v", err)
	}
	// The id in another spelling of the same string.
	done := make(chan error, 1)
	go func() { done <- s.conn.Call(t.Context(), "x", nil, nil) }()
	if m := parseMessage(t, s.line()); string(m.ID) != `"gh-7"` || m.Params != nil {
		t.Errorf("id %s, params %s", m.ID, m.Params)
	}
	s.write(head + `"id":"\u0067h-7","result":{}}` + "\n")
	if err := <-done; err != nil {
		t.Error(err)
	}
	for name, params := range map[string]any{"a string": "x", "a number": 1, "no JSON": func() {}} {
		if err := s.conn.Call(t.Context(), "x", params, nil); err == nil {
			t.Errorf("params of %s pass", name)
		}
		if err := s.conn.Notify(t.Context(), "x", params); err == nil {
			t.Errorf("params of %s pass", name)
		}
	}
	if n := openCalls(s.conn); n != 0 {
		t.Errorf("%d calls are left", n)
	}
}

// White space in a raw value cannot break a frame in two.
func TestRawLineEnds(t *testing.T) {
	s := serve(t, transports["pipe"], Options{Handler: func(_ context.Context, r *Request) {
		r.Reply(json.RawMessage("{\n\"a\": [1,\r\n2]}\n"))
	}})
	s.write(fence + "\n")
	if got := s.line(); got != `{"jsonrpc":"2.0","id":"fence","result":{"a":[1,2]}}` {
		t.Errorf("got %s", got)
	}
	s.conn.Notify(t.Context(), "n", json.RawMessage("[\n]"))
	if got := s.line(); got != `{"jsonrpc":"2.0","method":"n","params":[]}` {
		t.Errorf("got %s", got)
	}
}

// R025: a thousand calls given up at random times do not stand in the way of
// the next one, whether their answers come or not.
func TestGivenUpCalls(t *testing.T) {
	for name := range transports {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			cancelled := 0
			server, client := connect(t, name, func(_ context.Context, r *Request) {
				go func() {
					if rand.IntN(2) == 0 {
						<-r.Context().Done()
						mu.Lock()
						cancelled++
						mu.Unlock()
					}
					r.Reply(nil)
				}()
			}, nil)
			var all sync.WaitGroup
			for range 1000 {
				all.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					go cancel()
					if err := client.Call(ctx, "x", nil, nil); err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("Call: %v", err)
					}
				})
				if rand.IntN(10) == 0 {
					all.Wait()
				}
			}
			all.Wait()
			if err := client.Call(t.Context(), "$/cancel_request", json.RawMessage(`{"requestId":0}`), nil); err != nil {
				t.Error(err)
			}
			eventually(t, "every request is answered", func() bool { return server.table.served() == nil })
			if n := openCalls(client); n != 0 {
				t.Errorf("%d calls are left", n)
			}
		})
	}
}

// Cancelling a call tells the peer, once, and frees the caller without it.
func TestCancelCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, transports["pipe"], Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.conn.Call(ctx, "ask", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call: %v", err)
		}
		s.line()
		if got := s.line(); got != `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"gh-1"}}` {
			t.Errorf("got %s", got)
		}
		s.write(head + `"id":"gh-1","result":1}` + "\n") // comes too late

		p, err := s.conn.Start("ask", nil)
		if err != nil || p.ID() != "gh-2" {
			t.Fatalf("%v, %v", p, err)
		}
		s.line()
		var order []string
		p.Then(func(_ json.RawMessage, err error) { order = append(order, fmt.Sprint(err)) })
		p.Cancel()
		p.Cancel()
		var e *Error
		if err := p.Wait(t.Context(), nil); !errors.As(err, &e) || e.Code != CodeCancelled {
			t.Errorf("Wait: %v", err)
		}
		p.Then(func(_ json.RawMessage, err error) { order = append(order, "at once") })
		if got := strings.Join(order, ", "); got != "cancelled, at once" {
			t.Errorf("got %s", got)
		}
		s.line()

		// An answer first: there is nothing to cancel.
		p, _ = s.conn.Start("ask", nil)
		s.line()
		s.write(head + `"id":"gh-3","result":1}` + "\n")
		<-p.Done()
		p.Cancel()
		if r, err := p.Result(); string(r) != "1" || err != nil {
			t.Errorf("%s, %v", r, err)
		}
		s.conn.Notify(t.Context(), "last", nil)
		if m := parseMessage(t, s.line()); m.Method != "last" {
			t.Errorf("method %s", m.Method)
		}
	})
}

// Answers are handled on the read loop, in their order among what else arrives.
func TestAnswersAreOrdered(t *testing.T) {
	var got []string
	s := serve(t, transports["unix"], Options{Handler: func(_ context.Context, r *Request) {
		got = append(got, r.Method)
		r.Reply(nil)
	}})
	p, err := s.conn.Start("ask", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Then(func(r json.RawMessage, _ error) { got = append(got, string(r)) })
	s.line()
	s.write(head + `"method":"before"}` + "\n" + head + `"id":"gh-1","result":"answer"}` + "\n" +
		head + `"method":"after"}` + "\n" + fence + "\n")
	s.line()
	if got := strings.Join(got, " "); got != `before "answer" after echo` {
		t.Errorf("got %s", got)
	}
}

// R002, R004: a reply never overtakes the notifications sent before it, nor a
// notification a reply, whatever the reader does.
func TestOrderOfOutput(t *testing.T) {
	for name, pair := range transports {
		t.Run(name, func(t *testing.T) {
			const turns, deltas = 100, 20
			s := serve(t, pair, Options{Handler: func(_ context.Context, r *Request) {
				go func() {
					for i := range deltas {
						if i%3 == 0 {
							s := head + fmt.Sprintf(`"method":"u","params":[%d]}`, i)
							r.Conn().Send(context.Background(), []byte(s))
						} else {
							r.Conn().Notify(context.Background(), "u", []int{i})
						}
					}
					r.Reply(nil)
					r.Conn().Notify(context.Background(), "after", nil)
				}()
			}})
			for range turns {
				s.write(fence + "\n")
				for i := range deltas {
					if m := parseMessage(t, s.line()); m.Method != "u" || string(m.Params) != fmt.Sprintf("[%d]", i) {
						t.Fatalf("%d: %s %s", i, m.Method, m.Params)
					}
				}
				if got := s.line(); got != fenced {
					t.Fatalf("got %s", got)
				}
				if m := parseMessage(t, s.line()); m.Method != "after" {
					t.Fatalf("got %s", m.Method)
				}
			}
		})
	}
}

// Many producers at once, a reader that stalls: each producer's frames arrive
// whole and in its order.
func TestManyProducers(t *testing.T) {
	for name, pair := range transports {
		t.Run(name, func(t *testing.T) {
			s := serve(t, pair, Options{Limits: Limits{Unsent: 20_000}})
			const producers, each = 8, 100
			for p := range producers {
				go func() {
					for i := range each {
						text := fmt.Sprintf(`[%d,%d,"%s"]`, p, i, strings.Repeat("x", rand.IntN(2000)))
						if err := s.conn.Notify(context.Background(), "n", json.RawMessage(text)); err != nil {
							t.Errorf("Notify: %v", err)
							return
						}
					}
				}()
			}
			var next [producers]int
			for range producers * each {
				var v []any
				json.Unmarshal(parseMessage(t, s.line()).Params, &v)
				p, i := int(v[0].(float64)), int(v[1].(float64))
				if next[p] != i {
					t.Fatalf("producer %d: %d, want %d", p, i, next[p])
				}
				next[p]++
			}
		})
	}
}

// A request is answered once; a notification never.
func TestAnsweredOnce(t *testing.T) {
	requests := make(chan *Request, 4)
	s := serve(t, transports["pipe"], Options{Handler: func(_ context.Context, r *Request) { requests <- r }})
	s.write(head + `"method":"note"}` + "\n" + idCase("1") + "\n" + idCase("2") + "\n" + idCase("3") + "\n")
	note := <-requests
	if !note.IsNotification() || note.ID() != nil {
		t.Error("not a notification")
	}
	note.Reply(1)
	note.Fail(errors.New("x"))
	first, second, third := <-requests, <-requests, <-requests
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { first.Reply(i) })
	}
	all.Wait()
	first.Fail(errors.New("late"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.SendReply(gone, func() {}); err == nil {
		t.Error("a function is no JSON")
	}
	if err := second.SendReply(t.Context(), "sent"); err != nil {
		t.Error(err)
	}
	if err := second.SendReply(t.Context(), "again"); err != nil {
		t.Error(err)
	}
	second.Reply("again")
	third.Fail(&Error{Code: 5, Message: "five"})
	third.Fail(&Error{Code: 6, Message: "six"})
	if m := parseMessage(t, s.line()); string(m.ID) != "1" {
		t.Errorf("id %s", m.ID)
	}
	if got := s.line(); got != `{"jsonrpc":"2.0","id":2,"result":"sent"}` {
		t.Errorf("got %s", got)
	}
	if got := s.line(); got != `{"jsonrpc":"2.0","id":3,"error":{"code":5,"message":"five"}}` {
		t.Errorf("got %s", got)
	}
	s.conn.Notify(t.Context(), "last", nil)
	if m := parseMessage(t, s.line()); m.Method != "last" {
		t.Errorf("method %s", m.Method)
	}
}

// A reply that waits for room is ordered and bounded like a Send, and when it
// gives up, the request can still be answered.
func TestSendReplyWaits(t *testing.T) {
	var r *Request
	o := Options{Limits: Limits{Unsent: 1000}, Handler: func(_ context.Context, got *Request) { r = got }}
	bubble(t, o, func(t *testing.T, s *served) {
		s.write(idCase("1") + "\n")
		synctest.Wait()
		s.conn.Notify(t.Context(), "full", payload(2*pipeSize))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.SendReply(ctx, "lost"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("SendReply: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- r.SendReply(t.Context(), "sent") }()
		s.line()
		if got := s.line(); got != `{"jsonrpc":"2.0","id":1,"result":"sent"}` {
			t.Errorf("got %.100s", got)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if s.conn.table.served() != nil {
			t.Error("the request is still in flight")
		}
	})
}

// foreign is an error of another package that knows the wire.
type foreign struct{ data json.RawMessage }

func (foreign) Error() string { return "foreign" }
func (f foreign) WireError() (int, string, json.RawMessage) {
	return -32005, "<queue> & full", f.data
}

// What Fail sends: the wire's errors as they are, however wrapped; of others
// nothing but that there was one.
func TestFail(t *testing.T) {
	var logged strings.Builder
	errs := map[string]error{
		"plain":     errors.New("secret path /home/x"),
		"foreign":   foreign{json.RawMessage(`{"reason":"queue_full"}`)},
		"wrapped":   fmt.Errorf("while: %w", foreign{}),
		"bad data":  foreign{json.RawMessage(`{`)},
		"own":       &Error{Code: 1, Message: "one"},
		"context":   context.Canceled,
		"nil":       nil,
		"closed":    fmt.Errorf("quiet end: %w", closedError(errUnread)),
		"unencoded": errMarker,
	}
	s := serve(t, transports["pipe"], Options{
		Handler: func(_ context.Context, r *Request) {
			if err := errs[r.Method]; err != errMarker {
				r.Fail(err)
				return
			}
			r.Reply(func() {})
		},
		Log: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	internal := `"error":{"code":-32603,"message":"internal error"}`
	for method, want := range map[string]string{
		"plain":     internal,
		"foreign":   `"error":{"code":-32005,"message":"<queue> & full","data":{"reason":"queue_full"}}`,
		"wrapped":   `"error":{"code":-32005,"message":"<queue> & full"}`,
		"bad data":  `"error":{"code":-32005,"message":"<queue> & full"}`,
		"own":       `"error":{"code":1,"message":"one"}`,
		"context":   internal,
		"nil":       internal,
		"closed":    internal,
		"unencoded": internal,
	} {
		s.write(head + `"id":1,"method":"` + method + `"}` + "\n")
		if got := s.line(); got != `{"jsonrpc":"2.0","id":1,`+want+`}` {
			t.Errorf("%s: got %s", method, got)
		}
	}
	if !strings.Contains(logged.String(), "secret path") {
		t.Error("an internal error is not in the log")
	}
	if strings.Contains(logged.String(), "quiet end") {
		t.Error("the end of a connection is logged as an internal error, for each of its requests")
	}
}

var errMarker = errors.New("marker")

// A request's context ends when it is cancelled, answered, or cut off.
func TestRequestContext(t *testing.T) {
	requests := make(chan *Request, 4)
	type key struct{}
	a, b := Pipe()
	conn := New(a, Options{Handler: func(_ context.Context, r *Request) { requests <- r }})
	done := make(chan error, 1)
	go func() { done <- conn.Run(context.WithValue(context.Background(), key{}, "value")) }()
	s := &served{t: t, conn: conn, raw: b}
	s.write(idCase("1") + "\n" + idCase(`"1"`) + "\n" + idCase("2") + "\n" + head + `"method":"note"}` + "\n")
	one, text, two, note := <-requests, <-requests, <-requests, <-requests
	if one.Context().Value(key{}) != "value" {
		t.Error("Run's values are lost")
	}
	s.write(head + `"method":"$/cancel_request","params":{"requestId":1}}` + "\n")
	<-one.Context().Done()
	var e *Error
	if err := context.Cause(one.Context()); !errors.As(err, &e) || e.Code != CodeCancelled || !one.Cancelled() {
		t.Errorf("cause %v", err)
	}
	if text.Context().Err() != nil || text.Cancelled() {
		t.Error(`"1" was cancelled with 1`)
	}
	text.Reply(nil)
	<-text.Context().Done()
	if two.Context().Err() != nil || note.Context().Err() != nil {
		t.Error("cancelled with another")
	}
	conn.Close()
	<-two.Context().Done()
	<-note.Context().Done()
	if err := context.Cause(two.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("cause %v", err)
	}
	two.Reply("to nobody")
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	b.Close()
}

// R107: when the connection ends, in whatever way, every call fails, and with
// the reason.
func TestPendingCallsFail(t *testing.T) {
	ends := map[string]struct {
		end  func(s *served, cancel context.CancelFunc)
		want error // in the chain, beside ErrClosed
		run  bool  // Run returns an error
	}{
		"peer closes":   {func(s *served, _ context.CancelFunc) { s.raw.Close() }, nil, false},
		"we close":      {func(s *served, _ context.CancelFunc) { s.conn.Close() }, ErrClosed, false},
		"context ends":  {func(_ *served, cancel context.CancelFunc) { cancel() }, context.Canceled, true},
		"frame too big": {func(s *served, _ context.CancelFunc) { go io.WriteString(s.raw, strings.Repeat("x", 2000)) }, nil, true},
	}
	for name, pair := range transports {
		for way, tc := range ends {
			t.Run(name+"/"+way, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				a, b := pair(t)
				conn := New(a, Options{Limits: Limits{Frame: 1000}})
				run := make(chan error, 1)
				go func() { run <- conn.Run(ctx) }()
				var calls []*Pending
				for range 10 {
					p, err := conn.Start("x", nil)
					if err != nil {
						t.Fatal(err)
					}
					calls = append(calls, p)
				}
				go io.Copy(io.Discard, b)
				defer b.Close()
				tc.end(&served{raw: b, conn: conn}, cancel)
				if err := <-run; (err != nil) != tc.run {
					t.Errorf("Run: %v", err)
				}
				for _, p := range calls {
					select {
					case <-p.Done():
					default:
						t.Fatal("Run returned before a call failed")
					}
					if err := p.Wait(context.Background(), nil); !errors.Is(err, ErrClosed) || tc.want != nil && !errors.Is(err, tc.want) {
						t.Errorf("Wait: %v", err)
					}
				}
				<-conn.Done()
				if err := conn.Call(context.Background(), "x", nil, nil); !errors.Is(err, ErrClosed) {
					t.Errorf("Call: %v", err)
				}
				if err := conn.Notify(context.Background(), "x", nil); !errors.Is(err, ErrClosed) {
					t.Errorf("Notify: %v", err)
				}
				if conn.Err() == nil {
					t.Error("Err is nil")
				}
			})
		}
	}
}

// What was asked before the peer closed its side is still answered, for a
// while; a peer that is gone altogether is not waited for.
func TestLinger(t *testing.T) {
	later := func(d time.Duration) Options {
		return Options{Handler: func(_ context.Context, r *Request) {
			go func() {
				select {
				case <-time.After(d):
				case <-r.Context().Done():
				}
				r.Reply("late")
			}()
		}}
	}
	bubble(t, later(900*time.Millisecond), func(t *testing.T, s *served) {
		s.write(idCase("1") + "\n")
		closeWrite(t, s.raw)
		if got := s.line(); got != `{"jsonrpc":"2.0","id":1,"result":"late"}` {
			t.Errorf("got %s", got)
		}
		s.eof()
	})
	bubble(t, later(time.Hour), func(t *testing.T, s *served) {
		start := time.Now()
		s.write(idCase("1") + "\n")
		closeWrite(t, s.raw)
		s.eof()
		if took := time.Since(start); took != time.Second {
			t.Errorf("after %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, transports["pipe"], later(time.Hour))
		start := time.Now()
		s.write(idCase("1") + "\n")
		s.raw.Close()
		<-s.run
		if took := time.Since(start); took != 0 {
			t.Errorf("after %v", took)
		}
	})
	// The same on a real socket, which tells a half from a whole end.
	s := serve(t, unixPair, Options{Limits: Limits{Linger: time.Hour}, Handler: later(time.Hour).Handler})
	s.write(idCase("1") + "\n")
	s.raw.Close()
	<-s.run
	s = serve(t, unixPair, Options{Limits: Limits{Linger: time.Hour}, Handler: later(10 * time.Millisecond).Handler})
	s.write(idCase("1") + "\n")
	closeWrite(t, s.raw)
	s.line()
	s.eof()
}

// A connection that is closed before Run, or never run, ends too.
func TestCloseWithoutRun(t *testing.T) {
	a, b := Pipe()
	defer b.Close()
	conn := New(a, Options{})
	p, err := conn.Start("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	conn.Close()
	<-conn.Done()
	if err := p.Wait(context.Background(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
	if err := conn.Run(context.Background()); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// A call that the end of the connection fails may close it.
func TestCloseInThen(t *testing.T) {
	for name, pair := range transports {
		t.Run(name, func(t *testing.T) {
			s := serve(t, pair, Options{})
			called := make(chan error, 1)
			p, err := s.conn.Start("x", nil)
			if err != nil {
				t.Fatal(err)
			}
			p.Then(func(_ json.RawMessage, err error) {
				s.conn.Close()
				called <- err
			})
			s.conn.Close()
			if err := <-called; !errors.Is(err, ErrClosed) {
				t.Errorf("err %v", err)
			}
		})
	}
}

// More calls than the limit fail at once, and cost nothing.
func TestTooManyCalls(t *testing.T) {
	s := serve(t, transports["pipe"], Options{Limits: Limits{InFlight: 3}})
	go io.Copy(io.Discard, s.raw)
	for range 3 {
		if _, err := s.conn.Start("x", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.conn.Start("x", nil); !errors.Is(err, errTooManyCalls) {
		t.Errorf("Start: %v", err)
	}
}
