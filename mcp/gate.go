package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
	list := []json.RawMessage{line}
	if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '[' {
		if err := json.Unmarshal(line, &list); err != nil {
			return nil, err
		}
	}
	out := make([]jsonrpc.Message, 0, len(list))
	for _, raw := range list {
		m, _, err := decodeOne(raw)
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

// decodeOne reads one message. An answer that the SDK cannot read becomes an
// error for whoever waits for it; made is true then.
func decodeOne(raw []byte) (m jsonrpc.Message, made bool, err error) {
	m, err = jsonrpc.DecodeMessage(raw)
	if err == nil {
		return m, false, nil
	}
	var w struct {
		ID     *int64         `json:"id"`
		Method jsontext.Value `json:"method"`
	}
	if jsonv2.Unmarshal(raw, &w) != nil || w.ID == nil || w.Method != nil {
		return nil, false, err
	}
	id, idErr := jsonrpc.MakeID(float64(*w.ID))
	if idErr != nil {
		return nil, false, err
	}
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "its answer cannot be read"}}, true, nil
}
