// Package agent is the built-in agent: a loop that asks a model, runs the tools
// it calls for, and goes on until the model is done.
//
// An [Agent] serves one session. Its session runs one turn after the other:
//
//	a := agent.New(agent.Options{Model: m, Tools: tool.Builtin()})
//	reason, err := a.Run(ctx, turn)
//
// # A step
//
//  1. Prompts that were steered into the turn join the conversation.
//  2. The model streams its reply; text and tool calls go out as they come.
//  3. Without tool calls the turn ends, unless something was steered in meanwhile.
//  4. Each tool call, one after the other: prepare, decide (package policy), ask
//     if need be, check that nothing has changed since it was shown, commit
//     "in progress", run, commit the result.
//
// A call that is malformed, unknown, denied or failed goes back to the model as
// its result, to be mended. Only a failing model or a failing log end a turn with
// an error.
//
// # What the model sees
//
// The conversation is kept between turns. It holds nothing that is not in the
// session's log, so after a restart, a cancelled or a failed turn it is made anew
// from the log. A call whose end the log does not know gets the result
// "interrupted"; markers that are for people are left out.
//
// # Cancel
//
// The context and the turn's methods end together. The loop looks at the context
// before each wait and right before each effect; what a tool started, it ends.
// The session closes the calls that were open.
package agent

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"gladhand"
	"gladhand/acp"
	"gladhand/model"
	"gladhand/tool"
)

// defaultSteps is how many replies of the model a turn may take.
const defaultSteps = 50

//go:embed system.md
var systemText string

// Options are what an agent is made of. Only Model is required.
type Options struct {
	Model model.Model
	// Tools are offered in this order; nil is tool.Builtin().
	Tools []tool.Tool
	// MaxSteps bounds the model's replies in a turn; 0 is 50. A turn that reaches
	// it ends with max_turn_requests.
	MaxSteps int
	// OutputDir takes the whole output of commands that print very much; empty
	// keeps head and tail only.
	OutputDir string
	// Environ is the environment of commands; nil is the daemon's without secrets.
	Environ []string
	// Log receives what is of no interest to people in the session; nil discards.
	Log *slog.Logger
}

// Agent runs the turns of one session.
type Agent struct {
	opts  Options
	tools map[string]tool.Tool
	specs []model.Tool
	files tool.Files

	mu sync.Mutex // held while a turn runs
	// talk is the conversation up to the last turn; nil when only the log knows it.
	talk *transcript
}

// New returns an agent for one session.
func New(o Options) *Agent {
	if o.Tools == nil {
		o.Tools = tool.Builtin()
	}
	if o.MaxSteps <= 0 {
		o.MaxSteps = defaultSteps
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Agent{opts: o, tools: map[string]tool.Tool{}}
	for _, t := range o.Tools {
		spec := t.Spec()
		a.tools[spec.Name] = t
		a.specs = append(a.specs, model.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
	}
	return a
}

// Close releases what the agent holds between turns.
func (a *Agent) Close() error { return nil }

// Run runs one turn to its end and returns why it ended: StopCancelled soon
// after ctx ended, an error when the model or the log failed.
func (a *Agent) Run(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	talk := a.talk
	a.talk = nil // until this turn has ended well, the log knows better
	if talk == nil {
		var err error
		if talk, err = recall(ctx, t); err != nil {
			return ended(ctx, "", err)
		}
	}
	r := &run{a: a, t: t, talk: talk, env: &tool.Env{
		Cwd: t.Info().Cwd, Files: &a.files, OutputDir: a.opts.OutputDir, Environ: a.opts.Environ,
	}}
	reason, err := r.turn(ctx)
	reason, err = ended(ctx, reason, err)
	if err == nil && reason != gladhand.StopCancelled {
		a.talk = talk
	}
	return reason, err
}

// ended makes a stop reason of whatever came of a cancelled turn.
func ended(ctx context.Context, reason gladhand.StopReason, err error) (gladhand.StopReason, error) {
	if ctx.Err() != nil || gladhand.CodeOf(err) == gladhand.CodeCancelled {
		return gladhand.StopCancelled, nil
	}
	return reason, err
}

// run is one turn.
type run struct {
	a    *Agent
	t    gladhand.Turn
	talk *transcript
	env  *tool.Env
}

func (r *run) turn(ctx context.Context) (gladhand.StopReason, error) {
	prompt := r.t.Prompt()
	r.talk.user(r.t.ID(), acp.Text(prompt.Content))
	if err := r.title(ctx, prompt); err != nil {
		return "", err
	}
	for range r.a.opts.MaxSteps {
		if _, err := r.steered(ctx); err != nil {
			return "", err
		}
		calls, stop, err := r.reply(ctx)
		if err != nil {
			return "", err
		}
		if len(calls) == 0 {
			more, err := r.steered(ctx)
			if err != nil {
				return "", err
			}
			if !more {
				return stop, nil
			}
		}
		for _, c := range calls {
			if err := r.perform(ctx, c); err != nil {
				return "", err
			}
		}
	}
	text := fmt.Sprintf("I stopped after %d steps. Say “go on” to continue.", r.a.opts.MaxSteps)
	r.talk.text(r.t.ID(), text)
	return gladhand.StopMaxRequests, r.emit(ctx, acp.MessageChunk(gladhand.NewID(), text))
}

// steered takes in the prompts that joined the turn.
func (r *run) steered(ctx context.Context) (any bool, err error) {
	prompts, err := r.t.Steered(ctx)
	for _, p := range prompts {
		r.talk.user(r.t.ID(), acp.Text(p.Content))
	}
	return len(prompts) > 0, err
}

// title names the session after its first prompt by a person.
func (r *run) title(ctx context.Context, p gladhand.Prompt) error {
	if r.t.Info().Title != "" || p.By.Kind != gladhand.Human {
		return nil
	}
	if title := titleOf(acp.Text(p.Content)); title != "" {
		return r.emit(ctx, acp.SessionTitle(title))
	}
	return nil
}

// call is a tool call of the model's that has been announced.
type call struct {
	model.Call
	// malformed says why the arguments cannot be used.
	malformed error
}

// reply streams one reply of the model.
func (r *run) reply(ctx context.Context) (calls []call, stop gladhand.StopReason, err error) {
	info := r.t.Info()
	req := model.Request{
		System:   fmt.Sprintf(systemText, info.Cwd, runtime.GOOS, info.Mode),
		Messages: r.talk.conversation(),
		Tools:    r.a.specs,
	}
	stop = gladhand.StopEndTurn
	messageID, thoughtID := gladhand.NewID(), gladhand.NewID()
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	for chunk, err := range r.a.opts.Model.Generate(ctx, req) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, "", err
		}
		if chunk.Thought != "" {
			err = r.emit(ctx, acp.ThoughtChunk(thoughtID, chunk.Thought))
		}
		if chunk.Text != "" && err == nil {
			r.talk.text(r.t.ID(), chunk.Text)
			err = r.emit(ctx, acp.MessageChunk(messageID, chunk.Text))
		}
		if chunk.Call != nil && err == nil {
			var c call
			c, err = r.announce(ctx, *chunk.Call)
			calls = append(calls, c)
			messageID = gladhand.NewID() // text behind a call is a new message
		}
		if u := chunk.Usage; u != nil && u.Window > 0 && err == nil {
			err = r.emit(ctx, acp.Usage(acp.UsageState{Used: u.Input + u.Output, Size: u.Window}))
		}
		if err != nil {
			return nil, "", err
		}
		switch chunk.Stop {
		case model.StopMaxTokens:
			stop = gladhand.StopMaxTokens
		case model.StopRefusal:
			stop = gladhand.StopRefusal
		}
	}
	return calls, stop, ctx.Err()
}

// emit puts an update into the log, unless the turn is over.
func (r *run) emit(ctx context.Context, update []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.t.Emit(ctx, update)
}
