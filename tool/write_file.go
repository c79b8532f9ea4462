package tool

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gladhand"
)

//go:embed write_file.md
var writeFileText string

//go:embed write_file.json
var writeFileSchema []byte

type writeFile struct{}

type writeFileArgs struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

func (writeFile) Spec() Spec {
	return Spec{Name: "write_file", Description: writeFileText, Schema: writeFileSchema, Kind: "edit"}
}

func (writeFile) Title(args json.RawMessage) string {
	var a writeFileArgs
	peek(args, &a)
	return "Write " + oneLine(a.Path, 80)
}

func (t writeFile) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	var a writeFileArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	if a.Content == nil {
		return nil, errors.New(`argument "content" is missing`)
	}
	if len(*a.Content) > maxFile {
		return nil, fmt.Errorf("the content is over %d MiB", maxFile>>20)
	}
	path, err := env.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	base, err := load(path, env.show(path))
	if err != nil {
		return nil, err
	}
	w := fileChange{env: env, tool: "write_file", given: a.Path, path: path, base: base, after: content{[]byte(*a.Content)}}
	if !base.exists {
		w.diffs = []Diff{{Path: path, New: Cut(*a.Content, maxHunk)}}
		w.done = fmt.Sprintf("Created %s (%s).", env.show(path), describeSize(w.after[0]))
		return w.call("Create "+oneLine(env.show(path), 80), args), nil
	}
	switch last, ok := env.Files.last(path); {
	case !ok:
		return nil, fmt.Errorf("%s exists and was not read yet; read it before overwriting it, or change parts of it with edit_file", env.show(path))
	case last != base.digest:
		return nil, errChanged(env.show(path))
	}
	after, kept := likeOld(base.data, w.after[0])
	if bytes.Equal(after, base.data) {
		return nil, errNothing
	}
	w.after = content{after}
	w.diffs = diffs(path, base.data, []splice{{start: 0, end: len(base.data), with: after}})
	w.done = fmt.Sprintf("Wrote %s (%s).", env.show(path), describeSize(after))
	if len(kept) > 0 {
		w.done += " Kept from the old file: " + strings.Join(kept, ", ") + "."
	}
	return w.call(t.Title(args), args), nil
}

func describeSize(data []byte) string {
	lines := bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		lines++
	}
	return fmt.Sprintf("%s, %s", count(lines, "line"), count(len(data), "byte"))
}

// fileChange is a prepared change to one file, of write_file and edit_file.
type fileChange struct {
	env         *Env
	tool        string
	given, path string
	base        fileState
	after       content
	diffs       []Diff
	line        int
	done        string // what is reported
}

func (w fileChange) call(title string, args json.RawMessage) *Call {
	return &Call{
		Title:     title,
		Locations: []Location{{Path: w.path, Line: w.line}},
		Action:    gladhand.Action{Tool: w.tool, Effect: gladhand.EffectEdit, Paths: []string{w.path}},
		Diffs:     w.diffs,
		Digest: func() (string, error) {
			path, err := w.env.resolve(w.given)
			if err != nil {
				return "", err
			}
			now, err := w.base.now(path, w.env.show(path))
			// What is written follows from the arguments and the state that was loaded.
			return digest(w.tool, string(args), path, now, w.base.digest), err
		},
		Run: func(ctx context.Context, _ *Output) (Result, error) {
			if err := w.env.still(w.given, w.path); err != nil {
				return Result{}, err
			}
			if err := ctx.Err(); err != nil {
				return Result{}, err
			}
			after := make(chan string, 1)
			go func() { after <- w.after.sum() }() // while the disk is busy
			if err := put(w.path, w.env.show(w.path), w.base, w.after); err != nil {
				return Result{}, err
			}
			w.env.Files.saw(w.path, <-after)
			return Result{Text: w.done}, nil
		},
	}
}
