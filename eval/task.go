package eval

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

//go:embed tasks/*.txtar
var files embed.FS

// Task is one task.
type Task struct {
	Name, Title string
	// Prompt is what the agent is asked.
	Prompt string
	// Needs are programs without which the task makes no sense.
	Needs []string
	// Offline says that the offline model is expected to do it.
	Offline bool

	files  map[string][]byte // the scratch copy
	hidden map[string][]byte // put there before the check
	want   map[string][]byte
	checks []check
}

// Tasks are all tasks, by name.
func Tasks() ([]Task, error) {
	list, err := files.ReadDir("tasks")
	if err != nil {
		return nil, err
	}
	var tasks []Task
	for _, f := range list {
		text, err := files.ReadFile(path.Join("tasks", f.Name()))
		if err != nil {
			return nil, err
		}
		t, err := Parse(strings.TrimSuffix(f.Name(), ".txtar"), text)
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", f.Name(), err)
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// Parse reads a task, a txtar archive. Its comment has the lines
//
//	title: fix a failing test
//	needs: go                 programs, without which it is skipped
//	offline: yes              the offline model is expected to do it
//
// and its files are PROMPT, what the agent is asked; CHECK, the conditions, one a
// line, in order; WANT/…, files as they should be in the end; HIDDEN/…, files that
// are put in place before the check and that the agent does not see; and all
// others, the scratch copy. The conditions, in which TEXT is the rest of the line,
// in Go's quotes where it begins or ends with blanks, and FILE a slash path:
//
//	run COMMAND              it ends with status 0
//	prints "TEXT" COMMAND    and prints this, blanks at the ends aside
//	contains FILE TEXT       the file has the text
//	lacks FILE TEXT          the file is there without it
//	count N FILE TEXT        it has it N times
//	matches FILE REGEXP
//	equals FILE              it is WANT/FILE
//	unchanged FILE           it is what it was
//	absent FILE              there is no such file
//	says TEXT                the agent said it
func Parse(name string, text []byte) (Task, error) {
	t := Task{Name: name, files: map[string][]byte{}, hidden: map[string][]byte{}, want: map[string][]byte{}}
	a := txtar.Parse(text)
	for line := range strings.Lines(string(a.Comment)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.TrimSpace(line) == "":
		case ok && key == "title":
			t.Title = value
		case ok && key == "needs":
			t.Needs = strings.Fields(value)
		case ok && key == "offline" && value == "yes":
			t.Offline = true
		default:
			return t, fmt.Errorf("line %q is not understood", strings.TrimSpace(line))
		}
	}
	var checks []byte
	for _, f := range a.Files {
		hidden, isHidden := strings.CutPrefix(f.Name, "HIDDEN/")
		want, isWant := strings.CutPrefix(f.Name, "WANT/")
		switch {
		case f.Name == "PROMPT":
			t.Prompt = strings.TrimRight(string(f.Data), "\n")
		case f.Name == "CHECK":
			checks = f.Data
		case isHidden:
			t.hidden[hidden] = f.Data
		case isWant:
			t.want[want] = f.Data
		default:
			t.files[f.Name] = f.Data
		}
	}
	for line := range strings.Lines(string(checks)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		c, err := parseCheck(t, line)
		if err != nil {
			return t, fmt.Errorf("condition %q: %w", line, err)
		}
		t.checks = append(t.checks, c)
	}
	if t.Title == "" || t.Prompt == "" || len(t.checks) == 0 {
		return t, fmt.Errorf("a title, a prompt or a check is missing")
	}
	return t, nil
}

// Lay makes the scratch copy in dir, which must not be there.
func (t Task) Lay(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("the scratch copy of %s cannot be made: %w", t.Name, err)
	}
	return lay(dir, t.files)
}

func lay(dir string, files map[string][]byte) error {
	for name, data := range files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("%s is not below the scratch copy", name)
		}
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(p, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// sameText compares texts; which line ends a file has is no matter here.
func sameText(a, b []byte) bool {
	clean := func(s []byte) []byte { return bytes.ReplaceAll(s, []byte("\r\n"), []byte("\n")) }
	return bytes.Equal(clean(a), clean(b))
}
