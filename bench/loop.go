package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"gladhand"
	"gladhand/agent"
	"gladhand/model"
	"gladhand/session"
)

// tape is a model that takes no time: for "token" it says what time it is, for
// "steps N" it reads N lines of the file f, one a reply.
type tape struct{}

func (tape) Name() string         { return "tape" }
func (tape) Limits() model.Limits { return model.Limits{Window: 1 << 30} }

func (tape) Generate(_ context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		n, done := 0, 0
		for i := len(r.Messages) - 1; i >= 0; i-- {
			m := r.Messages[i]
			if m.Role == model.ToolRole {
				done++
			}
			if m.Role == model.User {
				_, _ = fmt.Sscanf(m.Text(), "steps %d", &n) // 0 when it is none
				break
			}
		}
		if done < n {
			args := fmt.Sprintf(`{"path":"f","line":%d,"limit":1}`, done+1)
			yield(model.Chunk{Call: &model.Call{Name: "read_file", Args: json.RawMessage(args)}}, nil)
			return
		}
		yield(model.Chunk{Text: fmt.Sprintf("now=%d.", time.Now().UnixNano())}, nil)
	}
}

// newTaped makes the built-in agent with that model.
func newTaped(context.Context, gladhand.SessionInfo) (session.Agent, error) {
	return agent.New(agent.Options{Model: tape{}, MaxSteps: 1 << 20}), nil
}

// loop measures what the daemon adds to a model: from its first token to the first
// update at a client, and a step of the loop, with a tool call that takes no time.
func (b *bench) loop(ctx context.Context) (err error) {
	bare, err := b.bareStore()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	dir, err := b.fresh("loop")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte("a line of a file\n"), 5000), 0o600); err != nil {
		return err
	}
	d, place, err := b.scripted("loop-daemon")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	w, err := dial(ctx, place)
	if err != nil {
		return err
	}
	defer w.close()
	id, err := w.newSessionOf("tape", dir)
	if err != nil {
		return err
	}
	if err := w.attach(id, -1); err != nil {
		return err
	}
	var tokens []time.Duration
	for range b.count(500) {
		if err := w.prompt(id, "token"); err != nil {
			return err
		}
		took, err := w.token()
		if err != nil {
			return err
		}
		tokens = append(tokens, took)
	}
	b.report(lineToken, micros(median(tokens)), "p50 of %d", len(tokens))
	const steps = 50
	var each, commits []time.Duration
	for range b.count(20) {
		if commits, err = bare.times(commits, steps); err != nil {
			return err
		}
		begin := time.Now()
		if err := w.prompt(id, "steps "+strconv.Itoa(steps)); err != nil {
			return err
		}
		if err := w.until(`"_gladhand_turn_end"`); err != nil {
			return err
		}
		each = append(each, time.Since(begin)/steps)
	}
	b.report(lineStep, float64(median(each))/1e6, "p50 of %d turns of %d steps, bare commit %.0f µs", len(each), steps, micros(median(commits)))
	return nil
}

// token reads on to the model's word, and says how long it took to come, and then to
// the turn's end.
func (w *wire) token() (time.Duration, error) {
	for {
		line, err := w.line()
		if err != nil {
			return 0, err
		}
		_, after, ok := bytes.Cut(line, []byte("now="))
		if !ok {
			continue
		}
		now := time.Now().UnixNano()
		digits, _, _ := bytes.Cut(after, []byte("."))
		then, err := strconv.ParseInt(string(digits), 10, 64)
		if err != nil {
			return 0, errWrong
		}
		return time.Duration(now - then), w.until(`"_gladhand_turn_end"`)
	}
}
