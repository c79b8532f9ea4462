//go:build unix

package daemon

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"gladhand"
	"gladhand/acp"
)

// sent is a prompt of a point, and what its sender was told before the daemon
// died.
type sent struct {
	id, text string
	request  string
	receipt  *gladhand.Receipt // nil: it was not acknowledged
	final    gladhand.Receipt  // when all is over
}

// point is one crash: a session, its prompts, and what its client saw of it.
type point struct {
	v       *victim
	t       *testing.T
	session string
	prompts []*sent
	before  []message // all that came before the daemon died
	cursor  gladhand.Seq
}

// died reads what the dead daemon had said: receipts, and the client's cursor.
func (p *point) died(w *wire) {
	p.t.Helper()
	p.before = w.drained()
	for _, s := range p.prompts {
		m, ok := w.response(s.request)
		switch {
		case !ok:
		case m.Error != nil:
			p.t.Fatalf("prompt %s was refused: %v", s.id, m.Error)
		default:
			s.receipt = new(gladhand.Receipt)
			if err := json.Unmarshal(m.Result, s.receipt); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	p.cursor = contiguous(p.t, p.before, p.session, 0)
}

// contiguous checks that the updates of a session cover each number behind after
// once, in order, and returns the last. What is cut off within a span that has
// several parts is not counted: the client will ask for that span again.
func contiguous(t *testing.T, ms []message, session string, after gladhand.Seq) gladhand.Seq {
	t.Helper()
	for _, m := range ms {
		if m.Method != "session/update" || sessionOf(m) != session {
			continue
		}
		u := metaOf(t, m)
		switch {
		case u.From == 0: // the connection was a stock client's before it attached
		case u.From != after+1 || u.To < after: // what is of no event covers nothing
			t.Fatalf("%d..%d came behind %d:\n%s", u.From, u.To, after, m.Params)
		case !u.Part:
			after = u.To
		}
	}
	return after
}

func sessionOf(m message) string {
	var v struct{ SessionID string }
	_ = json.Unmarshal(m.Params, &v)
	return v.SessionID
}

// check is what must be true after a crash, whenever it came. It leaves a daemon
// that works, and returns a connection to it.
func (p *point) check(w *wire) {
	p.t.Helper()
	// The client comes back at its cursor, and sends everything again: the same
	// id is the same prompt.
	w.attach(p.session, p.cursor)
	for _, s := range p.prompts {
		r, err := w.prompt(p.session, s.id, s.text)
		if err != nil {
			p.t.Fatalf("%s again: %v", s.id, err)
		}
		if s.receipt != nil && r.Seq != s.receipt.Seq {
			p.t.Errorf("%s was acknowledged as %d, and is now %d: it was forgotten", s.id, s.receipt.Seq, r.Seq)
		}
		if _, err := w.prompt(p.session, s.id, s.text+" (other text)"); gladhand.CodeOf(err) != gladhand.CodeConflict {
			p.t.Errorf("%s again with other text: %v", s.id, err)
		}
	}
	// The next prompt works; those before it are over by then.
	p3 := &sent{id: p.prompts[0].id + "-next", text: "work"}
	if p.v.bin != "" {
		p3.text = "run echo " + p3.id + " >> " + effectsName
	}
	if _, err := w.prompt(p.session, p3.id, p3.text); err != nil {
		p.t.Fatalf("the next prompt: %v", err)
	}
	if end := w.turnEnd(p3.id); end.StopReason != gladhand.StopEndTurn {
		p.t.Errorf("the next prompt's turn ended with %s %v", end.StopReason, end.Error)
	}
	p.prompts = append(p.prompts, p3)
	for _, s := range p.prompts {
		var err error
		if s.final, err = w.prompt(p.session, s.id, s.text); err != nil {
			p.t.Fatalf("%s at last: %v", s.id, err)
		}
		p.outcome(s)
	}
	contiguous(p.t, w.all(), p.session, p.cursor)
	p.history()
	for version := 1; version <= 2; version++ {
		p.replay(version)
	}
}

// outcome checks a prompt's final state against its effects.
func (p *point) outcome(s *sent) {
	p.t.Helper()
	n := p.v.effects(s.id)
	switch {
	case s.final.State == gladhand.PromptDone && s.final.Outcome == gladhand.Completed && n == 1:
	case s.final.State == gladhand.PromptInterrupted && n <= 1:
	default:
		p.t.Errorf("%s is %s %s, with %d effects", s.id, s.final.State, s.final.Outcome, n)
	}
}

// history reads the whole log and holds it against its rules.
func (p *point) history() {
	p.t.Helper()
	w := p.v.connect(acp.V1)
	defer w.close()
	w.attach(p.session, 0)
	w.turnEnd(p.prompts[len(p.prompts)-1].id)
	log := w.all()
	contiguous(p.t, log, p.session, 0)
	turns := newTurns(p.t)
	facts := map[gladhand.Seq]string{}
	for _, m := range log {
		if m.Method == "session/update" {
			turns.see(m)
			facts[metaOf(p.t, m).To] = string(rawUpdate(m))
		}
	}
	turns.check()
	for _, s := range p.prompts {
		if n := turns.started[gladhand.PromptID(s.id)]; n != 1 {
			p.t.Errorf("%s is in %d turns", s.id, n)
		}
		if p.v.effects(s.id) > 0 && p.v.bin == "" && turns.tools["t-"+s.id] == 0 {
			p.t.Errorf("%s had an effect that the log knows nothing of", s.id)
		}
	}
	// A fact that was shown stays what it was.
	for _, m := range p.before {
		if m.Method != "session/update" || sessionOf(m) != p.session || metaOf(p.t, m).From == 0 {
			continue
		}
		switch tagOf(m) {
		case acp.TagAgentChunk, acp.TagThoughtChunk, acp.TagCommands: // grows, or is in no log
		default:
			if n := metaOf(p.t, m).To; facts[n] != string(rawUpdate(m)) {
				p.t.Errorf("event %d was shown as\n%s\nand is now\n%s", n, rawUpdate(m), facts[n])
			}
		}
	}
}

func rawUpdate(m message) json.RawMessage {
	var v struct{ Update json.RawMessage }
	_ = json.Unmarshal(m.Params, &v)
	return v.Update
}

// turns follows a log by the rules of a turn: it has one start and one end, in
// this order, everything of it lies between them, one runs at a time, and each
// tool call that was begun has one end within it.
type turns struct {
	t       *testing.T
	running gladhand.TurnID
	last    gladhand.TurnID
	ended   int
	started map[gladhand.PromptID]int
	tools   map[string]int // how often a call was ended
	open    map[string]bool
}

func newTurns(t *testing.T) *turns {
	return &turns{t: t, started: map[gladhand.PromptID]int{}, tools: map[string]int{}, open: map[string]bool{}}
}

func (l *turns) see(m message) {
	l.t.Helper()
	u := metaOf(l.t, m)
	if u.Turn != 0 && tagOf(m) != gladhand.TagTurnStart && u.Turn != l.running {
		l.t.Errorf("an event of turn %d while %d runs:\n%s", u.Turn, l.running, m.Params)
	}
	switch tagOf(m) {
	case gladhand.TagTurnStart:
		s := updateOf[gladhand.TurnUpdate](l.t, m)
		if l.running != 0 || s.Turn <= l.last {
			l.t.Errorf("turn %d starts while %d runs, the last was %d", s.Turn, l.running, l.last)
		}
		l.running, l.last = s.Turn, s.Turn
		for _, p := range s.Prompts {
			l.started[p]++
		}
	case gladhand.TagTurnEnd:
		if e := updateOf[gladhand.TurnUpdate](l.t, m); e.Turn != l.running {
			l.t.Errorf("turn %d ends while %d runs", e.Turn, l.running)
		}
		if len(l.open) > 0 {
			l.t.Errorf("turn %d ended with open tool calls %v", l.running, l.open)
		}
		l.running = 0
		l.ended++
	default:
		l.tool(m)
	}
}

// tool follows the tool calls, on either version.
func (l *turns) tool(m message) {
	switch tagOf(m) {
	case acp.TagToolCall, acp.TagToolCallUpdate:
	default:
		return
	}
	v := updateOf[struct{ ToolCallID, Status string }](l.t, m)
	if _, known := l.tools[v.ToolCallID]; !known {
		l.tools[v.ToolCallID] = 0
	}
	l.open[v.ToolCallID] = true
	switch v.Status {
	case "completed", "failed", "cancelled":
		l.tools[v.ToolCallID]++
		delete(l.open, v.ToolCallID)
	}
}

func (l *turns) check() {
	l.t.Helper()
	if l.running != 0 {
		l.t.Errorf("turn %d has no end", l.running)
	}
	l.ends()
}

func (l *turns) ends() {
	l.t.Helper()
	for call, n := range l.tools {
		if n != 1 {
			l.t.Errorf("tool call %s has %d ends", call, n)
		}
	}
}

// replay loads the session as an editor does: every frame is ACP, and every tool
// call has one start and one end. R059, R061.
func (p *point) replay(version int) {
	p.t.Helper()
	w := p.v.connect(version)
	defer w.close()
	method, params := "session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, p.session, p.v.cwd)
	if version == acp.V2 {
		method, params = "session/resume", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"replayFrom":{"type":"start"}}`, p.session, p.v.cwd)
	}
	w.mustCall(method, params, nil)
	tools := newTurns(p.t)
	starts := map[string]int{}
	var texts []string
	for _, m := range w.all() {
		switch tag := tagOf(m); {
		case m.Method != "session/update":
		case tag == acp.TagToolCall:
			starts[updateOf[struct{ ToolCallID string }](p.t, m).ToolCallID]++
			tools.tool(m)
		case tag == acp.TagUserChunk:
			texts = append(texts, chunkText(p.t, m))
		default:
			tools.tool(m)
		}
	}
	tools.ends()
	if version == acp.V1 {
		for call := range tools.tools {
			if starts[call] != 1 {
				p.t.Errorf("v1: tool call %s has %d starts", call, starts[call])
			}
		}
	}
	want := []string{}
	for _, s := range p.prompts {
		want = append(want, s.text)
	}
	if !slices.Equal(texts, want) {
		p.t.Errorf("v%d: the prompts are %q, want %q", version, texts, want)
	}
}
