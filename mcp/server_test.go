package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"gladhand"
)

func TestParseServers(t *testing.T) {
	// v1 has no type for stdio, v2 has; headers and args may be missing in v2.
	got, err := ParseServers(json.RawMessage(`[
		{"name":"a","command":"/bin/a","args":["x","y z"],"env":[{"name":"KEY","value":"` + canary + `"},{"name":"REF","value":"env:HOME"}]},
		{"type":"stdio","name":"b","command":"/bin/b","_meta":{"x":1}},
		{"type":"http","name":"c","url":"https://u:` + canary + `@example.com/mcp?k=` + canary + `","headers":[{"name":"Authorization","value":"Bearer ` + canary + `"}]},
		{"type":"sse","name":"d","url":"http://localhost:1/sse"}]`))
	if err != nil || len(got) != 4 {
		t.Fatal(got, err)
	}
	a, b, c, d := got[0], got[1], got[2], got[3]
	if a.Name != "a" || a.Command != "/bin/a" || fmt.Sprint(a.Args) != "[x y z]" || a.Env["KEY"].Reveal() != canary || a.References {
		t.Errorf("a is %+v", a)
	}
	if b.Command != "/bin/b" || b.Env != nil || b.SSE {
		t.Errorf("b is %+v", b)
	}
	if c.URL.String() != "https://example.com/mcp" || c.Headers["Authorization"].Reveal() != "Bearer "+canary || c.SSE {
		t.Errorf("c is %+v", c)
	}
	if d.URL.Reveal() != "http://localhost:1/sse" || !d.SSE {
		t.Errorf("d is %+v", d)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if strings.Contains(fmt.Sprintf(verb, got), canary) {
			t.Errorf("%s shows a secret", verb)
		}
	}
	for _, none := range []string{``, `null`, `[]`} {
		if got, err := ParseServers(json.RawMessage(none)); len(got) != 0 || err != nil {
			t.Errorf("%q gave %v, %v", none, got, err)
		}
	}
	// What cannot be used is named; the rest can.
	got, err = ParseServers(json.RawMessage(`[{"name":"good","command":"c"},{"type":"acp","name":"tele\u001bpath","serverId":"1"},{"name":"good","command":"d"},3]`))
	if len(got) != 1 || got[0].Command != "c" {
		t.Errorf("there are %v", got)
	}
	for _, want := range []string{`"tele path" is of the type "acp"`, `"good" is there twice`, "MCP server 4 is not"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, without %q", err, want)
		}
	}
	for _, bad := range []string{
		`{}`, `[{"name":"x"}]`, `[{"name":"","command":"c"}]`, `[{"name":" ","command":"c"}]`, `[{"name":"x","command":"c\u0000"}]`,
		`[{"name":"x","command":"c","command":"d"}]`, `[{"name":"x","command":"c","env":[{"name":"A=","value":"` + canary + `"}]}]`,
		`[{"name":"x","command":"c","env":{"A":"` + canary + `"}}]`, `[{"type":"http","name":"x","url":"ftp://` + canary + `"}]`,
		`[{"type":"http","name":"x","url":"http://h","headers":[{"name":"A B","value":"c"}]}]`,
		`[{"type":"http","name":"x","url":"http://h","headers":[{"name":"A","value":"` + canary + `\r\nB: c"}]}]`,
		`[{"type":"http","name":"x","url":"http:///path"}]`, `[{"type":"http","name":"x","command":"c"}]`,
		`[{"name":"` + strings.Repeat("x", maxNameLen+1) + `","command":"c"}]`,
		`[` + strings.Repeat(`{"name":"x","command":"c"},`, maxServers) + `{"name":"x","command":"c"}]`,
	} {
		if got, err := ParseServers(json.RawMessage(bad)); len(got) != 0 && len(bad) < 1000 || err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%.100s gave %v, %v", bad, got, err)
		}
	}
}

// Names are of the shape that providers take, and no two are the same.
func TestNames(t *testing.T) {
	shape := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	servers := []string{
		"fs", "fs", "fs", "a", "a_", "a__b", "a b", "a.b", "", "__", "é", strings.Repeat("x", 23), strings.Repeat("x", 24), strings.Repeat("x", 25),
		strings.Repeat("x", 128), "1-2_3",
	}
	tools := []string{
		"read", "b__c", "_c", "a.b", "a_b", "a b", "é", "漢字", strings.Repeat("t", 30), strings.Repeat("t", 64), strings.Repeat("t", 65), strings.Repeat("t", 256),
		strings.Repeat("t", 255) + ".",
	}
	taken, seen := map[string]bool{}, map[string]string{}
	for i, s := range servers {
		p := prefix(s, fmt.Sprint(i/2), taken)
		for _, x := range tools {
			n := fullName(p, x)
			what := fmt.Sprintf("%d %q of %d %.20q", len(x), x, i, s)
			if !shape.MatchString(n) {
				t.Errorf("%s is %q", what, n)
			}
			if other, ok := seen[n]; ok {
				t.Errorf("%q is %s and %s", n, what, other)
			}
			seen[n] = what
		}
	}
	if n := fullName(prefix("fs", "1", map[string]bool{}), "read_file"); n != "mcp__fs__read_file" {
		t.Errorf("a plain name is %q", n)
	}
	if a, b := prefix("a b", "1", map[string]bool{}), prefix("a b", "2", map[string]bool{}); a != b {
		t.Errorf("a name depends on more than it must: %q, %q", a, b)
	}
}

// What a server lists is bounded and cleaned, and what that changes is said.
func TestListing(t *testing.T) {
	t.Parallel()
	s, said := start(t, quick, Options{}, stdioServer(t, "odd", nil))
	var names []string
	for _, x := range s.Tools(t.Context()) {
		spec := x.Spec()
		names = append(names, strings.TrimPrefix(spec.Name, "mcp__odd__"))
		if len(spec.Description) > maxDescription || len(spec.Schema) > maxSchema {
			t.Errorf("%s has %d and %d bytes", spec.Name, len(spec.Description), len(spec.Schema))
		}
		switch n := strings.TrimPrefix(spec.Name, "mcp__odd__"); n {
		case "none", "text", "array", "large":
			if string(spec.Schema) != `{"type":"object"}` {
				t.Errorf("%s has the schema %.100s", n, spec.Schema)
			}
			until(t, "people were told", func() bool { return strings.Contains(said.text(), fmt.Sprintf("the tool %q has a schema", n)) })
		case "fits":
			if len(spec.Schema) != maxSchema {
				t.Errorf("%s has a schema of %d bytes", n, len(spec.Schema))
			}
		case "a_b":
			if spec.Description != "bell and turned" {
				t.Errorf("the description is %q", spec.Description)
			}
		}
	}
	want := "none text array large fits twice a_b_" + short("a.b") + " a_b " + strings.Repeat("long", 40)[:64-len("mcp__odd__")-7] + "_" + short(strings.Repeat("long", 40))
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the tools are %s\nnot %s", got, want)
	}
	for _, w := range []string{"a name has 1 to 256 bytes", `twice; the first`} {
		until(t, "people were told "+w, func() bool { return strings.Contains(said.text(), w) })
	}
}

// At the limits and one beyond.
func TestHowMany(t *testing.T) {
	t.Parallel()
	count := func(name string, n int) Server {
		s := stdioServer(t, "many", map[string]string{"COUNT": fmt.Sprint(n)})
		s.Name = name
		return s
	}
	s, said := start(t, quick, Options{}, count("a", maxPerServer), count("b", maxPerServer), count("c", maxPerServer), count("d", maxPerServer))
	if n := len(s.Tools(t.Context())); n != maxTools || said.text() != "" {
		t.Errorf("%d tools; %s", n, said.text())
	}
	s, said = start(t, quick, Options{}, count("a", maxPerServer+1), count("b", maxPerServer), count("c", maxPerServer), count("d", maxPerServer), count("e", 1))
	for range 2 {
		if n := len(s.Tools(t.Context())); n != maxTools {
			t.Errorf("%d tools", n)
		}
	}
	if s.Status()[0].Tools != maxPerServer {
		t.Errorf("%+v", s.Status()[0])
	}
	for _, w := range []string{"more than 128 tools", "have 513 tools, of which 512"} {
		until(t, "people were told "+w, func() bool { return strings.Contains(said.text(), w) })
	}
}

// References are followed where they are meant as such, and only there.
func TestReferences(t *testing.T) {
	t.Setenv("MCP_TEST_REFERENCE", canary)
	cfg := stdioServer(t, "serve", nil)
	cfg.Env["LITERAL"] = gladhand.NewSecret("env:MCP_TEST_REFERENCE")
	s, _ := start(t, quick, Options{}, cfg)
	if env := must(t, s, "env", `{}`).Text; !strings.Contains(env, "LITERAL=env:MCP_TEST_REFERENCE") {
		t.Error("a literal was followed")
	}
	cfg.References = true
	delete(cfg.Env, "LITERAL")
	cfg.Env["REF"] = gladhand.NewSecret("env:MCP_TEST_REFERENCE")
	s, _ = start(t, quick, Options{}, cfg)
	if env := must(t, s, "env", `{}`).Text; !strings.Contains(env, "REF="+canary) {
		t.Error("a reference was not followed")
	}
	cfg.Env["REF"] = gladhand.NewSecret("keyring:x")
	s, _ = start(t, quick, Options{Reveal: func(context.Context, gladhand.Secret) (string, error) { return "", errors.New("the keyring is locked") }}, cfg)
	until(t, "it failed", func() bool {
		return strings.Contains(s.Status()[0].Why, "its variable REF cannot be had: the keyring is locked")
	})
}

// A session has a limit of servers; what is over it is failed and not started.
func TestTooManyServers(t *testing.T) {
	t.Parallel()
	var all []Server
	for i := range maxServers + 1 {
		all = append(all, Server{Name: fmt.Sprint(i), Command: "no-such-program-4711"})
	}
	s, _ := start(t, quick, Options{}, all...)
	until(t, "all have failed", func() bool {
		for _, st := range s.Status() {
			if st.State != Failed {
				return false
			}
		}
		return true
	})
	st := s.Status()
	if !strings.Contains(st[maxServers-1].Why, "no program") || !strings.Contains(st[maxServers].Why, "at most 64 servers") {
		t.Errorf("%+v, %+v", st[maxServers-1], st[maxServers])
	}
}

func TestMask(t *testing.T) {
	var m mask
	m.add("Bearer " + canary)
	m.add("1")
	m.add("first line\nsecond-line")
	m.addURL("https://user-name:pass-word@host/p?token=quer%79-value&x=1")
	for in, want := range map[string]string{
		"a Bearer " + canary + " b": "a ••• b", "x=" + canary: "x=•••", "1 true": "1 true", "second-line": "•••",
		"pass-word query-value": "••• •••", "Post https://host/p?token=quer%79-value&x=1: no": "Post https://host/p?•••: no",
		"bell\a and\n two lines": "bell and two lines",
	} {
		if got := m.line(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
	if n := len([]rune(m.line(strings.Repeat("é", 1000)))); n != maxWhy {
		t.Errorf("a line has %d characters", n)
	}
}
