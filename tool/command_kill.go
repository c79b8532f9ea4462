package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"gladhand"
)

//go:embed command_kill.md
var commandKillText string

//go:embed command_kill.json
var commandKillSchema []byte

type commandKill struct{}

type commandKillArgs struct {
	ID string `json:"id"`
}

func (commandKill) Spec() Spec {
	return Spec{Name: "command_kill", Description: commandKillText, Schema: commandKillSchema, Kind: "execute"}
}

func (commandKill) Title(json.RawMessage) string { return "End a command in the background" }

func (t commandKill) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	var a commandKillArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	j, err := env.job(a.ID)
	if err != nil {
		return nil, err
	}
	return &Call{
		Title:  "End " + oneLine(j.line, 80),
		Action: gladhand.Action{Tool: "command_kill", Effect: gladhand.EffectNone}, // it is the session's own
		Digest: func() (string, error) { return digest("command_kill", j.id), nil },
		Run: func(ctx context.Context, _ *Output) (Result, error) {
			if !j.running() {
				return Result{Text: fmt.Sprintf("[%s: it had ended before: %s]", j.id, j.state(false))}, nil
			}
			j.stop(errKilled)
			patience := time.NewTimer(endPatience)
			defer patience.Stop()
			select {
			case <-j.done:
				return j.look(ctx, 0)
			case <-patience.C:
				return Result{Failed: true, Text: fmt.Sprintf("[%s: it was told to end, and has not ended yet]", j.id)}, nil
			case <-ctx.Done():
				return Result{}, ctx.Err()
			}
		},
	}, nil
}
