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

// ignores are the rules that hold for the entries of one directory of a repository.
// Nil ignores nothing: outside of a repository nothing is ignored.
//
// Read are .gitignore in every directory from the repository's top down, and its
// info/exclude; not the user's own core.excludesFile, since what a search finds should
// not depend on who runs the daemon. Unlike git's own, these rules leave out a file
// that is tracked and ignored, as ripgrep does.
type ignores struct {
	rel   string // the directory, relative to the repository, with a slash behind; "" is its top
	rules []rule // the strongest last
}

// rule is one line of a .gitignore.
type rule struct {
	base    string // the directory of its file, as in ignores.rel
	text    string // what is compared, by kind
	kind    ruleKind
	negated bool
	dirOnly bool
}

type ruleKind int

const (
	ruleName   ruleKind = iota // a name, at any depth
	ruleSuffix                 // the end of a name, at any depth: *.log
	ruleNames                  // a doublestar pattern for a name, at any depth
	rulePath                   // a doublestar pattern for a path below base
)

// ignoresOf finds the rules that hold in dir: those of its repository from the top
// down to and with dir.
func ignoresOf(dir string) *ignores {
	top := repository(dir)
	if top == "" {
		return nil
	}
	g := atTop(top)
	rel, err := filepath.Rel(top, dir)
	if err != nil || rel == "." {
		return g
	}
	at := top
	for name := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		at = filepath.Join(at, name)
		g = g.below(at, name)
	}
	return g
}

// repository is the directory with a .git at or above dir, "" when there is none.
func repository(dir string) string {
	for {
		if isRepository(dir) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func isRepository(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ".git"))
	return err == nil
}

// atTop are the rules at the top of a repository.
func atTop(top string) *ignores {
	g := &ignores{}
	g.read(filepath.Join(gitDir(top), "info", "exclude"))
	g.read(filepath.Join(top, ".gitignore"))
	return g
}

// gitDir is where a repository keeps what is its own: of a worktree or a submodule
// .git is a file that says so.
func gitDir(top string) string {
	dir := filepath.Join(top, ".git")
	for _, next := range []struct{ file, prefix string }{{dir, "gitdir: "}, {"commondir", ""}} {
		file := next.file
		if next.prefix == "" {
			file = filepath.Join(dir, file)
		}
		text, err := readSmall(file)
		to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), next.prefix)
		switch {
		case err != nil || !ok || to == "":
		case filepath.IsAbs(to):
			dir = to
		case next.prefix != "":
			dir = filepath.Join(top, to)
		default:
			dir = filepath.Join(dir, to)
		}
	}
	return dir
}

// below are the rules that hold in the directory below that has this path and name.
func (g *ignores) below(dir, name string) *ignores {
	if isRepository(dir) {
		return atTop(dir) // another repository
	}
	if g == nil {
		return nil
	}
	more := &ignores{rel: g.rel + name + "/", rules: g.rules[:len(g.rules):len(g.rules)]}
	more.read(filepath.Join(dir, ".gitignore"))
	return more
}

func (g *ignores) read(path string) {
	text, err := readSmall(path)
	if err != nil {
		return // what cannot be read ignores nothing
	}
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte(bom[utf8BOM]))) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if r, ok := parseRule(string(line)); ok {
			r.base = g.rel
			g.rules = append(g.rules, r)
		}
	}
}

// readSmall reads a regular file of at most ignoreMax bytes.
func readSmall(path string) ([]byte, error) {
	fi, err := os.Lstat(path) // git does not follow a link here either
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular() || fi.Size() > ignoreMax:
		return nil, os.ErrInvalid
	}
	return os.ReadFile(path)
}

// parseRule reads a line as gitignore(5) says.
func parseRule(line string) (r rule, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.negated, line = true, line[1:]
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly, line = true, rest
	}
	path := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	const special = `*?[\{}`
	switch ext, star := strings.CutPrefix(line, "*"); {
	case path:
		r.kind = rulePath
		if strings.HasSuffix(line, "/**") {
			line += "/*" // what is in a directory, not the directory
		}
	case !strings.ContainsAny(line, special):
		r.kind = ruleName
	case star && !strings.ContainsAny(ext, special):
		r.kind, line = ruleSuffix, ext
	default:
		r.kind = ruleNames
	}
	if r.kind >= ruleNames { // braces are nothing special to git
		line = strings.NewReplacer(`\{`, `\{`, `\}`, `\}`, `\\`, `\\`, "{", `\{`, "}", `\}`).Replace(line)
		if !doublestar.ValidatePattern(line) {
			return r, false
		}
	}
	r.text = line
	return r, true
}

// match reports whether an entry of the directory is ignored.
func (g *ignores) match(name string, dir bool) bool {
	if g == nil {
		return false
	}
	for i := len(g.rules) - 1; i >= 0; i-- {
		r := &g.rules[i]
		if r.dirOnly && !dir {
			continue
		}
		hit := false
		switch r.kind {
		case ruleName:
			hit = name == r.text
		case ruleSuffix:
			hit = strings.HasSuffix(name, r.text)
		case ruleNames:
			hit = doublestar.MatchUnvalidated(r.text, name)
		case rulePath:
			hit = doublestar.MatchUnvalidated(r.text, g.rel[len(r.base):]+name)
		}
		if hit {
			return !r.negated
		}
	}
	return false
}
