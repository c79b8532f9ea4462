package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"gladhand"
	"gladhand/acp"
	"gladhand/client"
)

// liner is the terminal client, line by line: it shows a session's updates as
// they come, puts its questions, and sends what is typed as prompts.
type liner struct {
	a  *app
	c  *client.Client
	at *client.Attachment
	s  *screen
	p  *prompter

	watch bool // only look
	tty   bool // somebody types
	// skip drops what is before the first turn, when the cursor began in its middle.
	skip bool
	// until is the last number of the snapshot: up to there is history.
	until gladhand.Seq
	asked bool // the snapshot's questions have been put

	turn     gladhand.TurnID // the running one
	mine     int             // prompts sent from here that have not ended
	stopping bool            // the turn is being cancelled
	seen     gladhand.Seq    // the last number shown
	sending
}

// sending is how what is typed goes out, in the background.
type sending struct {
	over   bool            // the input has ended
	failed bool            // a prompt was not taken
	says   chan string     // for the screen
	unsent chan struct{}   // a prompt was refused
	sent   <-chan struct{} // closed when the prompt before the next has been sent
}

// recent is how many numbers of a session's log are shown when one comes back to
// it; `show --transcript` has all of it.
const recent = 400

// lineParams are the cursor to follow a session from: behind its last part.
func lineParams(in gladhand.SessionInfo) (p gladhand.AttachParams, skip bool) {
	after := max(0, int64(in.Seq)-recent)
	return gladhand.AttachParams{SessionID: in.ID, After: &after}, after > 0
}

func (a *app) newLiner(c *client.Client, at *client.Attachment, watch, skip bool) *liner {
	l := &liner{
		a: a, c: c, at: at, s: newScreen(a, true), watch: watch, skip: skip,
		tty: !watch && isTerminal(a.in), sending: sending{says: make(chan string), unsent: make(chan struct{})},
	}
	if l.tty && isTerminal(a.out) {
		l.s.marker = "> "
	}
	l.p = newPrompter(l.s, l.tty, func() { _ = flushTyped(a.in) })
	snap := at.Snapshot()
	l.turn, l.until = snap.Turn, snap.Session.Seq
	return l
}

// run follows the session until the input ends, somebody leaves, or the session
// is gone.
func (l *liner) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer l.s.end()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	l.p.answer = answerWith(ctx, l.c, func(s string) { l.tell(ctx, s) })
	updates := pump(ctx, l.at)
	var typed <-chan typedLine
	if !l.watch {
		typed = readLines(l.a.in)
	}
	l.history()
	for {
		if l.over && !l.tty && l.mine == 0 {
			if l.failed {
				return &exitError{exitRefused, nil}
			}
			return nil
		}
		select {
		case e := <-updates:
			if e.err != nil {
				return e.err
			}
			l.see(e.u)
		case t := <-typed:
			if t.err != nil {
				if l.over = true; l.tty {
					return l.leave(t.err)
				}
				typed = nil
				continue
			}
			l.typed(ctx, t)
		case s := <-l.says:
			l.s.line(s)
		case <-l.unsent:
			l.mine--
			l.failed = true
		case sig := <-signals:
			if l.turn == 0 || l.watch || l.stopping || sig != os.Interrupt {
				return l.leave(nil)
			}
			l.stopping = true
			l.s.line(l.s.st.dim("cancelling… (Ctrl-C again leaves)"))
			go func() {
				if err := l.c.Cancel(ctx, l.at.Session()); err != nil {
					l.tell(ctx, "the turn was not cancelled: "+oneLine(err.Error()))
				}
			}()
		}
		l.mark()
	}
}

// tell hands a line to the goroutine that writes the screen.
func (l *liner) tell(ctx context.Context, s string) {
	select {
	case l.says <- s:
	case <-ctx.Done():
	}
}

func (l *liner) leave(err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	l.s.clearMark()
	l.s.end()
	if l.tty {
		l.a.note("left; the session goes on: gladhand attach %s", l.at.Session())
	}
	return nil
}

// history puts the snapshot's questions once everything before has been shown.
func (l *liner) history() {
	snap := l.at.Snapshot()
	if l.asked || l.until > 0 && l.seen < l.until {
		return
	}
	l.asked = true
	l.p.reset(snap.Asks)
	l.mark()
}

func (l *liner) see(u client.Update) {
	switch u.Link {
	case client.Lost:
		l.s.line(l.s.st.red("the connection to the daemon was lost; reconnecting…"))
		return
	case client.Back:
		snap := l.at.Snapshot()
		l.turn, l.until, l.asked = snap.Turn, snap.Session.Seq, false
		l.s.line(l.s.st.dim("reconnected"))
		l.history()
		return
	}
	l.seen = u.Meta.To
	if l.skip && u.Tag == gladhand.TagTurnStart {
		l.skip = false
		l.s.line(l.s.st.dim("(there is more before this: gladhand show --transcript " + string(l.at.Session()) + ")"))
	}
	if !l.skip {
		l.show(u)
	}
	if !l.asked && !u.Meta.Part {
		l.history()
	}
}

func (l *liner) show(u client.Update) {
	switch u.Tag {
	case gladhand.TagTurnStart:
		var v gladhand.TurnUpdate
		if u.Decode(&v) == nil && l.live() {
			l.turn = v.Turn
		}
	case gladhand.TagTurnEnd:
		l.turnEnd(u)
	case gladhand.TagAsk:
		var v gladhand.AskUpdate
		if u.Decode(&v) == nil && l.live() {
			l.p.add(v.Ask)
		}
	case gladhand.TagAnswer:
		l.p.settled(u)
	case gladhand.TagPrompt:
		var v gladhand.PromptUpdate
		if u.Decode(&v) == nil && v.State == gladhand.PromptDone && l.s.own[v.PromptID] {
			l.mine--
		}
		l.s.show(u)
	default:
		l.s.show(u)
	}
}

// live reports whether what is shown now happens now. Questions and turns of
// the history are in the snapshot, if they are still open.
func (l *liner) live() bool { return l.seen > l.until }

func (l *liner) turnEnd(u client.Update) {
	var v gladhand.TurnUpdate
	if u.Decode(&v) != nil {
		return
	}
	l.s.end()
	if text := turnEnd(v); text != "" {
		l.s.line(l.s.st.dim("(" + text + ")"))
	}
	if l.live() {
		l.turn, l.stopping = 0, false
	}
	for _, id := range v.Prompts {
		if l.s.own[id] {
			l.mine--
		}
	}
}

// mark shows the input marker while nothing runs.
func (l *liner) mark() {
	if l.tty && l.asked && l.turn == 0 && l.mine == 0 && !l.p.asking() {
		l.s.mark()
	}
}

// command is what would be a slash command: the daemon runs those, none is a prompt.
var command = regexp.MustCompile(`^/[a-z-]+(\s|$)`)

// typed takes a line: an answer while a question is open, else a prompt.
func (l *liner) typed(ctx context.Context, t typedLine) {
	l.s.typed()
	switch {
	case l.p.asking():
		l.p.typed(t)
	case t.text == "":
	case command.MatchString(t.text):
		l.s.line("there is no command " + oneLine(t.text) + "; a prompt that begins with a slash needs a space before it")
	default:
		l.send(ctx, t.text)
	}
}

// send puts a prompt in, in the background: the daemon may be away.
func (l *liner) send(ctx context.Context, text string) {
	p := gladhand.SendParams{SessionID: l.at.Session(), PromptID: gladhand.PromptID(gladhand.NewID()), Prompt: acp.TextContent(text)}
	l.s.own[p.PromptID] = true
	l.mine++
	sent := l.sent
	done := make(chan struct{})
	l.sent = done
	go func() {
		defer close(done)
		if sent != nil {
			select {
			case <-sent: // prompts go in the order they were typed
			case <-ctx.Done():
				return
			}
		}
		r, err := l.c.Send(ctx, p)
		switch {
		case err != nil:
			l.tell(ctx, "not sent: "+oneLine(err.Error()))
			select {
			case l.unsent <- struct{}{}:
			case <-ctx.Done():
			}
		case r.Position > 1:
			l.tell(ctx, fmt.Sprintf("queued (position %d)", r.Position))
		}
	}()
}
