package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gladhand"
	"gladhand/acp"
	"gladhand/model"
	"gladhand/policy"
	"gladhand/tool"
)

const (
	// livePause is the least time between two updates of a running call's output,
	// liveLimit how much of it they show.
	livePause = 100 * time.Millisecond
	liveLimit = 16 << 10
	// toolGrace is how long a tool may take to return when its turn was cancelled.
	toolGrace = 50 * time.Millisecond
	// maxArgs bounds a call's arguments, so that no event is over 4 MiB.
	maxArgs = 1 << 20
)

// The options of an ask.
const (
	optionAllow  = "allow"
	optionAlways = "always"
	optionReject = "reject"
)

// errCancelled says that the turn was cancelled while a question was open.
var errCancelled = gladhand.Errorf(gladhand.CodeCancelled, "", "the turn was cancelled")

// errMoved says that an answer was given to something that is no longer so.
var errMoved = errors.New("not done: what this depends on changed after it was shown and before it was allowed. Look again and repeat the call on what is there now")

// accept takes in a call of the model's, and gives it its id.
func (r *run) accept(c model.Call) call {
	c.ID = "call_" + gladhand.NewID()
	out := call{Call: c}
	args := jsontext.Value(c.Args)
	if s := strings.TrimSpace(string(args)); s == "" || s == "null" {
		args = jsontext.Value("{}")
	}
	out.Args = json.RawMessage(args)
	out.shown = out.Args
	switch {
	case len(args) > maxArgs:
		out.malformed = fmt.Errorf("the arguments are over %d bytes", maxArgs)
	case !args.IsValid(): // duplicate names and bad UTF-8 too
		out.malformed = errors.New("the arguments are not valid JSON")
		if json.Valid(args) && utf8.Valid(args) {
			out.malformed = errors.New("the arguments have a name twice")
		}
	case args.Kind() != '{':
		out.malformed = errors.New("the arguments are not a JSON object")
	}
	if out.malformed != nil {
		out.shown, _ = json.Marshal(map[string]string{"malformed": tool.Cut(string(args), liveLimit)})
		out.Args = json.RawMessage("{}") // what history holds is valid
	}
	r.talk.call(r.t.ID(), out.Call)
	return out
}

// announce shows the calls of a reply as pending. One that is alone is shown when it
// begins or asks, which is at once, and saves a commit.
func (r *run) announce(ctx context.Context, calls []call) error {
	for i := range calls {
		if len(calls) == 1 {
			return nil
		}
		if err := r.show(ctx, calls[i], r.opening(calls[i])); err != nil {
			return err
		}
		calls[i].announced = true
	}
	return nil
}

// show shows a call, or more of it.
func (r *run) show(ctx context.Context, c call, state acp.ToolState) error {
	if c.announced {
		return r.emit(ctx, acp.ToolUpdate(state))
	}
	return r.emit(ctx, acp.ToolCall(state))
}

// opening is a call as it is shown first; of one that was shown nothing is left to say.
func (r *run) opening(c call) acp.ToolState {
	if c.announced {
		return acp.ToolState{ID: c.ID}
	}
	state := acp.ToolState{ID: c.ID, Name: c.Name, Title: c.Name, Kind: "other", Status: "pending", RawInput: c.shown}
	if t := r.tools[c.Name]; t != nil {
		state.Kind = t.Spec().Kind
		if c.malformed == nil {
			state.Title = t.Title(c.Args)
		}
	}
	return state
}

// begin shows a call that is about to run; it has been committed when begin returns.
func (r *run) begin(ctx context.Context, c call, p *tool.Call) error {
	state := r.opening(c)
	state.Status = "in_progress"
	r.describe(&state, p)
	return r.show(ctx, c, state)
}

// maxParallel is how many calls run side by side.
const maxParallel = 8

// performAll takes the calls of one reply to their ends, those that only look side by
// side, all others one after the other.
func (r *run) performAll(ctx context.Context, calls []call) error {
	if err := r.announce(ctx, calls); err != nil {
		return err
	}
	for rest := calls; len(rest) > 0; {
		side, err := r.sideBySide(ctx, rest)
		if err != nil {
			return err
		}
		if len(side) > 1 {
			if err := r.performSide(ctx, side); err != nil {
				return err
			}
			rest = rest[len(side):]
			continue
		}
		if err := r.perform(ctx, rest[0]); err != nil {
			return err
		}
		rest = rest[1:]
	}
	if len(calls) > 0 && r.loop.end() {
		r.talk.remark(loopWarned)
	}
	return nil
}

// ready is a call that may run beside others.
type ready struct {
	call
	prepared *tool.Call
	result   tool.Result
	err      error
	done     chan struct{}
}

// sideBySide prepares the first calls that only look and need no question.
func (r *run) sideBySide(ctx context.Context, calls []call) ([]*ready, error) {
	var side []*ready
	for _, c := range calls[:min(len(calls), maxParallel)] {
		t := r.tools[c.Name]
		if t == nil || c.malformed != nil {
			break
		}
		if kind := t.Spec().Kind; kind != "read" && kind != "search" {
			break // preparing it may depend on what the calls before it do
		}
		p, err := r.prepare(ctx, c)
		if err != nil || !p.Parallel || policy.Decide(policy.Of(r.t.Info()), p.Action).Outcome != policy.Allow {
			break
		}
		side = append(side, &ready{call: c, prepared: p, done: make(chan struct{})})
	}
	return side, ctx.Err()
}

// performSide runs calls side by side; their results are told in their order.
func (r *run) performSide(ctx context.Context, side []*ready) error {
	for _, c := range side {
		if err := r.begin(ctx, c.call, c.prepared); err != nil {
			return err
		}
	}
	for _, c := range side {
		go func() {
			defer close(c.done)
			c.result, c.err = r.execute(ctx, c.call, c.prepared)
		}()
	}
	for _, c := range side {
		<-c.done // execute returns soon after ctx ends
		if err := r.conclude(ctx, c.call, c.prepared, c.result, c.err); err != nil {
			return err
		}
	}
	return nil
}

// conclude ends a call that ran.
func (r *run) conclude(ctx context.Context, c call, p *tool.Call, result tool.Result, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() // the session closes the call
	}
	if err != nil {
		return r.fail(ctx, c, err)
	}
	return r.finish(ctx, c, p, result)
}

// perform takes a call to its end. An error means that the turn
// cannot go on; whatever else goes wrong is the call's result.
func (r *run) perform(ctx context.Context, c call) error {
	prepared, err := r.prepare(ctx, c)
	if err != nil {
		return r.refuse(ctx, c, err)
	}
	d := policy.Decide(policy.Of(r.t.Info()), prepared.Action)
	switch d.Outcome {
	case policy.Deny:
		return r.refuse(ctx, c, errors.New("Denied: "+d.Reason))
	case policy.Ask:
		if refusal, err := r.ask(ctx, c, prepared, d); err != nil {
			return err
		} else if refusal != nil {
			return r.fail(ctx, c, refusal)
		}
		err = r.emit(ctx, acp.ToolUpdate(acp.ToolState{ID: c.ID, Status: "in_progress"})) // the rest has been shown
	default:
		err = r.begin(ctx, c, prepared)
	}
	if err != nil {
		return err
	}
	result, err := r.execute(ctx, c, prepared)
	return r.conclude(ctx, c, prepared, result, err)
}

// prepare finds the tool and has it look at the call.
func (r *run) prepare(ctx context.Context, c call) (prepared *tool.Call, err error) {
	t := r.tools[c.Name]
	if t == nil {
		names := make([]string, 0, len(r.specs))
		for _, s := range r.specs {
			names = append(names, s.Name)
		}
		return nil, fmt.Errorf("there is no tool %q; there are %s", c.Name, strings.Join(names, ", "))
	}
	if c.malformed != nil {
		return nil, fmt.Errorf("nothing was run: %w. Send the call again", c.malformed)
	}
	defer r.recovered(c, &err)
	return t.Prepare(ctx, r.env, c.Args)
}

// ask shows the call, puts the question, waits, and looks whether the answer is
// still about the same. A refusal is what the model is told.
func (r *run) ask(ctx context.Context, c call, p *tool.Call, d policy.Decision) (refusal, err error) {
	state := r.opening(c)
	r.describe(&state, p)
	if err := r.show(ctx, c, state); err != nil {
		return nil, err
	}
	shown, refusal := p.Digest()
	if refusal != nil {
		return refusal, nil
	}
	state.Name, state.Kind, state.Status, state.RawInput = "", "", "pending", c.Args
	ask := gladhand.Ask{
		Title: state.Title, ToolCall: acp.AskedToolCall(state), Digest: shown, Rule: d.Rule,
		Options: []gladhand.Option{{ID: optionAllow, Name: "Allow", Kind: gladhand.AllowOnce}},
	}
	if d.Reason != "" {
		ask.Title += " (" + d.Reason + ")"
	}
	if d.Rule != "" {
		ask.Options = append(ask.Options, gladhand.Option{ID: optionAlways, Name: d.AlwaysName, Kind: gladhand.AllowAlways})
	}
	ask.Options = append(ask.Options, gladhand.Option{ID: optionReject, Name: "Deny", Kind: gladhand.RejectOnce})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v, err := r.t.Ask(ctx, ask)
	switch {
	case err != nil:
		return nil, err
	case v.Settled == gladhand.SettledCancelled:
		return nil, errCancelled
	case !v.Allowed():
		return errors.New(denial(v)), nil
	}
	if now, err := p.Digest(); err != nil || now != shown {
		return errors.Join(err, errMoved), nil
	}
	return nil, nil
}

// denial tells the model that, why, and by whom it was denied.
func denial(v gladhand.Verdict) string {
	switch v.Settled {
	case gladhand.SettledExpired:
		return "Denied: nobody answered in time. Nothing was done."
	case gladhand.SettledDenied:
		return "Denied: nobody is there who could allow it. Nothing was done."
	case gladhand.SettledByRule:
		return "Denied by a remembered rule. Nothing was done."
	}
	who := ""
	if v.By != nil && v.By.Display() != "" {
		who = " by " + v.By.Display()
	}
	if v.Answer.Reason != "" {
		return fmt.Sprintf("Denied%s: %s. Nothing was done.", who, strings.TrimRight(v.Answer.Reason, ". "))
	}
	return fmt.Sprintf("Denied%s. Nothing was done.", who)
}

// execute has the effect, and shows output while it comes.
func (r *run) execute(ctx context.Context, c call, p *tool.Call) (result tool.Result, err error) {
	out := tool.NewOutput(tool.MaxResult, r.env.OutputDir)
	stop := r.follow(ctx, c.ID, out)
	defer stop()
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	type outcome struct {
		result tool.Result
		err    error
	}
	done := make(chan outcome, 1)
	r.a.stragglers.Go(func() {
		var o outcome
		defer func() { done <- o }()
		defer r.recovered(c, &o.err)
		o.result, o.err = p.Run(ctx, out)
	})
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.result, o.err
	case <-time.After(toolGrace):
		return tool.Result{}, ctx.Err() // the next turn waits for it
	}
}

// follow emits the output of a running call, bounded and at a bounded rate. The
// returned function ends it and waits for that.
func (r *run) follow(ctx context.Context, id string, out *tool.Output) (stop func()) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		pause := time.NewTimer(0)
		defer pause.Stop()
		for {
			select {
			case <-done:
				return
			case <-pause.C:
			}
			select {
			case <-done:
				return
			case <-out.Changed():
			}
			update := acp.ToolUpdate(acp.ToolState{ID: id, Content: []json.RawMessage{acp.ContentText(out.Text(liveLimit))}})
			if r.emit(ctx, update) != nil {
				return
			}
			pause.Reset(livePause)
		}
	}()
	return func() {
		close(done)
		<-gone
	}
}

// recovered makes a panic of a tool the call's error.
func (r *run) recovered(c call, err *error) {
	if p := recover(); p != nil {
		r.a.opts.Log.Error("a tool panicked", "tool", c.Name, "panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("the tool %s failed inside; its effect is unknown", c.Name)
	}
}

// fail ends a call that did not do what it should.
func (r *run) fail(ctx context.Context, c call, why error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.finish(ctx, c, nil, tool.Result{Text: why.Error(), Failed: true})
}

// refuse shows a call that is not run, and why.
func (r *run) refuse(ctx context.Context, c call, why error) error {
	if !c.announced {
		if err := r.show(ctx, c, r.opening(c)); err != nil {
			return err
		}
	}
	return r.fail(ctx, c, why)
}

// finish ends a call with its result. What was shown of a file's change stays
// shown when it was made; the text about it is then in the raw output.
func (r *run) finish(ctx context.Context, c call, p *tool.Call, result tool.Result) error {
	text := strings.ToValidUTF8(tool.Cut(result.Text, tool.MaxResult), "\uFFFD")
	state := acp.ToolState{ID: c.ID, Status: "completed"}
	if result.Failed {
		state.Status = "failed"
	}
	if p != nil && len(p.Diffs) > 0 && !result.Failed {
		state.RawOutput, _ = json.Marshal(rawText{text})
	} else {
		state.Content = []json.RawMessage{acp.ContentText(text)}
		for _, img := range result.Images {
			state.Content = append(state.Content, acp.ContentImage(img.MIME, img.Data))
		}
		if result.Raw != nil {
			state.RawOutput, _ = json.Marshal(result.Raw)
		}
	}
	r.talk.result(c.ID, text, result.Images, result.Failed)
	if c.Name != "command_output" { // waiting for a command is no loop
		r.loop.saw(c.Name, string(c.Args), text)
	}
	return r.emit(ctx, acp.ToolUpdate(state))
}

// rawText is the raw output of a call whose content is a diff.
type rawText struct {
	Text string `json:"text"`
}

// describe adds what people see of a prepared call before it is allowed.
func (r *run) describe(state *acp.ToolState, p *tool.Call) {
	state.Title = p.Title
	for _, l := range p.Locations {
		state.Locations = append(state.Locations, acp.Location{Path: l.Path, Line: l.Line})
	}
	for _, d := range p.Diffs {
		state.Content = append(state.Content, acp.ContentDiff(d.Path, d.Old, d.New))
	}
	// A title is one short line; a command is shown whole before it is allowed.
	if cmd := p.Action.Command; cmd != "" && !strings.HasSuffix(p.Title, cmd) {
		state.Content = append(state.Content, acp.ContentText(cmd))
	}
}

// titleOf is the first line of a prompt, at most 60 characters, cut at a word.
func titleOf(text string) string {
	for line := range strings.Lines(text) {
		words := strings.Fields(strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f {
				return ' '
			}
			return c
		}, line))
		if len(words) == 0 {
			continue
		}
		title := []rune(strings.Join(words, " "))
		if len(title) <= 60 {
			return string(title)
		}
		cut := string(title[:59])
		if i := strings.LastIndexByte(cut, ' '); i > 30 {
			cut = cut[:i]
		}
		return cut + "…"
	}
	return ""
}
