package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"gladhand"
	"gladhand/acp"
	"gladhand/agent"
	"gladhand/model"
	"gladhand/tool"
)

// stubborn is a tool that does not look at its context.
type stubborn struct{ begun, release chan struct{} }

func (stubborn) Spec() tool.Spec {
	return tool.Spec{Name: "stubborn", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Kind: "other"}
}
func (stubborn) Title(json.RawMessage) string { return "Stubborn" }

func (s stubborn) Prepare(context.Context, *tool.Env, json.RawMessage) (*tool.Call, error) {
	return &tool.Call{
		Title:  "Stubborn",
		Action: gladhand.Action{Tool: "stubborn", Effect: gladhand.EffectNone},
		Digest: func() (string, error) { return "", nil },
		Run: func(context.Context, *tool.Output) (tool.Result, error) {
			close(s.begun)
			<-s.release
			return tool.Result{Text: "late"}, nil
		},
	}, nil
}

// A cancelled turn does not wait for a tool that does not return, and the next turn
// does: two never work at once.
func TestCancelDoesNotWaitForATool(t *testing.T) { synctest.Test(t, cancelDoesNotWait) }

func cancelDoesNotWait(t *testing.T) {
	s := newSession(t)
	st := stubborn{make(chan struct{}), make(chan struct{})}
	m := &scripted{replies: [][]model.Chunk{{callTool("stubborn", `{}`)}, {words("next")}}}
	a := agent.New(agent.Options{Model: m, Tools: []tool.Tool{st}})
	c := s.begin("go")
	ended := make(chan gladhand.StopReason, 1)
	go func() {
		reason, err := s.drive(a, c)
		if err != nil {
			t.Error(err)
		}
		ended <- reason
	}()
	<-st.begun
	c.cancel()
	if reason := <-ended; reason != gladhand.StopCancelled { // the tool is still running
		t.Fatal(reason)
	}
	next := make(chan gladhand.StopReason, 1)
	go func() {
		reason, err := s.run(a, "next")
		if err != nil {
			t.Error(err)
		}
		next <- reason
	}()
	synctest.Wait() // everybody waits for something
	select {
	case reason := <-next:
		t.Fatalf("the next turn ended with %s beside the tool of the last", reason)
	default:
	}
	if len(m.requests) != 1 {
		t.Error("the next turn went on beside the tool of the last")
	}
	close(st.release)
	if reason := <-next; reason != gladhand.StopEndTurn {
		t.Fatal(reason)
	}
	if strings.Contains(dump(m.requests[len(m.requests)-1].Messages), "late") {
		t.Error("what came after the cancel is in the conversation")
	}
}

// Slash commands are no part of the conversation, also when it is made from the log.
func TestCommandsAreNotRecalled(t *testing.T) {
	s := newSession(t)
	c := s.begin("/model x")
	start, err := json.Marshal(gladhand.TurnUpdate{SessionUpdate: gladhand.TagTurnStart, Turn: c.id, Command: "model"})
	if err != nil {
		t.Fatal(err)
	}
	ev, err := acp.Describe(0, start)
	if err != nil {
		t.Fatal(err)
	}
	ev.Turn, ev.First, ev.Last = c.id, 1, 1
	s.log = append([]*gladhand.Event{ev}, s.log...)
	c.append(acp.MessageChunk("m", "The next turn uses x."))
	m := &scripted{replies: [][]model.Chunk{{words("ok")}}}
	if _, err := s.run(agent.New(agent.Options{Model: m}), "hello"); err != nil {
		t.Fatal(err)
	}
	if msgs := m.requests[0].Messages; len(msgs) != 1 || msgs[0].Text() != "hello" {
		t.Errorf("%s", dump(msgs))
	}
}

// People are asked what a tool wants to know, and the answer goes to the model.
func TestElicit(t *testing.T) {
	ask := elicits{form: `{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string"}}}}`}
	for _, c := range []struct {
		name    string
		verdict gladhand.Verdict
		want    string
	}{
		{"answered", gladhand.Verdict{Settled: gladhand.SettledAnswered, Kind: gladhand.AllowOnce, Answer: gladhand.Answer{Content: json.RawMessage(`{"answer":"this"}`)}}, `{"answer":"this"}`},
		{"declined", gladhand.Verdict{Settled: gladhand.SettledAnswered, Kind: gladhand.RejectOnce}, "chose not to answer"},
		{"nobody", gladhand.Verdict{Settled: gladhand.SettledDenied, Kind: gladhand.RejectOnce}, "Nobody is there"},
		{"late", gladhand.Verdict{Settled: gladhand.SettledExpired, Kind: gladhand.RejectOnce}, "in time"},
	} {
		s := newSession(t)
		s.answer = func(a gladhand.Ask) gladhand.Verdict {
			if a.Title != "Which?" || len(a.Elicitation) == 0 {
				t.Errorf("asked %+v", a)
			}
			return c.verdict
		}
		m := &scripted{replies: [][]model.Chunk{{callTool("elicits", `{}`)}, {words("ok")}}}
		if _, err := s.run(agent.New(agent.Options{Model: m, Tools: []tool.Tool{ask}}), "go"); err != nil {
			t.Fatal(err)
		}
		if got := m.requests[1].Messages[2].Parts[0].Result.Text; !strings.Contains(got, c.want) {
			t.Errorf("%s: the model got %q", c.name, got)
		}
	}
}

// elicits is a tool that asks people.
type elicits struct {
	form string
}

func (elicits) Spec() tool.Spec {
	return tool.Spec{Name: "elicits", Schema: json.RawMessage(`{"type":"object"}`), Kind: "other"}
}
func (elicits) Title(json.RawMessage) string { return "Ask" }

func (e elicits) Prepare(_ context.Context, env *tool.Env, _ json.RawMessage) (*tool.Call, error) {
	return &tool.Call{
		Title:  "Ask",
		Action: gladhand.Action{Tool: "elicits", Effect: gladhand.EffectNone},
		Digest: func() (string, error) { return "", nil },
		Run: func(ctx context.Context, _ *tool.Output) (tool.Result, error) {
			answer, reason, err := env.Turn.Elicit(ctx, json.RawMessage(e.form))
			return tool.Result{Text: string(answer) + reason}, err
		},
	}, nil
}

// toolless are servers that only have something to say.
type toolless struct{ said []string }

func (*toolless) Tools(context.Context) []tool.Tool { return nil }
func (*toolless) Close() error                      { return nil }

func (s *toolless) Notices() []string {
	said := s.said
	s.said = nil
	return said
}

// What servers of tools have to say reaches people once, and never the model.
func TestNotices(t *testing.T) {
	s := newSession(t)
	m := &scripted{replies: [][]model.Chunk{{callTool("list_dir", `{}`)}, {words("ok")}}}
	if _, err := s.run(agent.New(agent.Options{Model: m, Servers: &toolless{[]string{"the server x died"}}}), "go"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range s.log {
		if e.Tag == acp.TagNotice && strings.Contains(string(e.Update), "the server x died") {
			n++
		}
	}
	if n != 1 || strings.Contains(dump(m.requests[1].Messages), "died") {
		t.Errorf("told %d times", n)
	}
}
