package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/acp/acptest"
	"gladhand/agent"
	"gladhand/model"
)

// errOver is what a turn's methods return once it was cancelled.
var errOver = gladhand.Errorf(gladhand.CodeCancelled, "", "the turn is over")

// session keeps a log in memory and runs turns on it, as package session does.
type session struct {
	t     *testing.T
	mu    sync.Mutex
	info  gladhand.SessionInfo
	log   []*gladhand.Event
	turns gladhand.TurnID
	// answer settles asks; nil denies.
	answer func(gladhand.Ask) gladhand.Verdict
	// steer holds prompts that join at the next safe point.
	steer    []string
	asks     []gladhand.Ask
	snapshot *gladhand.ContextSnapshot
	// onEmit is called before an update is filed; an error refuses it.
	onEmit func(update string) error
}

func newSession(t *testing.T) *session {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &session{t: t, info: gladhand.SessionInfo{Cwd: dir, Mode: "ask", Title: "set"}}
}

func (s *session) file(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.info.Cwd, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *session) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.info.Cwd, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// turn is one turn of a session.
type turn struct {
	*session
	id     gladhand.TurnID
	prompt gladhand.Prompt
	ctx    context.Context
	cancel context.CancelFunc
}

// begin puts a prompt into the transcript, as the start of a turn does.
func (s *session) begin(text string) *turn {
	s.turns++
	t := &turn{session: s, id: s.turns, prompt: s.newPrompt(text)}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	s.t.Cleanup(t.cancel)
	t.insert(t.prompt)
	return t
}

func (s *session) newPrompt(text string) gladhand.Prompt {
	return gladhand.Prompt{ID: gladhand.PromptID(gladhand.NewID()), Content: acp.TextContent(text), By: gladhand.Identity{Kind: gladhand.Human, Name: "ann"}}
}

func (t *turn) insert(p gladhand.Prompt) {
	for _, u := range acp.UserChunks(string(p.ID), p.Content) {
		t.append(u)
	}
}

// append files an update.
func (t *turn) append(update json.RawMessage) {
	if err := acptest.Update(1, update); err != nil {
		t.t.Errorf("an update the protocol does not allow: %v: %s", err, update)
	}
	e, err := acp.Describe(1, update)
	if err != nil {
		t.t.Errorf("%v: %s", err, update)
		return
	}
	e.First = gladhand.Seq(len(t.log) + 1)
	e.Last, e.Turn, e.At = e.First, t.id, time.Now()
	t.log = append(t.log, e)
}

func (t *turn) ID() gladhand.TurnID { return t.id }
func (t *turn) Opened() (message, thought string) {
	return fmt.Sprint("m", t.id), fmt.Sprint("t", t.id)
}
func (t *turn) Info() gladhand.SessionInfo { return t.info }
func (t *turn) Prompt() gladhand.Prompt    { return t.prompt }
func (t *turn) over() bool                 { return t.ctx.Err() != nil }

func (t *turn) Steered(context.Context) ([]gladhand.Prompt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over() {
		return nil, errOver
	}
	var ps []gladhand.Prompt
	for _, text := range t.steer {
		p := t.newPrompt(text)
		t.insert(p)
		ps = append(ps, p)
	}
	t.steer = nil
	return ps, nil
}

func (t *turn) Emit(_ context.Context, update json.RawMessage) error {
	t.mu.Lock()
	hook := t.onEmit
	t.mu.Unlock()
	if hook != nil {
		if err := hook(string(update)); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over() {
		return errOver
	}
	t.append(update)
	return nil
}

func (t *turn) Snapshot(context.Context) (*gladhand.ContextSnapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshot, nil
}

func (t *turn) Reduce(ctx context.Context, data []byte, update json.RawMessage) error {
	if err := t.Emit(ctx, update); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.snapshot = &gladhand.ContextSnapshot{Covers: gladhand.Seq(len(t.log)), Data: data}
	return nil
}

func (t *turn) Ask(ctx context.Context, a gladhand.Ask) (gladhand.Verdict, error) {
	t.mu.Lock()
	t.asks = append(t.asks, a)
	if err := acptest.Definition(1, "ToolCallUpdate", a.ToolCall); err != nil && a.Elicitation == nil {
		t.t.Errorf("an ask the protocol does not allow: %v: %s", err, a.ToolCall)
	}
	answer := t.answer
	t.mu.Unlock()
	if t.over() {
		return gladhand.Verdict{}, errOver
	}
	v := gladhand.Verdict{Settled: gladhand.SettledDenied, Kind: gladhand.RejectOnce}
	if answer != nil {
		v = answer(a)
	}
	if t.over() {
		return gladhand.Verdict{}, errOver
	}
	return v, nil
}

func (t *turn) History(_ context.Context, after gladhand.Seq) iter.Seq2[*gladhand.Event, error] {
	t.mu.Lock()
	events := t.log[after:]
	t.mu.Unlock()
	return func(yield func(*gladhand.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// yes and no are verdicts of a person.
func yes(gladhand.Ask) gladhand.Verdict {
	return gladhand.Verdict{Settled: gladhand.SettledAnswered, Kind: gladhand.AllowOnce, By: &gladhand.Identity{Name: "ann"}}
}

func no(reason string) func(gladhand.Ask) gladhand.Verdict {
	return func(gladhand.Ask) gladhand.Verdict {
		return gladhand.Verdict{Settled: gladhand.SettledAnswered, Kind: gladhand.RejectOnce, By: &gladhand.Identity{Name: "ann"}, Answer: gladhand.Answer{Reason: reason}}
	}
}

// run runs one turn to its end, and closes what it left open.
func (s *session) run(a *agent.Agent, text string) (gladhand.StopReason, error) {
	t := s.begin(text)
	return s.drive(a, t)
}

func (s *session) drive(a *agent.Agent, t *turn) (gladhand.StopReason, error) {
	reason, err := a.Run(t.ctx, t)
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, status := range s.statuses() {
		if status != "completed" && status != "failed" {
			if !t.over() {
				s.t.Errorf("call %s is left %s", id, status)
			}
			t.append(acp.ToolUpdate(acp.ToolState{ID: id, Status: "failed", Content: []json.RawMessage{acp.ContentText("Cancelled.")}}))
		}
	}
	return reason, err
}

// statuses is the last status of each tool call of the last turn.
func (s *session) statuses() map[string]string {
	last := map[string]string{}
	for _, e := range s.log {
		var u struct {
			ID     string `json:"toolCallId"`
			Status string `json:"status"`
		}
		if json.Unmarshal(e.Update, &u) == nil && u.ID != "" && u.Status != "" && e.Turn == s.turns {
			last[u.ID] = u.Status
		}
	}
	return last
}

// said is the agent's text in the last turn.
func (s *session) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	id := ""
	for _, e := range s.log {
		if e.Turn == s.turns && e.Tag == acp.TagAgentChunk {
			if id != "" && id != e.ID {
				b.WriteString("\n\n")
			}
			id = e.ID
			b.WriteString(acp.ChunkText(e))
		}
	}
	return b.String()
}

// trace is the last turn's events, one a line: tags, statuses, texts.
func (s *session) trace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, e := range s.log {
		if e.Turn != s.turns {
			continue
		}
		var u struct {
			Status, Title string
		}
		_ = json.Unmarshal(e.Update, &u)
		fmt.Fprintln(&b, e.Tag, u.Status, u.Title)
	}
	return b.String()
}

// scripted is a model that gives prepared replies and keeps the requests.
type scripted struct {
	mu       sync.Mutex
	replies  [][]model.Chunk
	requests []model.Request
	// err ends the reply with this number.
	errAt int
	err   error
	// errs end further replies, limits are what it says of itself.
	errs   map[int]error
	limits model.Limits
}

func (*scripted) Name() string { return "scripted" }

func (m *scripted) Limits() model.Limits { return m.limits }

func (m *scripted) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		m.mu.Lock()
		n := len(m.requests)
		m.requests = append(m.requests, r)
		var reply []model.Chunk
		if n < len(m.replies) {
			reply = m.replies[n]
		}
		m.mu.Unlock()
		for _, c := range reply {
			if ctx.Err() != nil {
				yield(model.Chunk{}, ctx.Err())
				return
			}
			if !yield(c, nil) {
				return
			}
		}
		if err := m.errs[n]; err != nil {
			yield(model.Chunk{}, err)
			return
		}
		if m.err != nil && n == m.errAt {
			yield(model.Chunk{}, m.err)
		}
	}
}

func callTool(name, args string) model.Chunk {
	return model.Chunk{Call: &model.Call{Name: name, Args: json.RawMessage(args)}}
}

func words(s string) model.Chunk { return model.Chunk{Text: s} }
