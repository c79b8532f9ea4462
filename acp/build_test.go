package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/acp/acptest"
)

// Every builder's update is one the schema accepts, and whose tag is filed.
func TestBuildersOfUpdates(t *testing.T) {
	old := "a\n"
	tool := acp.ToolState{
		ID: "t", Name: "read_file", Title: "Read \"x\"", Kind: "read", Status: "completed",
		Content:   []json.RawMessage{acp.ContentText("hi"), acp.ContentDiff("/a", &old, "b\n"), acp.ContentDiff("/new", nil, "")},
		Locations: []acp.Location{{Path: "/a", Line: 3}, {Path: "/b"}},
		RawInput:  json.RawMessage(`{"path":"x"}`), RawOutput: json.RawMessage(`"out"`), Meta: json.RawMessage(`{"a":1}`),
	}
	options := []acp.ConfigOption{
		{ID: "mode", Name: "Mode", Category: "mode", Value: "ask", Choices: []acp.Choice{{Value: "ask"}, {Value: "plan", Name: "Plan", Description: "d"}}},
		{ID: "loud", Name: "Loud", Value: "true"},
	}
	for name, u := range map[string]json.RawMessage{
		"MessageChunk":          acp.MessageChunk("m", "hi\x00 \u2028"),
		"MessageChunk, no id":   acp.MessageChunk("", "hi"),
		"MessageChunk, no UTF8": acp.MessageChunk("m", "a\xffb"),
		"ThoughtChunk":          acp.ThoughtChunk("m", "hm"),
		"UserChunk":             acp.UserChunk("m", json.RawMessage(`{"type":"text","text":"x"}`)),
		"ToolCall":              acp.ToolCall(tool),
		"ToolCall, bare":        acp.ToolCall(acp.ToolState{ID: "t"}),
		"ToolUpdate":            acp.ToolUpdate(tool),
		"ToolUpdate, bare":      acp.ToolUpdate(acp.ToolState{ID: "t"}),
		"ToolUpdate, cleared":   acp.ToolUpdate(acp.ToolState{ID: "t", Content: []json.RawMessage{}, Locations: []acp.Location{}}),
		"Plan":                  acp.Plan([]acp.PlanEntry{{Content: "x"}, {Content: "y", Priority: "high", Status: "completed"}}),
		"Plan, empty":           acp.Plan(nil),
		"Usage":                 acp.Usage(acp.UsageState{Used: 1, Size: 2, Cost: 0.0125, Meta: json.RawMessage(`{"turn":{}}`)}),
		"Compaction":            acp.Compaction("c1", "completed", "what was said", ""),
		"CompactionFailed":      acp.Compaction("c1", "failed", "", "no room"),
		"Commands":              acp.AvailableCommands(acp.V1, []acp.Command{{Name: "model", Description: "d", Hint: "NAME"}, {Name: "compact", Description: "d"}}),
		"SessionTitle":          acp.SessionTitle("T"),
		"SessionTitle, cleared": acp.SessionTitle(""),
		"ConfigUpdate":          acp.ConfigUpdate(options),
		"CurrentMode":           acp.CurrentMode("ask"),
		"Notice":                acp.Notice("error", "T", "D"),
	} {
		if err := acptest.Update(1, u); err != nil {
			t.Errorf("%s: %v\n%s", name, err, u)
		}
		e := describe(t, 1, string(u), 1, 1)
		for _, p := range acp.Project(e, 2) {
			if err := acptest.Update(2, p); err != nil {
				t.Errorf("%s on v2: %v\n%s", name, err, p)
			}
		}
	}
	why := &gladhand.TurnError{Code: gladhand.CodeInternal, Message: "broke", Data: json.RawMessage(`{"reason":"unavailable"}`)}
	for name, u := range map[string]json.RawMessage{
		"Running":        acp.Running(),
		"RequiresAction": acp.RequiresAction(),
		"Idle":           acp.Idle(gladhand.StopEndTurn, nil),
		"Idle, bare":     acp.Idle("", nil),
		"Idle, cancel":   acp.Idle(gladhand.StopCancelled, nil),
		"Idle, error":    acp.Idle(gladhand.StopError, why),
		"Notice":         acp.Notice("info", "T", ""),
	} {
		if err := acptest.Update(2, u); err != nil {
			t.Errorf("%s: %v\n%s", name, err, u)
		}
	}
	if got := string(acp.Idle(gladhand.StopError, why)); !strings.Contains(got, `"error":{"code":-32603,"message":"broke","data":{"reason":"unavailable"}}`) {
		t.Errorf("the error is not told: %s", got)
	}
}

func TestUserChunksAreThePrompt(t *testing.T) {
	prompt := json.RawMessage(`[ {"type":"text","text":"a"} , {"type":"image","data":"AAAA","mimeType":"image/png","n":9007199254740993} ]`)
	got := acp.UserChunks("p1", prompt)
	want := []string{
		`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"a"},"messageId":"p1"}`,
		`{"sessionUpdate":"user_message_chunk","content":{"type":"image","data":"AAAA","mimeType":"image/png","n":9007199254740993},"messageId":"p1"}`,
	}
	if len(got) != 2 || string(got[0]) != want[0] || string(got[1]) != want[1] {
		t.Errorf("%s", got)
	}
	if got := acp.Text(acp.TextContent("a\n\"b\"")); got != "a\n\"b\"" {
		t.Errorf("%q", got)
	}
}

// Builders of whole messages, as frames of one connection.
func TestBuildersOfMessages(t *testing.T) {
	options := []acp.ConfigOption{
		{ID: "model", Name: "Model", Category: "model", Value: "a", Choices: []acp.Choice{{Value: "a", Name: "A"}}},
		{ID: "loud", Name: "Loud", Value: "false"},
	}
	state := acp.SessionState{
		Options: options, Meta: json.RawMessage(`{"x":1}`),
		Modes: &acp.Modes{Current: "ask", Available: []acp.Mode{{ID: "ask"}, {ID: "plan", Name: "Plan", Description: "d"}}},
	}
	form := askOf(t)
	form.ToolCall = nil
	form.Elicitation = json.RawMessage(`{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}},"requestId":7}`)
	list := acp.ListResult([]gladhand.SessionInfo{{ID: "s1", Cwd: "/w", Title: "T", Updated: "2026-11-20T00:00:00Z"}, {ID: "s2", Cwd: "/w"}}, "next")
	offer := acp.Offer{
		Info: acp.Implementation{Name: "gladhand", Title: "gladhand", Version: "1.0"}, Meta: json.RawMessage(`{"pid":1}`),
		AuthMethods: []acp.AuthMethod{{ID: "claude:login", Name: "Log in", Description: "d"}},
	}
	for v := 1; v <= 2; v++ {
		k := acptest.New(v)
		answer := func(method, params string, result json.RawMessage) {
			t.Helper()
			k.Check(t, acptest.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
			k.Check(t, acptest.Agent, []byte(`{"jsonrpc":"2.0","id":1,"result":`+string(result)+`}`))
		}
		ask := func(method string, params, result json.RawMessage) {
			t.Helper()
			k.Check(t, acptest.Agent, []byte(`{"jsonrpc":"2.0","id":"gh-1","method":"`+method+`","params":`+string(params)+`}`))
			k.Check(t, acptest.Client, []byte(`{"jsonrpc":"2.0","id":"gh-1","result":`+string(result)+`}`))
		}
		init := `{"protocolVersion":1}`
		if v == 2 {
			init = `{"protocolVersion":2,"info":{"name":"x","version":"1"}}`
		}
		answer("initialize", init, acp.InitializeResult(v, offer))
		answer("session/new", `{"cwd":"/w","mcpServers":[]}`, acp.NewResult(v, "s1", state))
		answer("session/resume", `{"sessionId":"s1","cwd":"/w"}`, acp.LoadResult(v, state))
		answer("session/list", `{}`, list)
		answer("session/close", `{"sessionId":"s1"}`, acp.Empty)
		answer("session/delete", `{"sessionId":"s1"}`, acp.Empty)
		setOption := `{"sessionId":"s1","configId":"model","value":"a"}`
		if v == 2 {
			setOption = `{"sessionId":"s1","configId":"model","type":"id","value":"a"}`
		}
		answer("session/set_config_option", setOption, acp.SetOptionResult(v, options))
		prompt := `{"sessionId":"s1","prompt":[{"type":"text","text":"x"}]}`
		if v == 1 {
			answer("session/load", `{"sessionId":"s1","cwd":"/w","mcpServers":[]}`, acp.LoadResult(v, state))
			answer("session/set_mode", `{"sessionId":"s1","modeId":"ask"}`, acp.Empty)
			for _, stop := range []gladhand.StopReason{gladhand.StopEndTurn, gladhand.StopMaxTokens, gladhand.StopMaxRequests, gladhand.StopRefusal, gladhand.StopCancelled} {
				answer("session/prompt", prompt, acp.PromptEnded(stop))
			}
		} else {
			answer("session/prompt", prompt, acp.PromptInserted("p1"))
		}
		ask("session/request_permission", acp.PermissionParams(v, thisAsk(form, nil)), acp.PermissionResult(""))
		ask("session/request_permission", acp.PermissionParams(v, thisAsk(form, json.RawMessage(`{"sessionUpdate":"tool_call_update","title":null}`))), acp.PermissionResult("y"))
		ask("session/request_permission", acp.PermissionParams(v, askOf(t)), acp.PermissionResult("y"))
		ask("elicitation/create", acp.ElicitationParams(form), json.RawMessage(`{"action":"accept","content":{"a":"x"}}`))
		k.Check(t, acptest.Agent, []byte(`{"jsonrpc":"2.0","method":"session/update","params":`+string(acp.UpdateParams("s1", acp.MessageChunk("m", "x"), json.RawMessage(`{"from":1,"to":1}`)))+`}`))
	}
}

func thisAsk(a gladhand.Ask, tool json.RawMessage) gladhand.Ask {
	a.ToolCall = tool
	return a
}

func askOf(t *testing.T) gladhand.Ask {
	t.Helper()
	return gladhand.Ask{
		ID: "a1", Session: "s1", Title: "Write /a?", Digest: "d",
		ToolCall: acp.AskedToolCall(acp.ToolState{ID: "t", Kind: "edit", Content: []json.RawMessage{acp.ContentDiff("/a", nil, "x")}}),
		Options:  []gladhand.Option{{ID: "y", Name: "Yes", Kind: gladhand.AllowOnce}},
	}
}

func TestPermissionParams(t *testing.T) {
	want1 := `{"sessionId":"s1","toolCall":{"toolCallId":"t","kind":"edit","content":[{"type":"diff","path":"/a","newText":"x"}],"title":"Write /a?"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}],"_meta":{"gladhand":{"askId":"a1","digest":"d"}}}`
	want2 := `{"sessionId":"s1","title":"Write /a?","subject":{"type":"tool_call","toolCall":{"toolCallId":"t","kind":"edit","content":[{"type":"diff","changes":[{"operation":"add","path":"/a"}],"patch":{"format":"git_patch","text":"diff --git /a /a\nnew file mode 100644\n--- /dev/null\n+++ /a\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n"}}],"title":"Write /a?"}},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}],"_meta":{"gladhand":{"askId":"a1","digest":"d"}}}`
	if got := string(acp.PermissionParams(1, askOf(t))); got != want1 {
		t.Errorf("%s\nwant %s", got, want1)
	}
	if got := string(acp.PermissionParams(2, askOf(t))); got != want2 {
		t.Errorf("%s\nwant %s", got, want2)
	}
}

func TestParsePermission(t *testing.T) {
	for result, want := range map[string]struct {
		option         string
		cancelled, bad bool
	}{
		`{"outcome":{"outcome":"selected","optionId":"y"}}`:         {"y", false, false},
		`{"outcome":{"optionId":"y\n","outcome":"selected","x":1}}`: {"y\n", false, false},
		`{"outcome":{"outcome":"cancelled"}}`:                       {"", true, false},
		`{"outcome":{"outcome":"selected"}}`:                        {"", false, true},
		`{"outcome":{"outcome":"selected","optionId":1}}`:           {"", false, true},
		`{"outcome":{"outcome":"_later"}}`:                          {"", false, true},
		`{"outcome":"selected"}`:                                    {"", false, true},
		`{}`:                                                        {"", false, true},
		`null`:                                                      {"", false, true},
		``:                                                          {"", false, true},
	} {
		option, cancelled, err := acp.ParsePermission(json.RawMessage(result))
		if option != want.option || cancelled != want.cancelled || (err != nil) != want.bad {
			t.Errorf("%s: %q %v %v", result, option, cancelled, err)
		}
	}
	for result, want := range map[string]string{
		`{"action":"accept","content":{"a":1}}`: `accept {"a":1}`,
		`{"action":"accept"}`:                   `accept `,
		`{"action":"decline","content":{}}`:     `decline `,
		`{"action":"cancel"}`:                   `cancel `,
		`{"action":"_x"}`:                       `error`,
		`[]`:                                    `error`,
	} {
		action, content, err := acp.ParseElicitation(json.RawMessage(result))
		got := action + " " + string(content)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s", result, got)
		}
	}
}
