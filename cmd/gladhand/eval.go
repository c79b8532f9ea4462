package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/eval"
)

// evaluation is `gladhand eval`.
type evaluation struct {
	a                *app
	agent, model     string
	effort           string
	only             []string
	listing, keeping bool
	timeout          time.Duration
	jobs             int
}

func (a *app) evalCommand() *cobra.Command {
	e := &evaluation{a: a}
	cmd := &cobra.Command{
		Use: "eval", Short: "Have a model or an agent do ten small tasks, and measure it",
		Example: "  gladhand eval --list\n  gladhand eval --model offline\n  gladhand eval --model anthropic/claude-opus-5 -j 4\n  gladhand eval --agent codex --task fix-test --keep",
		Long: "Each task is done in a session of its own, in a scratch copy, and then checked. In\n" +
			"these sessions everything is allowed (as with --yes), and commands are not confined\n" +
			"to the scratch copy: use it with models that you would let work on your own files.\n\n" +
			"Exit status: 0 all passed, 3 some failed, 4 interrupted, others as with run.",
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&e.agent, "agent", "", "who does the tasks (default gladhand, the built-in agent)")
	f.StringVar(&e.model, "model", "", "the model (default the one of new sessions)")
	f.StringVar(&e.effort, "effort", "", "how hard the model thinks, in its own words")
	f.StringArrayVar(&e.only, "task", nil, "only the task `NAME`; may be given again")
	f.BoolVar(&e.listing, "list", false, "list the tasks and do none")
	f.BoolVar(&e.keeping, "keep", false, "keep the sessions and the scratch copies")
	f.DurationVar(&e.timeout, "timeout", 10*time.Minute, "how long one task may take")
	f.IntVarP(&e.jobs, "jobs", "j", 1, "how many tasks are done at once")
	return cmd
}

func (e *evaluation) run(ctx context.Context) error {
	if e.jobs < 1 || e.timeout <= 0 {
		return usage(errors.New("--jobs and --timeout must be above zero"))
	}
	tasks, err := e.tasks()
	if err != nil {
		return err
	}
	if e.listing {
		return e.list(tasks)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := e.a.connect(ctx, "eval")
	if err != nil {
		return err
	}
	defer c.Close()
	dir, err := os.MkdirTemp("", "gladhand-eval-")
	if err != nil {
		return fmt.Errorf("there is no place for scratch copies: %w", err)
	}
	if e.keeping {
		e.a.note("the scratch copies stay in %s", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	e.a.note("%s, each in a scratch copy in which everything is allowed", plural(len(tasks), "task"))
	start := time.Now()
	results, err := eval.Run(ctx, eval.Options{
		Client: c, Dir: dir, Timeout: e.timeout, Jobs: e.jobs, Keep: e.keeping, Missing: missing,
		Session: gladhand.NewSessionMeta{Agent: e.agent, Model: e.model, Effort: e.effort},
		Done:    e.done,
	}, tasks)
	sum := e.summary(results, len(tasks), time.Since(start))
	if err == nil || len(results) > 0 {
		if err := e.report(results, sum); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return &exitError{exitCancelled, errors.New("interrupted")}
	case err == nil && sum.Failed > 0:
		return &exitError{exitTurnFailed, nil}
	}
	return err
}

// missing reports whether a program is not to be found.
func missing(program string) bool {
	_, err := exec.LookPath(program)
	return err != nil
}

// tasks are those to do.
func (e *evaluation) tasks() ([]eval.Task, error) {
	all, err := eval.Tasks()
	if err != nil || len(e.only) == 0 {
		return all, err
	}
	var names []string
	var tasks []eval.Task
	for _, t := range all {
		names = append(names, t.Name)
		if slices.Contains(e.only, t.Name) {
			tasks = append(tasks, t)
		}
	}
	for _, name := range e.only {
		if !slices.Contains(names, name) {
			return nil, usage(fmt.Errorf("there is no task %q; there are %s", name, strings.Join(names, ", ")))
		}
	}
	return tasks, nil
}

// listedTask is a line of --list --json.
type listedTask struct {
	Task    string   `json:"task"`
	Title   string   `json:"title"`
	Needs   []string `json:"needs,omitempty"`
	Offline bool     `json:"offline,omitempty"`
	Prompt  string   `json:"prompt"`
}

func (e *evaluation) list(tasks []eval.Task) error {
	w := tabwriter.NewWriter(e.a.out, 0, 0, 2, ' ', 0)
	if !e.a.json {
		fmt.Fprintln(w, "TASK\tWHAT\tNEEDS\tOFFLINE MODEL")
	}
	for _, t := range tasks {
		if e.a.json {
			if err := e.a.emit(listedTask{t.Name, t.Title, t.Needs, t.Offline, t.Prompt}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, t.Title, or(strings.Join(t.Needs, " "), "–"), map[bool]string{true: "can do it", false: "–"}[t.Offline])
	}
	return w.Flush()
}

// done tells of a result as it comes.
func (e *evaluation) done(r eval.Result) {
	switch {
	case e.a.json:
		_ = e.a.emit(r) // a closed pipe ends us by a signal
	case r.Why != "":
		e.a.note("%s %s: %s", r.Outcome, r.Task, oneLine(r.Why))
	default:
		e.a.note("%s %s", r.Outcome, r.Task)
	}
}

// evalSummary is all results together.
type evalSummary struct {
	Agent   string  `json:"agent,omitempty"`
	Model   string  `json:"model,omitempty"`
	Tasks   int     `json:"tasks"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
	Steps   int     `json:"steps"`
	Tokens  int     `json:"tokens,omitempty"`
	Cost    float64 `json:"cost,omitempty"`
	Seconds float64 `json:"seconds"`
}

func (e *evaluation) summary(results []eval.Result, tasks int, took time.Duration) evalSummary {
	s := evalSummary{Agent: e.agent, Model: e.model, Tasks: tasks, Seconds: took.Seconds()}
	for _, r := range results {
		switch r.Outcome {
		case eval.Passed:
			s.Passed++
		case eval.Failed:
			s.Failed++
		case eval.Skipped:
			s.Skipped++
		}
		s.Steps += r.Steps
		if r.Tokens != nil {
			s.Tokens += r.Tokens.Total
		}
		if r.Cost != nil {
			s.Cost += *r.Cost
		}
	}
	return s
}

func (e *evaluation) report(results []eval.Result, s evalSummary) error {
	if e.a.json {
		return e.a.emit(map[string]evalSummary{"summary": s})
	}
	w := tabwriter.NewWriter(e.a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tRESULT\tSTEPS\tCALLS\tTOKENS\tCOST\tTIME")
	for _, r := range results {
		tokens, cost := "–", "–"
		if r.Tokens != nil {
			tokens = fmt.Sprint(r.Tokens.Total)
		}
		if r.Cost != nil {
			cost = fmt.Sprintf("$%.4f", *r.Cost)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%.1fs\n", r.Task, r.Outcome, r.Steps, r.Calls, tokens, cost, r.Seconds)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	line := fmt.Sprintf("%d of %d passed in %.0f s", s.Passed, s.Tasks-s.Skipped, s.Seconds)
	if s.Skipped > 0 {
		line += fmt.Sprintf(", %d skipped", s.Skipped)
	}
	if s.Tokens > 0 {
		line += fmt.Sprintf(", %d tokens", s.Tokens)
	}
	if s.Cost > 0 {
		line += fmt.Sprintf(", $%.4f", s.Cost)
	}
	e.a.print("%s", line)
	if !e.keeping {
		return nil
	}
	for _, r := range results {
		if r.Session != "" {
			e.a.note("%s: gladhand show --transcript %s; %s", r.Task, r.Session, filepath.Clean(r.Dir))
		}
	}
	return nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
