package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gladhand/model"
)

var tools = []model.Tool{{Name: "read_file"}, {Name: "list_dir"}, {Name: "edit_file"}, {Name: "write_file"}, {Name: "run_command"}}

func prompt(texts ...string) model.Request {
	r := model.Request{Tools: tools}
	for _, t := range texts {
		r.Messages = append(r.Messages, model.Message{Role: model.User, Turn: 1, Parts: []model.Part{{Text: t}}})
	}
	return r
}

// reply collects one reply.
func reply(t testing.TB, m model.Model, r model.Request) (text string, calls []string, chunks int) {
	t.Helper()
	var all strings.Builder
	for c, err := range m.Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Text != "" {
			chunks++
		}
		all.WriteString(c.Text)
		if c.Call != nil {
			calls = append(calls, c.Call.Name+" "+string(c.Call.Args))
		}
	}
	return all.String(), calls, chunks
}

// What a prompt makes it call first.
func TestOfflineCalls(t *testing.T) {
	for p, want := range map[string]string{
		"read go.mod":                             `read_file {"path":"go.mod"}`,
		"read “go.mod”":                           `read_file {"path":"go.mod"}`,
		"could you please read the file go.mod?":  `read_file {"path":"go.mod"}`,
		"go.mod":                                  `read_file {"path":"go.mod"}`,
		"read `my file.txt`":                      `read_file {"path":"my file.txt"}`,
		"show me lines 10 to 20 of a/b.go":        `read_file {"path":"a/b.go","line":10,"limit":11}`,
		"print the first 5 lines of a.txt":        `read_file {"path":"a.txt","line":1,"limit":5}`,
		"what is in Makefile":                     `read_file {"path":"Makefile"}`,
		"run go test ./...":                       `run_command {"command":"go test ./..."}`,
		"Run `a && b; c`.":                        `run_command {"command":"a \u0026\u0026 b; c"}`,
		"run echo a and b; then stop":             `run_command {"command":"echo a and b"}`,
		"execute the command ls -l":               `run_command {"command":"ls -l"}`,
		"git commit -m 'a, then b'":               `run_command {"command":"git commit -m 'a, then b'"}`,
		"$ uname -a":                              `run_command {"command":"uname -a"}`,
		"./build.sh all":                          `run_command {"command":"./build.sh all"}`,
		"make test":                               `run_command {"command":"make test"}`,
		"show git log":                            `run_command {"command":"git log --oneline -10"}`,
		"delete old file.txt":                     ``,
		"delete -rf":                              `run_command {"command":"rm ./-rf"}`,
		"remove it's.txt":                         `run_command {"command":"rm 'it'\\''s.txt'"}`,
		"grep -c foo bar":                         `run_command {"command":"grep -c foo bar"}`,
		"serach for $(x) in src":                  `run_command {"command":"grep -rnIF --exclude-dir=.git -e '$(x)' src"}`,
		"run the tests":                           `list_dir {"path":"."}`,
		"ls src":                                  `list_dir {"path":"src"}`,
		"list all the files in src/":              `list_dir {"path":"src/"}`,
		"replace a b with c d in f.txt":           `edit_file {"edits":[{"old_text":"a b","new_text":"c d"}],"path":"f.txt"}`,
		"replace 'x in y' with \"z\" in f.txt":    `edit_file {"edits":[{"old_text":"x in y","new_text":"z"}],"path":"f.txt"}`,
		"change foo to bar everywhere in f.txt":   `edit_file {"edits":[{"old_text":"foo","new_text":"bar","replace_all":true}],"path":"f.txt"}`,
		"repalce a with b in f.go":                `edit_file {"edits":[{"old_text":"a","new_text":"b"}],"path":"f.go"}`,
		"write hello to a.txt":                    `write_file {"content":"hello\n","path":"a.txt"}`,
		"create a.txt with \"x\" then read a.txt": `write_file {"content":"x\n","path":"a.txt"}`,
		"create an empty file called a":           `write_file {"content":"","path":"a"}`,
		"create a.py:\nimport os\nprint(1)\n":     `write_file {"content":"import os\nprint(1)\n","path":"a.py"}`,
		"append x to a.txt":                       `edit_file {"append":"x","path":"a.txt"}`,
		"append a line to notes.txt":              `edit_file {"append":"a line","path":"notes.txt"}`,
		"append the line x y to the end of a.txt": `edit_file {"append":"x y","path":"a.txt"}`,
		"tell the api agent that it is done":      ``,
		"write a poem":                            ``,
		"help":                                    ``,
		"":                                        ``,
	} {
		_, calls, _ := reply(t, model.Offline{}, prompt(p))
		if got := strings.Join(calls, "; "); got != want {
			t.Errorf("%q calls %s, want %s", p, got, want)
		}
	}
}

// It says what it is when it does not understand, and how to get a real model.
func TestOfflineConfesses(t *testing.T) {
	for _, p := range []string{"write a poem about trains", "", "¿qué?", "refactor everything to use generics", "send it to bob"} {
		text, calls, _ := reply(t, model.Offline{}, prompt(p))
		for _, s := range []string{"offline model", "not a language model", "read go.mod", "gladhand config set model"} {
			if !strings.Contains(text, s) || len(calls) > 0 {
				t.Errorf("%q: no %q in %q (calls %v)", p, s, text, calls)
			}
		}
	}
}

// Without tools it says so and calls nothing.
func TestOfflineWithoutTools(t *testing.T) {
	r := prompt("read go.mod")
	r.Tools = nil
	if text, calls, _ := reply(t, model.Offline{}, r); len(calls) > 0 || !strings.Contains(text, "read_file") {
		t.Errorf("%q, %v", text, calls)
	}
}

// It streams word by word, and the same each time.
func TestOfflineStreams(t *testing.T) {
	text, _, chunks := reply(t, model.Offline{}, prompt("help"))
	if n := len(strings.Fields(text)); chunks < n*9/10 {
		t.Errorf("%d chunks for %d words", chunks, n)
	}
	if again, _, _ := reply(t, model.Offline{}, prompt("help")); again != text {
		t.Error("it is not deterministic")
	}
}

// It paces itself, and a cancel ends it at once.
func TestOfflineHonoursContext(t *testing.T) {
	for _, p := range []string{"count to 200 slowly", "wait 60 seconds", "help"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			start := time.Now()
			time.AfterFunc(450*time.Millisecond, cancel)
			var last error
			n := 0
			for _, err := range (model.Offline{Pace: 20 * time.Millisecond}).Generate(ctx, prompt(p)) {
				n++
				last = err
			}
			if !errors.Is(last, context.Canceled) {
				t.Errorf("%q ended with %v", p, last)
			}
			if d := time.Since(start); d != 450*time.Millisecond {
				t.Errorf("%q ended after %v", p, d)
			}
			if n < 3 {
				t.Errorf("%q gave %d chunks", p, n)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		text, _, _ := reply(t, model.Offline{}, prompt("count to 20 slowly"))
		if d := time.Since(start); !strings.HasSuffix(text, " 19 20") || d != 1900*time.Millisecond {
			t.Errorf("%q in %v", text, d)
		}
	})
	for range (model.Offline{}).Generate(t.Context(), prompt("help")) {
		break // who stops listening is not called again (that would panic)
	}
}

// Whatever the prompt and the results, it comes to an end, with valid calls.
func FuzzOffline(f *testing.F) {
	for _, s := range []string{
		"read a and tell me b", "run x; then 'y", "replace a with", "create :\n", "count to 5 and", "“”’", "add add to to to.txt in in", "show lines 9-1 of x.y", "`",
		"plan and do: a; read x; say it", "ask me for a name: a or b and write it to it", "run x in the background, then stop it", "find files ending in . in x",
		"replace all a with b in all files", "search for x ignoring case with 3 lines of context in *.go", "kill it, check on it, wait for it", "plan:\n1.\n- ;;",
	} {
		f.Add(s, "text\n[f: 1 line]", true)
		f.Add(s, "Denied by x", false)
		f.Add(s, "x\n[bg_aaaaaaaaaaaaaaaaaaaaaaaaaa: running]", true)
	}
	f.Fuzz(func(t *testing.T, text, result string, ok bool) {
		if strings.Contains(text, "wait") || strings.Contains(text, "sleep") || strings.Contains(text, "pause") || strings.Contains(text, "slow") {
			return
		}
		r := prompt(text)
		r.Tools = allTools
		for range 200 {
			var call *model.Call
			for c, err := range (model.Offline{}).Generate(t.Context(), r) {
				if err != nil {
					t.Fatal(err)
				}
				if c.Call != nil {
					if call != nil || !json.Valid(c.Call.Args) {
						t.Fatalf("calls %v and %v", call, c.Call)
					}
					call = c.Call
				}
			}
			if call == nil {
				return
			}
			r.Messages = append(r.Messages,
				model.Message{Role: model.Assistant, Turn: 1, Parts: []model.Part{{Call: call}}},
				model.Message{Role: model.ToolRole, Turn: 1, Parts: []model.Part{{Result: &model.Result{Name: call.Name, Text: result, Failed: !ok}}}})
		}
		if strings.Count(text, " ")+strings.Count(result, "\n") < 60 {
			t.Fatalf("%q goes on for ever", text)
		}
	})
}

// A very long prompt does not take for ever (the test's own time limit is the judge).
func TestOfflineLongPrompt(t *testing.T) {
	for _, unit := range []string{"word ", "read x and ", "create x with y and ", "'", "a\n", "x", "\"a' `", ", "} {
		text := strings.Repeat(unit, 20<<10/len(unit))
		for _, p := range []string{"say " + text, text, "read " + text + "?", text + text} {
			if said, _, _ := reply(t, model.Offline{}, prompt(p)); said == "" && strings.TrimSpace(text) != "" {
				t.Logf("%.20q: nothing said", p) // a tool was called
			}
		}
	}
}

func TestCheck(t *testing.T) {
	user := model.Message{Role: model.User, Parts: []model.Part{{Text: "x"}}}
	call := func(ids ...string) model.Message {
		m := model.Message{Role: model.Assistant}
		for _, id := range ids {
			m.Parts = append(m.Parts, model.Part{Call: &model.Call{ID: id, Name: "n", Args: json.RawMessage(`{}`)}})
		}
		return m
	}
	result := func(ids ...string) model.Message {
		m := model.Message{Role: model.ToolRole}
		for _, id := range ids {
			m.Parts = append(m.Parts, model.Part{Result: &model.Result{ID: id, Name: "n"}})
		}
		return m
	}
	bad := call("1")
	bad.Parts[0].Call.Args = json.RawMessage(`{`)
	for _, c := range []struct {
		ok bool
		ms []model.Message
	}{
		{true, nil},
		{true, []model.Message{user, call("1", "2"), result("1", "2"), call("3"), result("3"), user}},
		{false, []model.Message{user, call("1")}},
		{false, []model.Message{user, call("1"), user}},
		{false, []model.Message{user, call("1", "2"), result("1")}},
		{false, []model.Message{user, call("1", "2"), result("2", "1")}},
		{false, []model.Message{user, call("1"), result("1"), result("1")}},
		{false, []model.Message{user, call("1"), result("1"), call("1"), result("1")}},
		{false, []model.Message{user, result("1")}},
		{false, []model.Message{user, bad, result("1")}},
		{false, []model.Message{{Role: model.User}}},
		{false, []model.Message{{Role: model.User, Parts: []model.Part{{}}}}},
	} {
		if err := model.Check(c.ms); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.ms, err)
		}
	}
}

// A later turn's request does not go on with what an earlier one left.
func TestOfflineReadsOneTurn(t *testing.T) {
	r := prompt("read a.txt, then read b.txt")
	r.Messages = append(r.Messages,
		model.Message{Role: model.Assistant, Turn: 1, Parts: []model.Part{{Call: &model.Call{ID: "1", Name: "read_file", Args: json.RawMessage(`{"path":"a.txt"}`)}}}},
		model.Message{Role: model.ToolRole, Turn: 1, Parts: []model.Part{{Result: &model.Result{ID: "1", Name: "read_file", Text: "x\n[a.txt: 1 line]"}}}},
	)
	if _, calls, _ := reply(t, model.Offline{}, r); !reflect.DeepEqual(calls, []string{`read_file {"path":"b.txt"}`}) {
		t.Errorf("in the turn: %v", calls)
	}
	r.Messages = append(r.Messages, model.Message{Role: model.User, Turn: 2, Parts: []model.Part{{Text: "say hi"}}})
	if text, calls, _ := reply(t, model.Offline{}, r); text != "hi" || len(calls) > 0 {
		t.Errorf("in the next: %q, %v", text, calls)
	}
}
