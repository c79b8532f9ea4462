package interop

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gladhand/acp"
)

// script is a Node program of this directory, from everywhere.
func script(name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		panic(err)
	}
	return path
}

// The SDK's documented short way: a session, a prompt, the text of the answer.
func TestHello(t *testing.T) {
	needClients(t)
	t.Parallel()
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			out, err := h.command(node, script("hello.mjs"), fmt.Sprint(version), h.cwd, "read go.mod and tell me the module name")
			if err != nil || !strings.Contains(out, "example.com/interop") {
				t.Errorf("%v\n%s", err, out)
			}
			out, err = h.command(node, script("hello.mjs"), fmt.Sprint(version), h.cwd, "run echo hello")
			if err != nil || !strings.Contains(out, "\nhello\n") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Two editors on one session, of each pair of versions; the first one ends in
// mid-turn, once orderly and once by a crash.
func TestTwoEditors(t *testing.T) {
	needClients(t)
	t.Parallel()
	for _, c := range []struct {
		a, b  int
		crash bool
	}{{1, 1, false}, {2, 2, true}, {1, 2, true}, {2, 1, false}} {
		t.Run(fmt.Sprintf("v%d-v%d", c.a, c.b), func(t *testing.T) {
			t.Parallel()
			twoEditors(t, c.a, c.b, c.crash)
		})
	}
}

const numbers = 80

func twoEditors(t *testing.T, va, vb int, crash bool) {
	h := newHome(t)
	a, b := h.editor(va), h.editor(vb)
	id := a.newSession()
	a.prompt(id, fmt.Sprintf("count to %d slowly", numbers))
	a.chunk("3", 0)

	joined := b.open(id)
	inMidTurn(t, b)
	_, at := b.update("something live", joined, func(n notification) bool {
		return n.Update.Tag == acp.TagAgentChunk && !n.Meta.Gladhand.Replay
	})
	if crash {
		a.kill()
	} else {
		a.close()
	}
	gone := len(b.all())
	if gone <= at {
		t.Fatal("the second editor saw nothing live")
	}
	end := b.chunk(fmt.Sprint(" ", numbers), 0)
	if end < gone {
		t.Fatal("the turn was over before the first editor was; the test shows nothing")
	}
	if vb == acp.V2 {
		if stop := b.idle(joined); stop != "end_turn" {
			t.Errorf("the turn ended with %q", stop)
		}
	}
	want := counted()
	if got := messages(b, id); len(got) != 1 || got[0] != want {
		t.Errorf("the second editor read %q", got)
	}

	// It is a session like any other for who is left.
	p := b.prompt(id, "run echo hi")
	ask, _ := b.asked("echo hi", end)
	b.order(`{"answer":%d,"optionId":"allow"}`, ask.Ask)
	if stop := b.over(p); stop != "end_turn" {
		t.Errorf("the prompt ended with %q", stop)
	}
	_, done := b.update("the command's output", end, completedWith("hi"))

	// The first editor starts again: both are asked, one answers, the other's
	// screen is cleared.
	a = h.editor(va)
	a.open(id)
	if got := messages(a, id); len(got) == 0 || got[0] != want {
		t.Errorf("the history says %q", got)
	}
	p = b.prompt(id, "run echo again")
	ask, _ = b.asked("echo again", done)
	other, _ := a.asked("echo again", 0)
	a.order(`{"answer":%d,"optionId":"allow"}`, other.Ask)
	b.find("the withdrawal", done, func(s said) bool { return s.Withdrawn == ask.Ask })
	if stop := b.over(p); stop != "end_turn" {
		t.Errorf("the prompt ended with %q", stop)
	}
	for _, e := range []*editor{a, b} {
		e.update("the second command's output", 0, completedWith("again"))
		complete(t, e, id)
	}
	for _, l := range a.all() {
		if l.Withdrawn > 0 {
			t.Error("the editor that answered was cleared too")
		}
	}
}

// inMidTurn checks what an editor that joined was told of what had happened. (The
// order against the response is checked on the wire: the SDK's v2 promises none.)
func inMidTurn(t *testing.T, e *editor) {
	t.Helper()
	for _, want := range []struct{ tag, text string }{{acp.TagUserChunk, "slowly"}, {acp.TagAgentChunk, "3"}} {
		e.update("the history's "+want.tag, 0, func(n notification) bool {
			return n.Meta.Gladhand.Replay && n.Update.Tag == want.tag && strings.Contains(n.Update.text(), want.text)
		})
	}
	if e.version == acp.V2 {
		e.update("the state", 0, func(n notification) bool { return n.Update.State == "running" })
	}
}

// completedWith likes the end of a tool call whose output holds a text.
func completedWith(text string) func(notification) bool {
	return func(n notification) bool {
		return n.Update.Status == "completed" && strings.Contains(string(n.Update.Content), text)
	}
}

func counted() string {
	words := make([]string, numbers)
	for i := range words {
		words[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(words, " ")
}

// Cancelling from an editor: the turn by session/cancel, a waiting prompt by
// withdrawing its request; the other editor sees the turn's end.
func TestEditorCancels(t *testing.T) {
	needClients(t)
	t.Parallel()
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			e, other := h.editor(version), h.editor(acp.V2)
			id := e.newSession()
			joined := other.open(id)
			running := e.prompt(id, "count to 1000 slowly")
			e.chunk("3", 0)
			waiting := e.prompt(id, "run touch never")
			e.order(`{"cancel":%d}`, waiting)
			s, _ := e.answer(waiting)
			if version == acp.V1 && string(s.Result) != `{"stopReason":"cancelled"}` || version == acp.V2 && (s.Error == nil || s.Error.Code != -32800) {
				t.Errorf("the withdrawn prompt was answered %s %+v", s.Result, s.Error)
			}
			e.order(`{"notify":"session/cancel","params":{"sessionId":%q}}`, id)
			if stop := e.over(running); stop != "cancelled" {
				t.Errorf("the turn ended with %q", stop)
			}
			if stop := other.idle(joined); stop != "cancelled" {
				t.Errorf("the other editor was told %q", stop)
			}
			if e.over(e.prompt(id, "say on")) != "end_turn" || !strings.HasSuffix(strings.Join(messages(e, id), "|"), "|on") {
				t.Errorf("after the cancel it says %q", messages(e, id))
			}
			complete(t, e, id)
			complete(t, other, id)
			for _, l := range e.all() {
				if l.Ask > 0 {
					t.Errorf("the withdrawn prompt ran: %s", l.Params)
				}
			}
		})
	}
}
