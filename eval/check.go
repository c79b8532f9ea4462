package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gladhand/sandbox"
)

const (
	// checkTimeout is how long one command of a check may take.
	checkTimeout = 2 * time.Minute
	// checkOutput is how much of what it prints is looked at.
	checkOutput = 64 << 10
)

// check is one condition. It returns what does not hold, empty when it holds.
type check func(ctx context.Context, dir, said string) string

// Check looks whether the task is done in dir, and returns the first condition
// that does not hold, in words for people; it is empty when all hold. said is
// what the agent said.
func (t Task) Check(ctx context.Context, dir, said string) string {
	if err := lay(dir, t.hidden); err != nil {
		return err.Error()
	}
	for _, c := range t.checks {
		if why := c(ctx, dir, said); why != "" {
			return why
		}
	}
	return ""
}

func parseCheck(t Task, line string) (check, error) {
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch verb {
	case "run":
		return runs(rest, nil), nil
	case "prints":
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, errors.New("the text needs quotes")
		}
		text, _ := strconv.Unquote(quoted)
		return runs(strings.TrimSpace(rest[len(quoted):]), &text), nil
	case "says":
		text := unquote(rest)
		return func(_ context.Context, _, said string) string {
			if !strings.Contains(said, text) {
				return fmt.Sprintf("the answer does not have %q", text)
			}
			return ""
		}, nil
	case "count":
		number, more, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		file, text, _ := strings.Cut(more, " ")
		return onFile(file, func(data []byte) string {
			if got := bytes.Count(data, []byte(unquote(text))); got != n {
				return fmt.Sprintf("%s has %q %d times, not %d", file, unquote(text), got, n)
			}
			return ""
		}), nil
	}
	return parseFileCheck(t, verb, rest)
}

func parseFileCheck(t Task, verb, rest string) (check, error) {
	file, text, _ := strings.Cut(rest, " ")
	text = unquote(text)
	if file == "" {
		return nil, errors.New("which file?")
	}
	switch verb {
	case "contains", "lacks":
		return onFile(file, func(data []byte) string {
			switch has := bytes.Contains(data, []byte(text)); {
			case !has && verb == "contains":
				return fmt.Sprintf("%s does not have %q", file, text)
			case has && verb == "lacks":
				return fmt.Sprintf("%s still has %q", file, text)
			}
			return ""
		}), nil
	case "matches":
		re, err := regexp.Compile(text)
		return onFile(file, func(data []byte) string {
			if !re.Match(data) {
				return fmt.Sprintf("%s does not match %s", file, text)
			}
			return ""
		}), err
	case "equals", "unchanged":
		want, ok := t.want[file]
		if verb == "unchanged" {
			want, ok = t.files[file]
		}
		if !ok {
			return nil, fmt.Errorf("there is no such file to compare it with")
		}
		return onFile(file, func(data []byte) string {
			switch same := sameText(data, want); {
			case !same && verb == "equals":
				return fmt.Sprintf("%s is not as it should be", file)
			case !same:
				return fmt.Sprintf("%s was changed", file)
			}
			return ""
		}), nil
	case "absent":
		return func(_ context.Context, dir, _ string) string {
			if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(file))); !errors.Is(err, fs.ErrNotExist) {
				return file + " is still there"
			}
			return ""
		}, nil
	}
	return nil, fmt.Errorf("there is no condition %q", verb)
}

// onFile reads a file for a condition. What stands under its name may be anything,
// since an agent was here; only a regular file below the scratch copy is read.
func onFile(name string, f func([]byte) string) check {
	return func(_ context.Context, dir, _ string) string {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err.Error()
		}
		defer root.Close()
		info, err := root.Stat(filepath.FromSlash(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "there is no " + name
		case err != nil:
			return fmt.Sprintf("%s cannot be read: %v", name, err)
		case !info.Mode().IsRegular() || info.Size() > 4<<20:
			return name + " is no plain file of a plausible size"
		}
		data, err := root.ReadFile(filepath.FromSlash(name))
		if err != nil {
			return fmt.Sprintf("%s cannot be read: %v", name, err)
		}
		return f(data)
	}
}

// runs runs a command in the scratch copy. It has no secrets in its environment:
// what it runs was perhaps written by a model.
func runs(command string, prints *string) check {
	return func(ctx context.Context, dir, _ string) string {
		var out head
		exit, err := sandbox.Run(ctx, sandbox.Command{
			Line: command, Dir: dir, Timeout: checkTimeout, Stdout: &out, Stderr: &out.err,
			Env: append(sandbox.CleanEnv(os.Environ()), "GOWORK=off", "GOFLAGS=", "GOPROXY=off", "GOTOOLCHAIN=local"),
		})
		switch {
		case err != nil:
			return fmt.Sprintf("%s: %v", command, err)
		case exit.TimedOut:
			return fmt.Sprintf("%s: took longer than %v", command, checkTimeout)
		case exit.Code != 0:
			return fmt.Sprintf("%s: exit status %d: %s", command, exit.Code, firstLines(out.String()+"\n"+out.err.String()))
		case prints != nil && strings.TrimSpace(out.String()) != strings.TrimSpace(*prints):
			return fmt.Sprintf("%s: prints %q, not %q", command, firstLines(out.String()), *prints)
		}
		return ""
	}
}

// head is the beginning of what is written to it; err is the same for the other
// stream.
type head struct {
	limited
	err limited
}

type limited struct{ b bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.b.Write(p[:min(len(p), checkOutput-l.b.Len())])
	return len(p), nil
}

func (l *limited) String() string { return l.b.String() }

// firstLines is the beginning of an output, on one line.
func firstLines(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 300 {
		return string(r[:299]) + "…"
	}
	return s
}

func unquote(s string) string {
	if t, err := strconv.Unquote(s); err == nil {
		return t
	}
	return s
}
