//go:build unix

package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// builtBinary is cmd/gladhand, built once when a test asks for it.
var builtBinary struct {
	once sync.Once
	dir  string
	err  error
	out  []byte
}

func gladhandBinary(t *testing.T) string {
	t.Helper()
	b := &builtBinary
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "ghbin"); b.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(b.dir, "gladhand"), "gladhand/cmd/gladhand")
		b.out, b.err = cmd.CombinedOutput()
	})
	if b.err != nil {
		t.Fatalf("building the binary: %v\n%s", b.err, b.out)
	}
	return filepath.Join(b.dir, "gladhand")
}

// The same with the real binary: the built-in agent, the offline model, and
// commands that really run.
func TestKillTheRealDaemon(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the binary")
	}
	v := newVictim(t)
	v.bin = gladhandBinary(t)
	killing(t, v, 7, times(4, 60), 300*time.Millisecond, func(id string) string {
		return "run echo " + id + " >> " + effectsName
	})
}
