package acp_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/acp/acptest"
)

// describe files an update as the event of a number.
func describe(t testing.TB, version int, update string, n, opens gladhand.Seq) *gladhand.Event {
	t.Helper()
	e, err := acp.Describe(version, json.RawMessage(update))
	if err != nil {
		t.Fatalf("%v: %s", err, update)
	}
	e.First, e.Last, e.Opens = n, n, opens
	return e
}

func TestProjectEveryKind(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			if err := acptest.Update(s.version, []byte(s.update)); err != nil {
				t.Fatal("the sample itself:", err)
			}
			to := 3 - s.version
			opening := describe(t, s.version, s.update, 5, 5)
			late := describe(t, s.version, s.update, 9, 5)
			if late.ID == "" {
				late.Opens = 9
			}
			sameVersion(t, opening, s)
			want := s.late
			if want == "" {
				want = s.opening
			}
			compare(t, "opening", acp.Project(opening, to), s.opening, to)
			compare(t, "late", acp.Project(late, to), want, to)
			for v := 1; v <= 2; v++ {
				checkOpenTool(t, opening, v)
			}
		})
	}
}

func sameVersion(t *testing.T, e *gladhand.Event, s sample) {
	t.Helper()
	got := acp.Project(e, s.version)
	if len(got) != 1 || string(got[0]) != s.update {
		t.Errorf("in its own version: %s\nwant the bytes as they came: %s", got, s.update)
	}
}

func compare(t *testing.T, what string, got []json.RawMessage, want string, to int) {
	t.Helper()
	if want == "-" {
		if len(got) != 0 {
			t.Errorf("%s: %s, want nothing", what, got)
		}
		return
	}
	if len(got) != 1 || string(got[0]) != want {
		t.Errorf("%s:\n got %s\nwant %s", what, bytes.Join(raws(got), []byte("\n     ")), want)
	}
	for _, u := range got {
		if err := acptest.Update(to, u); err != nil {
			t.Errorf("%s: %v\n%s", what, err, u)
		}
		if !bytes.Contains(u, []byte(`"xNew":{"deep":[1,2.50]}`)) || !bytes.Contains(u, []byte(`"_meta":{"k":1`)) {
			t.Errorf("%s: a member was lost: %s", what, u)
		}
	}
}

func raws(in []json.RawMessage) (out [][]byte) {
	for _, b := range in {
		out = append(out, b)
	}
	return out
}

func checkOpenTool(t *testing.T, e *gladhand.Event, to int) {
	t.Helper()
	u := acp.OpenToolCall(e, to)
	about := strings.HasPrefix(e.ID, "tool:") || strings.HasPrefix(e.ID, "terminal:")
	if (u != nil) != about {
		t.Errorf("OpenToolCall of %s gave %s", e.Tag, u)
	}
	if u == nil {
		return
	}
	if err := acptest.Update(to, u); err != nil {
		t.Error(err)
	}
	if to == acp.V1 && !bytes.Contains(u, []byte(`"sessionUpdate":"tool_call",`)) {
		t.Errorf("OpenToolCall on v1 is no tool_call: %s", u)
	}
}

// Every tag of both schemas has a sample and a row in the documentation.
func TestProjectionIsWhole(t *testing.T) {
	doc, err := os.ReadFile("../docs/projection.md")
	if err != nil {
		t.Fatal(err)
	}
	for v := 1; v <= 2; v++ {
		tags, err := acptest.Tags(v)
		if err != nil || len(tags) < 18 {
			t.Fatal(tags, err)
		}
		for _, tag := range tags {
			found := false
			for _, s := range samples {
				found = found || s.version == v && strings.Contains(s.update, `"sessionUpdate":"`+tag+`"`)
			}
			if !found {
				t.Errorf("%s of v%d has no sample", tag, v)
			}
			if !bytes.Contains(doc, []byte("`"+tag+"`")) {
				t.Errorf("%s of v%d is not in docs/projection.md", tag, v)
			}
			e := describe(t, v, `{"sessionUpdate":"`+tag+`","toolCallId":"x"}`, 1, 1)
			if e.Tag != tag {
				t.Errorf("%s was filed as %s", tag, e.Tag)
			}
		}
	}
}

func TestOpenToolCallIsTheStart(t *testing.T) {
	v1 := describe(t, 1, string(acp.ToolCall(acp.ToolState{ID: "t", Title: "Run", Kind: "execute"})), 3, 3)
	if got := string(acp.OpenToolCall(v1, 1)); got != string(v1.Update) {
		t.Errorf("%s\nwant %s", got, v1.Update)
	}
	v2 := describe(t, 2, `{"sessionUpdate":"tool_call_update","toolCallId":"t","kind":"execute"}`, 3, 3)
	want := `{"sessionUpdate":"tool_call","toolCallId":"t","kind":"execute","title":"execute"}`
	if got := string(acp.OpenToolCall(v2, 1)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	// The opening event was merged with a later one and cut: still an opening.
	v2.First = 4
	if got := string(acp.OpenToolCall(v2, 1)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	// v1 agents ask about calls they never announced: the update is all there is.
	bare := describe(t, 1, `{"sessionUpdate":"tool_call_update","toolCallId":"t","title":null,"status":"completed"}`, 3, 3)
	want = `{"sessionUpdate":"tool_call","toolCallId":"t","status":"completed","title":"Tool call"}`
	if got := string(acp.OpenToolCall(bare, 1)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestProjectOwn(t *testing.T) {
	e := describe(t, 1, `{"sessionUpdate":"_gladhand_interrupted","text":"The daemon \"died\"."}`, 7, 7)
	if e.Version != 0 || e.Class != gladhand.Fact {
		t.Errorf("our own update was filed as version %d, class %d", e.Version, e.Class)
	}
	for v := 1; v <= 2; v++ {
		if got := acp.Project(e, v); len(got) != 1 || string(got[0]) != string(e.Update) {
			t.Errorf("our own update was changed: %s", got)
		}
		for _, notices := range []bool{false, true} {
			got := acp.ProjectOwn(e, v, notices)
			if len(got) != 1 || !bytes.Contains(got[0], []byte(`The daemon \"died\".`)) {
				t.Fatalf("v%d: %s", v, got)
			}
			if err := acptest.Update(v, got[0]); err != nil {
				t.Error(err)
			}
			if isNotice := bytes.Contains(got[0], []byte(`"notice"`)); isNotice != (notices || v == 2) {
				t.Errorf("v%d, notices %v: %s", v, notices, got[0])
			}
		}
	}
	turn := describe(t, 1, `{"sessionUpdate":"_gladhand_turn_end"}`, 8, 8)
	if got := acp.ProjectOwn(turn, 1, true); got != nil {
		t.Errorf("a stock client was shown %s", got)
	}
}

func TestFit(t *testing.T) {
	all := acp.OptIns{Notices: true, Compaction: true, Booleans: true, Plans: true, Subagents: true}
	for _, s := range samples {
		e := describe(t, s.version, s.update, 5, 5)
		updates := acp.Project(e, acp.V1)
		if got := acp.Fit(e, updates, all); len(got) != len(updates) || len(got) > 0 && &got[0] != &updates[0] {
			t.Errorf("%s: with every opt-in it was changed to %s", s.name, got)
		}
		for _, u := range acp.Fit(e, updates, acp.OptIns{}) {
			for _, not := range []string{"notice", "compaction_update", "compaction_summary_chunk", "plan_update", "plan_removed", "subagent_update", "session_message", "session_message_chunk"} {
				if bytes.Contains(u, []byte(`"sessionUpdate":"`+not+`"`)) {
					t.Errorf("%s: without an opt-in: %s", s.name, u)
				}
			}
			if bytes.Contains(u, []byte(`"type":"boolean"`)) {
				t.Errorf("%s: without an opt-in: %s", s.name, u)
			}
			if err := acptest.Update(1, u); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
	}
	e := describe(t, 2, string(acp.Notice("warning", "Disk full", "Free some.")), 5, 5)
	got := acp.Fit(e, acp.Project(e, 1), acp.OptIns{})
	if len(got) != 1 || !bytes.Contains(got[0], []byte(`"text":"Disk full\nFree some."`)) {
		t.Errorf("a notice became %s", got)
	}
}
