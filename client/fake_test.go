package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"gladhand"
	"gladhand/rpc"
)

// fake is a scripted daemon behind in-memory pipes.
type fake struct {
	t *testing.T
	// on serves methods beside initialize, on the read loop.
	on map[string]func(f *fake, c *rpc.Conn, r *rpc.Request)

	mu    sync.Mutex
	conns []*rpc.Conn // every one that was dialled
	down  bool        // refuse to be dialled
	seen  []string    // methods, in order
}

func newFake(t *testing.T, on map[string]func(*fake, *rpc.Conn, *rpc.Request)) *fake {
	return &fake{t: t, on: on}
}

func (f *fake) dial(context.Context) (io.ReadWriteCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return nil, gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "no daemon listens")
	}
	a, b := rpc.Pipe()
	var c *rpc.Conn
	c = rpc.New(b, rpc.Options{Handler: func(_ context.Context, r *rpc.Request) { f.handle(c, r) }})
	f.conns = append(f.conns, c)
	go func() { _ = c.Run(context.Background()) }()
	return a, nil
}

func (f *fake) handle(c *rpc.Conn, r *rpc.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, r.Method)
	n := len(f.conns)
	f.mu.Unlock()
	if r.Method == "initialize" {
		r.Reply(json.RawMessage(fmt.Sprintf(
			`{"protocolVersion":1,"_meta":{"gladhand":{"version":"v1","pid":7,"clientId":"c%d","name":"ana","rights":["observe"]}}}`, n)))
		return
	}
	if h := f.on[r.Method]; h != nil {
		h(f, c, r)
		return
	}
	r.Fail(&rpc.Error{Code: rpc.CodeNoMethod, Message: "no method " + r.Method})
}

// last is the newest connection.
func (f *fake) last() *rpc.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[len(f.conns)-1]
}

func (f *fake) setDown(down bool) {
	f.mu.Lock()
	f.down = down
	f.mu.Unlock()
}

func (f *fake) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, m := range f.seen {
		if m == method {
			n++
		}
	}
	return n
}

// client connects to the fake. It never starts a daemon.
func (f *fake) client(o Options) *Client {
	f.t.Helper()
	o.Dial = f.dial
	if o.Start == nil {
		o.Start = func(Options) (<-chan struct{}, error) { return nil, errors.New("a daemon was started") }
	}
	if o.Place.DataDir == "" {
		o.Place.DataDir = f.t.TempDir()
	}
	c, err := Connect(context.Background(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	return c
}

// attachResult is the answer to an attach of session "s1".
func attachResult(seq int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"seq":%d,"snapshot":{"session":{"sessionId":"s1","cwd":"/w","agent":"gladhand","model":"offline","mode":"ask","profile":"coding","state":"idle","createdAt":"","updatedAt":"","seq":%d,"clients":1,"asks":0,"queued":0},"queue":[],"asks":[],"clients":[]}}`, seq, seq))
}

// update is a session/update frame of session "s1".
func update(from, to int, part bool, text string) []byte {
	meta, err := json.Marshal(gladhand.UpdateMeta{From: gladhand.Seq(from), To: gladhand.Seq(to), Part: part})
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}},"_meta":{"gladhand":%s}}}`,
		text, meta)
}

func params[T any](t *testing.T, r *rpc.Request) T {
	t.Helper()
	var v T
	if err := rpc.DecodeParams(r.Params, &v); err != nil {
		t.Errorf("%s: %v", r.Method, err)
	}
	return v
}

func text(u Update) string {
	var v struct {
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	_ = u.Decode(&v)
	return v.Content.Text
}
