package acptest_test

import (
	"encoding/json"
	"testing"

	"gladhand/acp"
	"gladhand/acp/acptest"
)

func TestCheckerFollowsAConnection(t *testing.T) {
	for _, c := range []struct {
		name, init, answer string
		prompt, end        string
	}{
		{
			"v1",
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
			string(acp.InitializeResult(1, acp.Offer{Info: acp.Implementation{Name: "gladhand", Version: "1"}})),
			`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`,
		},
		{
			"v2",
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"x","version":"1"}}}`,
			string(acp.InitializeResult(2, acp.Offer{Info: acp.Implementation{Name: "gladhand", Version: "1"}})),
			`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"messageId":"m"}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := acptest.New(0)
			k.Check(t, acptest.Client, []byte(c.init))
			k.Check(t, acptest.Agent, []byte(`{"jsonrpc":"2.0","id":1,"result":`+c.answer+`}`))
			k.Check(t, acptest.Client, []byte(c.prompt))
			k.Check(t, acptest.Agent, []byte(c.end))
			k.Check(t, acptest.Client, []byte(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`))
			k.Check(t, acptest.Agent, []byte(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"gh-1"}}`))
			k.Check(t, acptest.Client, []byte(`{"jsonrpc":"2.0","id":2,"method":"_gladhand/attach","params":{"after":"anything"}}`))
			k.Check(t, acptest.Agent, []byte(`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}`))
			if k.Frames() != 8 {
				t.Errorf("%d frames were checked, want 8", k.Frames())
			}
		})
	}
}

// The checker must be able to fail.
func TestCheckerRefuses(t *testing.T) {
	prompt := `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}`
	for name, f := range map[string]struct {
		version int
		before  string
		from    acptest.Direction
		frame   string
	}{
		"not JSON":                      {1, "", acptest.Agent, `{`},
		"no jsonrpc":                    {1, "", acptest.Agent, `{"method":"session/update","params":{}}`},
		"nothing":                       {1, "", acptest.Agent, `{"jsonrpc":"2.0"}`},
		"unknown method":                {1, "", acptest.Agent, `{"jsonrpc":"2.0","method":"session/updat","params":{}}`},
		"wrong side":                    {1, "", acptest.Client, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[]}}}`},
		"no update":                     {1, "", acptest.Agent, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`},
		"v2's update on v1":             {1, "", acptest.Agent, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle"}}}`},
		"chunk without id on v2":        {2, "", acptest.Agent, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` + string(acp.MessageChunk("", "x")) + `}}`},
		"plan_update without plan":      {1, "", acptest.Agent, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan_update"}}}`},
		"v1's method on v2":             {2, "", acptest.Client, `{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}`},
		"v1's result on v2":             {2, prompt, acptest.Agent, `{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"}}`},
		"v2's stop reason on v1":        {1, prompt, acptest.Agent, `{"jsonrpc":"2.0","id":7,"result":{"stopReason":"error"}}`},
		"error without message":         {1, "", acptest.Agent, `{"jsonrpc":"2.0","id":7,"error":{"code":1}}`},
		"neither result nor error":      {1, "", acptest.Agent, `{"jsonrpc":"2.0","id":7}`},
		"both result and error":         {1, "", acptest.Agent, `{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}`},
		"permission without an option":  {2, "", acptest.Agent, `{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","title":"t","options":[]}}`},
		"answer without an outcome":     {1, `{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}}`, acptest.Client, `{"jsonrpc":"2.0","id":7,"result":{}}`},
		"a version that does not exist": {9, "", acptest.Client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":9}}`},
	} {
		t.Run(name, func(t *testing.T) {
			k := acptest.New(f.version)
			if f.before != "" {
				if err := k.Frame(other(f.from), []byte(f.before)); err != nil {
					t.Fatal(err)
				}
			}
			if k.Frame(f.from, []byte(f.frame)) == nil {
				t.Error("this frame passed:", f.frame)
			}
		})
	}
}

func other(d acptest.Direction) acptest.Direction {
	if d == acptest.Agent {
		return acptest.Client
	}
	return acptest.Agent
}

func TestUnknownTagsOfOursPass(t *testing.T) {
	for _, tag := range []string{"_gladhand_ask", "_current_mode_update"} {
		b, _ := json.Marshal(map[string]string{"sessionUpdate": tag})
		for v := 1; v <= 2; v++ {
			if err := acptest.Update(v, b); err != nil {
				t.Error(err)
			}
		}
	}
}
