package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/agent"
	"gladhand/model"
)

// reductions counts the announced ones.
func (s *session) reductions() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.log {
		if e.Tag == acp.TagCompaction && strings.Contains(string(e.Update), `"completed"`) {
			n++
		}
	}
	return n
}

// longTalk is a session whose first turn read a large file n times.
func longTalk(t *testing.T, n int, limits model.Limits) (*session, *agent.Agent, *scripted) {
	t.Helper()
	s := newSession(t)
	m := &scripted{limits: limits}
	for i := range n {
		s.file(fmt.Sprintf("f%d", i), strings.Repeat(fmt.Sprintf("line of file %d\n", i), 400)) // 6 kB
		m.replies = append(m.replies, []model.Chunk{words(fmt.Sprintf("looking at %d", i)), callTool("read_file", fmt.Sprintf(`{"path":"f%d"}`, i))})
	}
	m.replies = append(m.replies, []model.Chunk{words("read all of them")})
	return s, agent.New(agent.Options{Model: m}), m
}

// R200: tool results are trimmed first; what people see stays.
func TestReduceByTrimming(t *testing.T) {
	s, a, m := longTalk(t, 8, model.Limits{Window: 16_000})
	if reason, err := s.run(a, "read them"); err != nil || reason != gladhand.StopEndTurn {
		t.Fatal(reason, err)
	}
	if s.reductions() != 1 || s.snapshot == nil {
		t.Fatalf("%d reductions, snapshot %v", s.reductions(), s.snapshot != nil)
	}
	last := m.requests[len(m.requests)-1].Messages
	if err := model.Check(last); err != nil {
		t.Error(err)
	}
	text := dump(last)
	if !strings.Contains(text, "shortened to save room") || !strings.Contains(text, "read them") || !strings.Contains(text, "looking at 0") {
		t.Errorf("the model was given %.3000s", text)
	}
	shown := 0
	for _, e := range s.log {
		if strings.Contains(string(e.Update), strings.Repeat(`line of file 0\n`, 400)) {
			shown++
		}
	}
	if shown != 1 {
		t.Errorf("the log shows the first result %d times", shown)
	}
}

// When trimming is not enough the model writes a summary, and the newest messages
// stay as they are.
func TestReduceBySummary(t *testing.T) {
	s := newSession(t)
	m := &scripted{limits: model.Limits{Window: 6000}}
	a := agent.New(agent.Options{Model: m})
	for i := range 12 {
		m.replies = append(m.replies, []model.Chunk{words(fmt.Sprintf("answer %d ", i) + strings.Repeat("blah ", 300))})
	}
	m.replies[5] = []model.Chunk{words("THE SUMMARY")} // wherever it is asked for one
	summaries := 0
	for i := range 11 {
		if _, err := s.run(a, fmt.Sprintf("question %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range m.requests {
		if strings.Contains(dump(r.Messages), "Below is the older part") {
			summaries++
			if i != 5 && summaries == 1 {
				m.replies[5], m.replies[i] = m.replies[i], m.replies[5]
			}
		}
	}
	if summaries == 0 || s.snapshot == nil {
		t.Fatalf("no summary was asked for in %d requests", len(m.requests))
	}
	last := m.requests[len(m.requests)-1].Messages
	if text := dump(last); !strings.Contains(text, "This is its summary") || !strings.Contains(text, "question 10") || strings.Contains(text, "question 0\n") {
		t.Errorf("%.2000s", text)
	}
	s.sameFromLog(t, a, m)
}

// R200, R201: a context that does not shrink ends the turn after two attempts, with
// an error that says what to do.
func TestReduceAtMostTwice(t *testing.T) {
	for _, n := range []int{0, 1} {
		s := newSession(t)
		m := &scripted{limits: model.Limits{Window: 2000}}
		for range 20 {
			m.replies = append(m.replies, []model.Chunk{words(strings.Repeat("x", 32<<10))})
		}
		a := agent.New(agent.Options{Model: m})
		if n == 1 {
			s.file("AGENTS.md", strings.Repeat("be good\n", 4000)) // what cannot shrink
		}
		_, err := s.run(a, strings.Repeat("hello ", 4000))
		var fault *model.Error
		if n == 1 {
			if !errors.As(err, &fault) || fault.Kind != model.KindOverflow || !strings.Contains(err.Error(), "new session") {
				t.Fatalf("%d: %v", n, err)
			}
			if got := s.reductions(); got < 2 || got > 4 { // each may tell of a summary too
				t.Errorf("%d reductions", got)
			}
		} else if err == nil {
			t.Error("a prompt of three windows was taken")
		}
	}
}

// A provider that says that the request is too long is answered once, by reducing.
func TestOverflowOnce(t *testing.T) {
	over := &model.Error{Kind: model.KindOverflow, Model: "scripted", Text: "too long"}
	s, a, m := longTalk(t, 3, model.Limits{})
	m.replies = append(m.replies[:3], nil, []model.Chunk{words("a summary, if need be")}, []model.Chunk{words("ok")})
	m.errs = map[int]error{3: over}
	if reason, err := s.run(a, "read them"); err != nil || reason != gladhand.StopEndTurn {
		t.Fatal(reason, err)
	}
	if s.reductions() == 0 {
		t.Error("nothing was reduced")
	}
	s, a, m = longTalk(t, 3, model.Limits{})
	m.errs = map[int]error{3: over, 4: over, 5: over}
	if _, err := s.run(a, "read them"); !errors.Is(err, over) {
		t.Errorf("a second overflow gave %v", err)
	}
	if len(m.requests) > 6 {
		t.Errorf("%d requests", len(m.requests))
	}
}

// A snapshot that cannot be stored announces nothing, and the turn fails.
func TestReduceNotStored(t *testing.T) {
	s, a, _ := longTalk(t, 8, model.Limits{Window: 16_000})
	full := errors.New("the disk is full")
	s.onEmit = func(update string) error {
		if strings.Contains(update, "compaction_update") {
			return full
		}
		return nil
	}
	if _, err := s.run(a, "read them"); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if s.reductions() != 0 || s.snapshot != nil {
		t.Error("a reduction was announced or kept")
	}
}

// Cut at any event behind a snapshot and resumed, the conversation is valid, and an
// empty snapshot is authoritative.
func TestEveryPrefixBehindASnapshot(t *testing.T) {
	s, a, _ := longTalk(t, 8, model.Limits{Window: 16_000})
	if _, err := s.run(a, "read them"); err != nil {
		t.Fatal(err)
	}
	whole, snap := s.log, s.snapshot
	for n := int(snap.Covers); n <= len(whole); n++ {
		s.log, s.snapshot, s.turns = whole[:n:n], snap, 7
		probe := &scripted{replies: [][]model.Chunk{{words("ok")}}}
		if _, err := s.run(agent.New(agent.Options{Model: probe}), "now"); err != nil {
			t.Fatal(err)
		}
		msgs := probe.requests[0].Messages
		if err := model.Check(msgs); err != nil {
			t.Errorf("cut at %d of %d: %v\n%s", n, len(whole), err, dump(msgs))
		}
		if !strings.Contains(dump(msgs), "shortened to save room") {
			t.Errorf("cut at %d: the snapshot was not used", n)
		}
	}
	s.log, s.snapshot, s.turns = whole, &gladhand.ContextSnapshot{Covers: gladhand.Seq(len(whole))}, 7
	probe := &scripted{replies: [][]model.Chunk{{words("ok")}}}
	if _, err := s.run(agent.New(agent.Options{Model: probe}), "now"); err != nil {
		t.Fatal(err)
	}
	if msgs := probe.requests[0].Messages; len(msgs) != 1 {
		t.Errorf("an empty snapshot was not heeded: %s", dump(msgs))
	}
}

func TestCompact(t *testing.T) {
	s, a, m := longTalk(t, 4, model.Limits{Window: 200_000})
	if _, err := s.run(a, "read them"); err != nil {
		t.Fatal(err)
	}
	m.replies = append(m.replies, []model.Chunk{words("four files were read")}, []model.Chunk{words("fine")})
	c := s.begin("/compact")
	said, err := a.Compact(context.Background(), c)
	if err != nil || !strings.Contains(said, "is now about") {
		t.Fatal(said, err)
	}
	if s.snapshot == nil || s.reductions() == 0 {
		t.Fatal("nothing was kept")
	}
	if _, err := s.run(a, "go on"); err != nil {
		t.Fatal(err)
	}
	last := m.requests[len(m.requests)-1].Messages
	if text := dump(last); !strings.Contains(text, "four files were read") || strings.Contains(text, "/compact") || strings.Count(text, "line of file") > 200 {
		t.Errorf("%.2000s", text)
	}
}

// A reply that breaks off in the middle is asked for again; what it began is not
// given back to the model, and a call in it is not run.
func TestBrokenReply(t *testing.T) {
	cut := &model.Error{Kind: model.KindCut, Model: "scripted", Text: "the connection broke"}
	s := newSession(t)
	s.answer = yes
	m := &scripted{
		replies: [][]model.Chunk{
			{words("I will"), callTool("run_command", `{"command":"touch no"}`)},
			{words("All "), words("good.")},
		},
		errs: map[int]error{0: cut},
	}
	if reason, err := s.run(agent.New(agent.Options{Model: m}), "hi"); err != nil || reason != gladhand.StopEndTurn {
		t.Fatal(reason, err)
	}
	if len(m.requests) != 2 || len(m.requests[1].Messages) != 1 {
		t.Errorf("%d requests, the second with %s", len(m.requests), dump(m.requests[1].Messages))
	}
	if !strings.Contains(s.trace(), "notice") || strings.Contains(s.trace(), "in_progress") {
		t.Errorf("%s", s.trace())
	}
	m = &scripted{replies: [][]model.Chunk{{words("a")}, {words("b")}, {words("c")}, {words("d")}}, errs: map[int]error{0: cut, 1: cut, 2: cut}}
	if _, err := s.run(agent.New(agent.Options{Model: m}), "hi"); !errors.Is(err, cut) || len(m.requests) != 3 {
		t.Errorf("after %d requests: %v", len(m.requests), err)
	}
	// A key that is refused is not tried again.
	key := &model.Error{Kind: model.KindKey, Model: "scripted", Text: "no key"}
	m = &scripted{replies: [][]model.Chunk{{words("a")}}, errs: map[int]error{0: key}}
	if _, err := s.run(agent.New(agent.Options{Model: m}), "hi"); !errors.Is(err, key) || len(m.requests) != 1 {
		t.Errorf("after %d requests: %v", len(m.requests), err)
	}
	var g *gladhand.Error
	if !errors.As(error(key), &g) || g.Code != gladhand.CodeAuthRequired {
		t.Errorf("people are told %v", g)
	}
}

// A model that repeats itself is told, and stopped when it goes on.
func TestLoop(t *testing.T) {
	for _, period := range []int{1, 2, 3} {
		s := newSession(t)
		m := &scripted{}
		for i := range 60 {
			s.file(fmt.Sprintf("f%d", i%period), "x\n")
			m.replies = append(m.replies, []model.Chunk{callTool("read_file", fmt.Sprintf(`{"path":"f%d"}`, i%period))})
		}
		reason, err := s.run(agent.New(agent.Options{Model: m}), "loop")
		if err != nil || reason != gladhand.StopMaxRequests || len(m.requests) != 6*period {
			t.Errorf("period %d: %s after %d requests, %v", period, reason, len(m.requests), err)
		}
		if text := dump(m.requests[3*period].Messages); strings.Count(text, "made these same calls") != 1 {
			t.Errorf("period %d: the model was not told once: %s", period, text)
		}
	}
	// Other results are no loop.
	s := newSession(t)
	s.info.Yes = true
	m := &scripted{}
	for range 10 {
		m.replies = append(m.replies, []model.Chunk{callTool("run_command", `{"command":"echo x >> f; wc -c f"}`)})
	}
	m.replies = append(m.replies, []model.Chunk{words("ok")})
	if reason, err := s.run(agent.New(agent.Options{Model: m}), "work"); err != nil || reason != gladhand.StopEndTurn {
		t.Error(reason, err)
	}
}

// AGENTS.md: the nearest up to the top of the repository, and the user's own.
func TestInstructions(t *testing.T) {
	s := newSession(t)
	top := s.info.Cwd
	s.file("AGENTS.md", "top rules")
	own := s.file("own.md", "my rules")
	s.file("sub/deep/x", "")
	s.info.Cwd = top + "/sub/deep"
	system := func() string {
		m := &scripted{replies: [][]model.Chunk{{words("ok")}}}
		if _, err := s.run(agent.New(agent.Options{Model: m, Instructions: []string{own, top + "/absent"}}), "hi"); err != nil {
			t.Fatal(err)
		}
		return m.requests[0].System
	}
	if got := system(); strings.Contains(got, "top rules") || !strings.Contains(got, "my rules") {
		t.Errorf("without a repository: %s", got)
	}
	s.info.Cwd = top
	s.file(".git/HEAD", "")
	s.info.Cwd = top + "/sub/deep"
	if got := system(); !strings.Contains(got, "top rules") || strings.Index(got, "my rules") > strings.Index(got, "top rules") {
		t.Errorf("in a repository: %s", got)
	}
	s.info.Cwd = top
	s.file("sub/AGENTS.md", strings.Repeat("é", 20_000))
	s.info.Cwd = top + "/sub/deep"
	if got := system(); strings.Contains(got, "top rules") || !strings.Contains(got, "the rest is left out") || len(got) > 40<<10 {
		t.Errorf("nearest: %d bytes", len(got))
	}
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// R125: a broken image never reaches a provider; a whole one does, when the model
// sees images.
func TestImages(t *testing.T) {
	for _, sees := range []bool{true, false} {
		s := newSession(t)
		m := &scripted{limits: model.Limits{Images: sees}, replies: [][]model.Chunk{{words("ok")}, {words("ok")}}}
		a := agent.New(agent.Options{Model: m})
		c := s.begin("look")
		c.prompt.Content = json.RawMessage(`[{"type":"text","text":"look"},{"type":"image","mimeType":"image/png","data":"` + pixel + `"},{"type":"image","mimeType":"image/png","data":"aGVsbG8="}]`)
		if _, err := s.drive(a, c); err != nil {
			t.Fatal(err)
		}
		parts := m.requests[0].Messages[0].Parts
		images := 0
		for _, p := range parts {
			if p.Image != nil {
				images++
				if p.Image.MIME != "image/png" {
					t.Error(p.Image.MIME)
				}
			}
		}
		if sees != (images == 1) {
			t.Errorf("sees %v: %d images", sees, images)
		}
		if err := model.Check(m.requests[0].Messages); err != nil {
			t.Error(err)
		}
	}
}

// Calls that only look run side by side, and their results stand in order.
func TestParallel(t *testing.T) {
	s := newSession(t)
	var calls []model.Chunk
	for i := range 12 {
		s.file(fmt.Sprintf("f%d", i), fmt.Sprintf("content %d\n", i))
		calls = append(calls, callTool("read_file", fmt.Sprintf(`{"path":"f%d"}`, i)))
	}
	m := &scripted{replies: [][]model.Chunk{calls, {words("ok")}}}
	if _, err := s.run(agent.New(agent.Options{Model: m}), "read"); err != nil {
		t.Fatal(err)
	}
	results := m.requests[1].Messages[2].Parts
	for i, p := range results {
		if p.Result == nil || !strings.HasPrefix(p.Result.Text, fmt.Sprintf("content %d\n", i)) {
			t.Errorf("result %d is %+v", i, p.Result)
		}
	}
	if len(results) != 12 {
		t.Errorf("%d results", len(results))
	}
}

// Usage tells the context's size, what it cost, and is taken up again from the log.
func TestUsage(t *testing.T) {
	s := newSession(t)
	m := &scripted{limits: model.Limits{Window: 1000}, replies: [][]model.Chunk{
		{words("a"), {Usage: &model.Usage{Input: 100, Output: 10, Cost: 0.5}}},
		{words("b"), {Usage: &model.Usage{Input: 120, Output: 10, Cost: 0.25}}},
	}}
	for range 2 {
		if _, err := s.run(agent.New(agent.Options{Model: m}), "hi"); err != nil {
			t.Fatal(err)
		}
	}
	last := s.log[len(s.log)-1]
	for _, want := range []string{`"used":130`, `"size":1000`, `"amount":0.75`, `"turn":{"inputTokens":120,"outputTokens":10,"cost":0.25}`} {
		if !strings.Contains(string(last.Update), want) {
			t.Errorf("%s is not in %s", want, last.Update)
		}
	}
}
