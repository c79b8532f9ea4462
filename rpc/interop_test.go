package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/creachadair/jrpc2/handler"
	lsp "go.lsp.dev/jsonrpc2"
)

// partner is another implementation at the other end. It serves "echo", "fail"
// (code −7) and "call me" (calls "echo" at our side, returns what it got), and
// hands notifications to note.
type partner struct {
	call   func(ctx context.Context, method string, params any) (json.RawMessage, error)
	notify func(ctx context.Context, method string, params any) error
	code   func(error) int
	close  func()
}

type startPartner func(t *testing.T, rwc io.ReadWriteCloser, note func(method string, params json.RawMessage)) partner

func lspPartner(t *testing.T, rwc io.ReadWriteCloser, note func(string, json.RawMessage)) partner {
	conn := lsp.NewConn(lsp.NewNDJSONStream(rwc))
	conn.Go(context.Background(), func(ctx context.Context, r *lsp.Request) (any, error) {
		switch params := json.RawMessage(append([]byte(nil), r.Params()...)); r.Method() {
		case "echo":
			return lsp.RawMessage(params), nil
		case "fail":
			return nil, lsp.NewError(-7, "seven")
		case "call me":
			lsp.Async(ctx)
			var got lsp.RawMessage
			_, err := conn.Call(ctx, "echo", lsp.RawMessage(params), &got)
			return got, err
		default:
			note(r.Method(), params)
			return nil, nil
		}
	})
	return partner{
		call: func(ctx context.Context, method string, params any) (json.RawMessage, error) {
			var got lsp.RawMessage
			_, err := conn.Call(ctx, method, params, &got)
			return json.RawMessage(got), err
		},
		notify: conn.Notify,
		code: func(err error) int {
			var e *lsp.Error
			errors.As(err, &e)
			return int(e.Code)
		},
		close: func() { conn.Close() },
	}
}

// jrpc2's server calls back by its own methods, its client the other way round.
func jrpc2Server(t *testing.T, rwc io.ReadWriteCloser, note func(string, json.RawMessage)) partner {
	var srv *jrpc2.Server
	srv = jrpc2.NewServer(handler.Map{
		"echo": func(_ context.Context, r *jrpc2.Request) (any, error) {
			return json.RawMessage(r.ParamString()), nil
		},
		"fail": func(context.Context, *jrpc2.Request) (any, error) { return nil, jrpc2.Errorf(-7, "seven") },
		"call me": func(ctx context.Context, r *jrpc2.Request) (any, error) {
			rsp, err := srv.Callback(ctx, "echo", json.RawMessage(r.ParamString()))
			if err != nil {
				return nil, err
			}
			return json.RawMessage(rsp.ResultString()), nil
		},
		"note": func(_ context.Context, r *jrpc2.Request) (any, error) {
			note(r.Method(), json.RawMessage(r.ParamString()))
			return nil, nil
		},
	}, &jrpc2.ServerOptions{AllowPush: true, Concurrency: 8})
	srv.Start(channel.Line(rwc, rwc))
	return partner{
		call: func(ctx context.Context, method string, params any) (json.RawMessage, error) {
			rsp, err := srv.Callback(ctx, method, params)
			if err != nil {
				return nil, err
			}
			return json.RawMessage(rsp.ResultString()), nil
		},
		notify: srv.Notify,
		code:   func(err error) int { return int(jrpc2.ErrorCode(err)) },
		close:  func() { srv.Stop(); srv.Wait() },
	}
}

func jrpc2Client(t *testing.T, rwc io.ReadWriteCloser, note func(string, json.RawMessage)) partner {
	cli := jrpc2.NewClient(channel.Line(rwc, rwc), &jrpc2.ClientOptions{
		OnNotify: func(r *jrpc2.Request) { note(r.Method(), json.RawMessage(r.ParamString())) },
		OnCallback: func(ctx context.Context, r *jrpc2.Request) (any, error) {
			switch r.Method() {
			case "echo":
				return json.RawMessage(r.ParamString()), nil
			case "call me":
				rsp, err := jrpc2.ClientFromContext(ctx).Call(ctx, "echo", json.RawMessage(r.ParamString()))
				if err != nil {
					return nil, err
				}
				return json.RawMessage(rsp.ResultString()), nil
			}
			return nil, jrpc2.Errorf(-7, "seven")
		},
	})
	return partner{
		call: func(ctx context.Context, method string, params any) (json.RawMessage, error) {
			rsp, err := cli.Call(ctx, method, params)
			if err != nil {
				return nil, err
			}
			return json.RawMessage(rsp.ResultString()), nil
		},
		notify: cli.Notify,
		code:   func(err error) int { return int(jrpc2.ErrorCode(err)) },
		close:  func() { cli.Close() },
	}
}

func TestInterop(t *testing.T) {
	partners := map[string]startPartner{"go.lsp.dev": lspPartner, "jrpc2 server": jrpc2Server, "jrpc2 client": jrpc2Client}
	for name, start := range partners {
		for _, transport := range []string{"unix", "pipe", "plain"} {
			t.Run(name+"/"+transport, func(t *testing.T) { interop(t, transport, start) })
		}
	}
}

func interop(t *testing.T, transport string, start startPartner) {
	a, b := transports[transport](t)
	ours := make(chan string, 100)
	conn := New(a, Options{Handler: func(ctx context.Context, r *Request) {
		if r.IsNotification() {
			ours <- r.Method + string(r.Params)
			return
		}
		echoHandler(ctx, r)
	}})
	go conn.Run(context.Background())
	theirs := make(chan string, 100)
	other := start(t, b, func(method string, params json.RawMessage) { theirs <- method + string(params) })
	defer other.close()
	defer conn.Close()
	ctx := t.Context()

	var all sync.WaitGroup
	for i := range 20 {
		want := fmt.Sprintf(`{"i":%d,"text":"猫 <&> \" \\ 𝄞 %s"}`, i, strings.Repeat("x", i*1000))
		all.Go(func() {
			var got json.RawMessage
			if err := conn.Call(ctx, "echo", json.RawMessage(want), &got); err != nil || !sameJSON(got, want) {
				t.Errorf("we got %.200s, %v", got, err)
			}
		})
		all.Go(func() {
			got, err := other.call(ctx, "echo", json.RawMessage(want))
			if err != nil || !sameJSON(got, want) {
				t.Errorf("they got %.200s, %v", got, err)
			}
		})
		all.Go(func() {
			var got json.RawMessage
			if err := conn.Call(ctx, "call me", json.RawMessage(want), &got); err != nil || !sameJSON(got, want) {
				t.Errorf("we got back %.200s, %v", got, err)
			}
		})
	}
	all.Wait()

	var e *Error
	if err := conn.Call(ctx, "fail", nil, nil); !errors.As(err, &e) || e.Code != -7 || e.Message != "seven" {
		t.Errorf("Call: %v", err)
	}
	if _, err := other.call(ctx, "nope", nil); err == nil || other.code(err) != CodeNoMethod {
		t.Errorf("they called nope: %v", err)
	}
	if err := conn.Notify(ctx, "note", map[string]int{"n": 1}); err != nil {
		t.Error(err)
	}
	if got := <-theirs; got != `note{"n":1}` {
		t.Errorf("they were told %s", got)
	}
	if err := other.notify(ctx, "note", map[string]int{"n": 2}); err != nil {
		t.Error(err)
	}
	if got := <-ours; got != `note{"n":2}` {
		t.Errorf("we were told %s", got)
	}
}

// sameJSON compares values, for a partner may write them in another way.
func sameJSON(a json.RawMessage, b string) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}
