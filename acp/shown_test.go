package acp_test

import (
	"fmt"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
)

// noted numbers an update of v2 and notes it.
func noted(t *testing.T, s *acp.Shown, update string, n, opens gladhand.Seq) *gladhand.Event {
	t.Helper()
	e := describe(t, 2, update, n, opens)
	s.Note(e)
	return e
}

func set(text string) string {
	return fmt.Sprintf(`{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"%s"}]}`, text)
}

func add(text string) string {
	return fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"%s"}}`, text)
}

func item(text string) string {
	return fmt.Sprintf(`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"content","content":{"type":"text","text":"%s"}}}`, text)
}

func TestShownMessages(t *testing.T) {
	for _, c := range []struct {
		name    string
		updates []string
		base    int
		prior   string
		v1      string // the projection of the last
	}{
		{"fresh", []string{set("ab")}, 0, "", `"text":"ab"`},
		{"extends chunks", []string{add("a"), add("b"), set("abc")}, 2, "", `"text":"c"`},
		{"repeats chunks", []string{add("a"), add("b"), set("ab")}, 2, "", ``},
		{"shortens", []string{add("ab"), set("a")}, -1, "~2", `"messageId":"m~2"`},
		{"differs", []string{add("ab"), set("xyz")}, -1, "~2", `"text":"xyz"`},
		{"a chunk behind", []string{add("ab"), set("x"), add("y")}, 0, "~2", `"messageId":"m~2"`},
		{"extends behind", []string{add("ab"), set("x"), add("y"), set("xyz")}, 2, "~2", `"text":"z"`},
		{"differs twice", []string{add("ab"), set("x"), set("y")}, -1, "~3", `"messageId":"m~3"`},
		{"cleared", []string{add("ab"), strings.Replace(set(""), `[{"type":"text","text":""}]`, "null", 1)}, -1, "~2", ``},
		{"set after cleared", []string{add("ab"), strings.Replace(set(""), `[{"type":"text","text":""}]`, "[]", 1), set("x")}, 0, "~2", `"messageId":"m~2"`},
		{"nothing new", []string{add("ab"), `{"sessionUpdate":"agent_message","messageId":"m"}`}, 2, "", ``},
		{"behind an image", []string{add("ab"), `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"image"}}`, set("ab")}, -1, "~3", `"text":"ab"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s acp.Shown
			var e *gladhand.Event
			for i, u := range c.updates {
				e = noted(t, &s, u, gladhand.Seq(i+1), 1)
			}
			if e.Base != c.base || string(e.Prior) != c.prior {
				t.Errorf("base %d, prior %q", e.Base, e.Prior)
			}
			got := ""
			for _, u := range acp.Project(e, 1) {
				got += string(u)
			}
			if !strings.Contains(got, c.v1) || c.v1 == "" && got != "" {
				t.Errorf("on v1: %s", got)
			}
		})
	}
}

func TestShownForgets(t *testing.T) {
	var s acp.Shown
	noted(t, &s, add("ab"), 1, 1)
	noted(t, &s, strings.ReplaceAll(add("ab"), `"m"`, `"n"`), 2, 2)
	noted(t, &s, strings.ReplaceAll(set("x"), `"m"`, `"n"`), 3, 2)
	s.End()
	// What was shown is not known any more: shown again as a new message.
	if e := noted(t, &s, set("abc"), 4, 1); e.Base != -1 || string(e.Prior) != "~4" {
		t.Errorf("base %d, prior %q", e.Base, e.Prior)
	}
	// But where v1 readers see a message is.
	if e := noted(t, &s, strings.ReplaceAll(add("y"), `"m"`, `"n"`), 5, 2); string(e.Prior) != "~3" {
		t.Errorf("prior %q", e.Prior)
	}
	// Nor does it know what another session's process had shown.
	var fresh acp.Shown
	if e := noted(t, &fresh, set("abc"), 9, 1); e.Base != -1 || string(e.Prior) != "~9" {
		t.Errorf("base %d, prior %q", e.Base, e.Prior)
	}
	// v1 needs nothing.
	e := describe(t, 1, string(acp.MessageChunk("m", "x")), 10, 1)
	if s.Note(e); e.Prior != nil || e.Base != 0 {
		t.Errorf("base %d, prior %q", e.Base, e.Prior)
	}
	// v1 can replace messages between sessions itself.
	m := strings.Replace(set("x"), "agent_message", "session_message", 1)
	noted(t, &s, m, 11, 11)
	if e := noted(t, &s, strings.Replace(m, `"x"`, `"y"`, 1), 12, 11); e.Prior != nil {
		t.Errorf("prior %q", e.Prior)
	}
}

func TestShownToolContent(t *testing.T) {
	var s acp.Shown
	v1 := func(e *gladhand.Event) string { return string(acp.Project(e, 1)[0]) }
	noted(t, &s, `{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"terminal","terminalId":"x"}]}`, 1, 1)
	a := noted(t, &s, item("a"), 2, 1)
	b := noted(t, &s, item("b"), 3, 1)
	want := `"content":[{"type":"content","content":{"type":"text","text":"[terminal x]"}},{"type":"content","content":{"type":"text","text":"a"}},{"type":"content","content":{"type":"text","text":"b"}}]`
	if got := v1(b); !strings.Contains(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := v1(a); strings.Contains(got, `"b"`) {
		t.Errorf("what came later shows: %s", got)
	}
	// A later update replaces it all; one without content leaves it.
	noted(t, &s, `{"sessionUpdate":"tool_call_update","toolCallId":"t","content":null}`, 4, 1)
	noted(t, &s, `{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"T"}`, 5, 1)
	noted(t, &s, item("c"), 6, 1)
	d := noted(t, &s, item("d"), 7, 1)
	if got := v1(d); strings.Count(got, `"type":"content"`) != 2 {
		t.Error(got)
	}
	// It is bounded, and what is left out is the oldest.
	long := strings.Repeat("l", 10_000)
	var e *gladhand.Event
	for n := gladhand.Seq(8); n < 40; n++ {
		if e = noted(t, &s, item(long), n, 1); len(e.Prior) > 64<<10 {
			t.Fatalf("%d bytes are kept", len(e.Prior))
		}
		if got := v1(e); !strings.HasSuffix(got, long+`"}}]}`) {
			t.Fatalf("the newest is missing: …%s", got[len(got)-40:])
		}
	}
	// It ends with the call.
	noted(t, &s, `{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`, 40, 1)
	if e := noted(t, &s, item("z"), 41, 1); e.Prior != nil {
		t.Errorf("kept behind the end: %q", e.Prior)
	}
}
