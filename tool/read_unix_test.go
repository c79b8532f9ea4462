//go:build unix

package tool

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// R148: what has no end, or is far too large, neither hangs nor fills memory.
func TestReadOddFiles(t *testing.T) {
	e := testEnv(t)
	if err := syscall.Mkfifo(filepath.Join(e.Cwd, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"pipe", "/dev/zero"} {
		if _, err := e.do(t, "read_file", map[string]string{"path": p}); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", p, err)
		}
	}
	path := e.put(t, "sparse", numbered(3000))
	if err := os.Truncate(path, 5<<30); err != nil {
		t.Skip(err)
	}
	got := e.must(t, "read_file", map[string]string{"path": "sparse"}).Text
	if !strings.HasSuffix(got, "[sparse: lines 1–2000; go on with line 2001]") {
		t.Errorf("%q", got[len(got)-80:])
	}
	if _, err := e.do(t, "edit_file", one("sparse", "line 7\n", "x")); err == nil || !strings.Contains(err.Error(), "use a command") {
		t.Errorf("edit: %v", err)
	}
}
