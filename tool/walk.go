package tool

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
)

// walkMax is how many files and directories a walk looks at.
const walkMax = 2_000_000

// walk calls visit for every regular file below root, in the order of their names,
// leaving out what git ignores and what is git's own. Symbolic links are not followed.
// It ends when visit returns false, and with ctx. What cannot be read is passed over.
func walk(ctx context.Context, root string, visit func(path string, e fs.DirEntry) bool) error {
	w := &walker{ctx: ctx, visit: visit, left: walkMax}
	w.dir(root, ignoresOf(root))
	return ctx.Err()
}

type walker struct {
	ctx   context.Context
	visit func(string, fs.DirEntry) bool
	left  int
}

// dir reports whether the walk goes on.
func (w *walker) dir(dir string, g *ignores) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true
	}
	rel := ""
	if g != nil {
		if r, err := filepath.Rel(g.top, dir); err == nil && r != "." {
			rel = filepath.ToSlash(r) + "/"
		}
	}
	for _, e := range entries {
		if w.left--; w.left < 0 || w.ctx.Err() != nil {
			return false
		}
		if e.Name() == ".git" || g.match(rel+e.Name(), e.IsDir()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if !w.dir(path, g.below(path)) {
				return false
			}
		case e.Type().IsRegular():
			if !w.visit(path, e) {
				return false
			}
		}
	}
	return true
}
