// Package sandbox runs a command for an agent: with a cleaned environment, in a
// process group of its own that ends when the call does, its output handed over
// as it comes.
//
//	exit, err := sandbox.Run(ctx, sandbox.Command{
//		Line: "go test ./...", Dir: cwd, Env: sandbox.CleanEnv(os.Environ()),
//		Timeout: time.Minute, Stdout: w, Stderr: w2,
//	})
//
// [Confinement] says what holds a command back besides that, in words that
// belong into every question about a command.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"gladhand/proc"
)

// Confinement says in a few words what a command cannot do.
func Confinement() string { return "not confined" }

// Command is a command line to run.
type Command struct {
	// Line is for /bin/sh -c, on Windows for PowerShell.
	Line string
	// Argv, when it is set, is run instead, without a shell. A program's name without
	// a separator is looked up in the PATH of Env.
	Argv []string
	Dir  string
	// Env is the whole environment; nil is ours, cleaned.
	Env []string
	// Stdout and Stderr each get their stream from one goroutine of its own. Nil
	// discards.
	Stdout, Stderr io.Writer
	// Timeout ends the command; 0 is none.
	Timeout time.Duration
}

// Exit is how a command ended.
type Exit struct {
	proc.ExitStatus
	TimedOut bool
}

// errTimeout is the reason of a command that ran too long.
var errTimeout = errors.New("time limit")

// Run runs the command to its end. When ctx ends first, the command's whole
// group is ended and ctx's error returned; when it has ended already, nothing is
// started. A non-zero exit status is no error.
func Run(ctx context.Context, c Command) (Exit, error) {
	if c.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
		defer stop()
	}
	if c.Env == nil {
		c.Env = CleanEnv(os.Environ())
	}
	shell, args := shellFor(c.Line)
	if len(c.Argv) > 0 {
		shell, args = c.Argv[0], c.Argv[1:]
	}
	cmd := &proc.Command{Path: shell, Args: args, Dir: c.Dir, Env: c.Env, Stdout: c.Stdout, Stderr: c.Stderr, Grace: 500 * time.Millisecond}
	if ctx.Err() != nil {
		return Exit{}, context.Cause(ctx)
	}
	p, err := cmd.Start()
	if err != nil {
		return Exit{}, fmt.Errorf("the command could not be started: %w", err)
	}
	ended := make(chan struct{})
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		select {
		case <-ended:
		case <-ctx.Done():
			reason := "the turn was cancelled"
			if errors.Is(context.Cause(ctx), errTimeout) {
				reason = errTimeout.Error()
			}
			p.Kill(reason)
		}
	}()
	status, err := p.Wait()
	close(ended)
	<-killed
	exit := Exit{ExitStatus: status}
	switch cause := context.Cause(ctx); {
	case status.Killed != "" && errors.Is(cause, errTimeout):
		exit.TimedOut = true
		return exit, nil
	case status.Killed != "":
		return exit, cause
	}
	return exit, err
}

func shellFor(line string) (path string, args []string) {
	if runtime.GOOS == "windows" {
		return "powershell.exe", []string{"-NoProfile", "-NonInteractive", "-Command", line}
	}
	return "/bin/sh", []string{"-c", line}
}

// secretWords end the names of variables that hold secrets.
var secretWords = []string{
	"_KEY", "_TOKEN", "_SECRET", "_SECRETS", "_PASSWORD", "_PASSWD", "_PASSPHRASE", "_CREDENTIALS", "_PAT",
}

// secretNames hold secrets and do not look like it.
var secretNames = []string{
	"PGPASSWORD", "MYSQL_PWD", "REDISCLI_AUTH", "AWS_ACCESS_KEY_ID", "SSHPASS", "TOKEN", "PASSWORD", "SECRET", "API_KEY",
}

// CleanEnv is env without secrets and without our own settings, and with what
// keeps programs from waiting for a person.
func CleanEnv(env []string) []string {
	out := make([]string, 0, len(env)+4)
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if name != "" && !dropped(name) {
			out = append(out, e)
		}
	}
	return append(out, "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0")
}

func dropped(name string) bool {
	name = strings.ToUpper(name)
	if name == "GLADHAND_SOCKET" || name == "GLADHAND_DATA_DIR" {
		return false // how a command finds the daemon it belongs to
	}
	if strings.HasPrefix(name, "GLADHAND_") {
		return true
	}
	for _, n := range secretNames {
		if name == n {
			return true
		}
	}
	for _, w := range secretWords {
		if strings.HasSuffix(name, w) {
			return true
		}
	}
	return name == "TERM" || name == "PAGER" || name == "GIT_PAGER" || name == "GIT_TERMINAL_PROMPT" // set anew
}
