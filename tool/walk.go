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
// It ends when visit returns false, and with ctx.
func walk(ctx context.Context, root string, visit func(path string, e fs.DirEntry) bool) (walked, error) {
	w := &walker{ctx: ctx, visit: visit, walked: walked{left: walkMax}}
	w.dir(root, ignoresOf(root))
	return w.walked, ctx.Err()
}

// walked is how a walk went.
type walked struct {
	left   int  // how much more it would have looked at; less than 0: it gave up
	unread bool // a directory could not be read
}

type walker struct {
	ctx   context.Context
	visit func(string, fs.DirEntry) bool
	walked
}

// dir reports whether the walk goes on.
func (w *walker) dir(dir string, g *ignores) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.unread = true // what came before the error is looked at
	}
	for _, e := range entries {
		if w.left--; w.left < 0 || w.ctx.Err() != nil {
			return false
		}
		name := e.Name()
		if name == ".git" || g.match(name, e.IsDir()) {
			continue
		}
		path := dir + string(filepath.Separator) + name
		if dir[len(dir)-1] == filepath.Separator { // the root of a file system
			path = dir + name
		}
		switch {
		case e.IsDir():
			if !w.dir(path, g.below(path, name)) {
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
