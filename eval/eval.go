// Package eval is a small bench of coding tasks: it has an agent do each of them
// in a scratch copy and looks at what came of it.
//
//	tasks, err := eval.Tasks()
//	results, err := eval.Run(ctx, eval.Options{Client: c, Session: gladhand.NewSessionMeta{Model: "offline"}}, tasks)
//
// A task is a file in tasks/: a prompt, the files that it is about, and the
// conditions that hold when it is done (see [Parse]). A new one is a new file
// there.
//
// For each task the daemon makes a session in the scratch copy, in which
// everything is allowed, and gets the prompt; nobody answers questions there. What
// it took is read off the session's events, so every model and every guest is
// measured in the same way. What an agent does not tell, its tokens for instance,
// is unknown and not zero.
package eval

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gladhand"
	"gladhand/client"
)

// defaultTimeout is how long one task may take.
const defaultTimeout = 10 * time.Minute

// The outcomes of a task.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// Options say who does the tasks, and how. Only Client and Dir are needed.
type Options struct {
	Client *client.Client
	// Dir takes the scratch copies, a directory for each task. It must be empty
	// or new.
	Dir string
	// Session says which agent and which model; Yes and OneShot are set.
	Session gladhand.NewSessionMeta
	// Timeout is how long one task may take; 0 is 10 minutes.
	Timeout time.Duration
	// Jobs is how many tasks are done at once; 0 is 1.
	Jobs int
	// Keep keeps sessions and scratch copies.
	Keep bool
	// Missing reports whether a program that a task needs is not there.
	Missing func(program string) bool
	// Done, if set, is told each result as it comes, one at a time.
	Done func(Result)
}

// Result is what came of one task.
type Result struct {
	Task    string `json:"task"`
	Outcome string `json:"outcome"` // passed, failed, skipped
	// Why says what did not hold, or why it was skipped.
	Why string `json:"why,omitempty"`
	// Steps counts the model's replies, Calls its tool calls.
	Steps int `json:"steps"`
	Calls int `json:"calls"`
	// Tokens is nil when the agent did not tell; Cost is in US dollars, nil when it
	// did not tell, which is no price or an unknown one.
	Tokens  *Tokens            `json:"tokens,omitempty"`
	Cost    *float64           `json:"cost,omitempty"`
	Seconds float64            `json:"seconds"`
	Session gladhand.SessionID `json:"sessionId,omitempty"` // when it was kept
	Dir     string             `json:"dir,omitempty"`       // when it was kept
}

// Tokens are what a task took. An agent that does not tell them apart has only
// Total, which is then the size of its context at the end.
type Tokens struct {
	Input  int `json:"input,omitempty"`
	Output int `json:"output,omitempty"`
	Total  int `json:"total"`
}

// Run does the tasks and returns their results in the tasks' order. An error
// means that none could be done: no such model, no daemon. When ctx ends, the
// running turns are cancelled and the results so far returned with its error.
func Run(ctx context.Context, o Options, tasks []Task) ([]Result, error) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the scratch copies have no place: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([]Result, len(tasks))
	next := make(chan int)
	var wait sync.WaitGroup
	var telling sync.Mutex
	for range max(1, o.Jobs) {
		wait.Go(func() {
			for i := range next {
				r, err := o.do(ctx, tasks[i])
				if err != nil {
					stop(err)
					continue
				}
				results[i] = r
				if o.Done != nil {
					telling.Lock()
					o.Done(r)
					telling.Unlock()
				}
			}
		})
	}
	for i := range tasks {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wait.Wait()
	var got []Result
	for _, r := range results {
		if r.Task != "" {
			got = append(got, r)
		}
	}
	return got, context.Cause(ctx)
}

// do does one task. An error is one that every task would have.
func (o *Options) do(ctx context.Context, t Task) (Result, error) {
	r := Result{Task: t.Name}
	for _, program := range t.Needs {
		if o.Missing != nil && o.Missing(program) {
			r.Outcome, r.Why = Skipped, program+" is not there"
			return r, nil
		}
	}
	dir := filepath.Join(o.Dir, t.Name)
	if err := t.Lay(dir); err != nil {
		return r, err
	}
	start := time.Now()
	f, err := o.session(ctx, t, dir)
	if err != nil {
		return r, err
	}
	r.Seconds = time.Since(start).Seconds()
	r.Steps, r.Calls, r.Tokens, r.Cost = f.steps, len(f.calls), f.tokens, f.cost
	if r.Why = f.why; r.Why == "" {
		r.Why = t.Check(ctx, dir, f.said.String())
	}
	if r.Outcome = Passed; r.Why != "" {
		r.Outcome = Failed
	}
	if o.Keep {
		r.Session, r.Dir = f.id, dir
		return r, ctx.Err()
	}
	if err := os.RemoveAll(dir); err != nil && r.Why == "" {
		r.Why = "the scratch copy is still there: " + err.Error()
	}
	return r, ctx.Err()
}
