package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// maxEntries is how many entries of a directory are listed.
const maxEntries = 1000

//go:embed list_dir.md
var listDirText string

//go:embed list_dir.json
var listDirSchema []byte

type listDir struct{}

type listDirArgs struct {
	Path string `json:"path"`
}

func (listDir) Spec() Spec {
	return Spec{Name: "list_dir", Description: listDirText, Schema: listDirSchema, Kind: "read"}
}

func (listDir) Title(args json.RawMessage) string {
	var a listDirArgs
	peek(args, &a)
	if a.Path == "" || a.Path == "." {
		return "List the workspace"
	}
	return "List " + oneLine(a.Path, 80)
}

func (t listDir) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	a := listDirArgs{Path: "."}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	return env.look(t, a.Path, args, func(_ context.Context, path string) (Result, error) {
		text, err := list(path, env.show(path))
		return Result{Text: Cut(text, MaxResult)}, err
	})
}

// list is one entry a line, directories with a slash behind and first, then a
// last line in brackets that counts them.
func list(path, shown string) (string, error) {
	d, err := os.Open(path)
	if err != nil {
		return "", plain(shown, err)
	}
	defer d.Close()
	if fi, err := d.Stat(); err == nil && !fi.IsDir() {
		return "", fmt.Errorf("%s is a file; read it with read_file", shown)
	}
	entries, err := os.ReadDir(path)
	if err != nil && len(entries) == 0 {
		return "", plain(shown, err)
	}
	var dirs, files strings.Builder
	nDirs := 0
	for i, e := range entries {
		to, mark := &files, ""
		switch {
		case e.IsDir():
			to, mark = &dirs, "/"
			nDirs++
		case e.Type()&os.ModeSymlink != 0:
			mark = "@"
		}
		if i < maxEntries {
			fmt.Fprintf(to, "%s%s\n", clean([]byte(e.Name())), mark)
		}
	}
	more := ""
	if len(entries) > maxEntries {
		more = fmt.Sprintf(", the first %d by name are shown", maxEntries)
	}
	nouns := "directories"
	if nDirs == 1 {
		nouns = "directory"
	}
	return fmt.Sprintf("%s%s[%s: %d %s, %s%s]", dirs.String(), files.String(), path, nDirs, nouns, count(len(entries)-nDirs, "file"), more), nil
}
