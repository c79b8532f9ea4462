package tool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// tree makes a small repository with what searches should and should not find.
func tree(t *testing.T) *Env {
	t.Helper()
	e := testEnv(t)
	for name, text := range map[string]string{
		".git/config":          "needle in git\n",
		".gitignore":           "*.log\n/build/\n!keep.log\n# no\nsub/only\\ here\n",
		"a.go":                 "package a\n\nfunc Needle() {}\n// needle again\n",
		"b.txt":                "one\ntwo needle\nthree\nfour\nfive\n",
		"noise.log":            "needle\n",
		"keep.log":             "needle kept\n",
		"build/x.go":           "needle\n",
		"deep/build/x.go":      "needle in a deep build\n",
		"deep/.gitignore":      "secret*\n",
		"deep/secret.txt":      "needle\n",
		"deep/down/secrets.go": "needle\n",
		".github/w.yml":        "needle: hidden\n",
		"bin.dat":              "needle\x00\n",
		"crlf.txt":             "x\r\nneedle\r\n",
		"ü/Straße.go":          "// needle ü\n",
	} {
		e.put(t, name, text)
	}
	if runtime.GOOS != "windows" {
		if err := os.Symlink(".", filepath.Join(e.Cwd, "loop")); err != nil { // R148
			t.Fatal(err)
		}
	}
	return e
}

// both runs a search with ripgrep, where it is, and without.
func both(t testing.TB, e *Env, args any, check func(t testing.TB, text string)) {
	t.Helper()
	with := e.must(t, "grep", args).Text
	check(t, with)
	without := *e
	without.Environ = []string{"PATH="}
	text := without.must(t, "grep", args).Text
	check(t, text)
	if with != text {
		t.Errorf("%v: with and without ripgrep differ:\n%s\n---\n%s", args, with, text)
	}
}

func TestGrep(t *testing.T) {
	e := tree(t)
	for _, c := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"pattern": "needle"}, ".github/w.yml:1:needle: hidden\na.go:4:// needle again\nb.txt:2:two needle\ncrlf.txt:2:needle\ndeep/build/x.go:1:needle in a deep build\nkeep.log:1:needle kept\nü/Straße.go:1:// needle ü\n[7 lines in 7 files; also found in 1 binary file, not shown: bin.dat]"},
		{map[string]any{"pattern": "NEEDLE", "ignore_case": true, "path": "a.go"}, "a.go:3:func Needle() {}\na.go:4:// needle again\n[2 lines in 1 file]"},
		{map[string]any{"pattern": "needle", "mode": "files", "glob": "*.go"}, "a.go\ndeep/build/x.go\nü/Straße.go\n[3 files]"},
		{map[string]any{"pattern": "needle", "mode": "files", "glob": "deep/**/*.go"}, "deep/build/x.go\n[1 file]"},
		{map[string]any{"pattern": "e", "mode": "count", "path": "b.txt"}, "b.txt: 4\n[4 lines in 1 file]"},
		{map[string]any{"pattern": "two", "context": 1}, "b.txt:1-one\nb.txt:2:two needle\nb.txt:3-three\n[1 line in 1 file]"},
		{map[string]any{"pattern": "Needle()", "literal": true}, "a.go:3:func Needle() {}\n[1 line in 1 file]"},
		{map[string]any{"pattern": "needle", "path": "deep"}, "deep/build/x.go:1:needle in a deep build\n[1 line in 1 file]"},
		{map[string]any{"pattern": "^needle$", "path": "crlf.txt"}, "crlf.txt:2:needle\n[1 line in 1 file]"},
		{map[string]any{"pattern": "absent"}, "[nothing found; what git ignores, and files over 32 MiB, are left out]"},
		{map[string]any{"pattern": "-e"}, "[nothing found; what git ignores, and files over 32 MiB, are left out]"},
	} {
		both(t, e, c.args, func(t testing.TB, text string) {
			if text != c.want {
				t.Errorf("%v gave\n%s\nwant\n%s", c.args, text, c.want)
			}
		})
	}
	for _, bad := range []map[string]any{
		{"pattern": "("},
		{"pattern": ""},
		{"pattern": "a\nb"},
		{"pattern": "x", "mode": "all"},
		{"pattern": "x", "glob": "["},
		{"pattern": "x", "context": 21},
		{"pattern": strings.Repeat("x", maxPattern+1)},
		{"pattern": "x", "glob": "/etc/*"},
	} {
		if _, err := e.prepare(t, "grep", bad); err == nil {
			t.Errorf("%.60v was accepted", bad)
		}
	}
	if _, err := e.do(t, "grep", map[string]any{"pattern": "x", "path": "nowhere"}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Error(err)
	}
}

// Limits: lines given, and long lines.
func TestGrepLimits(t *testing.T) {
	e := testEnv(t)
	e.put(t, "many", strings.Repeat("x\n", maxMatches))
	both(t, e, map[string]any{"pattern": "x"}, func(t testing.TB, text string) {
		if !strings.HasSuffix(text, "[500 lines in 1 file]") {
			t.Error(text[len(text)-80:])
		}
	})
	e.put(t, "many", strings.Repeat("x\n", maxMatches+1))
	both(t, e, map[string]any{"pattern": "x"}, func(t testing.TB, text string) {
		if !strings.HasSuffix(text, "[501 lines in 1 file; the first 500 are given, narrow the search to see others]") {
			t.Error(text[len(text)-80:])
		}
	})
	e.put(t, "many", strings.Repeat("é", 1<<20)+"needle\n")
	both(t, e, map[string]any{"pattern": "needle"}, func(t testing.TB, text string) {
		if len(text) > 2*maxMatchLine || !strings.Contains(text, "…") {
			t.Errorf("%d bytes", len(text))
		}
	})
}

// R148: a huge sparse file and things that are no files do not hold a search up, and
// cancelling ends it.
func TestGrepBounds(t *testing.T) {
	e := tree(t)
	f, err := os.Create(filepath.Join(e.Cwd, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(5 << 30); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	f.Close()
	both(t, e, map[string]any{"pattern": "needle", "mode": "files", "glob": "*.go"}, func(t testing.TB, text string) {
		if !strings.HasSuffix(text, "[3 files]") {
			t.Error(text)
		}
	})
	call, err := e.prepare(t, "grep", map[string]any{"pattern": "needle"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := call.Run(ctx, NewOutput(MaxResult, "")); err == nil {
		t.Error("a cancelled search gave a result")
	}
}

func TestGlob(t *testing.T) {
	e := tree(t)
	for pattern, want := range map[string]string{
		"*.go":              "a.go\ndeep/build/x.go\nü/Straße.go\n[3 files]",
		"**/*.go":           "a.go\ndeep/build/x.go\nü/Straße.go\n[3 files]",
		"deep/**":           "deep/.gitignore\ndeep/build/x.go\n[2 files]",
		"*.{txt,yml}":       ".github/w.yml\nb.txt\ncrlf.txt\n[3 files]",
		"./b.*":             "b.txt\n[1 file]",
		"*.log":             "keep.log\n[1 file]",
		"nothing":           "[no files match; what git ignores is left out]",
		"config":            "[no files match; what git ignores is left out]",
		"build/[a-z].go":    "[no files match; what git ignores is left out]",
		"deep/build/[!a].*": "deep/build/x.go\n[1 file]",
	} {
		if got := e.must(t, "glob", map[string]any{"pattern": pattern}).Text; got != want {
			t.Errorf("%s gave\n%s\nwant\n%s", pattern, got, want)
		}
	}
	if got := e.must(t, "glob", map[string]any{"pattern": "*", "path": "deep"}).Text; got != "deep/.gitignore\ndeep/build/x.go\n[2 files]" {
		t.Error(got)
	}
	for _, bad := range []map[string]any{{"pattern": ""}, {"pattern": "["}, {"pattern": "/etc/*"}, {"pattern": "x", "path": "a\x00"}} {
		if _, err := e.prepare(t, "glob", bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
	many := testEnv(t)
	for i := range maxFound + 1 {
		many.put(t, fmt.Sprintf("f%04d", i), "")
	}
	if got := many.must(t, "glob", map[string]any{"pattern": "f*"}).Text; !strings.HasSuffix(got, "f0999\n[the first 1000; make the pattern narrower, or give a path]") {
		t.Error(got[len(got)-120:])
	}
	if err := os.Remove(filepath.Join(many.Cwd, "f1000")); err != nil {
		t.Fatal(err)
	}
	if got := many.must(t, "glob", map[string]any{"pattern": "f*"}).Text; !strings.HasSuffix(got, "f0999\n[1000 files]") {
		t.Error(got[len(got)-120:])
	}
}

// A repository in a repository has rules of its own, and a worktree those of its
// repository.
func TestSearchRepositories(t *testing.T) {
	e := testEnv(t)
	for name, text := range map[string]string{
		".git/HEAD":            "",
		".git/info/exclude":    "excluded\n",
		".gitignore":           "*.x\n/sub/deep/y\n",
		"a.x":                  "needle\n",
		"excluded":             "needle\n",
		"sub/deep/y":           "needle\n",
		"sub/deep/z":           "needle\n",
		"inner/.git/HEAD":      "",
		"inner/.gitignore":     "*.y\n",
		"inner/a.x":            "needle\n",
		"inner/a.y":            "needle\n",
		"inner/excluded":       "needle\n",
		"plain/node/.git/HEAD": "",
	} {
		e.put(t, name, text)
	}
	for path, want := range map[string]string{
		".":     "inner/a.x:1:needle\ninner/excluded:1:needle\nsub/deep/z:1:needle\n[3 lines in 3 files]",
		"sub":   "sub/deep/z:1:needle\n[1 line in 1 file]",
		"inner": "inner/a.x:1:needle\ninner/excluded:1:needle\n[2 lines in 2 files]",
	} {
		both(t, e, map[string]any{"pattern": "needle", "path": path}, func(t testing.TB, text string) {
			if text != want {
				t.Errorf("%s: %s", path, text)
			}
		})
	}
	w := testEnv(t)
	main := filepath.Join(w.Cwd, "main")
	for name, text := range map[string]string{
		"main/.git/HEAD":                     "ref: refs/heads/main\n",
		"main/.git/info/exclude":             "secret\n",
		"main/.git/worktrees/tree/commondir": "../..\n",
		"main/.git/worktrees/tree/gitdir":    filepath.Join(w.Cwd, "tree", ".git") + "\n",
		"main/.git/worktrees/tree/HEAD":      "ref: refs/heads/x\n",
		"tree/.git":                          "gitdir: " + filepath.Join(main, ".git", "worktrees", "tree") + "\n",
		"tree/secret":                        "needle\n",
		"tree/open":                          "needle\n",
	} {
		w.put(t, name, text)
	}
	both(t, w, map[string]any{"pattern": "needle", "path": "tree"}, func(t testing.TB, text string) {
		if text != "tree/open:1:needle\n[1 line in 1 file]" {
			t.Error(text)
		}
	})
}
