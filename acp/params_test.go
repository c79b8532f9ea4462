package acp_test

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/acp/acptest"
)

func codeOf(err error) gladhand.Code {
	if err == nil {
		return 0
	}
	return gladhand.CodeOf(err)
}

func TestParseInitialize(t *testing.T) {
	for params, want := range map[string]struct {
		version int // asked for
		code    gladhand.Code
		speak   int
		refused gladhand.Code
	}{
		`{"protocolVersion":1}`:                                   {1, 0, 1, 0},
		`{"protocolVersion":2,"info":{"name":"x","version":"1"}}`: {2, 0, 2, 0},
		`{"protocolVersion":2}`:                                   {2, gladhand.CodeInvalidParams, 0, 0},
		`{"protocolVersion":3}`:                                   {3, 0, 2, 0},
		`{"protocolVersion":99999999999999999999999}`:             {math.MaxInt, 0, 2, 0},
		`{"protocolVersion":3,"info":{"name":"x","version":"1"}}`: {3, 0, 0, gladhand.CodeUnsupported},
		`{"protocolVersion":0}`:                                   {0, gladhand.CodeVersion, 0, 0},
		`{"protocolVersion":-1}`:                                  {0, gladhand.CodeVersion, 0, 0},
		`{"protocolVersion":1.0}`:                                 {0, gladhand.CodeVersion, 0, 0},
		`{"protocolVersion":"1"}`:                                 {0, gladhand.CodeVersion, 0, 0},
		`{"protocolVersion":null}`:                                {0, gladhand.CodeVersion, 0, 0},
		`{}`:                                                      {0, gladhand.CodeVersion, 0, 0},
		`[1]`:                                                     {0, gladhand.CodeInvalidParams, 0, 0},
		``:                                                        {0, gladhand.CodeInvalidParams, 0, 0},
		`{"protocolVersion":1,"protocolVersion":2}`:               {0, gladhand.CodeInvalidParams, 0, 0},
		`{"ProtocolVersion":1}`:                                   {0, gladhand.CodeVersion, 0, 0},
	} {
		in, err := acp.ParseInitialize(json.RawMessage(params))
		if codeOf(err) != want.code {
			t.Errorf("%s: %v", params, err)
		}
		if err != nil {
			if want.code == gladhand.CodeVersion {
				_, _, data := wire(err)
				if string(data) != `{"reason":"version","supported":[1,2]}` {
					t.Errorf("%s: data %s", params, data)
				}
			}
			continue
		}
		speak, err := in.Negotiate()
		if in.Version != want.version || speak != want.speak || codeOf(err) != want.refused {
			t.Errorf("%s: asked %d, speaks %d, %v", params, in.Version, speak, err)
		}
		if err != nil {
			code, message, data := wire(err)
			b, _ := json.Marshal(map[string]any{"code": code, "message": message, "data": data})
			if err := acptest.Definition(2, "Error", b); err != nil {
				t.Errorf("%v: %s", err, b)
			}
			if string(data) != `{"reason":"version","requested":3,"supported":[1,2]}` {
				t.Errorf("data %s", data)
			}
		}
	}
}

func wire(err error) (int, string, json.RawMessage) {
	var e *gladhand.Error
	if !errors.As(err, &e) {
		return 0, err.Error(), nil
	}
	return e.WireError()
}

func TestClientCaps(t *testing.T) {
	in, err := acp.ParseInitialize(json.RawMessage(`{"protocolVersion":1,"clientInfo":{"name":"zed","title":"Zed","version":"2"},"_meta":{"gladhand":{"label":"x"}},
		"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":false},"terminal":true,"elicitation":{"form":{},"url":null},
		"plan":{},"subagents":{},"session":{"notices":{},"compaction":null,"configOptions":{"boolean":{}}}}}`))
	want := acp.ClientCaps{ReadFile: true, Form: true, OptIns: acp.OptIns{Notices: true, Booleans: true, Plans: true, Subagents: true}}
	if err != nil || in.Caps != want || in.Info != (acp.Implementation{Name: "zed", Title: "Zed", Version: "2"}) {
		t.Errorf("%+v %v", in, err)
	}
	if got := string(acp.Meta(in.Meta, "gladhand")); got != `{"label":"x"}` {
		t.Errorf("meta %s", got)
	}
	in, err = acp.ParseInitialize(json.RawMessage(`{"protocolVersion":2,"info":{"name":"a","version":"b"},"capabilities":{"elicitation":{"url":{}},"fs":{"readTextFile":true}}}`))
	want = acp.ClientCaps{URL: true, OptIns: acp.OptIns{Notices: true, Compaction: true, Booleans: true, Plans: true, Subagents: true}}
	if err != nil || in.Caps != want || in.Info.Name != "a" {
		t.Errorf("%+v %v", in, err)
	}
}

func TestParams(t *testing.T) {
	dir, err := json.Marshal(filepath.Join(t.TempDir(), "w"))
	if err != nil {
		t.Fatal(err)
	}
	cwd := `"cwd":` + string(dir)
	parse := map[string]func(json.RawMessage) error{
		"session": func(b json.RawMessage) error { _, err := acp.ParseSession(b); return err },
		"new":     func(b json.RawMessage) error { _, err := acp.ParseNew(b); return err },
		"load":    func(b json.RawMessage) error { _, err := acp.ParseLoad(b); return err },
		"list":    func(b json.RawMessage) error { _, err := acp.ParseList(b); return err },
		"prompt":  func(b json.RawMessage) error { _, err := acp.ParsePrompt(b); return err },
		"mode":    func(b json.RawMessage) error { _, err := acp.ParseSetMode(b); return err },
		"option":  func(b json.RawMessage) error { _, err := acp.ParseSetOption(b); return err },
		"cancel":  func(b json.RawMessage) error { _, err := acp.ParseCancelRequest(b); return err },
		"tool":    func(b json.RawMessage) error { _, err := acp.ParseToolCall(b); return err },
	}
	for name, c := range map[string]struct{ good, bad []string }{
		"session": {[]string{`{"sessionId":"s"}`, `{"sessionId":"s","new":1,"_meta":{}}`}, []string{``, `null`, `[]`, `{}`, `{"sessionId":1}`, `{"sessionId":""}`, `{"SessionId":"s"}`, `{"sessionId":"s","sessionId":"t"}`, "{\"sessionId\":\"\xff\"}"}},
		"new":     {[]string{`{` + cwd + `,"mcpServers":[]}`, `{` + cwd + `}`, `{` + cwd + `,"mcpServers":null,"additionalDirectories":[` + string(dir) + `]}`}, []string{`{}`, `{"cwd":"rel"}`, `{"cwd":""}`, `{` + cwd + `,"mcpServers":{}}`, `{` + cwd + `,"additionalDirectories":["rel"]}`}},
		"load":    {[]string{`{"sessionId":"s",` + cwd + `}`, `{"sessionId":"s",` + cwd + `,"replayFrom":{"type":"start"}}`, `{"sessionId":"s",` + cwd + `,"replayFrom":null}`}, []string{`{` + cwd + `}`, `{"sessionId":"s"}`, `{"sessionId":"s",` + cwd + `,"replayFrom":{"type":"middle"}}`}},
		"list":    {[]string{``, `{}`, `{"cwd":"/x","cursor":"c"}`, `{"cwd":null}`}, []string{`[]`, `{"cwd":1}`}},
		"prompt":  {[]string{`{"sessionId":"s","prompt":[{"type":"text","text":"x"}]}`}, []string{`{"sessionId":"s"}`, `{"prompt":[{"type":"text","text":"x"}]}`, `{"sessionId":"s","prompt":[]}`}},
		"mode":    {[]string{`{"sessionId":"s","modeId":"m"}`}, []string{`{"sessionId":"s"}`, `{"modeId":"m"}`}},
		"option":  {[]string{`{"sessionId":"s","configId":"m","value":"x"}`, `{"sessionId":"s","configId":"m","type":"boolean","value":true}`, `{"sessionId":"s","configId":"m","type":"id","value":"x"}`}, []string{`{"sessionId":"s","configId":"m"}`, `{"sessionId":"s","value":"x"}`, `{"sessionId":"s","configId":"m","value":1}`, `{"sessionId":"s","configId":"m","value":null}`}},
		"cancel":  {[]string{`{"requestId":1}`, `{"requestId":"1"}`}, []string{`{}`}},
		"tool":    {[]string{`{"sessionId":"s","toolCallId":"t"}`}, []string{`{"sessionId":"s"}`}},
	} {
		for _, p := range c.good {
			if err := parse[name](json.RawMessage(p)); err != nil {
				t.Errorf("%s %s: %v", name, p, err)
			}
		}
		for _, p := range c.bad {
			err := parse[name](json.RawMessage(p))
			if codeOf(err) != gladhand.CodeInvalidParams {
				t.Errorf("%s %s: %v", name, p, err)
			} else if strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "json:") {
				t.Errorf("%s %s: not for people: %v", name, p, err)
			}
		}
	}
	opt, _ := acp.ParseSetOption(json.RawMessage(`{"sessionId":"s","configId":"m","type":"boolean","value":true}`))
	if opt.Value != "true" {
		t.Errorf("value %q", opt.Value)
	}
	id, _ := acp.ParseCancelRequest(json.RawMessage(`{"requestId":9007199254740993}`))
	if string(id.RequestID) != "9007199254740993" {
		t.Errorf("id %s", id.RequestID)
	}
	load, _ := acp.ParseLoad(json.RawMessage(`{"sessionId":"s",` + cwd + `,"replayFrom":{"type":"start"},"mcpServers":[{"name":"x"}]}`))
	if !load.Replays() || string(load.MCPServers) != `[{"name":"x"}]` {
		t.Errorf("%+v", load)
	}
}
