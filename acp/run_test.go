package acp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
)

func chunk(t testing.TB, text string, n gladhand.Seq) *gladhand.Event {
	return describe(t, 1, string(acp.MessageChunk("m", text)), n, 1)
}

// What must not merge, each beside what would.
func TestRunRefuses(t *testing.T) {
	v1 := func(u string, n gladhand.Seq) *gladhand.Event { return describe(t, 1, u, n, 1) }
	v2 := func(u string, n gladhand.Seq) *gladhand.Event { return describe(t, 2, u, n, 1) }
	patch := func(members string, n gladhand.Seq) *gladhand.Event {
		return v1(`{"sessionUpdate":"tool_call_update","toolCallId":"t"`+members+`}`, n)
	}
	out := func(data string, n gladhand.Seq) *gladhand.Event {
		return v2(`{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"`+data+`"}`, n)
	}
	with := func(e *gladhand.Event, f func(*gladhand.Event)) *gladhand.Event { f(e); return e }
	human := &gladhand.Identity{Kind: gladhand.Human, Name: "ann"}
	same := &gladhand.Identity{Kind: gladhand.Human, Name: "ann"}
	for name, c := range map[string]struct {
		prev, next *gladhand.Event
		merge      bool
	}{
		"appends":                      {chunk(t, "a", 1), chunk(t, "b", 2), true},
		"appends, a gap between":       {chunk(t, "a", 1), chunk(t, "b", 3), false},
		"appends of two messages":      {chunk(t, "a", 1), v1(string(acp.MessageChunk("n", "b")), 2), false},
		"a message and a thought":      {chunk(t, "a", 1), v1(string(acp.ThoughtChunk("m", "b")), 2), false},
		"appends of two turns":         {chunk(t, "a", 1), with(chunk(t, "b", 2), func(e *gladhand.Event) { e.Turn = 2 }), false},
		"appends of two senders":       {chunk(t, "a", 1), with(chunk(t, "b", 2), func(e *gladhand.Event) { e.By = human }), false},
		"appends of one sender":        {with(chunk(t, "a", 1), func(e *gladhand.Event) { e.By = human }), with(chunk(t, "b", 2), func(e *gladhand.Event) { e.By = same }), true},
		"appends seen under two ids":   {chunk(t, "a", 1), with(chunk(t, "b", 2), func(e *gladhand.Event) { e.Prior = []byte("~1") }), false},
		"appends in two envelopes":     {chunk(t, "a", 1), v1(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b"},"messageId":"m","x":1}`, 2), false},
		"appends of two versions":      {chunk(t, "a", 1), v2(string(acp.MessageChunk("m", "b")), 2), false},
		"text and an image":            {chunk(t, "a", 1), v1(string(acp.UserChunk("m", json.RawMessage(`{"type":"image"}`))), 2), false},
		"two images":                   {v1(`{"sessionUpdate":"agent_message_chunk","content":{"type":"image"}}`, 1), v1(`{"sessionUpdate":"agent_message_chunk","content":{"type":"image"}}`, 2), false},
		"facts":                        {v1(`{"sessionUpdate":"tool_call","toolCallId":"t"}`, 1), v1(`{"sessionUpdate":"tool_call","toolCallId":"t"}`, 2), false},
		"notices":                      {v1(string(acp.Notice("info", "a", "")), 1), v1(string(acp.Notice("info", "b", "")), 2), false},
		"what is not known":            {v1(`{"sessionUpdate":"new_thing"}`, 1), v1(`{"sessionUpdate":"new_thing"}`, 2), false},
		"patches of one member":        {patch(`,"title":"a"`, 1), patch(`,"title":"b"`, 2), true},
		"a patch that sets more":       {patch(`,"title":"a"`, 1), patch(`,"title":"b","kind":"edit"`, 2), true},
		"a patch that sets less":       {patch(`,"title":"a","kind":"edit"`, 1), patch(`,"title":"b"`, 2), false},
		"a patch with _meta before":    {patch(`,"title":"a","_meta":{"terminal_output":{"data":"1"}}`, 1), patch(`,"title":"a","_meta":{"terminal_output":{"data":"2"}}`, 2), false},
		"a patch with a status":        {patch(`,"title":"a"`, 1), patch(`,"title":"a","status":"completed"`, 2), false},
		"plans":                        {v1(string(acp.Plan(nil)), 1), v1(string(acp.Plan([]acp.PlanEntry{{Content: "x"}})), 2), true},
		"output":                       {out("YWJj", 1), out("YWI=", 2), true},
		"output behind padding":        {out("YWI=", 1), out("YWJj", 2), false},
		"output that is no base64":     {out("YWJj", 1), out("a", 2), false},
		"output, padding in the midst": {out("YWJj", 1), out("YWI=YWJj", 2), false},
		"items of content": {
			v2(`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"content","content":{"type":"text","text":"a"}}}`, 1),
			v2(`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"content","content":{"type":"text","text":"b"}}}`, 2), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := acp.Merge(c.prev, c.next)
			if ok != c.merge {
				t.Fatalf("merged: %v, want %v", ok, c.merge)
			}
			if ok && (got.First != c.prev.First || got.Last != c.next.Last || got == c.prev) {
				t.Errorf("merged to %+v", got)
			}
		})
	}
}

func TestRunOfMessages(t *testing.T) {
	var shown acp.Shown
	set := func(text string, n gladhand.Seq) *gladhand.Event {
		e := describe(t, 2, fmt.Sprintf(`{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"%s"}]}`, text), n, 1)
		shown.Note(e)
		return e
	}
	r := acp.NewRun(set("ab", 1))
	if !r.Add(set("abc", 2)) || !r.Add(set("abcde", 3)) {
		t.Fatal("extending replacements do not merge")
	}
	e := r.Event()
	if fmt.Sprint(e.Lens) != "[2 1 2]" || e.Base != 0 {
		t.Errorf("lengths %v, base %d", e.Lens, e.Base)
	}
	if got := acp.Project(e.After(1), 1); len(got) != 1 || !bytes.Contains(got[0], []byte(`"text":"cde"`)) {
		t.Errorf("behind 1: %s", got)
	}
	if got := acp.Project(e.After(2), 1); len(got) != 1 || !bytes.Contains(got[0], []byte(`"text":"de"`)) {
		t.Errorf("behind 2: %s", got)
	}
	if got := acp.Project(e.After(2), 2); len(got) != 1 || !bytes.Contains(got[0], []byte(`"text":"abcde"`)) {
		t.Errorf("behind 2 on v2: %s", got)
	}
	other := set("xy", 4)
	if r.Add(other) || other.Base != -1 || string(other.Prior) != "~4" {
		t.Errorf("another text: merged, or base %d, prior %s", other.Base, other.Prior)
	}
	r = acp.NewRun(other)
	// It would lose what was shown under the new id to one who joins in between.
	if r.Add(set("xyz", 5)) {
		t.Error("an extension merged onto a replacement that did not extend")
	}
}

func TestRunIsCut(t *testing.T) {
	text := strings.Repeat("x", 1000)
	r := acp.NewRun(chunk(t, text, 1))
	n := gladhand.Seq(1)
	for r.Add(chunk(t, text, n+1)) {
		n++
	}
	if got := r.Event().Text.Len(); got > acp.RunLimit || got <= acp.RunLimit-1000 {
		t.Errorf("cut at %d bytes", got)
	}
	r = acp.NewRun(chunk(t, "", 1))
	n = 1
	for r.Add(chunk(t, "", n+1)) {
		if n++; n > 2*acp.RunNumbers {
			break
		}
	}
	if n != acp.RunNumbers {
		t.Errorf("a run of nothing covers %d numbers", n)
	}
	big := strings.Repeat("x", 2*acp.RunLimit)
	if acp.NewRun(chunk(t, big, 1)).Add(chunk(t, "y", 2)) {
		t.Error("an append merged onto one over the limit")
	}
}

// Reading must not copy more than the part that is asked for, nor twice.
func TestRunReadsShare(t *testing.T) {
	r := acp.NewRun(chunk(t, "a", 1))
	if r.Event() != r.Opening() {
		t.Error("a run of one event gave out another")
	}
	for i := range 5 {
		r.Add(chunk(t, "b", gladhand.Seq(i+2)))
	}
	if a, b := r.After(3), r.After(3); a != b {
		t.Error("two readers at one cursor got two events")
	}
	if a, b := r.Event(), r.Event(); a != b {
		t.Error("two readers of the whole got two events")
	}
	if r.First() != 1 || r.Last() != 6 {
		t.Errorf("the run covers %d to %d", r.First(), r.Last())
	}
}

// Escapes are never cut: each number's text is whole in itself.
func TestRunKeepsEscapes(t *testing.T) {
	raw := func(text string, n gladhand.Seq) *gladhand.Event {
		return describe(t, 1, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`+text+`"}}`, n, 1)
	}
	r := acp.NewRun(raw(`a\ud83d`, 1)) // half of a pair, as agents send it
	for i, s := range []string{`\ude00`, `\"`, `\\`, `é`, ``} {
		if !r.Add(raw(s, gladhand.Seq(i+2))) {
			t.Fatal(s)
		}
	}
	var u struct{ Content struct{ Text string } }
	if err := json.Unmarshal(r.Event().Update, &u); err != nil || u.Content.Text != "a😀\"\\é" {
		t.Errorf("%v %q", err, u.Content.Text)
	}
	if got := acp.ChunkText(r.After(2)); got != "\"\\é" {
		t.Errorf("behind 2: %q", got)
	}
}

func BenchmarkRunAdd(b *testing.B) {
	text := strings.Repeat("t", 30)
	events := make([]*gladhand.Event, 2048)
	for i := range events {
		events[i] = chunk(b, text, gladhand.Seq(i+1))
	}
	b.ReportAllocs()
	var r *acp.Run
	i := 0
	for b.Loop() {
		if i %= len(events); i == 0 {
			r = acp.NewRun(events[0])
		} else {
			r.Add(events[i])
		}
		i++
	}
}

func BenchmarkRunAddAndReadTail(b *testing.B) {
	text := strings.Repeat("t", 30)
	events := make([]*gladhand.Event, 2048)
	for i := range events {
		events[i] = chunk(b, text, gladhand.Seq(i+1))
	}
	b.ReportAllocs()
	var r *acp.Run
	i := 0
	for b.Loop() {
		if i %= len(events); i == 0 {
			r = acp.NewRun(events[0])
		} else {
			r.Add(events[i])
			r.After(gladhand.Seq(i))
		}
		i++
	}
}

func BenchmarkDescribe(b *testing.B) {
	u := acp.MessageChunk("m1", strings.Repeat("t", 200))
	b.SetBytes(int64(len(u)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := acp.Describe(1, u); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProject(b *testing.B) {
	e := describe(b, 1, string(acp.MessageChunk("", strings.Repeat("t", 200))), 1, 1)
	b.ReportAllocs()
	for b.Loop() {
		acp.Project(e, 2)
	}
}
