// Package policy decides whether a tool call may happen: allow it, ask a
// person, or deny it.
//
// It decides on a [gladhand.Action], which the tool fills in with what will
// really be touched (absolute paths with symbolic links resolved, the exact
// command), and on the session's settings, read at that moment:
//
//	d := policy.Decide(policy.Of(turn.Info()), action)
//	switch d.Outcome {
//	case policy.Allow: // go on
//	case policy.Ask:   // put the question; d.Rule is what "always" would remember
//	case policy.Deny:  // tell the model d.Reason
//	}
//
// One table serves file tools and commands alike:
//
//	mode    read inside   edit inside   everything else
//	ask     allow         ask           ask
//	edits   allow         allow         ask
//	plan    allow         deny          reading: ask, the rest: deny
//
// "Inside" is the session's workspace. What lies in the workspace but would run
// later without anybody being asked (a .git directory) asks in every mode.
// --yes turns each ask into an allow. Profile sysadmin heeds neither --yes nor the
// mode edits, and offers no "always".
//
// Remembered "always" rules are not kept here: a rule is a string that equals
// another exactly when both are the same permission, so whoever keeps rules
// only compares strings. A rule never overrides a denial, since a denied action
// is never asked about.
package policy

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"gladhand"
)

// The modes of a session.
const (
	ModeAsk   = "ask"   // reading is free, the rest asks
	ModeEdits = "edits" // edits inside the workspace are free too
	ModePlan  = "plan"  // nothing is changed
)

// The profiles of a session.
const (
	ProfileCoding   = "coding"
	ProfileSysadmin = "sysadmin" // every command asks, nothing is remembered
)

// Settings are what a session contributes to a decision.
type Settings struct {
	// Workspace is absolute, with symbolic links resolved.
	Workspace string
	Mode      string // empty is ModeAsk
	Profile   string // empty is ProfileCoding
	Yes       bool
}

// Of returns the settings of a session.
func Of(s gladhand.SessionInfo) Settings {
	return Settings{Workspace: s.Cwd, Mode: s.Mode, Profile: s.Profile, Yes: s.Yes}
}

// Outcome is what a decision comes to.
type Outcome int

// The outcomes. The zero value asks.
const (
	Ask Outcome = iota
	Allow
	Deny
)

func (o Outcome) String() string { return [...]string{"ask", "allow", "deny"}[o] }

// Decision is the answer of [Decide].
type Decision struct {
	Outcome Outcome
	// Reason says why: for Deny in sentences for people and the model, for Ask in
	// a few words that fit in parentheses behind the question, or none.
	Reason string
	// Rule, when Outcome is Ask, is what "always" would remember; empty where
	// always is not offered. AlwaysName is that option's text.
	Rule, AlwaysName string
}

// Decide decides on one action. Anything it does not know asks.
func Decide(s Settings, a gladhand.Action) Decision {
	outside := outsiders(s.Workspace, a.Paths)
	if s.Mode == ModePlan && a.Effect != gladhand.EffectRead && a.Effect != gladhand.EffectNone {
		return Decision{Outcome: Deny, Reason: "The session is in plan mode, in which nothing is changed and no command runs. Describe the change instead; a person can switch the mode."}
	}
	sysadmin := s.Profile == ProfileSysadmin
	switch {
	case a.Effect == gladhand.EffectNone:
		return Decision{Outcome: Allow, Reason: "It changes nothing."}
	case s.Yes && !sysadmin:
		return Decision{Outcome: Allow, Reason: "Everything is allowed in this session (--yes)."}
	case a.Effect == gladhand.EffectRead && len(outside) == 0 && len(a.Paths) > 0:
		return Decision{Outcome: Allow, Reason: "Reading inside the workspace is free."}
	case a.Effect == gladhand.EffectEdit && s.Mode == ModeEdits && !sysadmin && len(outside) == 0 && len(a.Paths) > 0:
		if guarded := guardedPath(s.Workspace, a.Paths); guarded == "" {
			return Decision{Outcome: Allow, Reason: "Edits inside the workspace are free in mode edits."}
		}
	}
	d := Decision{Reason: why(s, a, outside)}
	if !sysadmin {
		d.Rule, d.AlwaysName = rule(s.Workspace, a)
	}
	return d
}

func why(s Settings, a gladhand.Action, outside []string) string {
	switch {
	case len(outside) > 0:
		return "outside the workspace"
	case a.Effect == gladhand.EffectRun:
		return a.Confinement
	case guardedPath(s.Workspace, a.Paths) != "":
		return "inside .git"
	}
	return ""
}

// rule names the permission: the exact command where it runs, the tool of the
// exact server, or the effect on the exact paths.
func rule(workspace string, a gladhand.Action) (rule, name string) {
	type run struct {
		Command string `json:"command"`
		Dir     string `json:"dir"`
	}
	type served struct {
		Server string `json:"server"`
		Tool   string `json:"tool"`
	}
	switch {
	case a.Server != "":
		if a.Effect != gladhand.EffectRun || a.Command != "" || a.Tool == "" {
			return "", "" // the rule would not say all that it allows
		}
		b, _ := json.Marshal(served{a.Server, a.Tool})
		return "served " + string(b), "Always allow this tool of this server"
	case a.Effect == gladhand.EffectRun && a.Command != "":
		b, _ := json.Marshal(run{a.Command, a.Dir})
		return "run " + string(b), "Always allow exactly this command here"
	case (a.Effect == gladhand.EffectRead || a.Effect == gladhand.EffectEdit) && len(a.Paths) > 0:
		b, _ := json.Marshal(a.Paths)
		verb := "changes to"
		if a.Effect == gladhand.EffectRead {
			verb = "reading"
		}
		what := fmt.Sprintf("these %d files", len(a.Paths))
		if len(a.Paths) == 1 {
			what = short(workspace, a.Paths[0])
		}
		return string(a.Effect) + " " + string(b), fmt.Sprintf("Always allow %s %s", verb, what)
	}
	return "", ""
}

// Inside reports whether path, absolute and resolved, is the workspace or in it.
func Inside(workspace, path string) bool {
	if !filepath.IsAbs(workspace) || !filepath.IsAbs(path) {
		return false
	}
	rel, err := filepath.Rel(workspace, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func outsiders(workspace string, paths []string) []string {
	var out []string
	for _, p := range paths {
		if !Inside(workspace, p) {
			out = append(out, p)
		}
	}
	return out
}

// guardedPath returns the first path with a .git in it: a hook or a setting
// there would run later, unasked.
func guardedPath(workspace string, paths []string) string {
	for _, p := range paths {
		rel, err := filepath.Rel(workspace, p)
		if err != nil {
			return p
		}
		for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
			if strings.EqualFold(part, ".git") {
				return p
			}
		}
	}
	return ""
}

func short(workspace, path string) string {
	if rel, err := filepath.Rel(workspace, path); err == nil && Inside(workspace, path) {
		return rel
	}
	return path
}
