package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxMessage is the longest message that a server may send. One that sends a
	// longer one is dropped.
	maxMessage = 4 << 20
	// maxAsking is how many questions of a server may be open at once.
	maxAsking = 64
)

// What a server is dropped for.
var (
	errTooLong = fmt.Errorf("it sent a message over %d MiB", maxMessage>>20)
	errAsking  = fmt.Errorf("it asked more than %d questions without taking the answers", maxAsking)
)

// gate stands where messages of a server come in. The SDK queues notifications
// and questions without a limit; what passes the gate is few at any time.
type gate struct {
	// changed is told that the server's tools changed; it must not wait.
	changed func()

	asking atomic.Int64 // questions that passed and were not answered
	listed atomic.Bool  // a notification about tools has passed and was not handled

	mu    sync.Mutex // held while a line of progress is written
	calls map[string]func(line string)
}

// pass reports whether the SDK is to see a message; an error drops the server.
func (g *gate) pass(m jsonrpc.Message) (bool, error) {
	req, ok := m.(*jsonrpc.Request)
	if !ok {
		return true, nil
	}
	if req.IsCall() {
		if g.asking.Add(1) > maxAsking {
			return false, errAsking
		}
		return true, nil
	}
	switch req.Method {
	case "notifications/progress":
		g.progress(req.Params)
	case "notifications/tools/list_changed":
		// The SDK empties its cache; of many at once it needs one.
		return g.listed.CompareAndSwap(false, true), nil
	}
	return false, nil
}

// answered takes note of a message that was sent.
func (g *gate) answered(m jsonrpc.Message) {
	if _, ok := m.(*jsonrpc.Response); ok {
		g.asking.Add(-1)
	}
}

// handled is called when the SDK has handled a notification about tools.
func (g *gate) handled() {
	g.listed.Store(false)
	g.changed()
}

// follow has the progress of a call written, a line at a time, until stop
// returns.
func (g *gate) follow(token string, write func(line string)) (stop func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls == nil {
		g.calls = map[string]func(string){}
	}
	g.calls[token] = write
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.calls, token)
	}
}

func (g *gate) progress(params json.RawMessage) {
	var p struct {
		Token    any     `json:"progressToken"`
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
	}
	if len(params) > 64<<10 || json.Unmarshal(params, &p) != nil {
		return
	}
	token, ok := p.Token.(string)
	if !ok {
		return
	}
	line := oneLine(p.Message)
	amount := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		amount += fmt.Sprintf("/%g", p.Total)
	}
	if line == "" {
		line = amount
	} else {
		line += " (" + amount + ")"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if write := g.calls[token]; write != nil {
		write(line)
	}
}

// decode reads one message, or a batch of them, from a line. A line that is
// neither is an error.
func decode(line []byte) ([]jsonrpc.Message, error) {
	var list []json.RawMessage
	switch {
	case strings.HasPrefix(strings.TrimSpace(string(line[:min(len(line), 64)])), "["):
		if err := json.Unmarshal(line, &list); err != nil {
			return nil, err
		}
	default:
		list = []json.RawMessage{line}
	}
	out := make([]jsonrpc.Message, 0, len(list))
	for _, raw := range list {
		m, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, errors.New("an empty batch")
	}
	return out, nil
}
