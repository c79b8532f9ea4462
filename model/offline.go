package model

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"
)

// Offline is the model inside the binary: rules, no network, no key. It
// understands plain requests ("read go.mod", "run go test ./...", "replace A with
// B in main.go"), several in one prompt, and says so when it does not. It is
// deterministic and keeps no state. docs/offline.md lists what it understands.
//
// It reads only the current turn, and of earlier ones which command it left running
// in the background. What it does is a script that is run again from the start for
// each reply: tool results that are there already are taken in order, and what was
// said before them is not said again.
type Offline struct {
	// Pace is the pause after each word, so that people see it stream; 0 is none.
	Pace time.Duration
}

// Name implements [Model].
func (Offline) Name() string { return "offline" }

// Limits implements [Model].
func (Offline) Limits() Limits { return Limits{} }

// slowly is the pause between two numbers of a slow count.
const slowly = 100 * time.Millisecond

// Generate implements [Model].
func (o Offline) Generate(ctx context.Context, r Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		c := &chat{ctx: ctx, yield: yield, pace: o.Pace, tools: r.Tools}
		c.read(r.Messages)
		switch err := c.run(); {
		case err == nil:
			yield(Chunk{Stop: StopEnd}, nil)
		case errors.Is(err, errCalled), errors.Is(err, errGone):
		default:
			yield(Chunk{}, err)
		}
	}
}

var (
	// errCalled ends a reply: its tool call's result comes with the next request.
	errCalled = errors.New("a tool was called")
	// errGone says that nobody takes chunks any more.
	errGone = errors.New("nobody listens")
	// errDrop ends a prompt's remaining steps.
	errDrop = errors.New("the rest is left out")
)

// chat is one reply in the making.
type chat struct {
	ctx   context.Context
	yield func(Chunk, error) bool
	pace  time.Duration
	tools []Tool

	prompts []prompt
	results []Result
	next    int // the result that the next call takes

	// What the script has come across, for questions about it.
	file   string // the last file read
	text   string // its text
	part   bool   // and that is not all of it
	seen   string // the last file found, read or written
	job    job    // the last command in the background
	answer string // what people answered last
	first  bool   // what runs now is what the turn began with
	failed bool   // the last command ended with another status than 0
	said   bool   // something has been said in this reply
}

// job is a command in the background.
type job struct{ id, command string }

// prompt is one thing that was asked in this turn.
type prompt struct {
	text string
	// after is how many results there were when it came.
	after int
}

// read takes the current turn out of a conversation.
func (c *chat) read(messages []Message) {
	if len(messages) == 0 {
		return
	}
	from := len(messages) - 1
	for from > 0 && messages[from-1].Turn == messages[from].Turn {
		from--
	}
	c.job = lastJob(messages[:from])
	for _, m := range messages[from:] {
		calls := false
		for _, p := range m.Parts {
			calls = calls || p.Call != nil
			if p.Result != nil {
				c.results = append(c.results, *p.Result)
			}
		}
		switch {
		case m.Role == User:
			c.prompts = append(c.prompts, prompt{m.Text(), len(c.results)})
		case m.Role == Assistant && !calls: // an answer: what came before is done
			c.prompts, c.results = nil, nil
		}
	}
}

// run is the script: the steps of each prompt, in order. A prompt that says
// "stop" leaves out what was still to do when it came.
func (c *chat) run() error {
	stopAt := -1
	for _, p := range c.prompts {
		if isStop(p.text) {
			stopAt = p.after
		}
	}
	for i, p := range c.prompts {
		c.first = i == 0
		for _, s := range parse(p.text) {
			if stopAt >= 0 && c.next >= stopAt && !isStop(p.text) {
				break
			}
			err := s(c)
			if errors.Is(err, errDrop) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// call has a tool called. It returns the result, or errCalled when that is still
// to come.
func (c *chat) call(name string, args any) (Result, error) {
	if c.next < len(c.results) {
		c.next++
		return c.results[c.next-1], nil
	}
	if !c.has(name) {
		return Result{}, errors.Join(c.say("I would need the tool %s for that, and it is not there.", name), errDrop)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return Result{}, err
	}
	if c.said { // for clients that put what comes behind the call right behind it
		if err := c.send(Chunk{Text: "\n"}); err != nil {
			return Result{}, err
		}
	}
	if err := c.send(Chunk{Call: &Call{Name: name, Args: raw}}); err != nil {
		return Result{}, err
	}
	return Result{}, errCalled
}

// has reports whether there is a tool.
func (c *chat) has(name string) bool {
	return slices.ContainsFunc(c.tools, func(t Tool) bool { return t.Name == name })
}

// past reports whether what comes now was said in an earlier reply.
func (c *chat) past() bool { return c.next < len(c.results) }

// send gives one chunk away.
func (c *chat) send(chunk Chunk) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if !c.yield(chunk, nil) {
		return errGone
	}
	return nil
}

// sleep waits, or less when the reply is given up.
func (c *chat) sleep(d time.Duration) error {
	if d <= 0 {
		return c.ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// words sends text a word at a time.
func (c *chat) words(text string) error {
	for text != "" {
		end := strings.IndexAny(text, " \n")
		if end < 0 {
			end = len(text) - 1
		}
		for end+1 < len(text) && (text[end+1] == ' ' || text[end+1] == '\n') {
			end++
		}
		if err := c.send(Chunk{Text: text[:end+1]}); err != nil {
			return err
		}
		if err := c.sleep(c.pace); err != nil {
			return err
		}
		text = text[end+1:]
	}
	return nil
}
