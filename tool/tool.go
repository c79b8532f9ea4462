// Package tool has the tools of the built-in agent: one file a tool, with its
// text for the model (.md) and its arguments (.json) beside it.
//
// A tool call goes through three steps, so that what is asked about is what
// happens:
//
//	call, err := t.Prepare(ctx, env, args) // look, change nothing; err is for the model to mend
//	// show call.Title and call.Diffs, decide on call.Action, bind the answer to call.Digest()
//	if d, _ := call.Digest(); d != shown { /* the world changed: do not run */ }
//	result, err := call.Run(ctx, out)      // the effect
//
// Prepare reads files and computes everything that Run will write. Digest
// looks again at the state that the call depends on. Run checks that state once
// more, under a lock of the path, right before it writes.
//
// # Files
//
// What is written byte for byte stays what it was: an edit splices bytes, and
// line endings, byte order mark, final newline, mode and owner stay. A symbolic
// link is followed and its target is changed. How a file is written:
//
//	new file                       created exclusively (O_EXCL), removed again when writing fails
//	one link, attributes copyable  temporary file beside it, fsync, rename: old or new after a crash, never half
//	several hard links, or owner   in place, so that every name shows the new text; a backup beside
//	or attributes not copyable     it (else in the temporary directory) until the write is on disk
//
// A file that changed since it was read is not written: the state that a
// session's tools saw last is in [Files]. Right before the write the file is
// compared, byte by byte, with what the edit was made on.
//
// # Searching
//
// glob and grep look at regular files; links are not followed, and what git
// ignores (ignore.go) is left out. grep runs ripgrep where it is, else it searches
// by itself (grep_own.go), and both give the same: the model's pattern is written
// anew in what both understand alike (pattern.go). Whatever there is to search, it
// ends: files, lines, bytes and seconds are bounded.
//
// # Commands in the background
//
// They belong to the session, whose [Background] has them: [Call.Run] returns, the
// turn ends, and they go on, until command_kill or [Background.Close]. Each look at
// one gives what it printed since the last.
//
// # Output
//
// Whatever a tool gives back is bounded: [MaxResult] bytes, head and tail, valid
// UTF-8. An [Output] takes a flood of any length in constant memory.
package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gladhand"
)

// MaxResult is how many bytes of text a result holds at most, head and tail.
const MaxResult = 256 << 10

// Tool is one tool. It keeps no state; that is in [Env].
type Tool interface {
	Spec() Spec
	// Title says in a few words what a call with these arguments does, without
	// looking at anything and whatever the arguments are.
	Title(args json.RawMessage) string
	// Prepare checks the arguments and looks at what they speak of. It changes
	// nothing. An error is told to the model, so it says how to mend the call.
	Prepare(ctx context.Context, env *Env, args json.RawMessage) (*Call, error)
}

// Spec describes a tool to models and clients.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments
	Kind        string          // ACP's tool kind: read, edit, execute, …
}

// Env is what tools of one session share.
type Env struct {
	// Cwd is the workspace: absolute, with symbolic links resolved. Relative
	// paths start here.
	Cwd string
	// Files remembers what was read; nil remembers nothing, and then existing
	// files cannot be overwritten.
	Files *Files
	// OutputDir takes the whole output of commands that print more than
	// MaxResult; empty keeps only head and tail.
	OutputDir string
	// Environ is the environment of commands; nil is the daemon's own without
	// its secrets.
	Environ []string
	// Turn is the turn that the tools run in; nil where there is none, and then
	// the tools that need one say so.
	Turn Turn
	// Background are the session's commands in the background; nil where there
	// can be none.
	Background *Background
}

// Turn is what tools may ask of the turn they run in.
type Turn interface {
	// Plan shows a plan in place of the last one.
	Plan(context.Context, []PlanEntry) error
	// Elicit has people fill in a form, ACP's elicitation/create parameters
	// without the session. The answer is empty when they declined; reason then
	// says how it ended, in words for the model.
	Elicit(ctx context.Context, form json.RawMessage) (answer json.RawMessage, reason string, err error)
}

// PlanEntry is one step of a plan, of ACP's shape.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"` // high, medium, low
	Status   string `json:"status"`   // pending, in_progress, completed
}

// Call is a prepared tool call.
type Call struct {
	Title     string
	Locations []Location
	// Action is what is decided on.
	Action gladhand.Action
	// Parallel says that it may run beside other such calls of the same reply: it
	// changes nothing, and is quick to end.
	Parallel bool
	// Diffs are the changes to files, to be shown before they happen.
	Diffs []Diff
	// Digest describes all that the call does and depends on, looked at anew.
	// Two equal digests mean that nothing of it changed in between.
	Digest func() (string, error)
	// Run has the effect. What it prints on the way goes to out; when ctx ends it
	// stops what it started and returns. An error is told to the model.
	Run func(ctx context.Context, out *Output) (Result, error)
}

// Location is a place in a file, for clients that follow along. Line 0 is none.
type Location struct {
	Path string
	Line int
}

// Diff is a change to a file, or to a part of it. A nil Old is a new file.
type Diff struct {
	Path string
	Old  *string
	New  string
}

// Result is what a call gave.
type Result struct {
	// Text is for the model and for people, at most MaxResult bytes.
	Text string
	// Images are for models that see them, and for people.
	Images []Image
	// Raw is further machine-readable output, encoded as JSON; nil is none.
	Raw any
	// Failed says that the call ran and did not do what was asked.
	Failed bool
}

// Image is a picture: MIME is image/png, image/jpeg, image/gif or image/webp.
type Image struct {
	MIME string
	Data []byte
}

// Builtin are the tools that need nothing but a workspace and a turn.
func Builtin() []Tool {
	return []Tool{
		readFile{},
		listDir{},
		glob{},
		grep{},
		editFile{},
		writeFile{},
		runCommand{},
		commandOutput{},
		commandKill{},
		updatePlan{},
		askUser{},
	}
}

// decode reads arguments strictly: duplicate, unknown and mis-cased names and
// wrong types are errors that name the argument.
func decode(args json.RawMessage, into any) error {
	err := jsonv2.Unmarshal(args, into, jsonv2.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	var semantic *jsonv2.SemanticError
	if errors.As(err, &semantic) {
		where := strings.TrimPrefix(string(semantic.JSONPointer), "/")
		if errors.Is(err, jsonv2.ErrUnknownName) {
			return fmt.Errorf("there is no argument %q; see the tool's schema", where)
		}
		if semantic.GoType != nil && where != "" {
			return fmt.Errorf("argument %q is not a %s", where, plainType(semantic.GoType.String()))
		}
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return fmt.Errorf("the arguments are not valid JSON: %v", syntactic)
	}
	return fmt.Errorf("the arguments do not fit the tool's schema: %v", err)
}

func plainType(goType string) string {
	switch {
	case strings.Contains(goType, "int"):
		return "whole number"
	case strings.HasPrefix(goType, "[]"):
		return "list"
	case goType == "bool":
		return "true or false"
	case strings.Contains(goType, "string"):
		return "string"
	}
	return "value of the right type"
}

// peek reads arguments for a title: whatever is readable.
func peek(args json.RawMessage, into any) { _ = json.Unmarshal(args, into) }

// digest hashes parts so that no two lists of parts collide.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// oneLine is s on one line, at most limit characters.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}
