package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/daemon"
	"gladhand/proc"
	"gladhand/session"
)

var errWrong = errors.New("what came back is not what should have")

// placeIn is where a daemon with this data directory is found.
func placeIn(dir string) (proc.Place, error) {
	return proc.Locate(dir, "", func(string) string { return "" })
}

// playDaemon is the real daemon with a scripted agent. Arguments: the data
// directory, and where to keep a CPU profile, if anywhere.
func playDaemon(args []string) error {
	place, err := placeIn(args[0])
	if err != nil {
		return err
	}
	if args[1] != "" {
		f, err := os.Create(args[1])
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- daemon.Run(ctx, daemon.Options{
			Place: place, Config: filepath.Join(args[0], "config.jsonc"), Version: "bench",
			Log:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
			NewAgent: newScripted,
			Models:   session.Fixed{{ID: "scripted"}, {ID: "tape"}}, Agents: []string{"gladhand"},
		})
	}()
	w, err := hello(place, done)
	if err != nil {
		cancel()
		return err
	}
	w.close()
	<-ready()
	cancel()
	return <-done
}

// hello dials until the daemon answers, or has ended.
func hello(place proc.Place, ended <-chan error) (*wire, error) {
	for {
		w, err := dial(context.Background(), place)
		if err == nil {
			return w, nil
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the daemon ended: %w", err)
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// newScripted makes the scripted agent, or the built-in one for the model tape.
func newScripted(ctx context.Context, in gladhand.SessionInfo) (session.Agent, error) {
	if in.Model == "tape" {
		return newTaped(ctx, in)
	}
	return script{}, nil
}

// script is the agent: a prompt "flood N TEXT" has it emit N pieces of text,
// any other is answered by the turn's end.
type script struct{}

func (script) Close() error { return nil }

func (script) Run(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
	var blocks []struct{ Text string }
	if err := json.Unmarshal(t.Prompt().Content, &blocks); err != nil {
		return "", err
	}
	var n int
	var text string
	if _, err := fmt.Sscanf(blocks[0].Text, "flood %d %s", &n, &text); err != nil {
		return gladhand.StopEndTurn, nil
	}
	// Adjacent growth of one message merges into one entry, and a slow reader gets
	// it in one piece. Two messages in turn never merge: each piece is a frame.
	pieces := [2][]byte{acp.MessageChunk("a", text), acp.MessageChunk("b", text)}
	for i := range n {
		if err := t.Emit(ctx, pieces[i%2]); err != nil {
			return "", err
		}
	}
	return gladhand.StopEndTurn, nil
}

// scripted starts a daemon with the scripted agent on a fresh data directory.
func (b *bench) scripted(name string) (*child, proc.Place, error) {
	dir, err := b.fresh(name)
	if err != nil {
		return nil, proc.Place{}, err
	}
	return b.scriptedIn(name, dir)
}

func (b *bench) scriptedIn(name, dir string) (*child, proc.Place, error) {
	place, err := placeIn(dir)
	if err != nil {
		return nil, place, err
	}
	profile := ""
	if b.profiles != "" {
		if profile, err = filepath.Abs(filepath.Join(b.profiles, name+".cpu")); err != nil {
			return nil, place, err
		}
		if err := os.MkdirAll(b.profiles, 0o755); err != nil {
			return nil, place, err
		}
	}
	c, err := spawn("daemon", dir, profile)
	return c, place, err
}
