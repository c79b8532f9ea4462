package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"gladhand"
	"gladhand/client"
	"gladhand/proc"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gladhand": main})
}

// The scripts run the real binary with real daemons, each in a data directory of
// its own. See testdata/*.txtar.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("GLADHAND_DATA_DIR", filepath.Join(env.WorkDir, "d"))
			for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "GLADHAND_SOCKET", "GLADHAND_CONFIG", "GLADHAND_LOG"} {
				env.Setenv(name, "")
			}
			env.Setenv("NO_COLOR", "1")
			env.Defer(func() {
				for _, dir := range []string{"d", "d2"} {
					stopDaemon(t, filepath.Join(env.WorkDir, dir))
				}
			})
			return os.MkdirAll(filepath.Join(env.WorkDir, "home"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"jsonenv":    cmdJSONEnv,
			"waitfor":    cmdWaitFor,
			"killdaemon": cmdKillDaemon,
			"linejson":   cmdLineJSON,
			"exit":       cmdExit,
		},
	})
}

// stopDaemon stops the daemon of a data directory, if one runs, and waits.
func stopDaemon(t *testing.T, dir string) {
	if _, err := os.Stat(dir); err != nil {
		return
	}
	p, err := proc.Locate(dir, "", func(string) string { return "" })
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := client.Connect(ctx, client.Options{Place: p, NoStart: true})
	if err != nil {
		return
	}
	defer c.Close()
	gone := c.Ended()
	if err := c.Stop(ctx, gladhand.StopParams{}); err != nil {
		t.Logf("stopping the daemon of %s: %v", dir, err)
	}
	select {
	case <-gone:
	case <-ctx.Done():
		t.Errorf("the daemon of %s does not stop", dir)
	}
}

// cmdJSONEnv sets a variable to a member of the first object on stdout:
// jsonenv NAME member.
func cmdJSONEnv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: jsonenv NAME member")
	}
	first, _, _ := strings.Cut(ts.ReadFile("stdout"), "\n")
	var v map[string]any
	ts.Check(json.Unmarshal([]byte(first), &v))
	text, ok := v[args[1]].(string)
	if !ok {
		ts.Fatalf("%s has no text %q", first, args[1])
	}
	ts.Setenv(args[0], text)
}

// cmdExit runs a command that must end with a status: exit STATUS COMMAND ARGS….
func cmdExit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit STATUS COMMAND ARGS…")
	}
	err := ts.Exec(args[1], args[2:]...)
	var status *exec.ExitError
	got := 0
	if errors.As(err, &status) {
		got = status.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("status %d, want %s; stderr: %s", got, args[0], ts.ReadFile("stderr"))
	}
}

// cmdWaitFor runs a command until its standard output matches: waitfor REGEXP CMD ARGS.
func cmdWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] waitfor REGEXP COMMAND ARGS…")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(30 * time.Second); ; {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout")
		if err == nil && re.MatchString(out) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v never printed %q; last: %s", args[1:], args[0], out)
		}
		time.Sleep(20 * time.Millisecond) // between two looks at another process
	}
}

// cmdKillDaemon kills the daemon without a warning, and waits until it is dead.
func cmdKillDaemon(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(ts.Exec("gladhand", "daemon", "status", "--json"))
	var st gladhand.StatusResult
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &st))
	p, err := os.FindProcess(st.PID)
	ts.Check(err)
	ts.Check(p.Kill())
	for deadline := time.Now().Add(20 * time.Second); p.Signal(syscall.Signal(0)) == nil; {
		if stat, err := os.ReadFile(filepath.Join("/proc", "self", "..", strconv.Itoa(st.PID), "stat")); err == nil && bytes.Contains(stat, []byte(") Z ")) {
			return // dead; whoever adopted it has not looked yet
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the daemon %d does not die", st.PID)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// cmdLineJSON asserts that stdout, or the file named, is JSON objects, one a line.
func cmdLineJSON(ts *testscript.TestScript, _ bool, args []string) {
	name := "stdout"
	if len(args) > 0 {
		name = args[0]
	}
	n := 0
	for line := range strings.Lines(ts.ReadFile(name)) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			ts.Fatalf("no JSON object: %q", line)
		}
		n++
	}
	if n == 0 {
		ts.Fatalf("nothing was printed")
	}
}
