package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"gladhand"
	"gladhand/acp"
)

// said is a line of editor.mjs.
type said struct {
	ID        int             `json:"id"`
	Result    json.RawMessage `json:"result"`
	Error     *rpcError       `json:"error"`
	Update    *notification   `json:"update"`
	Ask       int             `json:"ask"`
	Params    json.RawMessage `json:"params"` // the ask's
	Withdrawn int             `json:"withdrawn"`
	Closed    bool            `json:"closed"`
}

type rpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// notification is the parameters of a session/update, as far as the tests look.
type notification struct {
	SessionID string `json:"sessionId"`
	Update    update `json:"update"`
	Meta      struct {
		Gladhand gladhand.UpdateMeta `json:"gladhand"`
	} `json:"_meta"`
}

type update struct {
	Tag       string          `json:"sessionUpdate"`
	MessageID string          `json:"messageId"`
	Content   json.RawMessage `json:"content"`
	State     string          `json:"state"`
	Stop      string          `json:"stopReason"`
	Status    string          `json:"status"`
}

// text is a message chunk's.
func (u update) text() string {
	var c struct{ Text string }
	_ = json.Unmarshal(u.Content, &c) // a tool call's content is an array: no text
	return c.Text
}

// editor is an editor.mjs of one version of the protocol.
type editor struct {
	t       *testing.T
	version int
	cwd     string
	cmd     *exec.Cmd
	in      io.WriteCloser
	next    int

	mu     sync.Mutex // guards the rest
	cond   *sync.Cond
	lines  []said
	ended  bool
	stderr bytes.Buffer // complete once it ended
}

// editor starts one, and has it say initialize.
func (h *home) editor(version int) *editor {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e := &editor{t: h.t, version: version, cwd: h.cwd, cmd: h.start(ctx, node, script("editor.mjs"), fmt.Sprint(version))}
	e.cond = sync.NewCond(&e.mu)
	e.cmd.Stderr = &e.stderr
	in, err := e.cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	e.in = in
	go e.read(out)
	h.t.Cleanup(func() {
		defer cancel()
		e.close()
		if e.stderr.Len() > 0 { // how the SDK says that it does not accept a message
			h.t.Errorf("editor v%d said on standard error:\n%s", version, e.stderr.String())
		}
	})
	params := `{"protocolVersion":1,"clientInfo":{"name":"editor","version":"1.0.0"},"clientCapabilities":{}}`
	if version == acp.V2 {
		params = `{"protocolVersion":2,"info":{"name":"editor","version":"1.0.0"},"capabilities":{}}`
	}
	var hello struct {
		ProtocolVersion int `json:"protocolVersion"`
	}
	e.call(acp.MethodInitialize, params, &hello)
	if hello.ProtocolVersion != version {
		h.t.Fatalf("version %d became %d", version, hello.ProtocolVersion)
	}
	return e
}

func (e *editor) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var s said
		if err := json.Unmarshal(line, &s); err != nil {
			e.t.Errorf("editor v%d said %s: %v", e.version, line, err)
		}
		e.mu.Lock()
		e.lines = append(e.lines, s)
		e.cond.Broadcast()
		e.mu.Unlock()
	}
	_ = e.cmd.Wait() // killed ones have no exit status worth knowing
	e.mu.Lock()
	e.ended = true
	e.cond.Broadcast()
	e.mu.Unlock()
}

// order has the editor do something.
func (e *editor) order(format string, args ...any) {
	e.t.Helper()
	if _, err := fmt.Fprintf(e.in, format+"\n", args...); err != nil {
		e.t.Fatalf("editor v%d: %v", e.version, err)
	}
}

// start sends a request and returns its id.
func (e *editor) start(method, params string) int {
	e.t.Helper()
	e.next++
	e.order(`{"id":%d,"call":%q,"params":%s}`, e.next, method, params)
	return e.next
}

// answer waits for a request's response.
func (e *editor) answer(id int) (said, int) {
	e.t.Helper()
	return e.find(fmt.Sprintf("the response to request %d", id), 0, func(s said) bool { return s.ID == id })
}

// call sends a request and decodes its result; an error fails the test.
func (e *editor) call(method, params string, result any) {
	e.t.Helper()
	s, _ := e.answer(e.start(method, params))
	if s.Error != nil {
		e.t.Fatalf("editor v%d: %s: %+v", e.version, method, *s.Error)
	}
	if result != nil {
		if err := json.Unmarshal(s.Result, result); err != nil {
			e.t.Fatalf("%s: %v in %s", method, err, s.Result)
		}
	}
}

// find waits for the first line from an index on that f likes; it returns the line
// and its index.
func (e *editor) find(what string, from int, f func(said) bool) (said, int) {
	e.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() { e.mu.Lock(); late = true; e.cond.Broadcast(); e.mu.Unlock() })
	defer timer.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := from; ; i++ {
		for i >= len(e.lines) {
			if late || e.ended {
				e.t.Fatalf("editor v%d waited in vain for %s; its last lines are\n%s", e.version, what, tail(e.lines))
			}
			e.cond.Wait()
		}
		if f(e.lines[i]) {
			return e.lines[i], i
		}
	}
}

func tail(lines []said) string {
	var b strings.Builder
	for _, l := range lines[max(0, len(lines)-12):] {
		text, _ := json.Marshal(l)
		b.Write(append(text, '\n'))
	}
	return b.String()
}

// update waits for an update that f likes, from an index on.
func (e *editor) update(what string, from int, f func(notification) bool) (notification, int) {
	e.t.Helper()
	s, i := e.find(what, from, func(s said) bool { return s.Update != nil && f(*s.Update) })
	return *s.Update, i
}

// chunk waits for the agent's message chunk with a text in it.
func (e *editor) chunk(text string, from int) int {
	e.t.Helper()
	_, i := e.update("the text "+text, from, func(n notification) bool {
		return n.Update.Tag == acp.TagAgentChunk && strings.Contains(n.Update.text(), text)
	})
	return i
}

// asked waits for a permission request that speaks of a text.
func (e *editor) asked(about string, from int) (said, int) {
	e.t.Helper()
	return e.find("being asked about "+about, from, func(s said) bool {
		return s.Ask > 0 && strings.Contains(string(s.Params), about)
	})
}

// all are the lines so far.
func (e *editor) all() []said {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]said(nil), e.lines...)
}

// newSession makes one and returns its id.
func (e *editor) newSession() string {
	e.t.Helper()
	var r struct {
		SessionID string `json:"sessionId"`
	}
	e.call(acp.MethodSessionNew, fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, e.cwd), &r)
	return r.SessionID
}

// open attaches to a session with its history, as the version does it, and returns
// the index of the response.
func (e *editor) open(id string) int {
	e.t.Helper()
	method, more := acp.MethodSessionLoad, `,"mcpServers":[]`
	if e.version == acp.V2 {
		method, more = acp.MethodSessionResume, `,"replayFrom":{"type":"start"}`
	}
	s, at := e.answer(e.start(method, fmt.Sprintf(`{"sessionId":%q,"cwd":%q%s}`, id, e.cwd, more)))
	if s.Error != nil {
		e.t.Fatalf("editor v%d: %s: %+v", e.version, method, *s.Error)
	}
	return at
}

// prompt sends one and returns its request's id.
func (e *editor) prompt(id, text string) int {
	e.t.Helper()
	return e.start(acp.MethodSessionPrompt, fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, text))
}

// over waits for the end of the turn that a prompt made, and returns its reason:
// v1 has it in the response, v2 in a state behind the message.
func (e *editor) over(request int) string {
	e.t.Helper()
	s, _ := e.answer(request)
	if s.Error != nil {
		e.t.Fatalf("editor v%d: the prompt failed: %+v", e.version, *s.Error)
	}
	var r struct{ StopReason, MessageID string }
	if err := json.Unmarshal(s.Result, &r); err != nil {
		e.t.Fatal(err)
	}
	if e.version == acp.V1 {
		return r.StopReason
	}
	_, at := e.update("its own message "+r.MessageID, 0, func(n notification) bool { return n.Update.MessageID == r.MessageID })
	return e.idle(at)
}

// idle waits for the end of a turn in v2's states from an index on, and returns its
// reason. What a resume says of the state is the end of nothing: it covers no number.
func (e *editor) idle(from int) string {
	e.t.Helper()
	n, _ := e.update("idle", from, func(n notification) bool {
		return n.Update.State == "idle" && n.Meta.Gladhand.To >= n.Meta.Gladhand.From
	})
	return n.Update.Stop
}

// close ends the connection and waits for the editor's end.
func (e *editor) close() {
	e.mu.Lock()
	ended := e.ended
	e.mu.Unlock()
	if !ended {
		_, _ = io.WriteString(e.in, `{"close":true}`+"\n") // it may end meanwhile
	}
	e.wait()
}

// kill ends the editor as a crash does.
func (e *editor) kill() {
	e.t.Helper()
	if err := e.cmd.Process.Kill(); err != nil {
		e.t.Error(err)
	}
	e.wait()
}

func (e *editor) wait() {
	late := false
	timer := time.AfterFunc(patience, func() { e.mu.Lock(); late = true; e.cond.Broadcast(); e.mu.Unlock() })
	defer timer.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.ended {
		if late {
			e.t.Errorf("editor v%d does not end", e.version)
			_ = e.cmd.Process.Kill() // best effort: the test has failed
			return
		}
		e.cond.Wait()
	}
}

// complete checks that the updates of a session miss no number and repeat none.
func complete(t *testing.T, e *editor, id string) {
	t.Helper()
	at := gladhand.Seq(0)
	for _, l := range e.all() {
		if l.Update == nil || l.Update.SessionID != id {
			continue
		}
		m := l.Update.Meta.Gladhand
		if m.From != at+1 || m.To < at {
			t.Errorf("editor v%d: %d to %d came behind %d: %s", e.version, m.From, m.To, at, l.Update.Update.Tag)
		}
		if !m.Part {
			at = m.To
		}
	}
	if at == 0 {
		t.Errorf("editor v%d saw no update of %s", e.version, id)
	}
}

// messages are the agent's, in order, as an editor would show them.
func messages(e *editor, id string) []string {
	var order []string
	texts := map[string]string{}
	for _, l := range e.all() {
		if l.Update == nil || l.Update.SessionID != id || l.Update.Update.Tag != acp.TagAgentChunk {
			continue
		}
		m := l.Update.Update.MessageID
		if _, known := texts[m]; !known {
			order = append(order, m)
		}
		texts[m] += l.Update.Update.text()
	}
	for i, m := range order {
		order[i] = texts[m]
	}
	return order
}
