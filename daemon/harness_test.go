package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/acp/acptest"
	"gladhand/config"
	"gladhand/proc"
	"gladhand/rpc"
	"gladhand/session"
	"gladhand/store"
)

// agentFunc is a scripted agent; everything else is real.
type agentFunc func(context.Context, gladhand.Turn) (gladhand.StopReason, error)

func (f agentFunc) Run(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
	return f(ctx, t)
}
func (agentFunc) Close() error { return nil }

// house is a daemon without a listener.
type house struct {
	*Daemon
	t   *testing.T
	dir string
	cwd string
}

func newHouse(t *testing.T, agent agentFunc) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), cwd: t.TempDir()}
	st, err := store.Open(t.Context(), h.dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Open(filepath.Join(h.dir, "config.jsonc"))
	if err != nil {
		t.Fatal(err)
	}
	h.Daemon = New(st, cfg, Options{
		Place: proc.Place{DataDir: h.dir, Endpoint: "none"}, Version: "test",
		NewAgent: func(context.Context, gladhand.SessionInfo) (session.Agent, error) { return agent, nil },
		Models:   session.Fixed{{ID: "scripted"}}, Agents: []string{"gladhand"},
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := h.host.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// peer is a client written by hand: it sends lines, and keeps every line it gets
// in order. Each frame of both directions is held against ACP's schemas.
type peer struct {
	t       *testing.T
	version int
	rwc     io.ReadWriteCloser
	checker *acptest.Checker
	next    int

	mu    sync.Mutex
	lines []message
	cond  *sync.Cond
	ended bool
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpc.Error      `json:"error"`
}

// connect returns a peer that has said initialize.
func (h *house) connect(version int, who gladhand.Identity) *peer {
	h.t.Helper()
	p := h.dial(version, who)
	params := `{"protocolVersion":1,"clientInfo":{"name":"hand","version":"0"},"clientCapabilities":{}}`
	if version == 2 {
		params = `{"protocolVersion":2,"info":{"name":"hand","version":"0"},"capabilities":{}}`
	}
	p.call("initialize", params)
	return p
}

func (h *house) dial(version int, who gladhand.Identity) *peer {
	h.t.Helper()
	ours, theirs := rpc.Pipe()
	p := &peer{t: h.t, version: version, rwc: ours, checker: acptest.New(version)}
	p.cond = sync.NewCond(&p.mu)
	served := make(chan struct{})
	go func() { defer close(served); h.Serve(context.Background(), theirs, who) }()
	go p.read()
	h.t.Cleanup(func() { ours.Close(); <-served })
	return p
}

func (p *peer) read() {
	r := bufio.NewReader(p.rwc)
	for {
		line, err := r.ReadBytes('\n')
		p.mu.Lock()
		if err != nil {
			p.ended = true
			p.cond.Broadcast()
			p.mu.Unlock()
			return
		}
		if err := p.checker.Frame(acptest.Agent, line); err != nil {
			p.t.Errorf("%v\nin %s", err, line)
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			p.t.Errorf("not JSON: %s", line)
		}
		p.lines = append(p.lines, m)
		p.cond.Broadcast()
		p.mu.Unlock()
	}
}

func (p *peer) write(line string) {
	p.t.Helper()
	if err := p.checker.Frame(acptest.Client, []byte(line)); err != nil {
		p.t.Errorf("the test's own frame: %v\nin %s", err, line)
	}
	if _, err := io.WriteString(p.rwc, line+"\n"); err != nil {
		p.t.Errorf("writing: %v", err)
	}
}

// send sends a request and returns its id.
func (p *peer) send(method, params string) string {
	p.t.Helper()
	p.mu.Lock()
	p.next++
	id := fmt.Sprint(p.next)
	p.mu.Unlock()
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

func (p *peer) notify(method, params string) {
	p.t.Helper()
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// find waits for the first message behind index from that f likes; it returns
// the message and its index.
func (p *peer) find(what string, from int, f func(message) bool) (message, int) {
	p.t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { p.mu.Lock(); p.ended = true; p.cond.Broadcast(); p.mu.Unlock() })
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := from; ; i++ {
		for i >= len(p.lines) {
			if p.ended {
				var got []string
				for _, m := range p.lines {
					got = append(got, fmt.Sprintf("%s %s %s", m.ID, m.Method, m.Params))
				}
				p.t.Fatalf("waited in vain for %s; got\n%s", what, strings.Join(got, "\n"))
			}
			p.cond.Wait()
		}
		if f(p.lines[i]) {
			return p.lines[i], i
		}
	}
}

func (p *peer) response(id string) (message, int) {
	p.t.Helper()
	return p.find("the response to "+id, 0, func(m message) bool { return m.Method == "" && string(m.ID) == id })
}

// call sends a request and returns its result; an error fails the test.
func (p *peer) call(method, params string) json.RawMessage {
	p.t.Helper()
	m, _ := p.response(p.send(method, params))
	if m.Error != nil {
		p.t.Fatalf("%s: %v", method, m.Error)
	}
	return m.Result
}

// fails sends a request and returns its error.
func (p *peer) fails(method, params string) *rpc.Error {
	p.t.Helper()
	m, _ := p.response(p.send(method, params))
	if m.Error == nil {
		p.t.Fatalf("%s answered %s", method, m.Result)
	}
	return m.Error
}

// update waits for a session/update with the tag, behind index from.
func (p *peer) update(tag string, from int) (message, int) {
	p.t.Helper()
	return p.find(tag, from, func(m message) bool { return m.Method == "session/update" && tagOf(m) == tag })
}

func tagOf(m message) string {
	var v struct {
		Update struct {
			SessionUpdate string `json:"sessionUpdate"`
		} `json:"update"`
	}
	_ = json.Unmarshal(m.Params, &v)
	return v.Update.SessionUpdate
}

// request waits for a call of the daemon's.
func (p *peer) request(method string, from int) (message, int) {
	p.t.Helper()
	return p.find(method, from, func(m message) bool { return m.Method == method && m.ID != nil })
}

func (p *peer) all() []message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]message(nil), p.lines...)
}

func (p *peer) count() int { return len(p.all()) }

// newSession makes a session and returns its id.
func (p *peer) newSession(cwd string) string {
	p.t.Helper()
	var v struct {
		SessionID string `json:"sessionId"`
	}
	if err := json.Unmarshal(p.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, cwd)), &v); err != nil {
		p.t.Fatal(err)
	}
	return v.SessionID
}

func (p *peer) load(id, cwd string) {
	p.t.Helper()
	method, params := "session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, cwd)
	if p.version == 2 {
		method, params = "session/resume", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"replayFrom":{"type":"start"}}`, id, cwd)
	}
	p.call(method, params)
}

func promptParams(id, text string) string {
	return fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, text)
}

func human(name string) gladhand.Identity {
	return gladhand.Identity{Kind: gladhand.Human, Name: name, Rights: gladhand.Owner}
}

func hello(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
	for _, w := range []string{"hello ", "from ", "here"} {
		if err := t.Emit(ctx, acp.MessageChunk("m-"+string(t.Prompt().ID), w)); err != nil {
			return "", err
		}
	}
	return gladhand.StopEndTurn, nil
}

// asking asks for one permission, and runs its "effect" when it is allowed.
func asking(effects chan<- string) agentFunc {
	return func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		call := acp.ToolState{ID: "t-" + string(t.Prompt().ID), Title: "Run ls", Kind: "execute", Status: "pending"}
		if err := t.Emit(ctx, acp.ToolCall(call)); err != nil {
			return "", err
		}
		v, err := t.Ask(ctx, gladhand.Ask{
			Title: "Run ls?", ToolCall: acp.AskedToolCall(call), Digest: "d1", Rule: "run:ls",
			Options: []gladhand.Option{
				{ID: "yes", Name: "Allow", Kind: gladhand.AllowOnce},
				{ID: "always", Name: "Always", Kind: gladhand.AllowAlways},
				{ID: "no", Name: "Deny", Kind: gladhand.RejectOnce},
			},
		})
		if err != nil {
			return gladhand.StopCancelled, nil
		}
		call.Status = "failed"
		if v.Allowed() {
			if err := t.Emit(ctx, acp.ToolUpdate(acp.ToolState{ID: call.ID, Status: "in_progress"})); err != nil {
				return gladhand.StopCancelled, nil
			}
			effects <- call.ID
			call.Status = "completed"
		}
		return gladhand.StopEndTurn, t.Emit(ctx, acp.ToolUpdate(acp.ToolState{ID: call.ID, Status: call.Status}))
	}
}
