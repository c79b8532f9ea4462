package acp_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
)

// R125: what no provider would take is refused before it is stored.
func TestValidatePrompt(t *testing.T) {
	image := func(data string) string { return `[{"type":"image","mimeType":"image/png","data":"` + data + `"}]` }
	size := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for _, good := range []string{
		`[{"type":"text","text":""}]`,
		image("AAAA"),
		image(size(acp.MaxData)),
		`[{"type":"audio","mimeType":"audio/wav","data":"AA=="}]`,
		`[{"type":"resource_link","uri":"file:///x","name":"x"}]`,
		`[{"type":"resource","resource":{"uri":"file:///x","text":"é"}}]`,
		`[{"type":"resource","resource":{"uri":"file:///x","blob":"AAAA"}}]`,
		`[{"type":"_new","anything":1}]`,
		`[` + strings.Repeat(`{"type":"text","text":"x"},`, acp.MaxBlocks-1) + `{"type":"text","text":"x"}]`,
	} {
		if err := acp.ValidatePrompt(json.RawMessage(good)); err != nil {
			t.Errorf("%.80s: %v", good, err)
		}
	}
	for _, bad := range []string{
		``, `null`, `{}`, `"x"`, `[]`, `[1]`, `["x"]`, `[null]`, `[{}]`, `[{"type":1}]`, `[{"type":""}]`,
		`[{"type":"text"}]`, `[{"type":"text","text":1}]`, `[{"type":"text","text":"x"},]`, "[{\"type\":\"text\",\"text\":\"\xff\"}]",
		`[{"type":"text","text":"x","text":"y"}]`,
		image(""), image("AAA"), image("AA=A"), image("äAAA"), image("AA\\nAA"), image("AA-_"), image(size(acp.MaxData + 3)),
		`[{"type":"image","data":"AAAA"}]`, `[{"type":"image","mimeType":"image/png"}]`,
		`[{"type":"resource_link","uri":"x"}]`, `[{"type":"resource"}]`, `[{"type":"resource","resource":{"uri":"x"}}]`,
		`[{"type":"resource","resource":{"uri":"x","blob":"é"}}]`,
		`[` + strings.Repeat(`{"type":"text","text":"x"},`, acp.MaxBlocks) + `{"type":"text","text":"x"}]`,
	} {
		if err := acp.ValidatePrompt(json.RawMessage(bad)); codeOf(err) != gladhand.CodeInvalidParams {
			t.Errorf("%.80q passed: %v", bad, err)
		}
	}
}

func TestText(t *testing.T) {
	for content, want := range map[string]string{
		`[{"type":"text","text":"a\nb"},{"type":"text","text":"c"}]`:                           "a\nb\nc",
		`{"type":"text","text":"one"}`:                                                         "one",
		`[{"type":"resource_link","uri":"file:///x","name":"x.go"}]`:                           "x.go (file:///x)",
		`[{"type":"resource_link","uri":"file:///x","name":"file:///x"}]`:                      "file:///x",
		`[{"type":"resource","resource":{"uri":"file:///x","text":"body"}}]`:                   "file:///x:\nbody",
		`[{"type":"resource","resource":{"uri":"file:///x","blob":"AAAA","mimeType":"a/b"}}]`:  "[a/b file:///x]",
		`[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"see"}]`: "[image/png]\nsee",
		`[{"type":"_new"}]`: "[_new]",
		`[]`:                "",
		`null`:              "",
		`{`:                 "",
	} {
		if got := acp.Text(json.RawMessage(content)); got != want {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	for update, want := range map[string]struct {
		class gladhand.Class
		id    string
		text  string
	}{
		`{"sessionUpdate":"agent_message_chunk","content":{"text":"a\"b","type":"text"},"messageId":"m\u0031"}`:                   {gladhand.Append, "agent_message:m1", `a\"b`},
		` { "content" : { "type" : "text" , "text" : "x" } , "sessionUpdate" : "agent_message_chunk" } `:                          {gladhand.Append, "agent_message:", "x"},
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"messageId":7}`:                              {gladhand.Fact, "", ""},
		`{"sessionUpdate":"user_message_chunk","content":{"type":"resource","resource":{"uri":"u","text":"no"}},"messageId":"m"}`: {gladhand.Append, "user_message:m", ""},
		`{"sessionUpdate":"tool_call","toolCallId":"t:1","title":"T"}`:                                                            {gladhand.Fact, "tool:t:1", ""},
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"T"}`:                                                       {gladhand.Replace, "tool:t", ""},
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":null}`:                                                     {gladhand.Replace, "tool:t", ""},
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress"}`:                                            {gladhand.Fact, "tool:t", ""},
		`{"sessionUpdate":"tool_call_update","title":"T"}`:                                                                        {gladhand.Fact, "", ""},
		`{"sessionUpdate":"plan","entries":[]}`:                                                                                   {gladhand.Replace, "plan", ""},
		`{"sessionUpdate":"plan_update","plan":{"planId":"p"}}`:                                                                   {gladhand.Replace, "plan:p", ""},
		`{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"x"}]}`:                                {gladhand.Replace, "agent_message:m", "x"},
		`{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`:     {gladhand.Replace, "agent_message:m", ""},
		`{"sessionUpdate":"terminal_output_chunk","terminalId":"x","data":"YWJj"}`:                                                {gladhand.Append, "terminal:x", "YWJj"},
		`{"sessionUpdate":"terminal_update","terminalId":"x","exitStatus":{}}`:                                                    {gladhand.Fact, "terminal:x", ""},
		`{"sessionUpdate":"state_update","state":"idle"}`:                                                                         {gladhand.Fact, "", ""},
		`{"sessionUpdate":"something_new","messageId":"m","content":{"type":"text","text":"x"}}`:                                  {gladhand.Fact, "", ""},
		`{"sessionUpdate":"_gladhand_prompt","promptId":"p"}`:                                                                     {gladhand.Fact, "", ""},
	} {
		e, err := acp.Describe(2, json.RawMessage(update))
		if err != nil {
			t.Errorf("%s: %v", update, err)
			continue
		}
		got := ""
		if e.Text.Start > 0 {
			got = string(e.Update[e.Text.Start:e.Text.End])
		}
		if e.Class != want.class || e.ID != want.id || got != want.text || string(e.Update) != update {
			t.Errorf("%s: class %d, id %q, text %q", update, e.Class, e.ID, got)
		}
		if unnamed := strings.HasSuffix(want.id, ":"); acp.Unnamed(e) != unnamed {
			t.Errorf("%s: unnamed %v", update, !unnamed)
		}
	}
	for _, bad := range []string{
		``, `null`, `[]`, `"x"`, `{}`, `{"sessionUpdate":1}`, `{"sessionUpdate":""}`, `{"sessionUpdate":"plan"`, `{"sessionUpdate":"plan"} x`,
		`{"sessionUpdate":"plan","sessionUpdate":"plan"}`, `{"sessionUpdate":"plan","a":{"b":1,"b":2}}`, "{\"sessionUpdate\":\"plan\",\"a\":\"\xff\"}",
		`{"SessionUpdate":"plan"}`,
	} {
		if e, err := acp.Describe(1, json.RawMessage(bad)); codeOf(err) != gladhand.CodeInvalidParams {
			t.Errorf("%q was filed as %+v, %v", bad, e, err)
		}
	}
}
