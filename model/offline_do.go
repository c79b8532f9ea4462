package model

import (
	"fmt"
	"path"
	"strings"
)

// shown is how many lines of a file or an output are repeated in an answer.
const shown = 20

// readStep reads a file and shows its beginning. A quiet one only takes it in;
// about is a question to answer from it.
func readStep(file string, args readArgs, quiet bool, about string) step {
	return func(c *chat) error {
		name, err := c.take(file, args)
		if err != nil {
			return err
		}
		switch {
		case about != "":
			return c.say("%s", answer(about, name, c.text))
		case quiet:
			return nil
		}
		return c.say("%s", describeFile(name, c.text, args))
	}
}

// take reads a file into c, and forgives a small typo in its name.
func (c *chat) take(file string, args readArgs) (name string, err error) {
	file = strings.TrimRight(file, ",;:?!")
	args.Path = file
	r, err := c.call("read_file", args)
	if err != nil {
		return "", err
	}
	if r.Failed && strings.Contains(r.Text, "does not exist") {
		near, err := c.similar(file)
		if err != nil {
			return "", err
		}
		if near == "" {
			if near, err = c.elsewhere(file); err != nil {
				return "", err
			}
		}
		if near == "" {
			return "", c.drop("There is no file %s here. “list files” shows what there is.", tick(file))
		}
		if err := c.say("There is no %s, so I take it you mean %s.", tick(file), tick(near)); err != nil {
			return "", err
		}
		file, args.Path = near, near
		if r, err = c.call("read_file", args); err != nil {
			return "", err
		}
	}
	if r.Failed {
		return "", c.refused("read "+tick(file), r)
	}
	c.sees(file, withoutNote(r.Text), r)
	c.seen = file
	if first, _, _ := strings.Cut(r.Text, "\n"); strings.HasPrefix(first, "[") && strings.Contains(first, ": image/") {
		return "", c.drop("I cannot see pictures. This is %s.", strings.Trim(first, "[]"))
	}
	return file, nil
}

// elsewhere looks for the only file of that name in another directory.
func (c *chat) elsewhere(file string) (string, error) {
	if !c.has("glob") || strings.ContainsAny(file, "/*?[{\\") {
		return "", nil
	}
	r, err := c.call("glob", map[string]string{"pattern": file})
	if err != nil || r.Failed || nothing(r.Text) {
		return "", err
	}
	if found := lineList(withoutNote(r.Text)); len(found) == 1 {
		return found[0], nil
	}
	return "", nil
}

// similar looks for a file beside the one named whose name is nearly the same.
func (c *chat) similar(file string) (string, error) {
	dir, base := path.Split(file)
	if len(base) > 100 {
		return "", nil
	}
	r, err := c.call("list_dir", map[string]string{"path": or(dir, ".")})
	if err != nil || r.Failed {
		return "", err
	}
	best, bestBy := "", 3
	for name := range strings.Lines(withoutNote(r.Text)) {
		name = strings.TrimRight(name, "\n@")
		if strings.HasSuffix(name, "/") {
			continue
		}
		stem := strings.TrimSuffix(name, path.Ext(name))
		by := distance(strings.ToLower(base), strings.ToLower(name))
		if strings.EqualFold(base, stem) {
			by = 0
		}
		if by < bestBy && by <= max(1, len(base)/4) {
			best, bestBy = name, by
		}
	}
	if best == "" {
		return "", nil
	}
	return dir + best, nil
}

func listStep(dir string) step {
	return func(c *chat) error {
		r, err := c.call("list_dir", map[string]string{"path": or(dir, ".")})
		if err != nil {
			return err
		}
		if r.Failed {
			return c.refused("list "+tick(dir), r)
		}
		names := strings.Split(strings.TrimRight(withoutNote(r.Text), "\n"), "\n")
		where := "The workspace"
		if dir != "" {
			where = tick(strings.TrimRight(dir, "/"))
		}
		if len(names) == 1 && names[0] == "" {
			return c.say("%s is empty.", where)
		}
		c.sees("the list", strings.Join(names, "\n"), r)
		return c.say("%s has %s:\n\n%s", where, count(len(names), "entry", "entries"), block(strings.Join(names, "\n"), 60))
	}
}

func runStep(command string) step {
	return func(c *chat) error {
		if strings.TrimSpace(command) == "" {
			return c.say("Tell me which command, for instance “run go version”.")
		}
		if err := c.say("Running %s.", tick(command)); err != nil {
			return err
		}
		r, err := c.call("run_command", map[string]string{"command": command})
		if err != nil {
			return err
		}
		out, status := cutStatus(r.Text)
		if status == "" {
			return c.refused("run "+tick(command), r)
		}
		c.sees("the output of "+tick(command), out, r)
		c.failed = !strings.HasPrefix(status, "exit status 0")
		return c.say("%s", describeRun(command, out, status))
	}
}

// projectStep tests or builds whatever sort of project this is.
func projectStep(what string) step {
	return func(c *chat) error {
		r, err := c.call("list_dir", map[string]string{"path": "."})
		if err != nil {
			return err
		}
		for _, p := range []struct{ file, test, build string }{
			{"go.mod", "go test ./...", "go build ./..."},
			{"Cargo.toml", "cargo test", "cargo build"},
			{"package.json", "npm test", "npm run build"},
			{"pyproject.toml", "python3 -m pytest", "python3 -m build"},
			{"pom.xml", "mvn test", "mvn package"},
			{"Makefile", "make test", "make"},
		} {
			if strings.Contains("\n"+r.Text, "\n"+p.file+"\n") {
				return runStep(map[string]string{"test": p.test, "build": p.build}[what])(c)
			}
		}
		return c.say("I do not see how to %s this project. Tell me the command: “run …”.", what)
	}
}

// editArgs is one edit of edit_file.
type editArgs struct {
	Old string `json:"old_text"`
	New string `json:"new_text"`
	All bool   `json:"replace_all,omitempty"`
}

func replaceStep(file string, e editArgs) step {
	return func(c *chat) error {
		r, err := c.call("edit_file", map[string]any{"path": file, "edits": []editArgs{e}})
		if err != nil {
			return err
		}
		if r.Failed {
			if strings.Contains(r.Text, "set replace_all") {
				return c.drop("%s is in %s more than once, so I changed nothing. Say “replace all %s with %s in %s”, or give me a longer piece of the line.", tick(e.Old), tick(file), e.Old, e.New, file)
			}
			return c.refused("change "+tick(file), r)
		}
		c.seen = file
		return c.say("Done: %s is now %s. %s", tick(e.Old), tick(e.New), r.Text)
	}
}

func writeStep(file, text string) step {
	return func(c *chat) error {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		args := map[string]string{"path": file, "content": text}
		r, err := c.call("write_file", args)
		if err != nil {
			return err
		}
		if r.Failed && strings.Contains(r.Text, "was not read yet") {
			if err := c.say("%s exists already; I read it before overwriting it.", tick(file)); err != nil {
				return err
			}
			if _, err := c.take(file, readArgs{}); err != nil {
				return err
			}
			if r, err = c.call("write_file", args); err != nil {
				return err
			}
		}
		if r.Failed {
			return c.refused("write "+tick(file), r)
		}
		c.seen = file
		return c.say("%s", r.Text)
	}
}

func appendStep(file, text string) step {
	return func(c *chat) error {
		r, err := c.call("edit_file", map[string]string{"path": file, "append": text})
		if err != nil {
			return err
		}
		if r.Failed && strings.Contains(r.Text, "does not exist") {
			return writeStep(file, text)(c)
		}
		if r.Failed {
			return c.refused("add to "+tick(file), r)
		}
		c.seen = file
		return c.say("%s", r.Text)
	}
}

// refused says why something was not done, and leaves out the rest.
func (c *chat) refused(what string, r Result) error {
	text := strings.TrimSpace(r.Text)
	reason, denied := strings.CutPrefix(text, "Denied")
	if !denied {
		return c.drop("I could not %s: %s", what, text)
	}
	reason = strings.TrimSuffix(strings.TrimLeft(reason, ": "), "Nothing was done.")
	reason = strings.TrimRight(reason, ". ")
	hint := "Tell me what to do instead, or ask again and allow it."
	switch {
	case strings.HasPrefix(reason, "by "):
		reason = "it was denied " + reason
	case strings.Contains(reason, "nobody is there"):
		hint = "Attach to this session in a terminal to answer, or start it with --yes to allow everything."
	case strings.Contains(reason, "plan mode"):
		reason, hint = "the session is in plan mode, in which nothing is changed and no command runs", "Switch the mode and ask again."
	}
	return c.drop("I did not %s: %s. %s", what, reason, hint)
}

// drop says why the remaining steps are left out.
func (c *chat) drop(format string, args ...any) error {
	if err := c.say(format, args...); err != nil {
		return err
	}
	return errDrop
}

// sees takes in what a tool gave, for questions about it.
func (c *chat) sees(what, text string, r Result) {
	c.file, c.text, c.part = what, text, isPart(r.Text)
}

// isPart reports whether a tool says that it did not give all.
func isPart(text string) bool {
	i := strings.LastIndex(text, "\n[")
	return i >= 0 && strings.Contains(text[i:], "go on with ") || strings.Contains(text, " bytes left out …]") ||
		i >= 0 && strings.Contains(text[i:], "are given")
}

// withoutNote takes the last line in brackets off a tool's result.
func withoutNote(text string) string {
	text = strings.TrimRight(text, "\n")
	if i := strings.LastIndexByte(text, '\n'); strings.HasPrefix(text[i+1:], "[") {
		return text[:i+1]
	}
	return text
}

// cutStatus cuts a command's result into output and status; without one the
// command did not run.
func cutStatus(text string) (out, status string) {
	i := strings.LastIndexByte(text, '\n') + 1
	last := text[i:]
	if !strings.HasPrefix(last, "[") || !strings.HasSuffix(last, "]") {
		return text, ""
	}
	return text[:i], strings.Trim(last, "[]")
}

func describeFile(name, text string, args readArgs) string {
	lines := lineCount(text)
	switch {
	case lines == 0:
		return tick(name) + " is empty."
	case args.Limit == 1:
		return fmt.Sprintf("Line %d of %s is:\n\n%s", args.Line, tick(name), block(text, shown))
	case args.Line > 0:
		return fmt.Sprintf("Lines %d to %d of %s are:\n\n%s", args.Line, args.Line+lines-1, tick(name), block(text, 100))
	}
	what := fmt.Sprintf("%s has %s", tick(name), count(lines, "line", "lines"))
	if lines > shown {
		what += fmt.Sprintf("; the first %d are", shown)
	}
	return what + ":\n\n" + block(text, shown)
}

func describeRun(command, out, status string) string {
	code, more, _ := strings.Cut(status, "; ")
	head := "It worked"
	switch {
	case strings.HasPrefix(command, "grep ") && code == "exit status 1" && strings.TrimSpace(out) == "":
		return "Nothing was found."
	case code == "exit status 127":
		head = "There is no such command here (exit status 127)"
	case code != "exit status 0":
		head = "It failed (" + code + ")"
	}
	if strings.TrimSpace(out) == "" {
		return head + " and printed nothing."
	}
	if more = strings.ReplaceAll(more, "no output", ""); more != "" {
		head += "; " + more
	}
	lines := lineCount(out)
	if lines <= shown {
		return head + ":\n\n" + block(out, shown)
	}
	all := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if code != "exit status 0" { // what went wrong is at the end
		return fmt.Sprintf("%s. The last %d of %d lines:\n\n%s", head, shown, lines, block(strings.Join(all[lines-shown:], "\n"), shown))
	}
	cut := append(append(append([]string{}, all[:shown/2]...), fmt.Sprintf("… %d more lines …", lines-shown)), all[lines-shown/2:]...)
	return head + ":\n\n" + block(strings.Join(cut, "\n"), shown+1)
}

// block is text as a code block, at most limit lines of at most 200 characters.
func block(text string, limit int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if more := len(lines) - limit; more > 0 {
		lines = append(lines[:limit:limit], fmt.Sprintf("… %s", count(more, "more line", "more lines")))
	}
	fence := "```"
	for i, l := range lines {
		if r := []rune(l); len(r) > 200 {
			l = string(r[:200]) + "…"
		}
		for strings.Contains(l, fence) {
			fence += "`"
		}
		lines[i] = l
	}
	return fence + "\n" + strings.Join(lines, "\n") + "\n" + fence
}

func tick(s string) string {
	if strings.Contains(s, "`") || s == "" {
		return "“" + s + "”"
	}
	return "`" + s + "`"
}

func lineCount(text string) int {
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return 0
	}
	return strings.Count(text, "\n") + 1
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
