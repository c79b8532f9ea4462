package interop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What TestMain finds out.
var (
	clients string // the cache's node_modules; "" when it is absent
	node    string // Node 22 or later; "" when it is absent
	binary  string // the gladhand under test
	shims   string // the directory of the gladhand that clients start
)

func TestMain(m *testing.M) {
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "gladhand" {
		os.Exit(tee())
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if err := readSources(); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "interop-bin")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	exe := ""
	if runtime.GOOS == "windows" {
		exe = ".exe"
	}
	binary = filepath.Join(dir, "real"+exe)
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/gladhand").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building gladhand: %w\n%s", err, out)
	}
	if err := findClients(); err != nil {
		return 0, err
	}
	shims = filepath.Join(dir, "bin")
	if err := os.Mkdir(shims, 0o700); err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(shims, "gladhand"+exe), text, 0o700); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// readSources looks at the sources of the binary under test: go test caches a
// result only as long as what the test looked at stays the same.
func readSources() error {
	return filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		_, err = os.Stat(path)
		return err
	})
}

// findClients finds what install.sh installed.
func findClients() error {
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "gladhand-interop", hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(filepath.Join(dir, "complete")); err != nil {
		return nil
	}
	clients = filepath.Join(dir, "node_modules")
	system, arch := runtime.GOOS, strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	name := "node"
	if system == "windows" {
		system, name = "win", "node.exe"
	}
	node = filepath.Join(clients, "node-"+system+"-"+arch, "bin", name)
	if _, err := os.Stat(node); err == nil {
		return nil
	}
	// Where the registry has no Node for this system: the machine's own.
	node, _ = exec.LookPath("node")
	if node != "" && exec.Command(node, "-e", "process.exit(process.versions.node.split('.')[0] >= 22 ? 0 : 1)").Run() != nil {
		node = ""
	}
	return nil
}

// needClients skips a test without the Node clients, or fails it when they are
// required.
func needClients(t *testing.T) {
	t.Helper()
	why := ""
	switch {
	case clients == "":
		why = "the Node clients are not installed; run interop/install.sh"
	case node == "":
		why = "there is no Node 22 or later for this system; install one"
	default:
		return
	}
	if os.Getenv("GLADHAND_INTEROP") == "require" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// The lock file names versions and hashes, and no registry.
func TestLockFile(t *testing.T) {
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), `"resolved"`) {
		t.Error("package-lock.json names a registry; keep omit-lockfile-registry-resolved in .npmrc")
	}
	entries, hashes := strings.Count(string(lock), `"node_modules/`), strings.Count(string(lock), `"integrity"`)
	if entries == 0 || entries != hashes {
		t.Errorf("%d packages have %d hashes", entries, hashes)
	}
}
