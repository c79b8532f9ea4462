package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// waitFor is how many seconds "wait for it" waits at most; the tool takes no more.
const waitFor = 60

// inBackground are the ways to say that a command is not waited for.
var inBackground = []string{" in the background", " in background"}

func endsInBackground(clause string) bool {
	_, ok := cutBackground(strings.TrimRight(clause, " "))
	return ok
}

// cutBackground takes "in the background" off a command.
func cutBackground(command string) (string, bool) {
	for _, s := range inBackground {
		if n := len(command) - len(s); n > 0 && strings.EqualFold(command[n:], s) {
			return strings.TrimSpace(command[:n]), true
		}
	}
	if before, ok := strings.CutSuffix(command, " &"); ok && !strings.HasSuffix(before, "&") {
		return strings.TrimSpace(before), true
	}
	return command, false
}

// commandStep runs a command as it was written, in the background when that is
// behind it.
func commandStep(command string) step {
	if command, ok := cutBackground(command); ok {
		return startStep(unquote(command))
	}
	return runStep(unquote(command))
}

func parseStart(rest string) step {
	command, ok := cutBackground(rest)
	command = skip(command, "the command", "command")
	if word, _ := cutWord(command); !ok && unquote(command) == command && !fileLike(word) && !isProgram(word) {
		return nil // "start the server" says no command
	}
	if command == "" {
		return nil
	}
	return startStep(unquote(command))
}

func startStep(command string) step {
	return func(c *chat) error {
		r, err := c.call("run_command", map[string]any{"command": command, "background": true})
		if err != nil {
			return err
		}
		out, id, state := cutJob(r.Text)
		if r.Failed || id == "" {
			return c.refused("start "+tick(command), r)
		}
		c.job = job{id, command}
		c.sees("the output of "+tick(command), out, r)
		text := fmt.Sprintf("%s runs in the background as %s. “show the output of it” shows what it prints, “stop it” ends it.", tick(command), tick(id))
		if state, _, _ = strings.Cut(state, ";"); state != "running" {
			text = fmt.Sprintf("%s did not stay in the background: it %s.", tick(command), state)
		}
		if strings.TrimSpace(out) != "" {
			text += "\n\nSo far it printed this:\n\n" + block(out, shown)
		}
		return c.say("%s", text)
	}
}

// outputStep shows what a command in the background has printed; id is empty for
// the last one.
func outputStep(id string, wait int) step {
	return func(c *chat) error {
		j, err := c.jobOf(id)
		if err != nil {
			return err
		}
		args := map[string]any{"id": j.id}
		if wait > 0 {
			args["wait_seconds"] = wait
		}
		r, err := c.call("command_output", args)
		if err != nil {
			return err
		}
		if r.Failed {
			return c.refused("look at "+j.name(), r)
		}
		out, _, state := cutJob(r.Text)
		c.sees("the output of "+j.name(), out, r)
		return c.say("%s", j.report(out, state))
	}
}

// report says how far a command is and what it printed since the last look.
func (j job) report(out, state string) string {
	state, _, _ = strings.Cut(state, ";")
	how := "is still running"
	if state != "running" {
		how = "has " + state
	}
	if strings.TrimSpace(out) == "" {
		return fmt.Sprintf("%s %s, and printed nothing new.", capital(j.name()), how)
	}
	return fmt.Sprintf("%s %s. It printed:\n\n%s", capital(j.name()), how, block(out, 2*shown))
}

func killStep(id string) step {
	return func(c *chat) error {
		j, err := c.jobOf(id)
		if err != nil {
			return err
		}
		r, err := c.call("command_kill", map[string]string{"id": j.id})
		if err != nil {
			return err
		}
		if r.Failed {
			return c.refused("stop "+j.name(), r)
		}
		if c.job == j {
			c.job = job{}
		}
		out, _, state := cutJob(r.Text)
		if before, had := strings.CutPrefix(state, "it had ended before: "); had {
			return c.say("%s was not running any more: it %s.", capital(j.name()), before)
		}
		text := "Stopped " + j.name() + "."
		if strings.TrimSpace(out) != "" {
			text += " The last it printed:\n\n" + block(out, shown)
		}
		return c.say("%s", text)
	}
}

// jobOf is the command in the background with an id, or the last one.
func (c *chat) jobOf(id string) (job, error) {
	switch {
	case id != "" && id != c.job.id:
		return job{id: id}, nil
	case c.job.id == "":
		return job{}, c.drop("I know of nothing that runs in the background. Start something: “run ./server in the background”.")
	}
	return c.job, nil
}

// name is what people know it by.
func (j job) name() string {
	if j.command != "" {
		return tick(j.command)
	}
	return "the command " + tick(j.id)
}

func parseKill(clause, rest string) step {
	if strings.HasPrefix(rest, "-") {
		return runStep(clause)
	}
	id, ok := jobOf(rest)
	if !ok {
		if n, is := number(rest); is && n > 1 && !strings.Contains(rest, " ") {
			return runStep(clause) // a process
		}
		return nil
	}
	return killStep(id)
}

func parseCheck(rest string) step {
	if id, ok := jobOf(skip(rest, "on", "in on", "up on")); ok {
		return outputStep(id, 0)
	}
	return nil
}

// stopStep ends what people mean by "stop": the command in the background when
// they say "it" and nothing else is going on, else what was still to do.
func stopStep(clause string) step {
	_, rest := cutWord(clause)
	_, it := jobOf(strings.Trim(rest, " .!"))
	return func(c *chat) error {
		if it && c.first && c.job.id != "" {
			return killStep("")(c)
		}
		return c.say("Stopped. What is done stays done.")
	}
}

// jobOf is the id of a command in the background that people speak of: empty for
// the last one. It reports whether they speak of one at all.
func jobOf(what string) (id string, ok bool) {
	what = strings.Trim(what, " ?!.")
	switch strings.ToLower(skip(what, "the", "that", "this", "my", "background")) {
	case "":
		return "", what != ""
	case "it", "command", "job", "process", "server", "program", "task", "last one", "last command":
		return "", true
	}
	what = unquote(skip(what, "the", "command", "job", "process", "number", "id"))
	return what, looksLikeID(what)
}

// outputOf is the id in "the output of ID", "its output".
func outputOf(what string) (id string, ok bool) {
	rest := skip(what, "the", "new", "latest", "last", "rest of the")
	if s := strings.Trim(rest, " ?!."); s == "its output" || s == "output" {
		return "", true
	}
	if rest, ok = cutFold(rest, "output of "); !ok {
		return "", false
	}
	return jobOf(rest)
}

// looksLikeID reports whether a word is an id of a command in the background.
func looksLikeID(word string) bool {
	letters, digits := 0, 0
	for _, r := range word {
		switch {
		case r > unicode.MaxASCII:
			return false
		case unicode.IsLetter(r):
			letters++
		case unicode.IsDigit(r):
			digits++
		case r != '-' && r != '_':
			return false
		}
	}
	return len(word) >= 16 && letters > 0 && (digits > 0 || len(word) >= 20)
}

// cutJob cuts what a tool says of a command in the background into the output and
// the last line, "[ID: state]".
func cutJob(text string) (out, id, state string) {
	out, note := cutStatus(strings.TrimRight(text, "\n"))
	id, state, _ = strings.Cut(note, ": ")
	if !looksLikeID(id) {
		return text, "", ""
	}
	return out, id, state
}

// lastJob is the last command that was started in the background in these messages.
func lastJob(messages []Message) (last job) {
	started := map[string]string{} // call's id to command
	for _, m := range messages {
		for _, p := range m.Parts {
			switch {
			case p.Call != nil && p.Call.Name == "run_command" && bytes.Contains(p.Call.Args, []byte(`"background"`)):
				var args struct {
					Command    string `json:"command"`
					Background bool   `json:"background"`
				}
				if json.Unmarshal(p.Call.Args, &args) == nil && args.Background {
					started[p.Call.ID] = args.Command
				}
			case p.Call != nil && p.Call.Name == "command_kill" && last.id != "" && bytes.Contains(p.Call.Args, []byte(last.id)):
				last = job{}
			case p.Result != nil && !p.Result.Failed && started[p.Result.ID] != "":
				if _, id, _ := cutJob(p.Result.Text); id != "" {
					last = job{id, started[p.Result.ID]}
				}
			}
		}
	}
	return last
}
