package model_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gladhand/model"
)

var allTools = []model.Tool{
	{Name: "read_file"},
	{Name: "list_dir"},
	{Name: "glob"},
	{Name: "grep"},
	{Name: "edit_file"},
	{Name: "write_file"},
	{Name: "run_command"},
	{Name: "command_output"},
	{Name: "command_kill"},
	{Name: "update_plan"},
	{Name: "ask_user"},
}

const jobID = "bg_k3v9q2m7x4b8n1c6z5kq"

// turn plays one turn: each call is answered by answer. It returns the calls and
// all that was said, as a client shows it that ignores the ids of messages.
func turn(t *testing.T, r model.Request, answer func(call string) (text string, failed bool)) (calls []string, said string, end model.Request) {
	t.Helper()
	var all strings.Builder
	turnID := r.Messages[len(r.Messages)-1].Turn
	for range 200 {
		var call *model.Call
		for c, err := range (model.Offline{}).Generate(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString(c.Text)
			if c.Call != nil {
				call = c.Call
			}
		}
		if call == nil {
			return calls, all.String(), r
		}
		call.ID = fmt.Sprint("c", len(r.Messages))
		line := call.Name + " " + string(call.Args)
		calls = append(calls, line)
		text, failed := answer(line)
		if strings.HasPrefix(text, "The person") {
			failed = true
		}
		r.Messages = append(r.Messages,
			model.Message{Role: model.Assistant, Turn: turnID, Parts: []model.Part{{Call: call}}},
			model.Message{Role: model.ToolRole, Turn: turnID, Parts: []model.Part{{Result: &model.Result{ID: call.ID, Name: call.Name, Text: text, Failed: failed}}}})
	}
	t.Fatal("it goes on for ever")
	return nil, "", r
}

func ok(string) (string, bool) { return "[exit status 0]", false }

// What a prompt makes it call first, with all tools.
func TestOfflineCallsNewTools(t *testing.T) {
	for p, want := range map[string]string{
		"search for TODO in src":                         `grep {"pattern":"TODO","path":"src","literal":true}`,
		"serach for $(x) in src":                         `grep {"pattern":"$(x)","path":"src","literal":true}`,
		"grep foo main.go":                               `grep {"pattern":"foo","path":"main.go","literal":true}`,
		"search for \"a in b\" in all go files":          `grep {"pattern":"a in b","glob":"*.go","literal":true}`,
		"look for error ignoring case":                   `grep {"pattern":"error","literal":true,"ignore_case":true}`,
		"search for x in a.go with 3 lines of context":   `grep {"pattern":"x","path":"a.go","literal":true,"context":3}`,
		"search for the pattern fo+ in *.md":             `grep {"pattern":"fo+","glob":"*.md"}`,
		"find files containing TODO in src":              `grep {"pattern":"TODO","path":"src","literal":true,"mode":"files"}`,
		"which files mention port?":                      `grep {"pattern":"port","literal":true,"mode":"files"}`,
		"where is newServer defined?":                    `grep {"pattern":"newServer","literal":true}`,
		"grep -c foo bar":                                `run_command {"command":"grep -c foo bar"}`,
		"search src for port":                            `grep {"pattern":"port","path":"src","literal":true}`,
		"look in main.go for port":                       `grep {"pattern":"port","path":"main.go","literal":true}`,
		"search for cats for dogs":                       `grep {"pattern":"cats for dogs","literal":true}`,
		"find where port is used":                        `grep {"pattern":"port","literal":true}`,
		"find the file main.go":                          `glob {"pattern":"main.go"}`,
		"grep -rn port .":                                `run_command {"command":"grep -rn port ."}`,
		"run ls ..":                                      `run_command {"command":"ls .."}`,
		"run ls.":                                        `run_command {"command":"ls"}`,
		"run it":                                         ``,
		"show it":                                        ``,
		"find files named *.go":                          `glob {"pattern":"*.go"}`,
		"find all go files in cmd":                       `glob {"path":"cmd","pattern":"*.go"}`,
		"where is main.go?":                              `glob {"pattern":"main.go"}`,
		"find main.go":                                   `glob {"pattern":"main.go"}`,
		"find files ending in _test.go":                  `glob {"pattern":"*_test.go"}`,
		"find a file called docs/a.md":                   `glob {"pattern":"docs/a.md"}`,
		"run ./server -p 80 in the background":           `run_command {"background":true,"command":"./server -p 80"}`,
		"run `a && b` in the background":                 `run_command {"background":true,"command":"a \u0026\u0026 b"}`,
		"npm start in the background":                    `run_command {"background":true,"command":"npm start"}`,
		"run sleep 9 &":                                  `run_command {"background":true,"command":"sleep 9"}`,
		"start ./server in the background":               `run_command {"background":true,"command":"./server"}`,
		"start the server":                               ``,
		"show the output of " + jobID:                    `command_output {"id":"` + jobID + `"}`,
		"kill " + jobID:                                  `command_kill {"id":"` + jobID + `"}`,
		"stop " + jobID:                                  `command_kill {"id":"` + jobID + `"}`,
		"wait for " + jobID:                              `command_output {"id":"` + jobID + `","wait_seconds":60}`,
		"kill 4711":                                      `run_command {"command":"kill 4711"}`,
		"kill it":                                        ``,
		"kill the mood":                                  ``,
		"show the output of it":                          ``,
		"plan: read a; fix it; test":                     `update_plan {"entries":[{"content":"Read a","priority":"medium","status":"pending"},{"content":"Fix it","priority":"medium","status":"pending"},{"content":"Test","priority":"medium","status":"pending"}]}`,
		"plan:\n1. one\n2. two":                          `update_plan {"entries":[{"content":"One","priority":"medium","status":"pending"},{"content":"Two","priority":"medium","status":"pending"}]}`,
		"make a plan to read go.mod and run the tests":   `update_plan {"entries":[{"content":"Read go.mod","priority":"medium","status":"pending"},{"content":"Run the tests","priority":"medium","status":"pending"}]}`,
		"plan and do: read a.go, then say hi":            `update_plan {"entries":[{"content":"Read a.go","priority":"medium","status":"in_progress"},{"content":"Say hi","priority":"medium","status":"pending"}]}`,
		"plan and do: read a.go, then fly away":          ``,
		"plan":                                           ``,
		"planet earth":                                   ``,
		"ask me which colour: red, green or blue":        `ask_user {"options":["red","green","blue"],"question":"Which colour?"}`,
		"ask me for a name":                              `ask_user {"question":"Which name?"}`,
		"ask me whether to go on":                        `ask_user {"options":["yes","no"],"question":"To go on?"}`,
		"ask me to choose between tea and coffee":        `ask_user {"options":["tea","coffee"],"question":"Which one?"}`,
		"ask me \"what is it?\" and say it":              `ask_user {"question":"What is it?"}`,
		"ask bob for a name":                             ``,
		"rename old to new in all go files":              `grep {"pattern":"old","glob":"*.go","literal":true,"mode":"files"}`,
		"replace all a.b with c everywhere":              `grep {"pattern":"a.b","literal":true,"mode":"files"}`,
		"replace all foo with bar in main.go everywhere": `edit_file {"edits":[{"old_text":"foo","new_text":"bar","replace_all":true}],"path":"main.go"}`,
	} {
		r := prompt(p)
		r.Tools = allTools
		_, calls, _ := reply(t, model.Offline{}, r)
		if got := strings.Join(calls, "; "); got != want {
			t.Errorf("%q calls %s, want %s", p, got, want)
		}
	}
}

// Slips in its own words are forgiven, but no other word becomes a request that
// changes something.
func TestOfflineForgivesSlips(t *testing.T) {
	for p, want := range map[string]string{
		"raed go.mod":              "read_file",
		"serach for x":             "grep",
		"searhc for x":             "grep",
		"fnid files named x.go":    "glob",
		"replcae a with b in f.go": "edit_file",
		"repalce a with b in f.go": "edit_file",
		"wirte hello to a.txt":     "write_file",
		"creat a.txt with x":       "write_file",
		"apend x to a.txt":         "edit_file",
		"delte a.txt":              "run_command",
		"delteed a.txt":            "",
		"renmae a to b in f.go":    "edit_file",
		"exceute ls":               "run_command",
		"rn ls":                    "",
		"ran ls":                   "",
		"fun ls":                   "",
		"rune ls":                  "",
		"text":                     "",
		"tests":                    "",
		"testing":                  "",
		"deleted a.txt":            "",
		"removes a.txt":            "",
		"white hello to a.txt":     "",
		"wrote hello to a.txt":     "",
		"take a.txt with x":        "",
		"fake a.txt with x":        "",
		"mode a.txt to b.txt":      "",
		"cope a.txt to b.txt":      "",
		"copied a.txt to b.txt":    "",
		"charge a to b in f.go":    "",
		"till " + jobID:            "",
		"bill " + jobID:            "",
		"fine":                     "",
		"kind of":                  "",
		"mend a.txt":               "",
		"adds x to a.txt":          "",
		"exact ls":                 "",
		"strat ./x in background":  "run_command",
	} {
		r := prompt(p)
		r.Tools = allTools
		_, calls, _ := reply(t, model.Offline{}, r)
		name := ""
		if len(calls) > 0 {
			name, _, _ = strings.Cut(calls[0], " ")
		}
		if name != want {
			t.Errorf("%q calls %v, want %q", p, calls, want)
		}
	}
}

// docs/offline.md's table: what each example calls is what the table says.
func TestOfflineDocs(t *testing.T) { synctest.Test(t, offlineDocs) }

func offlineDocs(t *testing.T) {
	doc, err := os.ReadFile("../docs/offline.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("`` .+? ``|`[^`]+`")
	n := 0
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.Contains(cells[0], "`") {
			continue
		}
		for _, example := range examples.FindAllString(cells[0], -1) {
			n++
			p := strings.Trim(strings.TrimPrefix(strings.TrimSuffix(example, "``"), "``"), " ")
			if p == example {
				p = strings.Trim(example, "`")
			}
			if strings.HasSuffix(p, ":") {
				p += "\nthe text\n"
			}
			r := prompt(p)
			r.Tools = allTools
			r.Messages = slices.Concat(started(), r.Messages)
			text, calls, _ := reply(t, model.Offline{}, r)
			want := strings.Trim(strings.TrimSpace(cells[2]), "`| \n")
			switch {
			case want == "nothing":
				if len(calls) > 0 || text == "" || strings.Contains(text, "did not understand") {
					t.Errorf("%q calls %v and says %q", p, calls, text)
				}
			case len(calls) != 1 || !slices.Contains(strings.Split(want, "`, `"), strings.Split(calls[0], " ")[0]):
				t.Errorf("%q calls %v (%q), the table says %s", p, calls, text, want)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d examples were found", n)
	}
}

// started is an earlier turn that left a command running.
func started() []model.Message {
	return []model.Message{
		{Role: model.User, Turn: 0, Parts: []model.Part{{Text: "run ./server in the background"}}},
		{Role: model.Assistant, Turn: 0, Parts: []model.Part{{Call: &model.Call{ID: "b", Name: "run_command", Args: json.RawMessage(`{"background":true,"command":"./server"}`)}}}},
		{Role: model.ToolRole, Turn: 0, Parts: []model.Part{{Result: &model.Result{ID: "b", Name: "run_command", Text: "listening\n[" + jobID + ": running]"}}}},
		{Role: model.Assistant, Turn: 0, Parts: []model.Part{{Text: "It runs."}}},
	}
}

// What speaks of something that no rule knows changes nothing.
func TestOfflineTakesNoWordForAFile(t *testing.T) {
	for _, p := range []string{
		"delete it", "delete them", "remove everything", "move it to old", "copy all to b", "write it to a.txt", "append that to a.txt",
		"write that line, exactly as it stands there, to cause.txt", "make it a constant in clock.go", "Delete them, with their imports.",
	} {
		r := prompt(p)
		r.Tools = allTools
		if _, calls, _ := reply(t, model.Offline{}, r); len(calls) > 0 {
			t.Errorf("%q calls %v", p, calls)
		}
	}
	r := prompt("run date, then write the output to date.txt")
	r.Tools = allTools
	calls, _, _ := turn(t, r, func(string) (string, bool) { return "Tue\n[exit status 0]", false })
	if got := calls[len(calls)-1]; got != `write_file {"content":"Tue\n","path":"date.txt"}` {
		t.Error(got)
	}
}

// A part of a file is not written as if it were the whole.
func TestOfflineWritesNoPart(t *testing.T) {
	r := prompt("read big.txt and write it to copy.txt")
	r.Tools = allTools
	calls, said, _ := turn(t, r, func(string) (string, bool) { return "x\n[big.txt: lines 1–1; go on with line 2]", false })
	if len(calls) != 1 || !strings.Contains(said, "only a part") {
		t.Errorf("%v, %q", calls, said)
	}
}

func TestOfflineBackground(t *testing.T) {
	r := prompt("run ./server in the background, then stop it")
	r.Tools = allTools
	answers := func(call string) (string, bool) {
		if strings.HasPrefix(call, "run_command") {
			return "token 0123456789abcdef0123\n[" + jobID + ": running]", false
		}
		return "bye\n[" + jobID + ": ended by command_kill; what came since the last look]", false
	}
	calls, said, r := turn(t, r, answers)
	if len(calls) != 2 || calls[1] != `command_kill {"id":"`+jobID+`"}` || !strings.Contains(said, jobID) {
		t.Fatalf("%v, %q", calls, said)
	}
	// It is gone now; "stop it" of a later turn stops nothing.
	r.Messages = append(r.Messages, model.Message{Role: model.User, Turn: 2, Parts: []model.Part{{Text: "stop it"}}})
	if calls, said, _ := turn(t, r, answers); len(calls) != 0 || !strings.Contains(said, "Stopped") {
		t.Errorf("%v, %q", calls, said)
	}
	for p, want := range map[string]string{
		"stop it":                    `command_kill {"id":"` + jobID + `"}`,
		"kill the server":            `command_kill {"id":"` + jobID + `"}`,
		"show me the output of it":   `command_output {"id":"` + jobID + `"}`,
		"is it done?":                `command_output {"id":"` + jobID + `"}`,
		"check on it":                `command_output {"id":"` + jobID + `"}`,
		"wait for it":                `command_output {"id":"` + jobID + `","wait_seconds":60}`,
		"print its output":           `command_output {"id":"` + jobID + `"}`,
		"stop":                       ``,
		"never mind":                 ``,
		"say a, then kill zzzzzzzzz": ``,
	} {
		r := prompt(p)
		r.Tools, r.Messages = allTools, slices.Concat(started(), r.Messages)
		if _, calls, _ := reply(t, model.Offline{}, r); strings.Join(calls, "; ") != want {
			t.Errorf("%q calls %v, want %s", p, calls, want)
		}
	}
	// Steered into a turn that works, "stop it" is about the turn.
	r = prompt("read a.txt, then read b.txt")
	r.Tools, r.Messages = allTools, slices.Concat(started(), r.Messages)
	r.Messages = append(r.Messages,
		model.Message{Role: model.Assistant, Turn: 1, Parts: []model.Part{{Call: &model.Call{ID: "1", Name: "read_file", Args: json.RawMessage(`{"path":"a.txt"}`)}}}},
		model.Message{Role: model.ToolRole, Turn: 1, Parts: []model.Part{{Result: &model.Result{ID: "1", Name: "read_file", Text: "x\n[a.txt: 1 line]"}}}},
		model.Message{Role: model.User, Turn: 1, Parts: []model.Part{{Text: "stop it"}}})
	if text, calls, _ := reply(t, model.Offline{}, r); len(calls) > 0 || !strings.Contains(text, "Stopped") {
		t.Errorf("steered: %q, %v", text, calls)
	}
}

func TestOfflinePlanAndDo(t *testing.T) {
	status := regexp.MustCompile(`"status":"(\w+)"`)
	statuses := func(calls []string) (list []string) {
		for _, c := range calls {
			if strings.HasPrefix(c, "update_plan") {
				var s []string
				for _, m := range status.FindAllStringSubmatch(c, -1) {
					s = append(s, m[1][:1])
				}
				list = append(list, strings.Join(s, ""))
			} else {
				name, _, _ := strings.Cut(c, " ")
				list = append(list, name)
			}
		}
		return list
	}
	for p, want := range map[string]string{
		"plan and do: run true, then read a.txt; say hi":       "ipp run_command cip read_file cci ccc",
		"make a plan and do it: read a.txt and run go version": "ip read_file ci run_command cc",
	} {
		r := prompt(strings.ReplaceAll(p, ", then", ";"))
		r.Tools = allTools
		calls, said, _ := turn(t, r, ok)
		if got := strings.Join(statuses(calls), " "); got != want || !strings.Contains(said, "steps of the plan are done") {
			t.Errorf("%q: %s, want %s; %q", p, got, want, said)
		}
	}
	// An item may be several requests, and an answer is used in a later one.
	r := prompt("plan and do: ask me for a file, read it; say done")
	r.Tools = allTools
	if calls, _, _ := turn(t, r, func(call string) (string, bool) { return "a.txt", false }); strings.Join(statuses(calls), " ") != "ip ask_user read_file ci cc" {
		t.Error(calls)
	}
	// What fails stays to do, and what is behind it too.
	r = prompt("plan and do: say hi; run make; read a.txt")
	r.Tools = allTools
	calls, said, _ := turn(t, r, func(call string) (string, bool) {
		if strings.HasPrefix(call, "run_command") {
			return "Denied by ann. Nothing was done.", true
		}
		return "", false
	})
	// So does a command that fails.
	if calls, said, _ := turn(t, r, func(call string) (string, bool) { return "[exit status 2]", strings.HasPrefix(call, "run_command") }); strings.Join(statuses(calls), " ") != "ipp cip run_command cpp" || !strings.Contains(said, "1 of 3 steps") {
		t.Errorf("%v; %q", calls, said)
	}
	if got := strings.Join(statuses(calls), " "); got != "ipp cip run_command cpp" || !strings.Contains(said, "denied by ann") || strings.Contains(said, "are done") {
		t.Errorf("%s; %q", got, said)
	}
}

func TestOfflineAsks(t *testing.T) {
	for _, c := range []struct{ prompt, answer, want string }{
		{"ask me for a name and write it to name.txt", "Ann", `write_file {"content":"Ann\n","path":"name.txt"}`},
		{"ask me for a name and write the name to name.txt", "a to /etc/passwd", `write_file {"content":"a to /etc/passwd\n","path":"name.txt"}`},
		{"ask me for a name and write it to name.txt", `"x" to y.txt`, `write_file {"content":"\"x\" to y.txt\n","path":"name.txt"}`},
		{"ask me which file, then read it", "go.mod", `read_file {"path":"go.mod"}`},
		{"ask me which colour: red, green or blue, then replace red with it in a.css", "green", `edit_file {"edits":[{"old_text":"red","new_text":"green"}],"path":"a.css"}`},
		{"ask me for a command and run it", "ls; true", `run_command {"command":"ls; true"}`},
		{"ask me for a name and write it to name.txt", "The person chose not to answer.", ``},
		{"ask me for a name and write it to name.txt", "\"'`", ``},
	} {
		r := prompt(c.prompt)
		r.Tools = allTools
		calls, said, _ := turn(t, r, func(call string) (string, bool) {
			if strings.HasPrefix(call, "ask_user") {
				return c.answer, false
			}
			return "x\n[exit status 0]", false
		})
		if got := strings.Join(calls[1:], "; "); got != c.want {
			t.Errorf("%q and %q: %s, want %s; %q", c.prompt, c.answer, got, c.want, said)
		}
	}
}

// A change in many files: each is edited, and what could not be is said.
func TestOfflineReplacesEverywhere(t *testing.T) {
	files := func(fail string) func(string) (string, bool) {
		return func(call string) (string, bool) {
			switch {
			case strings.HasPrefix(call, "grep"):
				return "a b.go\nc.go\n[2 files]", false
			case fail != "" && strings.Contains(call, fail):
				return "Denied by ann. Nothing was done.", true
			}
			return "Edited.", false
		}
	}
	r := prompt("rename old to new in all go files")
	r.Tools = allTools
	calls, said, _ := turn(t, r, files(""))
	if len(calls) != 3 || !strings.Contains(calls[1], `"path":"a b.go"`) || !strings.Contains(said, "in 2 files") {
		t.Errorf("%v, %q", calls, said)
	}
	if calls, said, _ = turn(t, r, files("c.go")); len(calls) != 3 || !strings.Contains(said, "1 file so far") || !strings.Contains(said, "denied by ann") || strings.Contains(said, "Done") {
		t.Errorf("%v, %q", calls, said)
	}
}

// "it" is the file that was found, read or written last; one that is not here is
// looked for elsewhere.
func TestOfflineReadsIt(t *testing.T) {
	for p, want := range map[string]string{
		"find the file a.go and show it":    "glob read_file src/a.go",
		"write x to b.txt, then read it":    "write_file read_file b.txt",
		"replace a with b in c.go, show it": "edit_file read_file c.go",
		"what does a.go print?":             "read_file list_dir glob read_file src/a.go",
	} {
		r := prompt(p)
		r.Tools = allTools
		calls, _, _ := turn(t, r, func(call string) (string, bool) {
			switch {
			case strings.HasPrefix(call, "glob"):
				return "src/a.go\n[1 file]", false
			case call == `read_file {"path":"a.go"}`:
				return "a.go does not exist", true
			case strings.HasPrefix(call, "list_dir"):
				return "src/\n[1 entry]", false
			}
			return "x\n[1 line]", false
		})
		var names []string
		for _, c := range calls {
			name, _, _ := strings.Cut(c, " ")
			names = append(names, name)
		}
		last := calls[len(calls)-1]
		if got := strings.Join(names, " ") + " " + strings.Trim(last[strings.LastIndex(last, ":"):], `:"}`); got != want {
			t.Errorf("%q: %s, want %s", p, got, want)
		}
	}
}

// What is said around a call does not run together.
func TestOfflineBreaksLinesAroundCalls(t *testing.T) {
	for _, p := range []string{"say one, then run true, then say two", "plan and do: say one; say two", "run true; say two"} {
		r := prompt(p)
		r.Tools = allTools
		_, said, _ := turn(t, r, ok)
		if regexp.MustCompile(`[.a-z][A-Z]`).MatchString(said) || strings.HasPrefix(said, "\n") {
			t.Errorf("%q: %q", p, said)
		}
	}
}
