package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"gladhand"
	"gladhand/acp"
	"gladhand/model"
	"gladhand/tool"
)

// How a context that grows too large is reduced. Percentages are of the window.
const (
	// defaultReduceAt is where it is reduced before the model is asked, afterwards
	// at most reduceTo of it are left, of which the newest messages take keepTail.
	defaultReduceAt = 85
	reduceTo        = 50
	keepTail        = 20
	// maxReductions is how often in one turn: a context that is full again after two
	// has something in it that does not shrink.
	maxReductions = 2
	// trimOver is the size in bytes of a tool's result that is trimmed, trimTo what is
	// left of it.
	trimOver = 4 << 10
	trimTo   = 1 << 10
	// imageTokens is what one image is taken for.
	imageTokens = 1600
	// summaryMax bounds a summary, in bytes.
	summaryMax = 32 << 10
)

const summarySystem = `You shorten conversations of a coding agent so that it can go on with less to read. Answer with the summary alone.`

const summaryPrompt = `Below is the older part of a conversation between people and a coding agent, with the agent's tool calls. The agent goes on from your summary and the newest messages, and sees nothing else of this. Write down, briefly and exactly:

1. what was asked for, each wish and each restriction in the asker's own words where they matter;
2. what was found out: files and places, facts, commands that work;
3. what was done and what came of it, what failed and why;
4. what is still to do, and what was going on at the end.

Do not invent anything.

`

const summaryBegin = "[The older part of this conversation was shortened. This is its summary.]\n\n"

// gauge keeps account of a model's context.
type gauge struct {
	window int // tokens; 0 while unknown
	// used is what the provider counted last, for the first counted messages; 0
	// while it has counted nothing.
	used, counted int
	// fixed is the estimate of what comes before the messages.
	fixed int
}

// estimate is how many tokens the conversation is taken for: what the provider
// counted, and what came since at a rate that is rather too high.
func (g *gauge) estimate(messages []model.Message) int {
	if g.used > 0 && g.counted <= len(messages) {
		return g.used + tokens(messages[g.counted:])
	}
	return g.fixed + tokens(messages)
}

func tokens(messages []model.Message) int {
	n := 0
	for _, m := range messages {
		n += 4
		for _, p := range m.Parts {
			n += partTokens(p)
		}
	}
	return n
}

func partTokens(p model.Part) int {
	switch {
	case p.Image != nil:
		return imageTokens
	case p.Thought != nil:
		return textTokens(p.Thought.Text) + len(p.Thought.State)/4
	case p.Call != nil:
		return 12 + textTokens(p.Call.Name) + textTokens(string(p.Call.Args))
	case p.Result != nil:
		return 12 + textTokens(p.Result.Text) + imageTokens*len(p.Result.Images)
	}
	return textTokens(p.Text)
}

// textTokens takes three bytes of ASCII, or one other character, for a token.
func textTokens(s string) int {
	runes := utf8.RuneCountInString(s)
	other := (len(s) - runes) / 2 // two or three bytes more than one
	return (runes-min(other, runes))/3 + other + 1
}

// full reports whether the context must be reduced before the next request.
func (r *run) full(messages []model.Message) bool {
	return r.gauge.window > 0 && r.gauge.estimate(messages)*100 > r.gauge.window*r.a.opts.ReduceAt
}

// room makes the context fit, if it does not.
func (r *run) room(ctx context.Context) error {
	for r.full(r.talk.conversation()) {
		if err := r.reduce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// errTooLong says that reducing does not help.
func (r *run) errTooLong() error {
	return &model.Error{
		Kind: model.KindOverflow, Model: r.model.Name(),
		Text: fmt.Sprintf("the conversation does not fit into the model's window (%d tokens), also after it was shortened %d times in this turn", r.gauge.window, r.reductions),
		Mend: "Begin a new session, send less at once, or choose a model with a larger window",
	}
}

// reduce shortens the context once: tool results first, and when that is not
// enough the older part becomes a summary. The result is stored before it is
// announced and used.
func (r *run) reduce(ctx context.Context) error {
	if r.reductions >= maxReductions {
		return r.errTooLong()
	}
	r.reductions++
	before := r.talk.conversation()
	target := r.gauge.window * reduceTo / 100
	short := trim(before, keepFrom(before, r.gauge.window*keepTail/100))
	summary := ""
	if r.gauge.fixed+tokens(short) > target {
		var err error
		if short, summary, err = r.summarize(ctx, short, r.gauge.window*keepTail/100); err != nil {
			return err
		}
	}
	if r.gauge.fixed+tokens(short) > r.gauge.window*r.a.opts.ReduceAt/100 {
		short = trim(short, len(short)) // the newest results too
	}
	return r.keep(ctx, short, summary)
}

// keep stores the reduced context and then uses it.
func (r *run) keep(ctx context.Context, messages []model.Message, summary string) error {
	data, err := encodeSnapshot(messages)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	id := cmp.Or(r.compaction, gladhand.NewID())
	r.compaction = ""
	if err := r.t.Reduce(ctx, data, acp.Compaction(id, "completed", summary, "")); err != nil {
		return err
	}
	*r.talk = transcript{messages: messages}
	r.gauge.used, r.gauge.counted = 0, 0
	return r.tellUsage(ctx, r.gauge.estimate(messages))
}

// keepFrom is the index of the first message that is kept as it is: the newest
// ones that fit into limit tokens, beginning where a conversation can begin.
func keepFrom(messages []model.Message, limit int) int {
	from, left := len(messages), limit
	for i := len(messages) - 1; i >= 0; i-- {
		if left -= tokens(messages[i : i+1]); left < 0 {
			break
		}
		if messages[i].Role != model.ToolRole { // results need their calls
			from = i
		}
	}
	return from
}

// lasting is what is kept of a message for long: no thoughts, no images, nothing that
// only its provider understands. The result is new.
func lasting(parts []model.Part) []model.Part {
	out := make([]model.Part, 0, len(parts))
	for _, p := range parts {
		switch {
		case p.Thought != nil:
			continue
		case p.Image != nil:
			p = model.Part{Text: "[an image was here]"}
		case p.Call != nil:
			c := *p.Call
			c.State = nil
			p.Call = &c
		case p.Result != nil:
			res := *p.Result
			res.Images = nil
			p.Result = &res
		}
		out = append(out, p)
	}
	return out
}

// trim cuts the results of tools before a message, and leaves out images and thoughts.
func trim(messages []model.Message, before int) []model.Message {
	out := make([]model.Message, 0, len(messages))
	for i, m := range messages {
		if i >= before {
			out = append(out, m)
			continue
		}
		m.Parts = lasting(m.Parts)
		for j, p := range m.Parts {
			if p.Result != nil && len(p.Result.Text) > trimOver {
				res := *p.Result
				res.Text = tool.Cut(res.Text, trimTo) + "\n[shortened to save room; call the tool again to see all of it]"
				m.Parts[j].Result = &res
			}
		}
		if len(m.Parts) == 0 {
			m.Parts = append(m.Parts, model.Part{Text: "(nothing said)"})
		}
		out = append(out, m)
	}
	return out
}

// summarize replaces all but the newest messages, which may have tail tokens, by the
// model's summary of them.
func (r *run) summarize(ctx context.Context, messages []model.Message, tail int) (short []model.Message, summary string, err error) {
	from := keepFrom(messages, tail)
	if from == 0 {
		return messages, "", nil
	}
	if summary, err = r.summary(ctx, messages[:from]); err != nil {
		return nil, "", err
	}
	head := model.Message{Role: model.User, Turn: r.t.ID(), Parts: []model.Part{{Text: summaryBegin + summary}}}
	if from == len(messages) { // not even the last one fits: what was asked goes on in it
		return append([]model.Message{head}, r.lastAsked(messages)...), summary, nil
	}
	return append([]model.Message{head}, messages[from:]...), summary, nil
}

// lastAsked repeats the newest words of a person, as far as there is room.
func (r *run) lastAsked(messages []model.Message) []model.Message {
	for i := len(messages) - 1; i >= 0; i-- {
		if m := messages[i]; m.Role == model.User {
			m.Parts = []model.Part{{Text: tool.Cut(m.Text(), max(r.gauge.window*keepTail/100, 1000))}}
			return []model.Message{m}
		}
	}
	return nil
}

// summary asks the model for one. The older part is given as plain text, cut to
// half the window, so that no provider's rules about calls can be broken.
func (r *run) summary(ctx context.Context, messages []model.Message) (string, error) {
	id := gladhand.NewID()
	if err := r.emit(ctx, acp.Compaction(id, "in_progress", "", "")); err != nil {
		return "", err
	}
	text := tool.Cut(plainText(messages), max(r.gauge.window*3/2, 2000)) // bytes: about half of the window
	var b strings.Builder
	err := r.ask1(ctx, model.Request{
		System:   summarySystem,
		Messages: []model.Message{{Role: model.User, Turn: r.t.ID(), Parts: []model.Part{{Text: summaryPrompt + text}}}},
		Session:  string(r.t.Info().ID),
	}, &b)
	summary := strings.TrimSpace(tool.Cut(b.String(), summaryMax))
	if err == nil && summary == "" {
		err = &model.Error{Kind: model.KindCut, Model: r.model.Name(), Text: "the model gave an empty summary of the conversation"}
	}
	if err != nil {
		if ctx.Err() == nil {
			_ = r.emit(ctx, acp.Compaction(id, "failed", "", err.Error())) // the error itself ends the turn
		}
		return "", err
	}
	r.compaction = id
	return summary, nil
}

// ask1 has the model say something that is no part of the conversation.
func (r *run) ask1(ctx context.Context, req model.Request, to *strings.Builder) error {
	for chunk, err := range r.model.Generate(ctx, req) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		to.WriteString(chunk.Text)
		if chunk.Notice != "" {
			if err := r.emit(ctx, acp.Notice("info", chunk.Notice, "")); err != nil {
				return err
			}
		}
		if chunk.Usage != nil {
			r.spent.add(*chunk.Usage)
		}
	}
	return nil
}

// plainText is a conversation as text.
func plainText(messages []model.Message) string {
	var b strings.Builder
	for _, m := range messages {
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				fmt.Fprintf(&b, "agent calls %s: %s\n", p.Call.Name, tool.Cut(string(p.Call.Args), trimTo))
			case p.Result != nil:
				fmt.Fprintf(&b, "result of %s: %s\n", p.Result.Name, tool.Cut(p.Result.Text, trimTo))
			case p.Text != "":
				who := "agent"
				if m.Role == model.User {
					who = "person"
				}
				fmt.Fprintf(&b, "%s: %s\n", who, p.Text)
			}
		}
	}
	return b.String()
}

// snapshotForm is the version of what a snapshot says.
const snapshotForm = 1

type snapshot struct {
	Form     int             `json:"form"`
	Messages []model.Message `json:"messages"`
}

// encodeSnapshot leaves out thoughts, and images, which would be kept twice.
func encodeSnapshot(messages []model.Message) ([]byte, error) {
	kept := make([]model.Message, 0, len(messages))
	for _, m := range messages {
		if m.Parts = lasting(m.Parts); len(m.Parts) > 0 {
			kept = append(kept, m)
		}
	}
	return json.Marshal(snapshot{snapshotForm, kept})
}

func decodeSnapshot(data []byte) ([]model.Message, error) {
	if len(data) == 0 {
		return nil, nil // empty, and authoritative
	}
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil || s.Form != snapshotForm {
		return nil, gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnsupported,
			"the context kept for this session was written by another version of gladhand; use that one, or begin a new session: %w", errors.Join(err, fmt.Errorf("form %d", s.Form)))
	}
	return s.Messages, model.Check(s.Messages)
}

// Compact shortens the context within a turn of its own, whatever its size.
func (a *Agent) Compact(ctx context.Context, t gladhand.Turn) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, err := a.begin(ctx, t)
	if err != nil {
		return "", err
	}
	before := r.talk.conversation()
	n := tokens(before)
	if len(before) < 3 {
		a.talk = r.talk
		return "There is nothing to shorten yet.", nil
	}
	if r.gauge.window == 0 && r.model.Name() == "offline" {
		a.talk = r.talk
		return "The offline model reads only the current prompt; there is nothing to shorten.", nil
	}
	if r.gauge.window == 0 {
		r.gauge.window = max(8000, n)
	}
	trimmed := trim(before, len(before))
	short, summary, err := r.summarize(ctx, trimmed, tokens(trimmed)*keepTail/100)
	if err != nil {
		return "", err
	}
	if err := r.keep(ctx, short, summary); err != nil {
		return "", err
	}
	a.talk = r.talk
	return fmt.Sprintf("The context was about %d tokens and is now about %d.", n, tokens(short)), nil
}
