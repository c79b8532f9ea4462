package main

import (
	"encoding/json"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/client"
)

func up(tag string, raw json.RawMessage, by *gladhand.Identity) client.Update {
	return client.Update{Tag: tag, Raw: raw, Meta: gladhand.UpdateMeta{By: by}}
}

func testScreen() (*screen, *strings.Builder, *strings.Builder) {
	var out, note strings.Builder
	return &screen{out: &out, note: &note, own: map[gladhand.PromptID]bool{"mine": true}, tools: map[string]*toolLine{}}, &out, &note
}

func TestScreenStreamsMessages(t *testing.T) {
	s, out, note := testScreen()
	ana := &gladhand.Identity{Name: "ana", Label: "zed"}
	s.show(up(acp.TagUserChunk, acp.UserChunk("mine", json.RawMessage(`{"type":"text","text":"typed here"}`)), ana))
	s.show(up(acp.TagUserChunk, acp.UserChunk("p2", json.RawMessage(`{"type":"text","text":"from\nelsewhere\u001b[2J"}`)), ana))
	for _, w := range []string{"Hel", "lo,\n", "world\r"} {
		s.show(up(acp.TagAgentChunk, acp.MessageChunk("m1", w), nil))
	}
	s.show(up(acp.TagThoughtChunk, acp.ThoughtChunk("h1", "hm"), nil))
	s.show(up(acp.TagAgentChunk, acp.MessageChunk("m2", "again"), nil))
	s.end()
	if got := out.String(); got != "Hello,\nworld\\r\nagain\n" {
		t.Errorf("out %q", got)
	}
	if got := note.String(); got != "ana (zed): from\n  elsewhere\\x1b[2J\n" {
		t.Errorf("note %q", got)
	}
}

func TestScreenShowsToolCallsOnce(t *testing.T) {
	s, _, note := testScreen()
	s.show(up(acp.TagToolCall, acp.ToolCall(acp.ToolState{ID: "t1", Title: "Run x\x1b", Kind: "execute", Status: "pending"}), nil))
	for range 3 {
		s.show(up(acp.TagToolCallUpdate, acp.ToolUpdate(acp.ToolState{ID: "t1", Status: "in_progress"}), nil))
	}
	s.show(up(acp.TagToolCallUpdate, acp.ToolUpdate(acp.ToolState{ID: "t1", Status: "completed", Content: []json.RawMessage{acp.ContentText("output")}}), nil))
	s.show(up(acp.TagToolCall, acp.ToolCall(acp.ToolState{ID: "t2", Title: "Run y", Status: "pending"}), nil))
	s.show(up(acp.TagToolCallUpdate, acp.ToolUpdate(acp.ToolState{ID: "t2", Status: "failed", Content: []json.RawMessage{acp.ContentText("no such file\nmore")}}), nil))
	if got := note.String(); got != "• Run x\\x1b\n✗ Run y: no such file\n" {
		t.Errorf("%q", got)
	}
}

// A line beside the text never lands in the middle of one of its lines when both
// are seen in one place, and never touches the text when they are not.
func TestScreenKeepsLinesApart(t *testing.T) {
	var both strings.Builder
	s := &screen{out: &both, note: &both, same: true, tools: map[string]*toolLine{}}
	s.text("half", "m1")
	s.line("note")
	s.text(" more", "m1")
	s.end()
	if got := both.String(); got != "half\nnote\n more\n" {
		t.Errorf("%q", got)
	}
	s, out, _ := testScreen()
	s.text("half", "m1")
	s.line("note")
	s.text(" more", "m1")
	s.end()
	if got := out.String(); got != "half more\n" {
		t.Errorf("%q", got)
	}
}

func TestScreenMarker(t *testing.T) {
	s, out, _ := testScreen()
	s.marker = "> "
	s.mark()
	s.mark()
	s.text("x", "m")
	if got := out.String(); got != "> \r\x1b[Kx" {
		t.Errorf("%q", got)
	}
}

func TestTurnEnds(t *testing.T) {
	for _, c := range []struct {
		in   gladhand.TurnUpdate
		want string
	}{
		{gladhand.TurnUpdate{StopReason: gladhand.StopEndTurn}, ""},
		{gladhand.TurnUpdate{StopReason: gladhand.StopCancelled}, "cancelled"},
		{gladhand.TurnUpdate{StopReason: gladhand.StopError, Error: &gladhand.TurnError{Message: "it\x1b broke"}}, `failed: it\x1b broke`},
		{gladhand.TurnUpdate{StopReason: "strange"}, "ended: strange"},
	} {
		if got := turnEnd(c.in); got != c.want {
			t.Errorf("%v: %q", c.in.StopReason, got)
		}
	}
}

func TestMatcherFindsTextInPieces(t *testing.T) {
	m := matcher{needle: "module name"}
	chunk := func(id, text string) client.Update { return up(acp.TagAgentChunk, acp.MessageChunk(id, text), nil) }
	if m.see(chunk("a", "the Mod")) || m.see(chunk("a", "ule ")) {
		t.Error("found too early")
	}
	if !m.see(chunk("a", "name is x")) {
		t.Error("not found")
	}
	m = matcher{needle: "module name"}
	if m.see(chunk("a", "module ")) || m.see(chunk("b", "name")) {
		t.Error("found across two messages")
	}
}
