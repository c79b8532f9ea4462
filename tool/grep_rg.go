package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"gladhand"
	"gladhand/sandbox"
)

// ripgrep searches with rg. It reports false when rg is not there, or does not take
// the pattern: its expressions are a little different from ours.
func (q *query) ripgrep(ctx context.Context, env *Env, path string, dir bool) (found, bool, error) {
	environ := env.Environ
	if environ == nil {
		environ = sandbox.CleanEnv(os.Environ())
	}
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &rgLines{q: q, root: path, stop: func() { stop(errEnough) }}
	stderr := &Output{limit: 4 << 10, changed: make(chan struct{}, 1)}
	cwd, target := path, "./"
	if !dir {
		cwd, target = filepath.Dir(path), "./"+filepath.Base(path)
	}
	out.cwd, out.dir = cwd, dir
	exit, err := sandbox.Run(run, sandbox.Command{
		Argv: append(q.rgArgs(dir), "--", target), Dir: cwd, Env: environ, Stdout: out, Stderr: stderr,
	})
	switch {
	case errors.Is(err, errEnough):
		out.found.more = true
		return out.found, true, nil
	case ctx.Err() != nil:
		return found{}, true, ctx.Err()
	case gladhand.ReasonOf(err) == gladhand.ReasonNotFound, gladhand.ReasonOf(err) == gladhand.ReasonBlocked:
		return found{}, false, nil
	case err != nil:
		return found{}, true, err
	case exit.Code == 2 && len(out.found.hits) == 0:
		return found{}, false, nil
	}
	return out.found, true, nil
}

func (q *query) rgArgs(dir bool) []string {
	args := []string{
		"rg", "--no-config", "--color=never", "--no-heading", "--with-filename", "--null", "--no-messages",
		"--hidden", "--no-ignore-dot", "--no-ignore-global", "--glob=!.git", fmt.Sprintf("--max-filesize=%d", maxSearched),
		"--no-follow", "--engine=default", "--encoding=none", "--crlf",
	}
	switch q.Mode {
	case modeFiles:
		args = append(args, "--files-with-matches")
	case modeCount:
		args = append(args, "--count")
	default:
		args = append(args, "--line-number", fmt.Sprintf("--context=%d", q.Context), "--context-separator=")
	}
	if q.Fold {
		args = append(args, "--ignore-case")
	} else {
		args = append(args, "--case-sensitive")
	}
	if q.Literal {
		args = append(args, "--fixed-strings")
	}
	// --glob would also find what git ignores; a type does not. What is no plain
	// name is left to the reader of the lines.
	if name, ok := strings.CutPrefix(q.glob, "**/"); dir && ok && !strings.Contains(name, "/") {
		args = append(args, "--type-add=wanted:"+name, "--type=wanted")
	}
	return append(args, "--regexp="+q.Pattern)
}

// rgLines reads what rg prints: PATH NUL LINE : TEXT. It is written to by one
// goroutine.
type rgLines struct {
	q     *query
	root  string
	cwd   string
	dir   bool
	stop  func()
	rest  []byte
	found found
}

func (r *rgLines) Write(p []byte) (int, error) {
	n := len(p)
	if len(r.rest) > 0 {
		p = append(r.rest, p...)
	}
	for {
		i := bytes.IndexByte(p, '\n')
		if r.q.Mode == modeFiles {
			i = bytes.IndexByte(p, 0)
		}
		if i < 0 {
			break
		}
		r.line(p[:i])
		p = p[i+1:]
	}
	if len(p) > maxSearched {
		p = p[:0] // no line is as long
	}
	r.rest = bytes.Clone(p)
	return n, nil
}

func (r *rgLines) line(line []byte) {
	if len(r.found.hits) >= maxGathered {
		r.found.more = true
		r.stop()
		return
	}
	name, rest, ok := bytes.Cut(line, []byte{0})
	if !ok && r.q.Mode != modeFiles || !r.wanted(name) {
		return // a separator, or a file that was not asked for
	}
	if r.q.Mode == modeFiles {
		r.found.hits = append(r.found.hits, hit{path: r.path(line), count: 1})
		return
	}
	if r.q.Mode == modeCount {
		n, err := strconv.Atoi(string(bytes.TrimSuffix(rest, []byte("\r"))))
		if err == nil {
			r.found.hits = append(r.found.hits, hit{path: r.path(name), count: n})
		}
		return
	}
	i := bytes.IndexAny(rest, ":-")
	if i < 0 {
		return // says that a binary file matches
	}
	n, err := strconv.Atoi(string(rest[:i]))
	if err != nil {
		return
	}
	r.found.hits = append(r.found.hits, hit{path: r.path(name), line: n, near: rest[i] == '-', text: shortLine(rest[i+1:])})
}

// wanted reports whether a file is of those that were asked for.
func (r *rgLines) wanted(name []byte) bool {
	if r.q.glob == "" || !r.dir {
		return true
	}
	return doublestar.MatchUnvalidated(r.q.glob, filepath.ToSlash(strings.TrimPrefix(string(name), "./")))
}

func (r *rgLines) path(name []byte) string {
	return filepath.Join(r.cwd, filepath.FromSlash(strings.TrimPrefix(string(name), "./")))
}
