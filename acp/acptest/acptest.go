// Package acptest checks messages against the protocol's own JSON schemas, which
// it carries, so that tests run without a network.
//
// A [Checker] sees one connection's frames in both directions and judges each:
//
//	c := acptest.New(0) // 0: the version that initialize settles
//	c.Check(t, acptest.Client, frameFromTheClient)
//	c.Check(t, acptest.Agent, frameFromUs)
//
// The stable schema decides. Where it does not know a method or an update's tag
// the unstable one does. What begins with "_" and our own methods are not the
// protocol's, and pass.
package acptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gladhand/acp"
)

// Direction is which side sent a frame.
type Direction string

// The directions.
const (
	Agent  Direction = "agent"
	Client Direction = "client"
)

func (d Direction) other() Direction {
	if d == Agent {
		return Client
	}
	return Agent
}

// Checker judges the frames of one connection. It is safe for concurrent use, but
// a response must be shown after its request.
type Checker struct {
	mu      sync.Mutex
	version int
	asked   map[string]string // sender and id of a request → its method
	frames  int
}

// New returns a Checker for a version, or, for 0, for the one that the response to
// initialize names.
func New(version int) *Checker {
	return &Checker{version: version, asked: map[string]string{}}
}

// Check fails the test when the frame is not what the schema says.
func (c *Checker) Check(t testing.TB, from Direction, frame []byte) {
	t.Helper()
	if err := c.Frame(from, frame); err != nil {
		t.Errorf("%s's frame is not ACP: %v\n%s", from, err, short(frame))
	}
}

// Frames is how many frames were checked.
func (c *Checker) Frames() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames
}

type envelope struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// Frame is Check for those that have no test at hand.
func (c *Checker) Frame(from Direction, frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames++
	var e envelope
	if err := json.Unmarshal(frame, &e); err != nil {
		return fmt.Errorf("no JSON object: %w", err)
	}
	if e.JSONRPC != "2.0" {
		return fmt.Errorf(`jsonrpc is %q`, e.JSONRPC)
	}
	switch {
	case e.Method != nil && e.ID != nil:
		c.asked[string(from)+string(e.ID)] = *e.Method
		return c.call(from, *e.Method, "Request", e.Params)
	case e.Method != nil:
		return c.call(from, *e.Method, "Notification", e.Params)
	case e.ID != nil:
		return c.response(from, e)
	}
	return fmt.Errorf("neither a request, a notification nor a response")
}

func (c *Checker) call(from Direction, method, kind string, params []byte) error {
	if ours(method) {
		return nil
	}
	version := c.version
	if version == 0 {
		if version = acp.V1; method == acp.MethodInitialize && hasMember(params, "info") {
			version = acp.V2
		}
	}
	if params == nil {
		params = []byte("{}")
	}
	def, stable := lookup(version, from.other(), method, kind)
	if def == "" {
		return fmt.Errorf("version %d has no %s %q to the %s", version, strings.ToLower(kind), method, from.other())
	}
	if method == acp.MethodUpdate {
		tag, update := updateOf(params)
		if strings.HasPrefix(tag, "_") {
			return nil
		}
		return checkUpdate(version, def, tag, params, update)
	}
	return check(version, stable, def, params)
}

func (c *Checker) response(from Direction, e envelope) error {
	if (e.Result == nil) == (e.Error == nil) {
		return fmt.Errorf("a response must have one of result and error")
	}
	version := max(c.version, acp.V1)
	if e.Error != nil {
		return check(version, true, "Error", e.Error)
	}
	key := string(from.other()) + string(e.ID)
	method, known := c.asked[key]
	if !known || ours(method) {
		return nil
	}
	delete(c.asked, key)
	if method == acp.MethodInitialize {
		var r struct {
			ProtocolVersion int `json:"protocolVersion"`
		}
		if json.Unmarshal(e.Result, &r) == nil && c.version == 0 {
			c.version = r.ProtocolVersion
			version = r.ProtocolVersion
		}
	}
	def, stable := lookup(version, from, method, "Response")
	if def == "" {
		return fmt.Errorf("version %d has no response to %q", version, method)
	}
	return check(version, stable, def, e.Result)
}

// Update checks an update object alone.
func Update(version int, update []byte) error {
	params := acp.UpdateParams("s", update, nil)
	frame := bytes.Join([][]byte{[]byte(`{"jsonrpc":"2.0","method":"session/update","params":`), params, []byte("}")}, nil)
	return New(version).Frame(Agent, frame)
}

// Definition checks a value against a definition of the stable schema, such as
// "ContentBlock".
func Definition(version int, name string, value []byte) error {
	return check(version, true, name, value)
}

// ours reports whether a method is no concern of the schema's.
func ours(method string) bool {
	switch method {
	case "status", "health", "session/kill", "fs/list_dir", "log/query", "log/subscribe":
		return true
	}
	for _, p := range []string{"_", "config/", "file/"} {
		if strings.HasPrefix(method, p) {
			return true
		}
	}
	return false
}

func updateOf(params []byte) (tag string, update []byte) {
	var p struct {
		Update json.RawMessage `json:"update"`
	}
	var u struct {
		Tag string `json:"sessionUpdate"`
	}
	_ = json.Unmarshal(params, &p)
	_ = json.Unmarshal(p.Update, &u)
	return u.Tag, p.Update
}

func hasMember(b []byte, name string) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(b, &m) == nil && m[name] != nil
}

func short(b []byte) []byte {
	if len(b) > 2000 {
		return append(append([]byte(nil), b[:2000]...), "…"...)
	}
	return b
}
