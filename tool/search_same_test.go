package tool

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gladhand/sandbox"
)

// fewTrees is how many trees a property is tried on when time is short.
const fewTrees = 40

func needRipgrep(t *testing.T) {
	t.Helper()
	if findRipgrep(&Env{Cwd: t.TempDir()}) == "" {
		t.Skip("ripgrep is not here")
	}
}

// fill makes a small random tree with rules, in a new directory.
func fill(t *testing.T, rt *rapid.T, texts *rapid.Generator[string]) *Env {
	dir, err := os.MkdirTemp(t.TempDir(), "tree")
	if err != nil {
		rt.Fatal(err)
	}
	e := &Env{Cwd: dir, Files: &Files{}}
	if rapid.IntRange(0, 5).Draw(rt, "repository") > 0 {
		if err := os.MkdirAll(filepath.Join(dir, ".git", "info"), 0o755); err != nil {
			rt.Fatal(err)
		}
		e.put(t, ".git/HEAD", "ref: refs/heads/main\n")
		e.put(t, ".git/config", "[core]\n\trepositoryformatversion = 0\n")
		_ = os.MkdirAll(filepath.Join(dir, ".git", "objects"), 0o755)
		_ = os.MkdirAll(filepath.Join(dir, ".git", "refs"), 0o755)
	}
	name := rapid.SampledFrom([]string{"a", "b", "ab", "a.go", "b.go", ".h", "x y", "ü"})
	path := rapid.Custom(func(rt *rapid.T) string {
		return strings.Join(rapid.SliceOfN(name, 1, 4).Draw(rt, "names"), "/")
	})
	rule := rapid.Custom(func(rt *rapid.T) string {
		r := rapid.SampledFrom([]string{"", "", "!"}).Draw(rt, "not") + rapid.SampledFrom([]string{"", "", "/", "**/"}).Draw(rt, "lead")
		r += rapid.SampledFrom([]string{"a", "b", "*.go", "a*", "?b", "[ab]", "[!a].go", "a/b", "a/*", "a/**", "*", "x\\ y", "a/**/b", "b/a.go", ".h", "ü"}).Draw(rt, "body")
		return r + rapid.SampledFrom([]string{"", "", "/", " "}).Draw(rt, "end")
	})
	for range rapid.IntRange(1, 12).Draw(rt, "files") {
		p := path.Draw(rt, "path")
		if full := filepath.Join(dir, filepath.FromSlash(p)); os.MkdirAll(filepath.Dir(full), 0o755) == nil {
			_ = os.WriteFile(full, []byte(texts.Draw(rt, "text")), 0o644) // it may be a directory already
		}
	}
	for range rapid.IntRange(0, 3).Draw(rt, "rule files") {
		p := path.Draw(rt, "in")
		if rapid.Bool().Draw(rt, "top") {
			p = "."
		}
		d := filepath.Join(dir, filepath.FromSlash(p))
		if fi, err := os.Stat(d); err == nil && fi.IsDir() {
			text := strings.Join(rapid.SliceOfN(rule, 1, 4).Draw(rt, "rules"), "\n")
			_ = os.WriteFile(filepath.Join(d, ".gitignore"), []byte(text), 0o644)
		}
	}
	return e
}

// What a walk finds is what git would add.
func TestWalkLikeGit(t *testing.T) {
	git := ""
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if p := filepath.Join(dir, "git"); git == "" {
			if _, err := os.Stat(p); err == nil {
				git = p
			}
		}
	}
	if git == "" {
		t.Skip("git is not here")
	}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n > fewTrees && !*long {
			return
		}
		e := fill(t, rt, rapid.Just("x"))
		defer os.RemoveAll(e.Cwd)
		if !isRepository(e.Cwd) {
			return
		}
		var got []string
		if _, err := walk(t.Context(), e.Cwd, func(path string, _ fs.DirEntry) bool {
			rel, _ := filepath.Rel(e.Cwd, path)
			got = append(got, filepath.ToSlash(rel))
			return true
		}); err != nil {
			rt.Fatal(err)
		}
		out := NewOutput(1<<20, "")
		exit, err := sandbox.Run(t.Context(), sandbox.Command{
			Argv: []string{git, "-c", "core.excludesFile=/dev/null", "ls-files", "-o", "--exclude-standard", "-z"}, Dir: e.Cwd, Stdout: out,
			Env: []string{"HOME=" + e.Cwd, "GIT_CONFIG_NOSYSTEM=1"},
		})
		if err != nil || exit.Code != 0 {
			rt.Fatalf("git: %v, %v", exit, err)
		}
		want := strings.FieldsFunc(out.Text(1<<20), func(c rune) bool { return c == 0 })
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("walk: %q\ngit:  %q\n%s", got, want, showRules(e))
		}
	})
}

func showRules(e *Env) string {
	var b strings.Builder
	_ = filepath.WalkDir(e.Cwd, func(path string, _ fs.DirEntry, _ error) error {
		if filepath.Base(path) == ".gitignore" {
			text, _ := os.ReadFile(path)
			fmt.Fprintf(&b, "%s: %q\n", path, text)
		}
		return nil
	})
	return b.String()
}

// Searching with ripgrep and without gives the same, whatever the files, the rules, the
// pattern and the arguments are.
func TestGrepSame(t *testing.T) {
	needRipgrep(t)
	texts := rapid.Custom(func(rt *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", "b", "needle", "Needle", "NEEDLE", "é", "ſ", "K", " ", "\t", "\r", "\n", "\n", "\n", "\r\n", "x.y", "{", "}", "(", ";", "5", "_", "\xE9", "\uFFFD", "ü", "\u2028",
		}), 0, 25).Draw(rt, "pieces"), "")
		switch rapid.IntRange(0, 12).Draw(rt, "kind") {
		case 0:
			return bom[utf8BOM] + s
		case 1:
			return string(encodeText([]byte(s), utf16LE))
		case 2:
			return string(encodeText([]byte(s), utf16BE)) + "x"
		case 3:
			return s + "\x00" + s
		}
		return s
	})
	patterns := rapid.SampledFrom([]string{
		"needle", "Needle", "a", "^a", "a$", "^$", "", "a|b", "[^a]", "[^;]$", ".", "^.$", "^..$", "\\bneedle\\b", "\\Ba", "\\w+", "\\W", "\\d", "\\s$", "\\S",
		"x.y", "x\\.y", "{", "a{", "\\{|\\}", "(", "a{1,2}", "(?:ab){2,}", "n.*e", "n.*?e", "needle.?$", "[[:alpha:]]{3}", "[[:^space:]]", "\\pL\\pL", "é", "k", "s", "[k]",
		"(?i)NEEDLE", "(?i:k)", "(?s).", "(?m)^a$", "\\x{2028}", "\u2028", "[a[b]", "[a&&b]", "[a--b]", "\\r", "a\\r?$", "[\\r]", "[\\n]", "\\Qx.y\\E", "\\Aa", "a\\z", "(a)|(b)", "()", "a*", "\uFFFD", "[\\x{FFFD}]", "(?U)a+", "[\\x80-\\xFF]", "-e", "--help",
	})
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n > fewTrees && !*long {
			return
		}
		e := fill(t, rt, texts)
		defer os.RemoveAll(e.Cwd)
		args := map[string]any{
			"pattern": patterns.Draw(rt, "pattern"), "mode": rapid.SampledFrom([]string{modeContent, modeContent, modeFiles, modeCount}).Draw(rt, "mode"),
			"ignore_case": rapid.Bool().Draw(rt, "fold"), "literal": rapid.IntRange(0, 4).Draw(rt, "literal") == 0, "context": rapid.IntRange(0, 3).Draw(rt, "context"),
			"glob": rapid.SampledFrom([]string{"", "", "*.go", "a*", "**/b/*", "a/**", "[!a]*", "*.{go,h}", "{a,b}", "?"}).Draw(rt, "glob"),
			"path": rapid.SampledFrom([]string{".", ".", "a", "a/b", "a.go"}).Draw(rt, "path"),
		}
		with, err := e.try(t, args)
		without := *e
		without.Environ = []string{"PATH="}
		text, err2 := without.try(t, args)
		if with != text || (err == nil) != (err2 == nil) {
			rt.Fatalf("%v\nwith:    %q, %v\nwithout: %q, %v\n%s", args, with, err, text, err2, showRules(e))
		}
	})
}

func (e *Env) try(t *testing.T, args any) (string, error) {
	c, err := e.prepare(t, "grep", args)
	if err != nil {
		return "", err
	}
	r, err := c.Run(context.WithoutCancel(t.Context()), nil)
	return r.Text, err
}

// What lies in the workspace is not run as ripgrep: a search asks nobody.
func TestGrepRunsNothingOfTheWorkspace(t *testing.T) {
	e := testEnv(t)
	bin := filepath.Dir(e.put(t, "node_modules/.bin/rg", "#!/bin/sh\ntouch \"$0\".ran; echo\n"))
	if err := os.Chmod(filepath.Join(bin, "rg"), 0o755); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	if err := os.Symlink(filepath.Join(bin, "rg"), filepath.Join(outside, "rg")); err != nil {
		t.Skip(err)
	}
	e.put(t, "f", "needle\n")
	for _, path := range []string{bin, outside, "node_modules/.bin", "."} {
		e.Environ = []string{"PATH=" + path}
		if got := e.must(t, "grep", map[string]any{"pattern": "^needle"}).Text; got != "f:1:needle\n[1 line in 1 file]" {
			t.Errorf("PATH %s: %q", path, got)
		}
	}
	if _, err := os.Stat(filepath.Join(bin, "rg.ran")); err == nil {
		t.Error("it was run")
	}
}
