package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gladhand"
)

// maxWait is how long command_output waits at most.
const maxWait = 60 * time.Second

//go:embed command_output.md
var commandOutputText string

//go:embed command_output.json
var commandOutputSchema []byte

type commandOutput struct{}

type commandOutputArgs struct {
	ID   string `json:"id"`
	Wait int    `json:"wait_seconds"`
}

func (commandOutput) Spec() Spec {
	return Spec{Name: "command_output", Description: commandOutputText, Schema: commandOutputSchema, Kind: "read"}
}

func (commandOutput) Title(json.RawMessage) string { return "Look at a command in the background" }

func (t commandOutput) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	var a commandOutputArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	if a.Wait < 0 || a.Wait > int(maxWait/time.Second) {
		return nil, fmt.Errorf("wait_seconds must be 0 to %d", int(maxWait/time.Second))
	}
	j, err := env.job(a.ID)
	if err != nil {
		return nil, err
	}
	return &Call{
		Title:    "Output of " + oneLine(j.line, 80),
		Action:   gladhand.Action{Tool: "command_output", Effect: gladhand.EffectNone},
		Parallel: true,
		Digest:   func() (string, error) { return digest("command_output", j.id), nil },
		Run: func(ctx context.Context, _ *Output) (Result, error) {
			return j.look(ctx, time.Duration(a.Wait)*time.Second)
		},
	}, nil
}

// job finds a command in the background.
func (e *Env) job(id string) (*job, error) {
	switch {
	case id == "":
		return nil, errors.New(`argument "id" is missing; run_command with background gives it`)
	case e.Background == nil:
		return nil, errNoBackground
	}
	return e.Background.find(id)
}

// jobResult is the raw output about a command in the background.
type jobResult struct {
	ID       string `json:"id"`
	Running  bool   `json:"running"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Bytes    int64  `json:"bytes"`
	// File has the whole output when some of it is left out here.
	File string `json:"file,omitempty"`
}

// look gives what the command printed since the last look, and how far it is. It
// waits for something new, at most as long as told.
func (j *job) look(ctx context.Context, wait time.Duration) (Result, error) {
	if wait > 0 {
		limit := time.NewTimer(wait)
		defer limit.Stop()
		select {
		case <-j.printed():
		case <-j.done:
		case <-limit.C:
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
	}
	running := j.running() // before the text: what it printed last is then in it
	state := j.state(running)
	fresh, total := j.take()
	r := jobResult{ID: j.id, Running: running, Bytes: total}
	notes := []string{state}
	if !running && j.err == nil {
		r.ExitCode = &j.exit.Code
	}
	switch n := fresh.Total(); {
	case total == 0:
		notes = append(notes, "no output")
	case n == 0:
		notes = append(notes, "nothing new")
	case n < total:
		notes = append(notes, "what came since the last look")
	}
	if fresh.Total() > jobOutput {
		if r.File = j.file(); r.File != "" {
			notes = append(notes, fmt.Sprintf("%d bytes in all, kept in %s", total, r.File))
		}
	}
	text := fresh.Text(jobOutput)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return Result{
		Text:   text + "[" + j.id + ": " + strings.Join(notes, "; ") + "]",
		Raw:    r,
		Failed: !running && j.err != nil, // it could not be started
	}, nil
}
