package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/agent"
	"gladhand/model"
	"gladhand/tool"
)

// A whole turn: what goes into the log, in order, and what the model sees.
func TestTurn(t *testing.T) {
	s := newSession(t)
	s.info.Title = ""
	s.answer = yes
	s.file("f", "one\n")
	m := &scripted{replies: [][]model.Chunk{
		{{Thought: "hm"}, words("I "), words("read it."), callTool("read_file", `{"path":"f"}`), callTool("edit_file", `{"path":"f","edits":[{"old_text":"one","new_text":"two"}]}`)},
		{words("Done."), {Usage: &model.Usage{Input: 10, Output: 2, Window: 100}}},
	}}
	reason, err := s.run(agent.New(agent.Options{Model: m}), "change f\nplease")
	if reason != gladhand.StopEndTurn || err != nil {
		t.Fatal(reason, err)
	}
	const want = `user_message_chunk  
session_info_update  change f
agent_thought_chunk  
agent_message_chunk  
agent_message_chunk  
tool_call pending Read f
tool_call pending Edit f
tool_call_update in_progress Read f
tool_call_update completed 
tool_call_update  Edit f
tool_call_update in_progress 
tool_call_update completed 
agent_message_chunk  
usage_update  
`
	if got := s.trace(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if s.read("f") != "two\n" {
		t.Errorf("f is %q", s.read("f"))
	}
	msgs := m.requests[1].Messages
	if err := model.Check(msgs); err != nil {
		t.Error(err)
	}
	if len(msgs) != 3 || msgs[1].Parts[0].Thought.Text != "hm" || msgs[1].Parts[1].Text != "I read it." || !strings.HasPrefix(msgs[2].Parts[0].Result.Text, "one\n[f: 1 line") || !strings.Contains(msgs[2].Parts[1].Result.Text, "1 replacement") {
		t.Errorf("%+v", msgs)
	}
	if a := s.asks[0]; a.Title != "Edit f" || a.Rule == "" || a.Digest == "" || len(a.Options) != 3 || !strings.Contains(string(a.ToolCall), `"newText":"two\n"`) {
		t.Errorf("ask %+v", a)
	}
	if !strings.Contains(m.requests[0].System, s.info.Cwd) || len(m.requests[0].Tools) != 11 {
		t.Errorf("system %q, %d tools", m.requests[0].System, len(m.requests[0].Tools))
	}
}

// R198, R199: what cannot be run is never run; the model is told, and history
// stays valid.
func TestBadCalls(t *testing.T) {
	for _, c := range []struct{ name, tool, args, says string }{
		{"not JSON", "run_command", `{"command":"touch ran"`, "not valid JSON"},
		{"a name twice", "run_command", `{"command":"true","command":"touch ran"}`, "twice"},
		{"no object", "run_command", `"touch ran"`, "not a JSON object"},
		{"bad UTF-8", "run_command", "{\"command\":\"touch ran\xff\"}", "not valid JSON"},
		{"unknown tool", "shell", `{"command":"touch ran"}`, `no tool "shell"; there are read_file`},
		{"unknown argument", "run_command", `{"cmd":"touch ran"}`, `no argument "cmd"`},
		{"missing argument", "run_command", ``, "missing"},
		{"too large", "run_command", `{"command":"touch ran #` + strings.Repeat("x", 2<<20) + `"}`, "over 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			s.info.Yes = true
			m := &scripted{replies: [][]model.Chunk{{callTool(c.tool, c.args)}, {words("ok")}}}
			a := agent.New(agent.Options{Model: m})
			if reason, err := s.run(a, "go"); reason != gladhand.StopEndTurn || err != nil {
				t.Fatal(reason, err)
			}
			if _, err := os.Stat(filepath.Join(s.info.Cwd, "ran")); err == nil {
				t.Error("it ran")
			}
			last := m.requests[1].Messages
			if err := model.Check(last); err != nil {
				t.Error(err)
			}
			if r := last[len(last)-1].Parts[0].Result; !r.Failed || !strings.Contains(r.Text, c.says) {
				t.Errorf("the model is told %q", r.Text)
			}
			s.sameFromLog(t, a, m)
		})
	}
}

// sameFromLog runs one more turn on the warm agent and on one that knows only the
// log: the model is given the same.
func (s *session) sameFromLog(t *testing.T, warm *agent.Agent, m *scripted) {
	t.Helper()
	log := s.log
	if _, err := s.run(warm, "and now?"); err != nil {
		t.Fatal(err)
	}
	live := m.requests[len(m.requests)-1].Messages
	s.log, s.turns = log, s.turns-1
	if _, err := s.run(agent.New(agent.Options{Model: m}), "and now?"); err != nil {
		t.Fatal(err)
	}
	if recalled := m.requests[len(m.requests)-1].Messages; !reflect.DeepEqual(live, recalled) {
		t.Errorf("live and recalled differ:\n%s\n%s", dump(live), dump(recalled))
	}
}

func dump(ms []model.Message) string {
	b, _ := json.MarshalIndent(ms, "", " ")
	return string(b)
}

func TestDenied(t *testing.T) {
	for _, c := range []struct {
		name    string
		verdict gladhand.Verdict
		mode    string
		says    string
	}{
		{"with a reason", no("use make instead.")(gladhand.Ask{}), "", "Denied by ann: use make instead. Nothing was done."},
		{"without", no("")(gladhand.Ask{}), "", "Denied by ann. Nothing was done."},
		{"nobody there", gladhand.Verdict{Settled: gladhand.SettledDenied, Kind: gladhand.RejectOnce}, "", "nobody is there"},
		{"expired", gladhand.Verdict{Settled: gladhand.SettledExpired, Kind: gladhand.RejectOnce}, "", "nobody answered in time"},
		{"plan", yes(gladhand.Ask{}), "plan", "plan mode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			if c.mode != "" {
				s.info.Mode = c.mode
			}
			s.answer = func(gladhand.Ask) gladhand.Verdict { return c.verdict }
			m := &scripted{replies: [][]model.Chunk{{callTool("run_command", `{"command":"touch ran"}`)}, {words("ok")}}}
			a := agent.New(agent.Options{Model: m})
			if _, err := s.run(a, "go"); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(s.info.Cwd, "ran")); err == nil {
				t.Error("it ran")
			}
			last := m.requests[1].Messages
			if r := last[len(last)-1].Parts[0].Result; !r.Failed || !strings.Contains(r.Text, c.says) {
				t.Errorf("the model is told %q", r.Text)
			}
			s.sameFromLog(t, a, m)
		})
	}
}

// An answer is for what was shown: when the file changes while the question is
// open, nothing is done.
func TestChangedWhileAsked(t *testing.T) {
	s := newSession(t)
	s.file("f", "one\n")
	s.answer = func(a gladhand.Ask) gladhand.Verdict {
		s.file("f", "one, by another\n")
		return yes(a)
	}
	m := &scripted{replies: [][]model.Chunk{{callTool("edit_file", `{"path":"f","edits":[{"old_text":"one","new_text":"two"}]}`)}, {words("ok")}}}
	if _, err := s.run(agent.New(agent.Options{Model: m}), "go"); err != nil {
		t.Fatal(err)
	}
	if s.read("f") != "one, by another\n" {
		t.Errorf("f is %q", s.read("f"))
	}
	if r := m.requests[1].Messages[2].Parts[0].Result; !strings.Contains(r.Text, "changed after it was shown") {
		t.Errorf("the model is told %q", r.Text)
	}
}

// R022, R040: no effect begins before its start is committed, nor after a cancel
// that came between the approval and the start, nor when the start cannot be
// stored.
func TestNoEffectWithoutStart(t *testing.T) {
	for _, c := range []string{"cancelled", "not stored"} {
		t.Run(c, func(t *testing.T) {
			s := newSession(t)
			s.answer = yes
			m := &scripted{replies: [][]model.Chunk{{callTool("run_command", `{"command":"touch ran"}`)}}}
			tn := s.begin("go")
			broken := errors.New("disk full")
			s.onEmit = func(u string) error {
				if !strings.Contains(u, "in_progress") {
					return nil
				}
				if c == "not stored" {
					return broken
				}
				tn.cancel()
				return nil // even if the turn's method said yes
			}
			reason, err := agent.New(agent.Options{Model: m}).Run(tn.ctx, tn)
			if c == "cancelled" && (reason != gladhand.StopCancelled || err != nil) || c == "not stored" && !errors.Is(err, broken) {
				t.Errorf("ended with %q, %v", reason, err)
			}
			if _, err := os.Stat(filepath.Join(s.info.Cwd, "ran")); err == nil {
				t.Error("it ran")
			}
		})
	}
}

// R017, R020: a turn is cancelled at each of its points in turn; it ends at once,
// the history stays valid, and the next prompt works.
func TestCancelAtEveryPoint(t *testing.T) {
	replies := func() [][]model.Chunk {
		return [][]model.Chunk{
			{words("a"), callTool("run_command", `{"command":"echo hi"}`), callTool("read_file", `{"path":"f"}`)},
			{words("b"), words("c")},
		}
	}
	for point := 0; ; point++ {
		s := newSession(t)
		s.file("f", "one\n")
		m := &scripted{replies: replies()}
		a := agent.New(agent.Options{Model: m})
		tn := s.begin("go")
		n := 0
		hit := func() {
			if n == point {
				tn.cancel()
			}
			n++
		}
		s.onEmit = func(string) error { hit(); return nil }
		s.answer = func(a gladhand.Ask) gladhand.Verdict { hit(); return yes(a) }
		if point == 0 {
			tn.cancel()
		}
		reason, err := s.drive(a, tn)
		if point == 0 && len(m.requests) > 0 {
			t.Error("the model was called for a turn that was cancelled before")
		}
		if n <= point && point > 0 {
			if reason != gladhand.StopEndTurn {
				t.Errorf("the whole turn ended with %q, %v", reason, err)
			}
			if point < 8 {
				t.Errorf("only %d points were tried", point)
			}
			return
		}
		if reason != gladhand.StopCancelled || err != nil {
			t.Errorf("point %d: ended with %q, %v", point, reason, err)
		}
		s.onEmit, s.answer = nil, nil
		m.replies, m.requests = [][]model.Chunk{{words("again")}}, nil
		if reason, err := s.run(a, "next"); reason != gladhand.StopEndTurn || err != nil || s.said() != "again" {
			t.Errorf("point %d: the next turn ended with %q, %v", point, reason, err)
		}
		if err := model.Check(m.requests[0].Messages); err != nil {
			t.Errorf("point %d: %v", point, err)
		}
	}
}

// R059, R061: a log that ends anywhere is a valid conversation.
func TestEveryPrefixOfHistory(t *testing.T) {
	s := newSession(t)
	s.answer = yes
	s.file("f", "one\n")
	m := &scripted{replies: [][]model.Chunk{
		{words("x"), callTool("read_file", `{"path":"f"}`), callTool("nix", `{}`), words("y")},
		{callTool("run_command", `{"command":"echo a; echo b"}`), callTool("edit_file", `{"path":"f","edits":[{"old_text":"one","new_text":"two"}]}`)},
		{callTool("write_file", `{"path":"new","content":"x"}`)},
		{words("done")},
		{callTool("read_file", `bad`)},
		{words("sorry")},
	}}
	a := agent.New(agent.Options{Model: m})
	for _, p := range []string{"first", "second"} {
		if _, err := s.run(a, p); err != nil {
			t.Fatal(err)
		}
	}
	s.sameFromLog(t, a, m)
	whole := s.log
	marker, err := acp.Describe(0, json.RawMessage(`{"sessionUpdate":"_gladhand_interrupted","text":"the daemon ended"}`))
	if err != nil {
		t.Fatal(err)
	}
	marker.Turn = 2
	for n := range whole {
		s.log = append(append([]*gladhand.Event{}, whole[:n]...), marker)
		s.turns = 7
		probe := &scripted{replies: [][]model.Chunk{{words("ok")}}}
		if _, err := s.run(agent.New(agent.Options{Model: probe}), "now"); err != nil {
			t.Fatal(err)
		}
		msgs := probe.requests[0].Messages
		if err := model.Check(msgs); err != nil {
			t.Errorf("cut at %d of %d: %v\n%s", n, len(whole), err, dump(msgs))
		}
		if strings.Contains(dump(msgs), "the daemon ended") {
			t.Errorf("cut at %d: the marker for people is in it", n)
		}
		if last := msgs[len(msgs)-1]; last.Role != model.User || last.Parts[0].Text != "now" || last.Turn != 8 {
			t.Errorf("cut at %d: ends with %+v", n, last)
		}
	}
}

// What was steered in is in the model's next request, and keeps a turn going that
// was about to end.
func TestSteering(t *testing.T) {
	s := newSession(t)
	m := &scripted{replies: [][]model.Chunk{{callTool("list_dir", `{}`)}, {words("one")}, {words("two")}}}
	a := agent.New(agent.Options{Model: m})
	n := 0
	s.onEmit = func(u string) error {
		if strings.Contains(u, "in_progress") || strings.Contains(u, `"one"`) {
			n++
			s.mu.Lock()
			s.steer = append(s.steer, fmt.Sprint("steered ", n))
			s.mu.Unlock()
		}
		return nil
	}
	if reason, err := s.run(a, "go"); reason != gladhand.StopEndTurn || err != nil {
		t.Fatal(reason, err)
	}
	for i, want := range []string{"go", "steered 1", "steered 2"} {
		msgs := m.requests[i].Messages
		if last := msgs[len(msgs)-1]; last.Role != model.User || last.Text() != want {
			t.Errorf("request %d ends with %+v, want %q", i, last, want)
		}
	}
	s.onEmit = nil
	s.sameFromLog(t, a, m)
}

func TestSteps(t *testing.T) {
	s := newSession(t)
	m := &scripted{}
	for range 10 {
		m.replies = append(m.replies, []model.Chunk{callTool("list_dir", `{}`)})
	}
	a := agent.New(agent.Options{Model: m, MaxSteps: 3})
	if reason, err := s.run(a, "go"); reason != gladhand.StopMaxRequests || err != nil || len(m.requests) != 3 {
		t.Errorf("%q, %v after %d requests", reason, err, len(m.requests))
	}
	if !strings.Contains(s.said(), "after 3 steps") {
		t.Errorf("said %q", s.said())
	}
}

// A model that fails in mid-reply fails the turn; what it said stays, and the next
// turn goes on from there.
func TestModelFails(t *testing.T) {
	s := newSession(t)
	broken := gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "the provider is overloaded")
	m := &scripted{replies: [][]model.Chunk{{words("half a"), callTool("list_dir", `{}`)}, {words("ok")}}, err: broken}
	a := agent.New(agent.Options{Model: m})
	tn := s.begin("go")
	if reason, err := a.Run(tn.ctx, tn); !errors.Is(err, broken) {
		t.Errorf("%q, %v", reason, err)
	}
	for id := range s.statuses() {
		tn.append(acp.ToolUpdate(acp.ToolState{ID: id, Status: "failed"})) // as the session does
	}
	if reason, err := s.run(a, "again"); reason != gladhand.StopEndTurn || err != nil {
		t.Errorf("%q, %v", reason, err)
	}
	msgs := m.requests[1].Messages
	if err := model.Check(msgs); err != nil || msgs[1].Text() != "half a" {
		t.Errorf("%v: %s", err, dump(msgs))
	}
}

func TestStopReasons(t *testing.T) {
	for stop, want := range map[model.Stop]gladhand.StopReason{
		"": gladhand.StopEndTurn, model.StopEnd: gladhand.StopEndTurn,
		model.StopMaxTokens: gladhand.StopMaxTokens, model.StopRefusal: gladhand.StopRefusal,
	} {
		s := newSession(t)
		m := &scripted{replies: [][]model.Chunk{{words("x"), {Stop: stop}}}}
		if got, err := s.run(agent.New(agent.Options{Model: m}), "go"); got != want || err != nil {
			t.Errorf("%q: %q, %v", stop, got, err)
		}
	}
}

// Only a person's prompt names a session, and only one without a name.
func TestTitle(t *testing.T) {
	for _, c := range []struct {
		prompt, title string
		kind          gladhand.Kind
		want          string
	}{
		{"\n  fix   the\tbug \x1b[31m\nsecond line", "", gladhand.Human, "fix the bug [31m"},
		{strings.Repeat("word ", 30), "", gladhand.Human, strings.TrimSpace(strings.Repeat("word ", 11)) + "…"},
		{strings.Repeat("ü", 90), "", gladhand.Human, strings.Repeat("ü", 59) + "…"},
		{"hello", "named", gladhand.Human, ""},
		{"hello", "", gladhand.Agent, ""},
	} {
		s := newSession(t)
		s.info.Title = c.title
		tn := s.begin(c.prompt)
		tn.prompt.By.Kind = c.kind
		if _, err := s.drive(agent.New(agent.Options{Model: &scripted{}}), tn); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range s.log {
			if e.Tag == acp.TagSessionInfo {
				var u struct{ Title string }
				_ = json.Unmarshal(e.Update, &u)
				got = u.Title
			}
		}
		if got != c.want {
			t.Errorf("%q: title %q, want %q", c.prompt, got, c.want)
		}
	}
}

// slowTool prints and waits, and panics when told to.
type slowTool struct {
	step  chan string
	panic bool
}

func (slowTool) Spec() tool.Spec {
	return tool.Spec{Name: "slow", Kind: "other", Schema: json.RawMessage(`{}`)}
}
func (slowTool) Title(json.RawMessage) string { return "Be slow" }

func (st slowTool) Prepare(context.Context, *tool.Env, json.RawMessage) (*tool.Call, error) {
	return &tool.Call{
		Title: "Be slow", Action: gladhand.Action{Effect: gladhand.EffectNone},
		Digest: func() (string, error) { return "", nil },
		Run: func(ctx context.Context, out *tool.Output) (tool.Result, error) {
			if st.panic {
				panic("oh no")
			}
			for text := range st.step {
				_, _ = out.Write([]byte(text))
			}
			return tool.Result{Text: out.Text(1000)}, ctx.Err()
		},
	}, nil
}

// Output is shown while it comes, the last of it too, bounded, and not once for
// each piece.
func TestLiveOutput(t *testing.T) {
	s := newSession(t)
	st := slowTool{step: make(chan string)}
	shown := make(chan string, 1000)
	s.onEmit = func(u string) error {
		if strings.Contains(u, "tool_call_update") && !strings.Contains(u, "status") {
			shown <- u
		}
		return nil
	}
	go func() {
		defer close(st.step)
		st.step <- "begun"
		<-shown // it is shown though nothing follows
		for range 2000 {
			st.step <- strings.Repeat("x", 1000)
		}
		for u := range shown { // at last, the last
			if len(u) > 20<<10 {
				t.Errorf("an update of %d bytes", len(u))
			}
			if strings.Contains(u, "left out") {
				return
			}
		}
	}()
	m := &scripted{replies: [][]model.Chunk{{callTool("slow", `{}`)}, {words("ok")}}}
	if _, err := s.run(agent.New(agent.Options{Model: m, Tools: []tool.Tool{st}}), "go"); err != nil {
		t.Fatal(err)
	}
	if n := len(s.log); n > 1000 {
		t.Errorf("%d events", n)
	}
}

func TestToolPanics(t *testing.T) {
	s := newSession(t)
	m := &scripted{replies: [][]model.Chunk{{callTool("slow", `{}`)}, {words("ok")}}}
	a := agent.New(agent.Options{Model: m, Tools: []tool.Tool{slowTool{panic: true}}})
	if reason, err := s.run(a, "go"); reason != gladhand.StopEndTurn || err != nil {
		t.Fatal(reason, err)
	}
	if r := m.requests[1].Messages[2].Parts[0].Result; !r.Failed || !strings.Contains(r.Text, "failed inside") {
		t.Errorf("the model is told %q", r.Text)
	}
}

// R021: a cancel in mid-command ends the command's processes, and soon.
func TestCancelCommand(t *testing.T) {
	s := newSession(t)
	s.info.Yes = true
	m := &scripted{replies: [][]model.Chunk{{callTool("run_command", `{"command":"echo begun; sleep 300 & sleep 300; touch late"}`)}}}
	tn := s.begin("go")
	s.onEmit = func(u string) error {
		if strings.Contains(u, "begun") && !strings.Contains(u, "rawInput") {
			tn.cancel()
		}
		return nil
	}
	type end struct {
		reason gladhand.StopReason
		err    error
	}
	done := make(chan end, 1)
	go func() {
		reason, err := s.drive(agent.New(agent.Options{Model: m}), tn)
		done <- end{reason, err}
	}()
	select {
	case e := <-done:
		if e.reason != gladhand.StopCancelled || e.err != nil {
			t.Errorf("%+v", e)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
}

// A session with profile sysadmin is never offered "always".
func TestSysadminAsk(t *testing.T) {
	s := newSession(t)
	s.info.Profile = "sysadmin"
	s.answer = yes
	m := &scripted{replies: [][]model.Chunk{{callTool("run_command", `{"command":"true"}`)}, {words("ok")}}}
	if _, err := s.run(agent.New(agent.Options{Model: m}), "go"); err != nil {
		t.Fatal(err)
	}
	if a := s.asks[0]; a.Rule != "" || len(a.Options) != 2 || a.Title != "Run true (not confined)" {
		t.Errorf("%+v", a)
	}
}

// A command is shown whole before it is allowed, however long.
func TestLongCommandIsShown(t *testing.T) {
	s := newSession(t)
	m := &scripted{replies: [][]model.Chunk{{callTool("run_command", `{"command":"echo `+strings.Repeat("x", 200)+`\nrm -rf hidden"}`)}, {words("ok")}}}
	if _, err := s.run(agent.New(agent.Options{Model: m}), "go"); err != nil {
		t.Fatal(err)
	}
	var shown struct{ Content json.RawMessage }
	if err := json.Unmarshal(s.asks[0].ToolCall, &shown); err != nil || !strings.Contains(string(shown.Content), `\nrm -rf hidden`) {
		t.Errorf("shown: %s", shown.Content)
	}
}
