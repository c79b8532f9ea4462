package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gladhand"
	"gladhand/sandbox"
)

// The time limit of a command.
const (
	defaultTimeout = 120 * time.Second
	maxTimeout     = 3600 * time.Second
)

//go:embed run_command.md
var runCommandText string

//go:embed run_command.json
var runCommandSchema []byte

type runCommand struct{}

type runCommandArgs struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout_seconds"`
	// Background leaves it running.
	Background bool `json:"background"`
}

// errNoBackground says that commands cannot outlive their call.
var errNoBackground = errors.New("nothing can run in the background here")

func (runCommand) Spec() Spec {
	return Spec{Name: "run_command", Description: runCommandText, Schema: runCommandSchema, Kind: "execute"}
}

func (runCommand) Title(args json.RawMessage) string {
	var a runCommandArgs
	peek(args, &a)
	return "Run " + oneLine(a.Command, 100)
}

// commandResult is the raw output of a command.
type commandResult struct {
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal,omitempty"`
	TimedOut bool   `json:"timedOut,omitempty"`
	Bytes    int64  `json:"bytes"`
	// File has the whole output when it is longer than the text.
	File string `json:"file,omitempty"`
}

func (t runCommand) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	var a runCommandArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	if strings.TrimSpace(a.Command) == "" {
		return nil, errors.New(`argument "command" is missing`)
	}
	if strings.ContainsRune(a.Command, 0) {
		return nil, errors.New("the command contains a NUL character")
	}
	timeout := defaultTimeout
	if a.Timeout != 0 {
		timeout = time.Duration(a.Timeout) * time.Second
	}
	if a.Timeout < 0 || a.Timeout > int(maxTimeout/time.Second) {
		return nil, fmt.Errorf("timeout_seconds must be 1 to %d", int(maxTimeout/time.Second))
	}
	if a.Background && env.Background == nil {
		return nil, errNoBackground
	}
	if a.Background && a.Timeout != 0 {
		return nil, errors.New("a command in the background has no time limit; end it with command_kill")
	}
	environ := env.Environ
	if environ == nil {
		environ = sandbox.CleanEnv(os.Environ())
	}
	c := sandbox.Command{Line: a.Command, Dir: env.Cwd, Env: environ, Timeout: timeout}
	return &Call{
		Title: t.Title(args),
		Action: gladhand.Action{
			Tool: "run_command", Effect: gladhand.EffectRun,
			Command: a.Command, Dir: env.Cwd, Confinement: sandbox.Confinement(),
		},
		Digest: func() (string, error) {
			vars := slices.Sorted(slices.Values(environ))
			return digest("run_command", a.Command, env.Cwd, timeout.String(), fmt.Sprint(a.Background), digest(vars...)), nil
		},
		Run: func(ctx context.Context, out *Output) (Result, error) {
			if a.Background {
				return startIn(ctx, env.Background, c)
			}
			return runIn(ctx, c, out)
		},
	}, nil
}

// firstLook is how long a command in the background is watched before its start is
// reported: most that fail do so at once.
const firstLook = 200 * time.Millisecond

// startIn starts a command that goes on when the call and the turn have ended.
func startIn(ctx context.Context, b *Background, c sandbox.Command) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	j, err := b.start(c)
	if err != nil {
		return Result{}, err
	}
	select {
	case <-j.done:
	case <-time.After(firstLook):
	case <-ctx.Done():
		j.stop(errKilled) // it was not told of yet
		return Result{}, ctx.Err()
	}
	return j.look(ctx, 0)
}

func runIn(ctx context.Context, c sandbox.Command, out *Output) (Result, error) {
	stdout, stderr := &decoder{to: out}, &decoder{to: out}
	c.Stdout, c.Stderr = stdout, stderr
	exit, err := sandbox.Run(ctx, c)
	_, _, _ = stdout.Close(), stderr.Close(), out.Close()
	if err != nil {
		return Result{}, err
	}
	r := commandResult{ExitCode: exit.Code, Signal: exit.Signal, TimedOut: exit.TimedOut, Bytes: out.Total(), File: out.File()}
	notes := []string{fmt.Sprintf("exit status %d", exit.Code)}
	switch {
	case exit.TimedOut:
		notes[0] = fmt.Sprintf("stopped: it ran longer than %v", c.Timeout)
	case exit.Signal != "":
		notes[0] = "ended by signal: " + exit.Signal
	}
	if r.Bytes == 0 {
		notes = append(notes, "no output")
	}
	if left := leftBehind(exit); left != "" {
		notes = append(notes, left)
	}
	if r.File != "" {
		notes = append(notes, fmt.Sprintf("%d bytes in all, kept in %s", r.Bytes, r.File))
	}
	text := out.Text(MaxResult - 1024)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return Result{
		Text:   text + "[" + strings.Join(notes, "; ") + "]",
		Raw:    r,
		Failed: exit.Code != 0 || exit.TimedOut,
	}, nil
}

// leftBehind says what became of processes that a command left; "" when there were
// none, or when they were ended together with it.
func leftBehind(exit sandbox.Exit) string {
	var notes []string
	if exit.Ended && exit.Killed == "" {
		notes = append(notes, "processes it left in the background were ended")
	}
	if len(exit.Escaped) > 0 {
		notes = append(notes, fmt.Sprintf("processes that go on on their own: %v", exit.Escaped))
	}
	return strings.Join(notes, "; ")
}
