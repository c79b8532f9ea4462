package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/client"
)

// leaveAfter is how long a cancelled turn may take to end before it is left.
const leaveAfter = 10 * time.Second

// follower counts what one turn takes.
type follower struct {
	id     gladhand.SessionID
	prompt gladhand.PromptID
	turn   gladhand.TurnID

	steps   int
	replies bool            // a reply has begun since the last result
	calls   map[string]bool // ids of tool calls
	tokens  *Tokens
	cost    *float64
	said    strings.Builder
	ended   bool
	why     string // why the turn did not end well
}

// session has the agent do the task, in a session of its own. The error is one
// that other tasks would have too.
func (o *Options) session(ctx context.Context, t Task, dir string) (*follower, error) {
	m := o.Session
	m.Yes, m.OneShot = true, true
	id, err := o.Client.NewSession(ctx, dir, m)
	if err != nil {
		return nil, err
	}
	f := &follower{id: id, prompt: gladhand.PromptID(gladhand.NewID()), calls: map[string]bool{}}
	if !o.Keep {
		defer func() {
			// Also when we are interrupted: a session without its workspace is no use.
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveAfter)
			defer stop()
			_ = o.Client.Delete(ctx, id)
		}()
	}
	tail := int64(-1)
	at, err := o.Client.Attach(ctx, gladhand.AttachParams{SessionID: id, After: &tail, NoAnswer: true})
	if err != nil {
		return nil, err
	}
	if _, err := o.Client.Send(ctx, gladhand.SendParams{SessionID: id, PromptID: f.prompt, Prompt: acp.TextContent(t.Prompt)}); err != nil {
		return nil, err
	}
	return f, f.follow(ctx, o.Client, at, o.Timeout)
}

// follow reads the session until the prompt's turn has ended.
func (f *follower) follow(ctx context.Context, c *client.Client, at *client.Attachment, timeout time.Duration) error {
	limited, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	for !f.ended {
		u, err := at.Next(limited)
		switch {
		case err == nil:
			f.see(u)
		case errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil:
			f.why = fmt.Sprintf("it took longer than %v", timeout)
			return f.leave(ctx, c, at)
		case ctx.Err() != nil:
			return errors.Join(f.leave(ctx, c, at), ctx.Err())
		case gladhand.ReasonOf(err) == gladhand.ReasonUnavailable:
			return err
		default: // somebody ended the session, for instance
			f.ended, f.why = true, err.Error()
		}
	}
	return nil
}

// leave cancels the turn and waits a little for its end, so that nothing works in
// the scratch copy any more.
func (f *follower) leave(ctx context.Context, c *client.Client, at *client.Attachment) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveAfter)
	defer stop()
	if err := c.Cancel(ctx, f.id); err != nil {
		return err
	}
	why := f.why
	for !f.ended {
		u, err := at.Next(ctx)
		if err != nil {
			break // it does not end; the session is deleted, which ends it
		}
		f.see(u)
	}
	f.why = why
	return nil
}

// see takes one update in.
func (f *follower) see(u client.Update) {
	if u.Link != client.NoNews {
		return
	}
	switch u.Tag {
	case gladhand.TagTurnStart, gladhand.TagTurnEnd:
		var v gladhand.TurnUpdate
		if u.Decode(&v) != nil || !slices.Contains(v.Prompts, f.prompt) {
			return
		}
		f.turn = v.Turn
		if u.Tag == gladhand.TagTurnEnd {
			f.end(v)
		}
		return
	case gladhand.TagPrompt:
		var v gladhand.PromptUpdate
		if u.Decode(&v) == nil && v.PromptID == f.prompt && (v.State == gladhand.PromptDone || v.State == gladhand.PromptInterrupted) && f.turn == 0 {
			f.ended, f.why = true, "the prompt was dropped"
		}
		return
	}
	if f.turn == 0 || u.Meta.Turn != f.turn {
		return
	}
	switch u.Tag {
	case acp.TagAgentChunk, acp.TagThoughtChunk:
		f.reply()
		var v struct {
			Content json.RawMessage `json:"content"`
		}
		if u.Tag == acp.TagAgentChunk && u.Decode(&v) == nil {
			f.said.WriteString(acp.Text(v.Content))
		}
	case acp.TagToolCall, acp.TagToolCallUpdate:
		f.call(u)
	case acp.TagUsage:
		f.usage(u)
	}
}

func (f *follower) end(v gladhand.TurnUpdate) {
	f.ended = true
	switch {
	case v.StopReason == gladhand.StopEndTurn:
	case v.Error != nil:
		f.why = "the turn failed: " + v.Error.Message
	default:
		f.why = "the turn ended early: " + string(v.StopReason)
	}
}

// reply counts a reply of the model's: what it says and calls up to the next
// result.
func (f *follower) reply() {
	if !f.replies {
		f.replies = true
		f.steps++
	}
}

func (f *follower) call(u client.Update) {
	var v struct {
		ID     string `json:"toolCallId"`
		Status string `json:"status"`
	}
	if u.Decode(&v) != nil {
		return
	}
	if !f.calls[v.ID] {
		f.reply()
		f.calls[v.ID] = true
	}
	if v.Status == "completed" || v.Status == "failed" {
		f.replies = false
	}
}

// usage takes in what the agent says of its tokens and its costs: the built-in
// one the turn's in our _meta, others ACP's size of the context.
func (f *follower) usage(u client.Update) {
	var v struct {
		Used int `json:"used"`
		Cost *struct {
			Amount   float64 `json:"amount"`
			Currency string  `json:"currency"`
		} `json:"cost"`
		Meta struct {
			Gladhand struct {
				Turn *struct {
					Input  int     `json:"inputTokens"`
					Output int     `json:"outputTokens"`
					Cost   float64 `json:"cost"`
				} `json:"turn"`
			} `json:"gladhand"`
		} `json:"_meta"`
	}
	if u.Decode(&v) != nil {
		return
	}
	switch turn := v.Meta.Gladhand.Turn; {
	case turn != nil:
		f.tokens = &Tokens{Input: turn.Input, Output: turn.Output, Total: turn.Input + turn.Output}
		if turn.Cost > 0 {
			f.cost = &turn.Cost
		}
		return
	case v.Used > 0:
		f.tokens = &Tokens{Total: max(v.Used, f.total())}
	}
	if v.Cost != nil && v.Cost.Currency == "USD" {
		f.cost = &v.Cost.Amount // the session's, which has this turn only
	}
}

func (f *follower) total() int {
	if f.tokens == nil {
		return 0
	}
	return f.tokens.Total
}
