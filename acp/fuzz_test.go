package acp_test

import (
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gladhand"
	"gladhand/acp"
)

// Whatever an agent sends, filing and showing it ends, and gives JSON.
func FuzzProject(f *testing.F) {
	for _, s := range samples {
		f.Add(s.version == 2, s.update, uint8(0))
	}
	f.Add(true, `{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"abc"}]}`, uint8(3))
	f.Add(true, `{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"diff","changes":[],"patch":{"format":"git_patch","text":"@@ -1,9 +1,-9 @@\n\\\n"}}]}`, uint8(0))
	f.Add(false, `{"sessionUpdate":"plan","entries":[],"plan":{}}`, uint8(0))
	f.Add(true, `{"sessionUpdate":"terminal_update","terminalId":"x","toolCallId":"y","title":"z","status":"s","kind":"k","content":1,"output":{"data":"!"}}`, uint8(0))
	f.Add(true, `{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"diff","path":"p","changes":[{"path":"/x"}],"patch":{"format":"git_patch","text":"@@ -1 +1 @@\n-a\n+b\n"}},{"type":"diff"}]}`, uint8(0))
	f.Add(true, `{"sessionUpdate":"config_option_update","configOptions":[{"type":"select","configId":"a","id":"b","options":[{"groupId":"g","group":"h"}]}]}`, uint8(0))
	f.Add(false, `{"sessionUpdate":"tool_call","content":{"type":"diff"},"toolCallId":null}`, uint8(1))
	f.Fuzz(func(t *testing.T, two bool, update string, n uint8) {
		version := 1
		if two {
			version = 2
		}
		e, err := acp.Describe(version, json.RawMessage(update))
		if err != nil {
			return
		}
		var shown acp.Shown
		run := acp.NewRun(e)
		e.First, e.Last, e.Opens = 1, 1, 1
		shown.Note(e)
		again, _ := acp.Describe(version, json.RawMessage(update))
		again.First, again.Last, again.Opens = 2, 2, 1
		shown.Note(again)
		run.Add(again)
		odd := *again // as a store that was tampered with might give it
		odd.Text, odd.Base = gladhand.Span{Start: int(n), End: int(n) * 2}, int(n)-5
		for _, ev := range []*gladhand.Event{e, again, run.Event(), &odd} {
			for to := 1; to <= 2; to++ {
				updates := acp.Project(ev, to)
				updates = append(updates, acp.Fit(ev, updates, acp.OptIns{})...)
				updates = append(updates, acp.ProjectOwn(ev, to, false)...)
				if u := acp.OpenToolCall(ev, to); u != nil {
					updates = append(updates, u)
				}
				for _, u := range updates {
					if ev != &odd && !jsontext.Value(u).IsValid(jsontext.AllowInvalidUTF8(true)) {
						t.Fatalf("v%d to v%d: %s\nis not JSON: %s", version, to, update, u)
					}
				}
			}
		}
	})
}

// The views never panic either.
func FuzzViews(f *testing.F) {
	f.Add(`{"protocolVersion":1,"clientCapabilities":{"fs":[]}}`)
	f.Add(`{"sessionId":"s","prompt":[{"type":"resource","resource":{"uri":"u","blob":"AA=="}}]}`)
	f.Add(`{"outcome":{"outcome":"selected","optionId":"x"}}`)
	f.Fuzz(func(t *testing.T, s string) {
		b := json.RawMessage(s)
		if in, err := acp.ParseInitialize(b); err == nil {
			_, _ = in.Negotiate()
		}
		_, _ = acp.ParsePrompt(b)
		_, _ = acp.ParseLoad(b)
		_, _ = acp.ParseSetOption(b)
		_, _, _ = acp.ParsePermission(b)
		_, _, _ = acp.ParseElicitation(b)
		_ = acp.ValidatePrompt(b)
		_ = acp.Text(b)
		ask := gladhand.Ask{ToolCall: b, Elicitation: b}
		for v := 1; v <= 2; v++ {
			if p := acp.PermissionParams(v, ask); json.Valid(b) && !json.Valid(p) {
				t.Fatalf("%s", p)
			}
		}
		if p := acp.ElicitationParams(ask); json.Valid(b) && !json.Valid(p) {
			t.Fatalf("%s", p)
		}
	})
}
