package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gladhand"
)

// patience is how long a test waits for anything before it gives up.
const patience = 60 * time.Second

// home is a user of gladhand: directories and a daemon of their own.
type home struct {
	t      *testing.T
	data   string // GLADHAND_DATA_DIR
	cwd    string // a workspace with a go.mod
	record string // what passed between clients and gladhand acp
	env    []string
}

// newHome makes one. At the test's end its daemon is stopped, and what was
// recorded is held against the schemas.
func newHome(t *testing.T) *home {
	t.Helper()
	// Not t.TempDir: a socket's path is short.
	dir, err := os.MkdirTemp("", "interop-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	h := &home{t: t, data: filepath.Join(dir, "data"), cwd: filepath.Join(dir, "work"), record: filepath.Join(dir, "record")}
	user := filepath.Join(dir, "user")
	for _, d := range []string{h.cwd, h.record, user} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.cwd, "go.mod"), []byte("module example.com/interop\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "GLADHAND_") {
			h.env = append(h.env, e)
		}
	}
	path := shims
	if node != "" {
		path += string(os.PathListSeparator) + filepath.Dir(node)
	}
	h.env = append(
		h.env, "GLADHAND_DATA_DIR="+h.data, "GLADHAND_INTEROP_CLIENTS="+clients, "INTEROP_BINARY="+binary, "INTEROP_RECORD="+h.record,
		"HOME="+user, "USERPROFILE="+user, "NO_COLOR=1", "PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"),
	)
	t.Cleanup(func() {
		if out, err := h.command(binary, "daemon", "stop"); err != nil {
			t.Errorf("gladhand daemon stop: %v\n%s", err, out)
		}
		checkRecords(t, h.record)
		if t.Failed() {
			t.Logf("the directory is kept: %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return h
}

// start makes a command in the workspace, with the home's environment.
func (h *home) start(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = h.cwd, h.env
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// command runs one and returns what it printed.
func (h *home) command(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := h.start(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

// gladhand runs the binary under test.
func (h *home) gladhand(args ...string) string {
	h.t.Helper()
	out, err := h.command(binary, args...)
	if err != nil {
		h.t.Fatalf("gladhand %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// sessions are the open ones, most recently active first.
func (h *home) sessions() []gladhand.SessionInfo {
	h.t.Helper()
	var list []gladhand.SessionInfo
	for line := range strings.Lines(h.gladhand("ls", "--json")) {
		var in gladhand.SessionInfo
		if err := json.Unmarshal([]byte(line), &in); err != nil {
			h.t.Fatalf("%v in %s", err, line)
		}
		list = append(list, in)
	}
	return list
}

// await polls a condition until it holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// state waits until the only session is in one.
func (h *home) state(want gladhand.SessionState) gladhand.SessionInfo {
	h.t.Helper()
	var in gladhand.SessionInfo
	await(h.t, "the session is "+string(want), func() bool {
		list := h.sessions()
		if len(list) != 1 {
			return false
		}
		in = list[0]
		return in.State == want
	})
	return in
}
