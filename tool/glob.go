package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxFound is how many files one glob lists.
const maxFound = 1000

//go:embed glob.md
var globText string

//go:embed glob.json
var globSchema []byte

type glob struct{}

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (glob) Spec() Spec {
	return Spec{Name: "glob", Description: globText, Schema: globSchema, Kind: "search"}
}

func (glob) Title(args json.RawMessage) string {
	var a globArgs
	peek(args, &a)
	return "Find " + oneLine(a.Pattern, 80)
}

func (t glob) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	a := globArgs{Path: "."}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	pattern, err := checkGlob(a.Pattern)
	if err != nil {
		return nil, err
	}
	return env.look(t, a.Path, args, func(ctx context.Context, path string) (Result, error) {
		text, err := findFiles(ctx, path, env.show(path), pattern)
		return Result{Text: Cut(text, MaxResult)}, err
	})
}

// checkGlob makes a pattern over slashed paths; one without a slash is for names, at
// any depth.
func checkGlob(pattern string) (string, error) {
	pattern = filepath.ToSlash(strings.TrimPrefix(pattern, "./"))
	switch {
	case pattern == "":
		return "", errors.New(`argument "pattern" is missing`)
	case filepath.IsAbs(pattern) || strings.HasPrefix(pattern, "/"):
		return "", errors.New(`the pattern is matched below "path"; give the directory there`)
	case !doublestar.ValidatePattern(pattern):
		return "", fmt.Errorf("%q is not a valid pattern", pattern)
	}
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	return pattern, nil
}

func findFiles(ctx context.Context, root, shown, pattern string) (string, error) {
	if fi, err := os.Stat(root); err != nil {
		return "", plain(shown, err)
	} else if !fi.IsDir() {
		return "", fmt.Errorf("%s is a file; give a directory", shown)
	}
	var b strings.Builder
	n := 0
	w, err := walk(ctx, root, func(path string, _ fs.DirEntry) bool {
		rel, err := filepath.Rel(root, path)
		if err != nil || !doublestar.MatchUnvalidated(pattern, filepath.ToSlash(rel)) {
			return true
		}
		if n++; n > maxFound {
			return false
		}
		if shown != "." {
			rel = filepath.Join(shown, rel)
		}
		fmt.Fprintln(&b, clean([]byte(rel)))
		return true
	})
	switch {
	case err != nil:
		return "", err
	case n > maxFound:
		fmt.Fprintf(&b, "[the first %d; make the pattern narrower, or give a path]", maxFound)
	case n == 0:
		b.WriteString("[no files match; what git ignores is left out")
	default:
		fmt.Fprintf(&b, "[%s", count(n, "file"))
	}
	if n <= maxFound {
		if w.left < 0 {
			fmt.Fprintf(&b, "; it stopped after %d files, give a path", walkMax)
		}
		if w.unread {
			b.WriteString("; some directories could not be read")
		}
		b.WriteString("]")
	}
	return b.String(), nil
}
