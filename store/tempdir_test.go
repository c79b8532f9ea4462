package store

import (
	"os"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// emptyIsNil treats an empty list as none.
var emptyIsNil cmp.Option = cmpopts.EquateEmpty()

// tempDir is t.TempDir for one check of a property, of which there are many.
func tempDir(t *rapid.T) (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}
