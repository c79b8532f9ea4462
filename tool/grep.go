package tool

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Limits of one search.
const (
	maxMatches   = 500      // lines given
	maxMatchText = 64 << 10 // bytes given
	maxMatchLine = 500      // bytes of one line that are given
	maxGathered  = 20_000   // lines gathered before it stops searching
	maxSearched  = 32 << 20 // bytes of a file in a directory; larger ones are passed over
	maxPattern   = 10 << 10 // bytes
	maxSearch    = 30 * time.Second
)

// What a search gives.
const (
	modeContent = "content"
	modeFiles   = "files"
	modeCount   = "count"
)

//go:embed grep.md
var grepText string

//go:embed grep.json
var grepSchema []byte

// grep searches with ripgrep where it is, else by itself. Both give the same: what is
// said about files that are left out, and the order, does not depend on it.
type grep struct{}

type grepArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
	Mode    string `json:"mode"`
	Fold    bool   `json:"ignore_case"`
	Literal bool   `json:"literal"`
	Context int    `json:"context"`
}

func (grep) Spec() Spec {
	return Spec{Name: "grep", Description: grepText, Schema: grepSchema, Kind: "search"}
}

func (grep) Title(args json.RawMessage) string {
	var a grepArgs
	peek(args, &a)
	title := "Search for " + oneLine(a.Pattern, 60)
	if a.Path != "" && a.Path != "." {
		title += " in " + oneLine(a.Path, 60)
	}
	return title
}

func (t grep) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	a := grepArgs{Path: ".", Mode: modeContent}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	q, err := newQuery(a)
	if err != nil {
		return nil, err
	}
	return env.look(t, a.Path, args, func(ctx context.Context, path string) (Result, error) {
		text, err := q.search(ctx, env, path)
		return Result{Text: text}, err
	})
}

// query is a search that has been checked.
type query struct {
	grepArgs
	*pattern
	glob     string // "" for every file
	patience time.Duration
}

func newQuery(a grepArgs) (*query, error) {
	q := &query{grepArgs: a, patience: maxSearch}
	switch {
	case a.Pattern == "":
		return nil, errors.New(`argument "pattern" is missing`)
	case len(a.Pattern) > maxPattern:
		return nil, fmt.Errorf("the pattern is over %d bytes", maxPattern)
	case a.Mode != modeContent && a.Mode != modeFiles && a.Mode != modeCount:
		return nil, fmt.Errorf("mode is content, files or count, not %q", a.Mode)
	case a.Context < 0 || a.Context > 20:
		return nil, errors.New("context must be 0 to 20")
	}
	expr := a.Pattern
	if a.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	var err error
	if q.pattern, err = newPattern(expr, a.Fold); err != nil {
		return nil, err
	}
	if a.Glob != "" {
		if q.glob, err = checkGlob(a.Glob); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// hit is a line that was found, or one around it. In modes files and count line is 0
// and n the number of lines.
type hit struct {
	path  string // absolute
	line  int
	near  bool // it is only around one that was found
	text  string
	count int
}

// found is what a search gathered.
type found struct {
	hits   []hit
	binary []string // files that have hits and are no text
	more   bool     // it stopped before the end
	late   bool     // because it took too long
	unread bool     // something could not be read
}

var errLate = errors.New("the search took too long")

func (q *query) search(ctx context.Context, env *Env, path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", plain(env.show(path), err)
	}
	limited, stop := context.WithTimeoutCause(ctx, q.patience, errLate)
	defer stop()
	var f found
	if fi.IsDir() {
		done := false
		if f, done, err = q.ripgrep(limited, env, path); !done {
			f, err = q.ourselves(limited, path)
		}
	} else {
		f, err = q.one(limited, path, env.show(path))
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil && errors.Is(context.Cause(limited), errLate) {
		f.late, f.more, err = true, true, nil
	}
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(f.hits, func(a, b hit) int {
		return cmp.Or(comparePaths(a.path, b.path), cmp.Compare(a.line, b.line))
	})
	slices.SortFunc(f.binary, comparePaths)
	return q.text(env, f), nil
}

// one searches one file, of any size.
func (q *query) one(ctx context.Context, path, shown string) (found, error) {
	f, fi, err := openRegular(path, shown)
	if err != nil {
		return found{}, err
	}
	defer f.Close()
	head := make([]byte, binaryHead)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return found{}, plain(shown, err)
	}
	enc := encodingOf(head[:n])
	utf16 := enc == utf16LE || enc == utf16BE
	switch {
	case utf16 && fi.Size() > maxSearched:
		return found{}, fmt.Errorf("%s has %d bytes of UTF-16; files of this size are not searched, use a command", shown, fi.Size())
	case !utf16 && isBinary(head[:n]):
		return found{}, fmt.Errorf("%s is binary and is not searched", shown)
	}
	whole := io.MultiReader(bytes.NewReader(head[:n]), f)
	if !utf16 {
		return q.large(ctx, path, whole, partSize)
	}
	data, err := io.ReadAll(io.LimitReader(whole, maxSearched))
	if err != nil {
		return found{}, plain(shown, err)
	}
	s := scan{q: q, path: path, line: 1}
	s.file(data)
	return found{hits: s.hits}, nil
}

// binaryHead is how far a file is looked at to tell whether it is binary.
const binaryHead = 64 << 10

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), binaryHead)], 0) >= 0
}

// dropBinary takes the hits in binary files out.
func (f *found) dropBinary() {
	last, drop := "", false
	head := make([]byte, binaryHead)
	f.hits = slices.DeleteFunc(f.hits, func(h hit) bool {
		if h.path == last {
			return drop
		}
		last, drop = h.path, false
		file, _, err := openRegular(h.path, h.path)
		if err != nil {
			return false // it is gone meanwhile
		}
		defer file.Close()
		n, _ := io.ReadFull(file, head)
		if enc := encodingOf(head[:n]); enc != utf16LE && enc != utf16BE && isBinary(head[:n]) {
			drop = true
			f.binary = append(f.binary, h.path)
		}
		return drop
	})
}

// comparePaths orders paths as a walk meets them.
func comparePaths(a, b string) int {
	if a == b {
		return 0
	}
	return strings.Compare(strings.ReplaceAll(a, string(filepath.Separator), "\x01"), strings.ReplaceAll(b, string(filepath.Separator), "\x01"))
}

// text is what the model is given, bounded.
func (q *query) text(env *Env, f found) string {
	var b strings.Builder
	files, lines, given := 0, 0, 0
	last := ""
	lastLine := 0
	for _, h := range f.hits {
		if h.path != last {
			files++
		}
		if !h.near {
			lines += max(h.count, 1)
		}
		full := given >= maxMatches || b.Len() >= maxMatchText
		if full {
			last = h.path
			continue
		}
		given++
		name := clean([]byte(env.show(h.path)))
		switch {
		case q.Mode == modeFiles:
			fmt.Fprintln(&b, name)
		case q.Mode == modeCount:
			fmt.Fprintf(&b, "%s: %d\n", name, h.count)
		default:
			if q.Context > 0 && last != "" && (h.path != last || h.line != lastLine+1) {
				b.WriteString("--\n")
			}
			sign := ":"
			if h.near {
				sign = "-"
			}
			fmt.Fprintf(&b, "%s:%d%s%s\n", name, h.line, sign, h.text)
		}
		last, lastLine = h.path, h.line
	}
	b.WriteString(q.summary(env, f, files, lines, given))
	return b.String()
}

func (q *query) summary(env *Env, f found, files, lines, given int) string {
	var s string
	switch {
	case len(f.hits) == 0:
		s = fmt.Sprintf("nothing found; what git ignores, and files over %d MiB, are left out", maxSearched>>20)
	case q.Mode == modeFiles:
		s = count(files, "file")
	default:
		s = fmt.Sprintf("%s in %s", count(lines, "line"), count(files, "file"))
	}
	switch {
	case f.late:
		s = fmt.Sprintf("stopped after %v, until then: %s", q.patience, s)
	case f.more && len(f.hits) > 0:
		s = "at least " + s
	}
	if given < len(f.hits) {
		s += fmt.Sprintf("; the first %d are given, narrow the search to see others", given)
	}
	if n := len(f.binary); n > 0 {
		var names []string
		for _, p := range f.binary[:min(n, 5)] {
			names = append(names, env.show(p))
		}
		if n > 5 {
			names = append(names, "…")
		}
		s += fmt.Sprintf("; also found in %s, not shown: %s", count(n, "binary file"), strings.Join(names, ", "))
	}
	if f.unread {
		s += "; some files could not be read"
	}
	return "[" + clean([]byte(s)) + "]"
}

// shortLine is a found line as it is given.
func shortLine(line []byte) string {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if len(line) > maxMatchLine {
		line = append(trimPartial(line[:maxMatchLine:maxMatchLine]), "…"...)
	}
	return clean(line)
}
