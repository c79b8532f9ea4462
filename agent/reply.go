package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	"gladhand"
	"gladhand/acp"
	"gladhand/model"
)

// maxBroken is how many replies that break off in the middle are asked for again in
// one turn.
const maxBroken = 2

// call is a tool call of the model's.
type call struct {
	model.Call
	// shown are its arguments as people see them.
	shown json.RawMessage
	// announced says that it has been shown.
	announced bool
	// malformed says why the arguments cannot be used.
	malformed error
}

// step gets one whole reply of the model, making room for it when it must.
func (r *run) step(ctx context.Context) ([]call, gladhand.StopReason, error) {
	for {
		if err := r.room(ctx); err != nil {
			return nil, "", err
		}
		mark := r.talk.mark()
		calls, stop, err := r.reply(ctx)
		if err == nil {
			return calls, stop, nil
		}
		var fault *model.Error
		if ctx.Err() != nil || !errors.As(err, &fault) {
			return nil, "", err
		}
		switch {
		case fault.Kind == model.KindOverflow && !r.overflowed:
			r.overflowed = true
			err = r.overflow(ctx, mark)
		case fault.Kind.Retryable() && r.begun(mark) && r.broken < maxBroken:
			r.broken++
			err = r.again(ctx, mark, fault)
		}
		if err != nil {
			return nil, "", err
		}
	}
}

// begun reports whether a reply has left something in the conversation. A failure
// before that was retried by the model itself.
func (r *run) begun(m mark) bool { return r.talk.mark() != m }

// overflow handles a provider that says that the context is too long: it knows
// better than our estimate.
func (r *run) overflow(ctx context.Context, m mark) error {
	r.talk.backTo(m)
	if n := r.gauge.estimate(r.talk.conversation()); r.gauge.window == 0 || n < r.gauge.window {
		r.gauge.window = max(n*9/10, 1)
	}
	return r.reduce(ctx)
}

// again forgets a reply that broke off, with the calls in it, and says that another
// one is asked for.
func (r *run) again(ctx context.Context, m mark, fault *model.Error) error {
	r.talk.backTo(m)
	return r.emit(ctx, acp.Notice("warning", "The reply is asked for again: "+fault.Text, ""))
}

// request is what the model is asked with now.
func (r *run) request() model.Request {
	info := r.t.Info()
	req := model.Request{
		System:  fmt.Sprintf(systemText, info.Cwd, runtime.GOOS, info.Mode) + r.instructions,
		Tools:   r.specs,
		Effort:  info.Effort,
		Session: string(info.ID),
	}
	req.Messages = r.talk.conversation()
	if !r.model.Limits().Images {
		req.Messages = withoutImages(req.Messages)
	}
	if r.gauge.fixed == 0 {
		r.gauge.fixed = textTokens(req.System)
		for _, t := range req.Tools {
			r.gauge.fixed += 8 + textTokens(t.Name) + textTokens(t.Description) + textTokens(string(t.Schema))
		}
	}
	return req
}

// reply streams one reply of the model.
func (r *run) reply(ctx context.Context) (calls []call, stop gladhand.StopReason, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	req := r.request()
	stop = gladhand.StopEndTurn
	ids := r.ids()
	var usage *model.Usage
	for chunk, err := range r.model.Generate(ctx, req) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, "", err
		}
		if calls, err = r.take(ctx, chunk, &ids, calls); err != nil {
			return nil, "", err
		}
		if chunk.Usage != nil {
			usage = chunk.Usage
		}
		switch chunk.Stop {
		case model.StopMaxTokens:
			stop = gladhand.StopMaxTokens
		case model.StopRefusal:
			stop = gladhand.StopRefusal
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	return calls, stop, r.account(ctx, usage, len(req.Messages))
}

// messageIDs are those of the message and the thought that go on.
type messageIDs struct{ message, thought string }

// ids are those that the turn's start opened, for the first reply; new ones for others.
func (r *run) ids() messageIDs {
	if r.replies++; r.replies == 1 {
		m, t := r.t.Opened()
		return messageIDs{m, t}
	}
	return messageIDs{gladhand.NewID(), gladhand.NewID()}
}

// take puts a chunk into the conversation and the log.
func (r *run) take(ctx context.Context, chunk model.Chunk, ids *messageIDs, calls []call) ([]call, error) {
	if chunk.Notice != "" {
		if err := r.emit(ctx, acp.Notice("info", chunk.Notice, "")); err != nil {
			return calls, err
		}
	}
	if chunk.Thought != "" || chunk.State != nil {
		r.talk.thought(r.t.ID(), chunk.Thought, chunk.State)
	}
	if chunk.Thought != "" {
		if err := r.emit(ctx, acp.ThoughtChunk(ids.thought, chunk.Thought)); err != nil {
			return calls, err
		}
	}
	if chunk.Text != "" {
		r.talk.text(r.t.ID(), chunk.Text)
		if err := r.emit(ctx, acp.MessageChunk(ids.message, chunk.Text)); err != nil {
			return calls, err
		}
		ids.thought = gladhand.NewID() // what it thinks behind its words is a new thought
	}
	if chunk.Call == nil {
		return calls, nil
	}
	*ids = messageIDs{gladhand.NewID(), gladhand.NewID()} // and so is what stands behind a call
	return append(calls, r.accept(*chunk.Call)), nil
}

// spent is what was used, in tokens and US dollars.
type spent struct {
	Input      int     `json:"inputTokens"`
	Output     int     `json:"outputTokens"`
	CacheRead  int     `json:"cacheReadTokens,omitempty"`
	CacheWrite int     `json:"cacheWriteTokens,omitempty"`
	Cost       float64 `json:"cost,omitempty"`
}

func (s *spent) add(u model.Usage) {
	s.Input += u.Input
	s.Output += u.Output
	s.CacheRead += u.CacheRead
	s.CacheWrite += u.CacheWrite
	s.Cost += u.Cost
}

func (s spent) minus(o spent) spent {
	return spent{s.Input - o.Input, s.Output - o.Output, s.CacheRead - o.CacheRead, s.CacheWrite - o.CacheWrite, s.Cost - o.Cost}
}

// account takes in what the provider counted, or what we do when it did not.
func (r *run) account(ctx context.Context, u *model.Usage, asked int) error {
	if u == nil {
		return nil
	}
	r.spent.add(*u)
	if u.Window > 0 {
		r.gauge.window = u.Window
	}
	// The reply is counted too: it is the message behind those that were asked with.
	r.gauge.used, r.gauge.counted = u.Input+u.Output, asked+1
	if u.Input+u.Output == 0 {
		r.gauge.used, r.gauge.counted = 0, 0
	}
	return r.tellUsage(ctx, u.Input+u.Output)
}

// usageMeta is what we add to ACP's usage update: what the turn has used so far.
type usageMeta struct {
	Turn    spent `json:"turn"`
	Session spent `json:"session"`
}

func (r *run) tellUsage(ctx context.Context, used int) error {
	if r.gauge.window == 0 {
		return nil
	}
	meta, err := json.Marshal(usageMeta{r.spent.minus(r.turnSpent), *r.spent})
	if err != nil {
		return err
	}
	return r.emit(ctx, acp.Usage(acp.UsageState{Used: used, Size: r.gauge.window, Cost: r.spent.Cost, Meta: meta}))
}

// withoutImages tells a model that sees none that there was one.
func withoutImages(messages []model.Message) []model.Message {
	out := make([]model.Message, len(messages))
	for i, m := range messages {
		parts := make([]model.Part, len(m.Parts))
		for j, p := range m.Parts {
			switch {
			case p.Image != nil:
				p = model.Part{Text: "[an image, which this model cannot see]"}
			case p.Result != nil && len(p.Result.Images) > 0:
				res := *p.Result
				res.Images, res.Text = nil, res.Text+"\n[an image, which this model cannot see]"
				p.Result = &res
			}
			parts[j] = p
		}
		m.Parts = parts
		out[i] = m
	}
	return out
}
