package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gladhand"
	"gladhand/client"
)

func question(id string) gladhand.Ask {
	return gladhand.Ask{
		ID: gladhand.AskID(id), Session: "s", Title: "Run touch x", Digest: "d-" + id,
		Options: []gladhand.Option{
			{ID: "allow", Name: "Allow", Kind: gladhand.AllowOnce},
			{ID: "always", Name: "Always allow it", Kind: gladhand.AllowAlways},
			{ID: "reject", Name: "Deny", Kind: gladhand.RejectOnce},
		},
	}
}

// prompted is a prompter that writes to a buffer and keeps the answers.
func prompted(canAnswer bool) (*prompter, *strings.Builder, *[]gladhand.AnswerParams) {
	var out strings.Builder
	s := &screen{out: &out, note: &out, same: true, own: map[gladhand.PromptID]bool{}, tools: map[string]*toolLine{}}
	p := newPrompter(s, canAnswer, nil)
	var answers []gladhand.AnswerParams
	p.answer = func(_ gladhand.Ask, a gladhand.AnswerParams) { answers = append(answers, a) }
	return p, &out, &answers
}

func (p *prompter) type1(text string, after time.Duration) {
	p.typed(typedLine{text: text, at: p.shownAt.Add(after)})
}

func settledUpdate(t *testing.T, id string, how gladhand.Settled, kind gladhand.OptionKind, by *gladhand.Identity) client.Update {
	t.Helper()
	raw, err := json.Marshal(gladhand.AnswerUpdate{SessionUpdate: gladhand.TagAnswer, AskID: gladhand.AskID(id), Settled: how, OptionKind: kind})
	if err != nil {
		t.Fatal(err)
	}
	return client.Update{Tag: gladhand.TagAnswer, Raw: raw, Meta: gladhand.UpdateMeta{By: by}}
}

// R045: what was typed before one could have read the question allows nothing;
// denying is always live.
func TestTypedAheadAllowsNothing(t *testing.T) {
	for _, key := range []string{"y", "yes", "a", "always", "allow"} {
		p, out, answers := prompted(true)
		p.add(question("q1"))
		p.type1(key, readTime-time.Millisecond)
		if len(*answers) != 0 || !strings.Contains(out.String(), "does not count") {
			t.Errorf("%s: %v %s", key, *answers, out)
		}
		p.type1(key, readTime)
		if len(*answers) != 1 {
			t.Errorf("%s, in time: %v", key, *answers)
		}
	}
	p, _, answers := prompted(true)
	p.add(question("q1"))
	p.type1("n", 0)
	if len(*answers) != 1 || (*answers)[0].OptionID != "reject" {
		t.Errorf("%v", *answers)
	}
}

// A question that comes up when another was answered has its own time.
func TestSecondQuestionHasItsOwnTime(t *testing.T) {
	p, _, answers := prompted(true)
	flushed := 0
	p.flush = func() { flushed++ }
	p.add(question("q1"))
	p.add(question("q2"))
	p.type1("y", readTime)
	p.settled(settledUpdate(t, "q1", gladhand.SettledAnswered, gladhand.AllowOnce, nil))
	p.type1("y", 0)
	if len(*answers) != 1 {
		t.Fatalf("%v", *answers)
	}
	p.type1("y", readTime)
	if len(*answers) != 2 || (*answers)[1].AskID != "q2" || (*answers)[1].Digest != "d-q2" {
		t.Errorf("%v", *answers)
	}
	if flushed != 2 {
		t.Errorf("typed input was dropped %d times", flushed)
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct{ text, option, reason string }{
		{"y", "allow", ""},
		{" Yes ", "allow", ""},
		{"allow", "allow", ""},
		{"ok.", "allow", ""},
		{"a", "always", ""},
		{"always", "always", ""},
		{"n", "reject", ""},
		{"no, use staging", "reject", "use staging"},
		{"deny", "reject", ""},
		{"reject why not", "reject", "why not"},
		{"", "", ""},
		{"yes but only once", "", ""},
		{"allow all of it", "", ""},
		{"maybe", "", ""},
		{"yy", "", ""},
		{"never", "", ""},
	} {
		opt, reason, ok := choose(question("q"), c.text)
		if ok != (c.option != "") || ok && (opt.ID != c.option || reason != c.reason) {
			t.Errorf("%q: %v %q %v", c.text, opt.ID, reason, ok)
		}
	}
}

// An answer given elsewhere clears the question, and says by whom.
func TestAnsweredElsewhere(t *testing.T) {
	p, out, answers := prompted(true)
	p.add(question("q1"))
	p.settled(settledUpdate(t, "q1", gladhand.SettledAnswered, gladhand.AllowOnce, &gladhand.Identity{Name: "ana", Label: "zed"}))
	if p.asking() || !strings.Contains(out.String(), "answered by ana (zed): allowed") {
		t.Errorf("%v %s", p.asking(), out)
	}
	if len(*answers) != 0 {
		t.Error("answered")
	}
	// Our own answer is on the screen already.
	p.add(question("q2"))
	p.type1("n", 0)
	out.Reset()
	p.settled(settledUpdate(t, "q2", gladhand.SettledAnswered, gladhand.RejectOnce, &gladhand.Identity{Name: "ana"}))
	if out.String() != "" {
		t.Errorf("%s", out)
	}
}

func TestSnapshotAfterALoss(t *testing.T) {
	p, out, _ := prompted(true)
	p.add(question("q1"))
	p.add(question("q2"))
	out.Reset()
	p.reset([]gladhand.Ask{question("q2"), question("q3")})
	if len(p.open) != 2 || p.open[0].ID != "q2" || !strings.Contains(out.String(), "settled") {
		t.Errorf("%v %s", p.open, out)
	}
}

func TestWhoCannotAnswerIsOnlyShown(t *testing.T) {
	p, out, _ := prompted(false)
	p.add(question("q1"))
	if p.asking() || !strings.Contains(out.String(), "Run touch x") || strings.Contains(out.String(), "[y]") {
		t.Errorf("%s", out)
	}
}

// R052: the command is shown whole, on one line, with nothing a terminal obeys.
func TestQuestionShowsWhatWillHappen(t *testing.T) {
	a := question("q1")
	a.Title = "Run something\x1b[2K harmless\nreally"
	input, _ := json.Marshal(map[string]string{"command": "curl x|sh\r\x1b[2K ls -la\nrm -rf y # " + strings.Repeat("long ", 100)})
	a.ToolCall, _ = json.Marshal(map[string]json.RawMessage{"kind": json.RawMessage(`"execute"`), "rawInput": input})
	text := askText(a)
	all := strings.Join(text, "\n")
	if len(text) != 2 || strings.ContainsAny(all, "\x1b\r") {
		t.Fatalf("%q", text)
	}
	if !strings.HasPrefix(text[1], `    $ curl x|sh\r\x1b[2K ls -la\nrm -rf y # long`) || !strings.HasSuffix(text[1], "long ") {
		t.Errorf("%q", text[1])
	}
}

func TestQuestionShowsChanges(t *testing.T) {
	a := question("q1")
	a.ToolCall = json.RawMessage(`{"kind":"edit","content":[` +
		`{"type":"diff","path":"/w/a.go","oldText":"one\ntwo\n","newText":"one\nzwei\u001b[31m\n"},` +
		`{"type":"diff","path":"/w/new","newText":"` + strings.Repeat(`x\n`, 100) + `"}]}`)
	all := strings.Join(askText(a), "\n")
	for _, want := range []string{"    /w/a.go", "    -two", `    +zwei\x1b[31m`, "/w/new (new file)", "    +x", "more lines"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
	if n := strings.Count(all, "\n"); n > 60 {
		t.Errorf("%d lines", n)
	}
}
