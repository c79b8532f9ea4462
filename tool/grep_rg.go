package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"gladhand/sandbox"
)

// ripgrep searches a directory with rg. It reports false when rg is not there or does
// not do it: an old one, or a pattern that is too much for it.
func (q *query) ripgrep(ctx context.Context, env *Env, dir string) (found, bool, error) {
	rg := findRipgrep(env)
	if rg == "" || q.rust == "" {
		return found{}, false, nil
	}
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &rgOutput{q: q, dir: dir, stop: func() { stop(errEnough) }}
	exit, err := sandbox.Run(run, sandbox.Command{
		Argv: append(append([]string{rg}, q.rgArgs()...), "--", "./"), Dir: dir, Env: rgEnviron(), Stdout: out,
	})
	f := out.found
	switch {
	case errors.Is(err, errEnough):
	case ctx.Err() != nil: // what was found until then
	case err != nil || exit.Code > 1 && len(f.hits) == 0 || exit.Code < 0:
		return found{}, false, nil
	case exit.Code > 1:
		f.unread = true
	}
	f.dropBinary()
	return f, true, ctx.Err()
}

// findRipgrep finds rg in the PATH of commands, but for what lies in the workspace: a
// search asks nobody, so it must not run what an agent has put there.
func findRipgrep(env *Env) string {
	environ := env.Environ
	if environ == nil {
		environ = os.Environ()
	}
	path, name := "", "rg"
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && (k == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(k, "PATH")) {
			path = v
		}
	}
	if runtime.GOOS == "windows" {
		name = "rg.exe"
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(env.Cwd, file); err == nil && filepath.IsLocal(rel) {
			continue
		}
		if fi, err := os.Stat(file); err == nil && fi.Mode().IsRegular() && (runtime.GOOS == "windows" || fi.Mode().Perm()&0o111 != 0) {
			return file
		}
	}
	return ""
}

// rgEnviron is all that rg needs of an environment: nothing of it, on most systems.
func rgEnviron() []string {
	env := []string{"LC_ALL=C"}
	if root := os.Getenv("SystemRoot"); root != "" {
		env = append(env, "SystemRoot="+root)
	}
	return env
}

func (q *query) rgArgs() []string {
	args := []string{
		"--no-config", "--color=never", "--no-heading", "--with-filename", "--null", "--no-messages",
		// Which files: what walk finds.
		"--hidden", "--no-follow", "--no-ignore-dot", "--no-ignore-global", "--glob=!.git", fmt.Sprintf("--max-filesize=%d", maxSearched),
		// Which lines: binary files as text, and looked at afterwards.
		"--text", "--case-sensitive", "--regexp=" + q.rust,
	}
	switch q.Mode {
	case modeFiles:
		args = append(args, "--files-with-matches")
	case modeCount:
		args = append(args, "--count")
	default:
		args = append(args, "--line-number", fmt.Sprintf("--context=%d", q.Context), "--no-context-separator")
	}
	// --glob would also find what git ignores; a type does not. It only spares rg some
	// of the files: the reader of its output has the last word.
	if name, ok := strings.CutPrefix(q.glob, "**/"); ok && plainGlob().MatchString(name) {
		args = append(args, "--type-add=wanted:"+name, "--type=wanted")
	}
	return args
}

// plainGlob are the patterns that mean the same to everybody.
var plainGlob = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\w.*-]*(\{[\w.*-]+(,[\w.*-]+)*\})?[\w.*-]*$`)
})

// rgOutput reads what rg prints: PATH NUL LINE : TEXT, where - instead of : is a line
// near one that was found; PATH NUL COUNT; or PATH NUL. Of a text it keeps what is
// shown. It is written to by one goroutine.
type rgOutput struct {
	q    *query
	dir  string
	stop func()

	path   []byte // what came of the path, the number and the text
	number []byte
	text   []byte
	state  rgState
	found  found

	last     string // a path that was looked at, and what came of it
	lastPath string
	wanted   bool
}

type rgState int

const (
	inPath rgState = iota
	inNumber
	inText
)

func (r *rgOutput) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && !r.found.more {
		var piece []byte
		var whole bool
		switch r.state {
		case inPath:
			piece, p, whole = bytes.Cut(p, []byte{0})
			r.path = append(r.path, piece...)
			if whole && r.q.Mode == modeFiles {
				r.add(hit{count: 1})
			} else if whole {
				r.state = inNumber
			}
		case inNumber:
			i := bytes.IndexFunc(p, func(c rune) bool { return c < '0' || c > '9' })
			if whole = i >= 0; !whole {
				i = len(p)
			}
			r.number = append(r.number, p[:i]...)
			if p = p[i:]; whole {
				r.state = inText // with the sign before it
			}
		case inText:
			piece, p, whole = bytes.Cut(p, []byte("\n"))
			room := max(0, maxMatchLine+2-len(r.text)) // so much that it shows that there is more
			r.text = append(r.text, piece[:min(len(piece), room)]...)
			if whole {
				r.line()
			}
		}
	}
	return n, nil
}

// line takes a whole line.
func (r *rgOutput) line() {
	n, err := strconv.Atoi(string(r.number))
	switch {
	case err != nil || r.q.Mode == modeContent && len(r.text) == 0:
		r.add(hit{}) // it is no line of rg's
	case r.q.Mode == modeCount:
		r.add(hit{count: n})
	default:
		r.add(hit{line: n, near: r.text[0] == '-', text: shortLine(r.text[1:])})
	}
}

// add takes a hit in the file that was read last.
func (r *rgOutput) add(h hit) {
	if r.last != string(r.path) {
		r.last = string(r.path)
		rel := strings.TrimPrefix(filepath.ToSlash(r.last), "./")
		r.lastPath = filepath.Join(r.dir, filepath.FromSlash(rel))
		r.wanted = r.q.glob == "" || doublestar.MatchUnvalidated(r.q.glob, rel)
	}
	r.path, r.number, r.text, r.state = r.path[:0], r.number[:0], r.text[:0], inPath
	if h.line == 0 && h.count == 0 || !r.wanted {
		return
	}
	h.path = r.lastPath
	r.found.hits = append(r.found.hits, h)
	if len(r.found.hits) >= maxGathered {
		r.found.more = true
		r.stop()
	}
}
