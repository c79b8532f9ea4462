package eval

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/client"
)

// Every task is whole, and an agent that does nothing fails it.
func TestTasks(t *testing.T) {
	tasks, err := Tasks()
	if err != nil {
		t.Fatal(err)
	}
	offline := 0
	for _, task := range tasks {
		if task.Offline {
			offline++
		}
		t.Run(task.Name, func(t *testing.T) {
			for _, p := range task.Needs {
				if _, err := exec.LookPath(p); err != nil {
					t.Skip(err)
				}
			}
			dir := filepath.Join(t.TempDir(), task.Name)
			if err := task.Lay(dir); err != nil {
				t.Fatal(err)
			}
			if task.Check(t.Context(), dir, "") == "" {
				t.Error("it is done before anybody did anything")
			}
			if err := task.Lay(dir); err == nil {
				t.Error("a scratch copy is laid over another one")
			}
		})
	}
	if len(tasks) != 10 || offline < 4 {
		t.Errorf("%d tasks, %d for the offline model", len(tasks), offline)
	}
}

func TestParseRefuses(t *testing.T) {
	const rest = "-- PROMPT --\nx\n-- CHECK --\nabsent x\n"
	if _, err := Parse("x", []byte("title: x\n"+rest)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"no title":         rest,
		"no prompt":        "title: x\n-- CHECK --\nabsent x\n",
		"no check":         "title: x\n-- PROMPT --\nx\n",
		"an unknown word":  "title: x\nlevel: 3\n" + rest,
		"no condition":     "title: x\n-- PROMPT --\nx\n-- CHECK --\nis fine\n",
		"no file":          "title: x\n-- PROMPT --\nx\n-- CHECK --\ncontains\n",
		"nothing to equal": "title: x\n-- PROMPT --\nx\n-- CHECK --\nequals a.txt\n",
		"no quotes":        "title: x\n-- PROMPT --\nx\n-- CHECK --\nprints x go version\n",
		"no number":        "title: x\n-- PROMPT --\nx\n-- CHECK --\ncount x y z\n",
		"a bad expression": "title: x\n-- PROMPT --\nx\n-- CHECK --\nmatches x [\n",
	} {
		if _, err := Parse("x", []byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	task, err := Parse("x", []byte("title: x\n"+rest+"-- ../up.txt --\nx\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Lay(filepath.Join(t.TempDir(), "x")); err == nil {
		t.Error("a file outside the scratch copy was written")
	}
}

func TestConditions(t *testing.T) {
	dir := t.TempDir()
	if err := lay(dir, map[string][]byte{"a.txt": []byte("one two two\r\n"), "d/b.txt": []byte("b\n")}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "secret"), filepath.Join(dir, "link")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	for line, holds := range map[string]bool{
		"contains a.txt one two":       true,
		"contains a.txt \"two\\r\\n\"": true,
		"contains a.txt three":         false,
		"contains none.txt one":        false,
		"contains d one":               false,
		"contains link x":              false,
		"contains ../x y":              false,
		"lacks a.txt three":            true,
		"lacks a.txt two":              false,
		"lacks none.txt two":           false,
		"count 2 a.txt two":            true,
		"count 1 a.txt two":            false,
		"matches a.txt ^one( two)+":    true,
		"matches a.txt ^two":           false,
		"equals a.txt":                 true, // line ends do not matter
		"equals d/b.txt":               false,
		"unchanged d/b.txt":            true,
		"unchanged a.txt":              false,
		"absent c.txt":                 true,
		"absent d":                     false,
		"says the cause":               true,
		"says a guess":                 false,
		"run exit 0":                   true,
		"run exit 3":                   false,
		"run nosuchcommand":            false,
		"prints \"x\" echo x":          true,
		"prints \"x\" echo y":          false,
	} {
		task, err := Parse("x", []byte("title: x\n-- PROMPT --\nx\n-- CHECK --\n"+line+"\n-- WANT/a.txt --\none two two\n-- WANT/d/b.txt --\nx\n-- a.txt --\nx\n-- d/b.txt --\nb\n"))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if why := task.Check(t.Context(), dir, "this is the cause"); (why == "") != holds {
			t.Errorf("%s: %q", line, why)
		}
	}
}

// A check runs what a model wrote: without our secrets, and not for ever.
func TestCommandsHaveNoSecrets(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a POSIX shell's test")
	}
	t.Setenv("ANTHROPIC_API_KEY", "canary")
	if why := runs(`env | grep canary && exit 3; exit 0`, nil)(t.Context(), t.TempDir(), ""); why != "" {
		t.Error(why)
	}
}

func update(turn gladhand.TurnID, raw string) client.Update {
	u := client.UpdateOf(gladhand.LoggedUpdate{Update: json.RawMessage(raw)})
	u.Meta.Turn = turn
	return u
}

// Steps, calls, tokens and costs are read off the events, whoever the agent is.
func TestFollowerCounts(t *testing.T) {
	text := func(s string) string { return string(acp.MessageChunk("m", s)) }
	call := func(id, status string) string {
		return string(acp.ToolCall(acp.ToolState{ID: id, Title: "x", Status: status}))
	}
	end := func(id, status string) string { return string(acp.ToolUpdate(acp.ToolState{ID: id, Status: status})) }
	f := &follower{prompt: "p", calls: map[string]bool{}}
	for _, u := range []client.Update{
		update(4, text("somebody else's")),
		update(5, `{"sessionUpdate":"_gladhand_turn_start","turn":5,"promptIds":["p"]}`),
		update(5, text("I look")), update(5, text(" at it.")),
		update(5, call("1", "pending")), update(5, call("2", "pending")),
		update(5, end("1", "in_progress")), update(5, end("1", "completed")), update(5, end("2", "failed")),
		update(5, `{"sessionUpdate":"usage_update","used":100,"size":1000,"cost":{"amount":0.5,"currency":"USD"}}`),
		update(5, call("3", "pending")), update(5, end("3", "completed")),
		update(0, text("background")),
		update(5, text("Done.")),
		{Link: client.Lost},
		{Link: client.Back},
		update(5, `{"sessionUpdate":"usage_update","used":90,"size":1000}`),
	} {
		f.see(u)
	}
	if f.steps != 3 || len(f.calls) != 3 || f.said.String() != "I look at it.Done." {
		t.Errorf("%d steps, %d calls, %q", f.steps, len(f.calls), f.said.String())
	}
	if f.tokens == nil || *f.tokens != (Tokens{Total: 100}) || f.cost == nil || *f.cost != 0.5 {
		t.Errorf("%v %v", f.tokens, f.cost)
	}
	f.see(update(5, `{"sessionUpdate":"usage_update","used":90,"size":1000,"_meta":{"gladhand":{"turn":{"inputTokens":300,"outputTokens":20,"cost":0.25},"session":{}}}}`))
	if *f.tokens != (Tokens{300, 20, 320}) || *f.cost != 0.25 {
		t.Errorf("%v %v", *f.tokens, *f.cost)
	}
	f.see(update(5, `{"sessionUpdate":"_gladhand_turn_end","turn":5,"promptIds":["p"],"stopReason":"error","error":{"code":-32603,"message":"no key"}}`))
	if !f.ended || !strings.Contains(f.why, "no key") {
		t.Errorf("%v %q", f.ended, f.why)
	}
}
