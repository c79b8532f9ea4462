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
//  2. When the model's window is nearly full, the context is reduced; see below.
//  3. The model streams its reply; text and tool calls go out as they come.
//  4. Without tool calls the turn ends, unless something was steered in meanwhile.
//  5. Each tool call: prepare, decide (package policy), ask if need be, check that
//     nothing has changed since it was shown, commit "in progress", run, commit the
//     result. Calls that only look run side by side, all others one after the other;
//     results stand in the order of the calls.
//
// A call that is malformed, unknown, denied or failed goes back to the model as
// its result, to be mended. A reply that breaks off is asked for again, twice in a
// turn. Only a failing model or a failing log end a turn with an error, and a model
// that repeats itself is first told so and then stopped.
//
// # What the model sees
//
// The conversation is kept between turns. It holds nothing that is not in the
// session's log, so after a restart, a cancelled or a failed turn it is made anew
// from the log. A call whose end the log does not know gets the result
// "interrupted"; markers that are for people, and slash commands, are left out.
// Thoughts go back to the model only within their turn.
//
// # Context
//
// Before a request that would fill the window (see Options.ReduceAt) the context is
// reduced, at most twice a turn: results of tools are cut, and when that is not
// enough the older part becomes a summary, written by the model. The reduced context
// is committed together with the position in the log that it stands for; after a
// restart the conversation is that snapshot and what the log says behind it. What
// people see is never shortened. A provider that refuses a request as too long is
// answered once in the same way.
//
// # Cancel
//
// The context and the turn's methods end together. The loop looks at the context
// before each wait and right before each effect; what a tool started, it ends. A tool
// that does not return in time is left behind, and the next turn waits for it.
// The session closes the calls that were open.
package agent

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"gladhand"
	"gladhand/acp"
	"gladhand/model"
	"gladhand/tool"
)

// defaultSteps is how many replies of the model a turn may take.
const defaultSteps = 200

//go:embed system.md
var systemText string

// Options are what an agent is made of. Model or Models is required.
type Options struct {
	Model model.Model
	// Models opens the model that a session chose, by its name; it is asked when a
	// turn begins. Nil is Model for each.
	Models func(name string) (model.Model, error)
	// Servers have further tools, looked at when a turn begins; nil: none.
	Servers Servers
	// Instructions are files of instructions for every session, such as the user's
	// own AGENTS.md. What is not there is left out.
	Instructions []string
	// ReduceAt is how full the model's window may get, in percent, before the
	// context is reduced; 0 is 85.
	ReduceAt int
	// Tools are offered in this order; nil is tool.Builtin().
	Tools []tool.Tool
	// MaxSteps bounds the model's replies in a turn; 0 is 200. A turn that reaches
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

// Servers are tools that come from elsewhere, such as MCP servers.
type Servers interface {
	// Tools are those that are there now. It may wait a little for ones that start.
	Tools(context.Context) []tool.Tool
	// Notices are what people should know, since the last call.
	Notices() []string
	Close() error
}

// Agent runs the turns of one session.
type Agent struct {
	opts       Options
	files      tool.Files
	background *tool.Background
	stragglers sync.WaitGroup // tools that were given up when their turn was cancelled

	mu sync.Mutex // held while a turn runs
	// talk is the conversation up to the last turn; nil when only the log knows it.
	talk  *transcript
	gauge gauge
	spent spent // by the whole session
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
	if o.ReduceAt <= 0 {
		o.ReduceAt = defaultReduceAt
	}
	return &Agent{opts: o, background: tool.NewBackground(o.OutputDir)}
}

// UseServers names the MCP servers that a client brought along, when there is
// somebody to use them.
func (a *Agent) UseServers(servers json.RawMessage) {
	if u, ok := a.opts.Servers.(interface{ UseServers(json.RawMessage) }); ok {
		u.UseServers(servers)
	}
}

// Close ends what the agent has running between turns.
func (a *Agent) Close() error {
	err := a.background.Close()
	if a.opts.Servers != nil {
		err = errors.Join(err, a.opts.Servers.Close())
	}
	return err
}

// Run runs one turn to its end and returns why it ended: StopCancelled soon
// after ctx ended, an error when the model or the log failed.
func (a *Agent) Run(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, err := a.begin(ctx, t)
	if err != nil {
		return ended(ctx, "", err)
	}
	reason, err := r.turn(ctx)
	reason, err = ended(ctx, reason, err)
	if err == nil && reason != gladhand.StopCancelled {
		r.talk.forget()
		a.talk = r.talk
	}
	return reason, err
}

// begin prepares a turn: the conversation, the model and the tools. Until the turn
// has ended well, only the log knows the conversation.
func (a *Agent) begin(ctx context.Context, t gladhand.Turn) (*run, error) {
	if err := a.settled(ctx); err != nil {
		return nil, err
	}
	talk := a.talk
	a.talk = nil
	if talk == nil {
		a.gauge = gauge{}
		var err error
		if talk, a.spent, err = recall(ctx, t); err != nil {
			return nil, err
		}
	}
	info := t.Info()
	m, err := a.open(info.Model)
	if err != nil {
		return nil, err
	}
	r := &run{a: a, t: t, talk: talk, model: m, gauge: &a.gauge, tools: map[string]tool.Tool{}, spent: &a.spent}
	r.gauge.window = m.Limits().Window
	r.turnSpent = a.spent
	r.env = &tool.Env{
		Cwd: info.Cwd, Files: &a.files, OutputDir: a.opts.OutputDir, Environ: a.opts.Environ,
		Turn: r, Background: a.background,
	}
	r.instructions = instructions(info.Cwd, a.opts.Instructions)
	r.offer(a.opts.Tools)
	if a.opts.Servers != nil {
		r.offer(a.opts.Servers.Tools(ctx))
	}
	return r, nil
}

// settled waits for tools of a cancelled turn that take long to end, so that two
// turns never work at once.
func (a *Agent) settled(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		a.stragglers.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *Agent) open(name string) (model.Model, error) {
	if a.opts.Models == nil {
		return a.opts.Model, nil
	}
	return a.opts.Models(name)
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
	a     *Agent
	t     gladhand.Turn
	talk  *transcript
	env   *tool.Env
	model model.Model
	gauge *gauge

	tools        map[string]tool.Tool
	specs        []model.Tool
	instructions string
	loop         loop
	spent        *spent // by the session
	turnSpent    spent  // by the session when the turn began
	replies      int
	reductions   int
	compaction   string // the announced one that is not completed
	overflowed   bool   // the provider said once that the context is too long
	broken       int    // replies that broke off
}

// offer adds tools to what the model may call.
func (r *run) offer(tools []tool.Tool) {
	for _, t := range tools {
		spec := t.Spec()
		if r.tools[spec.Name] == nil {
			r.tools[spec.Name] = t
			r.specs = append(r.specs, model.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
		}
	}
}

func (r *run) turn(ctx context.Context) (gladhand.StopReason, error) {
	prompt := r.t.Prompt()
	r.talk.user(r.t.ID(), content(prompt.Content))
	if err := r.title(ctx, prompt); err != nil {
		return "", err
	}
	for range r.a.opts.MaxSteps {
		if _, err := r.steered(ctx); err != nil {
			return "", err
		}
		if err := r.notices(ctx); err != nil {
			return "", err
		}
		calls, stop, err := r.step(ctx)
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
		if err := r.performAll(ctx, calls); err != nil {
			return "", err
		}
		if r.loop.stuck() {
			return r.stop(ctx, "I stopped: I was repeating the same calls with the same results. Say what to do differently.")
		}
	}
	return r.stop(ctx, fmt.Sprintf("I stopped after %d steps. Say “go on” to continue.", r.a.opts.MaxSteps))
}

// notices tells people what the servers of tools have to say.
func (r *run) notices(ctx context.Context) error {
	if r.a.opts.Servers == nil {
		return nil
	}
	for _, text := range r.a.opts.Servers.Notices() {
		if err := r.emit(ctx, acp.Notice("warning", text, "")); err != nil {
			return err
		}
	}
	return nil
}

// stop ends a turn that would otherwise go on, and says why.
func (r *run) stop(ctx context.Context, text string) (gladhand.StopReason, error) {
	r.talk.text(r.t.ID(), text)
	return gladhand.StopMaxRequests, r.emit(ctx, acp.MessageChunk(gladhand.NewID(), text))
}

// steered takes in the prompts that joined the turn.
func (r *run) steered(ctx context.Context) (any bool, err error) {
	prompts, err := r.t.Steered(ctx)
	for _, p := range prompts {
		r.talk.user(r.t.ID(), content(p.Content))
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

// emit puts an update into the log, unless the turn is over.
func (r *run) emit(ctx context.Context, update []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.t.Emit(ctx, update)
}
