package policy_test

import (
	"path/filepath"
	"runtime"
	"testing"

	"gladhand"
	"gladhand/policy"
)

// ws is an absolute path on every system.
var ws = func() string {
	if runtime.GOOS == "windows" {
		return `C:\w`
	}
	return "/w"
}()

func in(p ...string) []string {
	return []string{filepath.Join(append([]string{ws}, p...)...)}
}

func TestDecide(t *testing.T) {
	read := func(paths []string) gladhand.Action {
		return gladhand.Action{Effect: gladhand.EffectRead, Paths: paths}
	}
	edit := func(paths []string) gladhand.Action {
		return gladhand.Action{Effect: gladhand.EffectEdit, Paths: paths}
	}
	run := gladhand.Action{Effect: gladhand.EffectRun, Command: "go test", Dir: ws, Confinement: "not confined"}
	served := gladhand.Action{Effect: gladhand.EffectRun, Tool: "mcp__s__t", Server: "s 0123"}
	named := served
	named.Command = "go test"
	outside := in("..", "other", "f")
	sibling := []string{ws + "side/f"} // begins with the workspace's name
	both := append(in("f"), outside...)
	const allow, ask, deny = policy.Allow, policy.Ask, policy.Deny
	for _, c := range []struct {
		name   string
		s      policy.Settings
		a      gladhand.Action
		want   policy.Outcome
		always bool
	}{
		{"ask: read inside", policy.Settings{}, read(in("a", "b")), allow, false},
		{"ask: read the workspace", policy.Settings{}, read(in()), allow, false},
		{"ask: read outside", policy.Settings{}, read(outside), ask, true},
		{"ask: read a sibling", policy.Settings{}, read(sibling), ask, true},
		{"ask: read both", policy.Settings{}, read(both), ask, true},
		{"ask: read nothing known", policy.Settings{}, read(nil), ask, false},
		{"ask: read a relative path", policy.Settings{}, read([]string{"f"}), ask, true},
		{"ask: edit inside", policy.Settings{}, edit(in("f")), ask, true},
		{"ask: run", policy.Settings{}, run, ask, true},
		{"ask: a server's tool", policy.Settings{}, served, ask, true},
		{"ask: a server's tool that names a command", policy.Settings{}, named, ask, false},
		{"edits: a server's tool", policy.Settings{Mode: "edits"}, served, ask, true},
		{"plan: a server's tool", policy.Settings{Mode: "plan"}, served, deny, false},
		{"yes: a server's tool", policy.Settings{Yes: true}, served, allow, false},
		{"sysadmin: a server's tool", policy.Settings{Profile: "sysadmin", Yes: true}, served, ask, false},
		{"ask: unknown effect", policy.Settings{}, gladhand.Action{Effect: "fly"}, ask, false},
		{"ask: nothing", policy.Settings{}, gladhand.Action{Effect: gladhand.EffectNone}, allow, false},
		{"edits: edit inside", policy.Settings{Mode: "edits"}, edit(in("f")), allow, false},
		{"edits: edit outside", policy.Settings{Mode: "edits"}, edit(outside), ask, true},
		{"edits: edit both", policy.Settings{Mode: "edits"}, edit(both), ask, true},
		{"edits: edit a hook", policy.Settings{Mode: "edits"}, edit(in(".git", "hooks", "pre-commit")), ask, true},
		{"edits: edit a hook, other case", policy.Settings{Mode: "edits"}, edit(in("sub", ".GIT", "config")), ask, true},
		{"edits: a name that only looks so", policy.Settings{Mode: "edits"}, edit(in(".gitignore")), allow, false},
		{"edits: run", policy.Settings{Mode: "edits"}, run, ask, true},
		{"plan: read inside", policy.Settings{Mode: "plan"}, read(in("f")), allow, false},
		{"plan: read outside", policy.Settings{Mode: "plan"}, read(outside), ask, true},
		{"plan: edit", policy.Settings{Mode: "plan"}, edit(in("f")), deny, false},
		{"plan: run", policy.Settings{Mode: "plan"}, run, deny, false},
		{"plan: run, yes", policy.Settings{Mode: "plan", Yes: true}, run, deny, false},
		{"plan: unknown effect", policy.Settings{Mode: "plan"}, gladhand.Action{Effect: "fly"}, deny, false},
		{"yes: run", policy.Settings{Yes: true}, run, allow, false},
		{"yes: read outside", policy.Settings{Yes: true}, read(outside), allow, false},
		{"sysadmin: read inside", policy.Settings{Profile: "sysadmin"}, read(in("f")), allow, false},
		{"sysadmin: edit", policy.Settings{Profile: "sysadmin", Mode: "edits"}, edit(in("f")), ask, false},
		{"sysadmin: run, yes", policy.Settings{Profile: "sysadmin", Yes: true}, run, ask, false},
		{"unknown mode: edit", policy.Settings{Mode: "auto"}, edit(in("f")), ask, true},
	} {
		c.s.Workspace = ws
		d := policy.Decide(c.s, c.a)
		if d.Outcome != c.want || (d.Rule != "") != c.always || (d.AlwaysName != "") != c.always {
			t.Errorf("%s: %v, rule %q (%s)", c.name, d.Outcome, d.Rule, d.AlwaysName)
		}
		if d.Outcome == deny && d.Reason == "" {
			t.Errorf("%s: no reason", c.name)
		}
	}
}

// Two actions have one rule only when they are the same permission.
func TestRules(t *testing.T) {
	s := policy.Settings{Workspace: ws}
	actions := []gladhand.Action{
		{Effect: gladhand.EffectRun, Command: "a", Dir: ws},
		{Effect: gladhand.EffectRun, Command: "a ", Dir: ws},
		{Effect: gladhand.EffectRun, Command: `a","dir":"/`, Dir: ws},
		{Effect: gladhand.EffectRun, Command: "a", Dir: ws + "/x"},
		{Effect: gladhand.EffectEdit, Paths: in("a")},
		{Effect: gladhand.EffectEdit, Paths: in(`a","b`)},
		{Effect: gladhand.EffectEdit, Paths: append(in("a"), in("b")...)},
		{Effect: gladhand.EffectRead, Paths: in("..", "a")},
		{Effect: gladhand.EffectEdit, Paths: in("..", "a")},
		{Effect: gladhand.EffectRun, Tool: "mcp__s__t", Server: "s 1"},
		{Effect: gladhand.EffectRun, Tool: "mcp__s__t", Server: "s 2"}, // same name, started otherwise
		{Effect: gladhand.EffectRun, Tool: "mcp__s__u", Server: "s 1"},
		{Effect: gladhand.EffectRun, Tool: `mcp__s__t"`, Server: "s 1"},
	}
	seen := map[string]int{}
	for i, a := range actions {
		r := policy.Decide(s, a).Rule
		if j, ok := seen[r]; ok || r == "" {
			t.Errorf("actions %d and %d share the rule %q", i, j, r)
		}
		seen[r] = i
	}
	a, b := actions[4], actions[4]
	a.Tool, b.Tool = "edit_file", "write_file"
	if policy.Decide(s, a).Rule != policy.Decide(s, b).Rule {
		t.Error("the same change by another tool has another rule")
	}
}
