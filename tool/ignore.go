package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreMax is how many bytes of one .gitignore are read.
const ignoreMax = 1 << 20

// rule is one line of a .gitignore.
type rule struct {
	base    string // the directory of its file, with a slash behind, relative to the repository; "" is its top
	pattern string // a doublestar pattern over what is behind base
	negated bool
	dirOnly bool
}

// ignores are the rules that hold in a directory of a repository, the strongest last.
// Nil ignores nothing.
type ignores struct {
	top   string // the repository
	rules []rule
}

// ignoresOf finds the rules that hold in dir: those of its repository from the top
// down to and with dir. Outside of a repository there are none.
func ignoresOf(dir string) *ignores {
	top := repository(dir)
	if top == "" {
		return nil
	}
	g := &ignores{top: top}
	g.read(filepath.Join(top, ".git", "info", "exclude"), "")
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return nil
	}
	g.read(filepath.Join(top, ".gitignore"), "")
	if rel == "." {
		return g
	}
	at := ""
	for name := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		at += name + "/"
		g.read(filepath.Join(top, filepath.FromSlash(at), ".gitignore"), at)
	}
	return g
}

// repository is the directory with a .git at or above dir, "" when there is none.
func repository(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// below are the rules that hold in a directory below, given what its .gitignore adds.
func (g *ignores) below(dir string) *ignores {
	if g == nil {
		return nil
	}
	path := filepath.Join(dir, ".gitignore")
	if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
		return g
	}
	rel, err := filepath.Rel(g.top, dir)
	if err != nil {
		return g
	}
	more := &ignores{top: g.top, rules: g.rules[:len(g.rules):len(g.rules)]}
	more.read(path, filepath.ToSlash(rel)+"/")
	return more
}

func (g *ignores) read(path, base string) {
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() || fi.Size() > ignoreMax {
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return // what cannot be read ignores nothing
	}
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte(bom[utf8BOM]))) {
		if r, ok := parseRule(strings.TrimRight(string(line), "\r\n"), base); ok {
			g.rules = append(g.rules, r)
		}
	}
}

// parseRule reads a line as gitignore(5) says.
func parseRule(line, base string) (rule, bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return rule{}, false
	}
	r := rule{base: base}
	if line[0] == '!' {
		r.negated, line = true, line[1:]
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly, line = true, rest
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return rule{}, false
	}
	// Braces are no pattern to git.
	line = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(line)
	if !anchored {
		line = "**/" + line
	}
	r.pattern = line
	return r, doublestar.ValidatePattern(line)
}

// match reports whether a path, slashes and relative to the repository, is ignored.
func (g *ignores) match(path string, dir bool) bool {
	if g == nil {
		return false
	}
	for i := len(g.rules) - 1; i >= 0; i-- {
		r := &g.rules[i]
		rest, ok := strings.CutPrefix(path, r.base)
		if !ok || r.dirOnly && !dir {
			continue
		}
		if doublestar.MatchUnvalidated(r.pattern, rest) {
			return !r.negated
		}
	}
	return false
}
