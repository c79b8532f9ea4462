package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gladhand"
)

const canary = "sk-canary-0123456789"

func TestProvidersAndServers(t *testing.T) {
	f := open(t, `{
  "providers": {
    // on this machine
    "local": {
      "kind": "openai-chat", "url": "http://127.0.0.1:8080/v1", "key": "env:LOCAL_KEY",
      "headers": {"X-Team": "`+canary+`"},
      "models": ["tiny", {"id": "qwen3:30b", "window": 32768, "output": 4096, "images": true, "efforts": ["low", "high"],
        "price": {"input": 0.5, "output": 2, "cache_read": 0.05, "cache_write": 1}},],
    },
    "anthropic": {"key": "`+canary+`"},
    "openai": {"disabled": true},
  },
  "mcp": {
    "files": {"command": "npx", "args": ["-y", "server"], "env": {"TOKEN": "`+canary+`"}, "timeout": "90s"},
    "web": {"url": "https://example.com/mcp?key=`+canary+`", "headers": {"Authorization": "keyring:web"}, "disabled": true},
  },
}`)
	s := f.Settings()
	local := s.Providers["local"]
	if local.Kind != "openai-chat" || local.URL.Reveal() != "http://127.0.0.1:8080/v1" || local.Key.Reveal() != "env:LOCAL_KEY" || local.Headers["X-Team"].Reveal() != canary {
		t.Errorf("%+v", local)
	}
	want := ProviderModel{"qwen3:30b", "", 32768, 4096, true, []string{"low", "high"}, Price{0.5, 2, 0.05, 1}}
	if len(local.Models) != 2 || local.Models[0].ID != "tiny" || fmt.Sprint(local.Models[1]) != fmt.Sprint(want) {
		t.Errorf("%+v", local.Models)
	}
	if s.Providers["anthropic"].Key.Reveal() != canary || !s.Providers["openai"].Disabled {
		t.Errorf("%+v", s.Providers)
	}
	files, web := s.MCP["files"], s.MCP["web"]
	if files.Command != "npx" || len(files.Args) != 2 || files.Env["TOKEN"].Reveal() != canary || files.Timeout != 90*time.Second {
		t.Errorf("%+v", files)
	}
	if !strings.HasSuffix(web.URL.Reveal(), canary) || !web.Disabled || web.Headers["Authorization"].Reveal() != "keyring:web" {
		t.Errorf("%+v", web)
	}
	for prop, want := range map[string]string{
		"providers.local.url":     `"http://127.0.0.1:8080/v1"`,
		"providers.local.key":     `"env:LOCAL_KEY"`,
		"providers.anthropic.key": `"•••"`,
		"providers.openai":        `{"disabled":true}`,
		"mcp.files":               `{"command":"npx","args":["-y","server"],"env":{"TOKEN":"•••"},"timeout":"1m30s"}`,
		"mcp.web.url":             `"https://example.com/mcp?•••"`,
		"mcp.web.headers":         `{"Authorization":"keyring:web"}`,
		"providers.local.headers": `{"X-Team":"•••"}`,
		"providers.local.models":  `[{"id":"tiny"},{"id":"qwen3:30b","window":32768,"output":4096,"images":true,"efforts":["low","high"],"price":{"input":0.5,"output":2,"cache_read":0.05,"cache_write":1}}]`,
		"providers.openai.key":    "null",
		"mcp.web.timeout":         "null",
		"mcp.web.command":         "null",
		"network.proxy":           `""`,
	} {
		if got, err := f.Get(prop); err != nil || string(got) != want {
			t.Errorf("%s: %s %v", prop, got, err)
		}
	}
	for _, prop := range []string{"providers.nosuch", "providers.local.nosuch", "providers.local.url.x", "providers.local.models.0", "mode.x", "queue.max.x"} {
		_, err := f.Get(prop)
		wantReason(t, err, gladhand.ReasonInvalid)
	}
}

// No way to look at the settings, and no error about them, shows a secret.
func TestSecretsAreNeverShown(t *testing.T) {
	f := open(t, `{"providers": {"x": {"key": "`+canary+`", "headers": {"A": "`+canary+`"}}},
 "mcp": {"y": {"command": "c", "env": {"E": "`+canary+`"}}, "z": {"url": "http://h/?`+canary+`"}},
 "network": {"proxy": "http://u:`+canary+`@proxy:1"}}`)
	var seen strings.Builder
	items, err := f.List()
	must(t, err)
	raw, err := json.Marshal(items)
	must(t, err)
	seen.Write(raw)
	s := f.Settings()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%q", "%x"} {
		fmt.Fprintf(&seen, verb, s)
	}
	raw, err = json.Marshal(s)
	must(t, err)
	seen.Write(raw)
	for _, it := range items {
		got, err := f.Get(it.Prop)
		must(t, err)
		seen.Write(got)
	}
	if s.Network.Proxy.Reveal() != "http://u:"+canary+"@proxy:1" || s.Network.Proxy.String() != "http://•••@proxy:1" {
		t.Error(s.Network.Proxy.Reveal(), s.Network.Proxy)
	}

	// Every way of breaking a file around a secret.
	good := `{"providers": {"x": {"url": "http://h/v1", "key": "` + canary + `", "headers": {"A": "` + canary + `"}, "models": [{"id": "` + canary + `"}]}}, "mcp": {"y": {"command": "c", "env": {"E": "` + canary + `"}}}, "network": {"proxy": "http://u:` + canary + `@h"}, "model": "` + canary + `"}`
	bad := []string{
		`{"` + canary + `": 1}`, `{"providers": {"` + canary + `X": {}}}`, `{"providers": {"x": {"` + canary + `": 1}}}`,
		`{"providers": {"x": "` + canary + `"}}`, `{"providers": "` + canary + `"}`, `{"mode": "` + canary + `"}`,
		`{"providers": {"x": {"key": "` + canary + `\x"}}}`, `{"providers": {"x": {"key": ` + canary + `}}}`, `{"providers": {"x": {"key": "env:` + canary + ` "}}}`,
		`{"providers": {"x": {"url": "http://u:` + canary + `@h"}}}`, `{"providers": {"x": {"url": "http://h/?` + canary + `"}}}`, `{"providers": {"x": {"url": "` + canary + `"}}}`,
		`{"network": {"proxy": "` + canary + `"}}`, `{"network": {"proxy": "http://h/` + canary + `"}}`,
		`{"mcp": {"y": {"command": "c", "env": {"` + canary + `": 1}}}}`, `{"mcp": {"y": {"command": "c", "env": "` + canary + `"}}}`,
		`{"mcp": {"y": {"url": "http://h", "headers": {"` + canary + ` ": "a"}}}}`, `{"mcp": {"y": {"url": "http://h", "headers": {"` + canary + `": 1}}}}`,
		`{"providers": {"x": {"models": ["` + canary + ` "]}}}`, `{"providers": {"x": {"models": ["` + canary + `","` + canary + `"]}}}`,
	}
	for i := range len(good) {
		bad = append(bad, good[:i], good[:i]+good[i+1:], good[:i]+"\x01"+good[i:], good[:i]+`"`+good[i:], good[:i]+"\\"+good[i:])
	}
	refused := 0
	for _, text := range bad {
		err := Validate([]byte(text))
		if err == nil {
			continue
		}
		refused++
		var e *gladhand.Error
		errors.As(err, &e)
		all := fmt.Sprintf("%v %+v %v %v", err, e.Data, e.Err, e)
		// Whatever the break left of it, no eight characters in a row.
		for j := range len(canary) - 8 {
			if strings.Contains(all, canary[j:j+8]) {
				t.Fatalf("%q: %s", text, all)
			}
		}
	}
	if refused < len(good) {
		t.Errorf("only %d of %d were refused", refused, len(bad))
	}
	for prop, value := range map[string]string{
		"providers.x.key": `"` + canary + "\\u0001\"", "providers.x.url": `"` + canary + `"`, "mode": `"` + canary + `"`, "providers": `{"x": {"key": "` + canary + `" "`,
		"providers.x.headers": `"` + canary + `"`, "mcp.y": `{"env": {"A": "` + canary + `"}}`, "network.proxy": `"` + canary + `"`, "providers.x": canary,
	} {
		err := set(f, prop, value)
		wantReason(t, err, gladhand.ReasonInvalid)
		fmt.Fprintf(&seen, "%v %+v", err, err)
	}
	if strings.Contains(seen.String(), canary) {
		t.Error(seen.String())
	}
}

func TestObjectsRefuseWithPlaceAndMend(t *testing.T) {
	long := strings.Repeat("a", 32)
	for _, c := range []struct {
		text         string
		line, column int
		says         string
	}{
		{"{\"providers\": []}", 1, 15, "providers must be an object"},
		{"{\"providers\": {\"Local\": {}}}", 1, 16, "lower-case"},
		{"{\"providers\": {\"-x\": {}}}", 1, 16, "lower-case"},
		{"{\"providers\": {\"" + long + "a\": {}}}", 1, 16, "at most 32"},
		{"{\"providers\": {\"a.b\": {}}}", 1, 16, "lower-case"},
		{"{\"providers\": {\n  \"x\": {\"kind\": \"opnai\"}}}", 2, 17, `providers.x.kind must be one of "anthropic"`},
		{"{\"providers\": {\n  \"x\": {\"ulr\": \"http://h\"}}}", 2, 9, `providers.x has no "ulr": did you mean "url"?`},
		{"{\"providers\": {\"x\": {\"url\": \"h\"}}}", 1, 29, "providers.x.url must be an address"},
		{"{\"providers\": {\"x\": {\"url\": \"file:///x\"}}}", 1, 29, "providers.x.url must be an address"},
		{"{\"providers\": {\"x\": {}, \"x\": {}}}", 1, 25, "providers.x is there twice"},
		{"{\"providers\": {\"x\": {\"key\": \"a\", \"key\": \"b\"}}}", 1, 34, "providers.x.key is there twice"},
		{"{\"providers\": {\"x\": {\"key\": \"•••\"}}}", 1, 29, "is the mask"},
		{"{\"providers\": {\"x\": {\"key\": \"env:A B\"}}}", 1, 29, "name of a variable"},
		{"{\"providers\": {\"x\": {\"key\": null}}}", 1, 29, "must be a key"},
		{"{\"providers\": {\"x\": {\"headers\": {\"A B\": \"x\"}}}}", 1, 34, "names of headers"},
		{"{\"providers\": {\"x\": {\"headers\": {\"A\": \"x\\ny\"}}}}", 1, 39, "control"},
		{"{\"providers\": {\"x\": {\"models\": {}}}}", 1, 32, "a list"},
		{"{\"providers\": {\"x\": {\"models\": [\"a\", {\"window\": 1}]}}}", 1, 38, "providers.x.models[1] must be a model"},
		{"{\"providers\": {\"x\": {\"models\": [\"a\", \"a\"]}}}", 1, 38, "there already"},
		{"{\"providers\": {\"x\": {\"models\": [{\"id\": \"a\", \"window\": -1}]}}}", 1, 55, "from 0 to"},
		{"{\"providers\": {\"x\": {\"models\": [{\"id\": \"a\", \"price\": {\"input\": \"1\"}}]}}}", 1, 64, "US dollars"},
		{"{\"providers\": {\"x\": {\"disabled\": \"yes\"}}}", 1, 34, "true or false"},
		{"{\"mcp\": {\"y\": {}}}", 1, 15, "exactly one of command and url"},
		{"{\"mcp\": {\"y\": {\"command\": \"c\", \"url\": \"http://h\"}}}", 1, 15, "exactly one of command and url"},
		{"{\"mcp\": {\"y\": {\"url\": \"http://h\", \"args\": []}}}", 0, 0, ""}, // an empty list says nothing
		{"{\"mcp\": {\"y\": {\"url\": \"http://h\", \"args\": [\"a\"]}}}", 1, 15, "belong to a command"},
		{"{\"mcp\": {\"y\": {\"command\": \"c\", \"headers\": {\"A\": \"b\"}}}}", 1, 15, "belong to a url"},
		{"{\"mcp\": {\"y\": {\"command\": \"c\", \"env\": {\"A-B\": \"b\"}}}}", 1, 40, "names of variables"},
		{"{\"mcp\": {\"y\": {\"command\": \"c\", \"timeout\": \"0s\"}}}", 1, 43, "from 1s to 1h"},
	} {
		err := Validate([]byte(c.text))
		if c.says == "" {
			if err != nil {
				t.Errorf("%q: %v", c.text, err)
			}
			continue
		}
		var e *gladhand.Error
		if !errors.As(err, &e) || e.Data["line"] != c.line || e.Data["column"] != c.column || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v %+v, want %d %d …%s…", c.text, err, e, c.line, c.column, c.says)
		}
	}
	must(t, Validate([]byte("{\"providers\": {\""+long+"\": {}}}")))
	many := func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%q: {}, ", fmt.Sprint("p", i))
		}
		return []byte("{\"providers\": {" + b.String() + "}}")
	}
	must(t, Validate(many(maxProviders)))
	wantReason(t, Validate(many(maxProviders+1)), gladhand.ReasonInvalid)
}

// A part of an object setting is set by its path; the rest keeps its bytes.
func TestSetByPath(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "c.jsonc"))
	must(t, err)
	for _, c := range []struct{ prop, value, after string }{
		{"providers.local.url", `"http://127.0.0.1:1/v1"`, "{\n  \"providers\": {\n    \"local\": {\n      \"url\": \"http://127.0.0.1:1/v1\"\n    }\n  }\n}\n"},
		{"providers.local.key", `"k"`, "{\n  \"providers\": {\n    \"local\": {\n      \"url\": \"http://127.0.0.1:1/v1\",\n      \"key\": \"k\"\n    }\n  }\n}\n"},
		{"providers.local.key", `"env:K"`, "{\n  \"providers\": {\n    \"local\": {\n      \"url\": \"http://127.0.0.1:1/v1\",\n      \"key\": \"env:K\"\n    }\n  }\n}\n"},
		{"providers", `{}`, "{\n  \"providers\": {}\n}\n"},
		{"mcp.x.command", `"c"`, "{\n  \"providers\": {},\n  \"mcp\": {\n    \"x\": {\n      \"command\": \"c\"\n    }\n  }\n}\n"},
	} {
		must(t, set(f, c.prop, c.value))
		if got := onDisk(t, f); got != c.after {
			t.Errorf("%s: got  %q\nwant %q", c.prop, got, c.after)
		}
		again, err := Open(f.Path())
		must(t, err)
		if !same(again.Settings(), f.Settings()) {
			t.Errorf("in force %+v, in the file %+v", f.Settings(), again.Settings())
		}
	}
	before := onDisk(t, f)
	for prop, says := range map[string]string{
		"providers.local.ulr": `did you mean "url"?`, "providers.Local.url": "lower-case", "providers.": "lower-case", "mcp.y.args": "exactly one",
		"mode.x": "no setting", "providersx.y": "no setting", "mcp.x.command.y": "no object", "providers.a.url.b": "http",
	} {
		err := set(f, prop, `["http://h"]`)
		wantReason(t, err, gladhand.ReasonInvalid)
		if !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v, want …%s…", prop, err, says)
		}
	}
	for _, value := range []string{``, `{`, `{}, "model": "x"`, `{} // c`, `"a" "b"`, strings.Repeat("[", 1000)} {
		wantReason(t, set(f, "providers", value), gladhand.ReasonInvalid)
		wantReason(t, set(f, "providers.x", value), gladhand.ReasonInvalid)
	}
	if onDisk(t, f) != before {
		t.Error("a refused change was written")
	}
	// Comments within the value stay.
	must(t, set(f, "providers", "{\n    // mine\n    \"x\": {\"url\": \"http://h\"}, // his\n  }"))
	if text := onDisk(t, f); !strings.Contains(text, "// mine") || !strings.Contains(text, "// his") {
		t.Error(text)
	}
	must(t, os.Remove(f.Path()))
}
