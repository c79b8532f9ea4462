package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/acp"
	"gladhand/client"
)

// sessionFlags are the flags that make a session, or change one.
type sessionFlags struct {
	agent, model, mode, profile string
	yes                         bool
}

func (f *sessionFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.agent, "agent", "", "who runs the session's turns (default gladhand, the built-in agent)")
	cmd.Flags().StringVar(&f.model, "model", "", "the model")
	cmd.Flags().StringVar(&f.mode, "mode", "", "ask, edits or plan")
	cmd.Flags().StringVar(&f.profile, "profile", "", "coding or sysadmin")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "allow everything in this session")
}

func (f *sessionFlags) meta() gladhand.NewSessionMeta {
	return gladhand.NewSessionMeta{Agent: f.agent, Model: cmp.Or(f.model, os.Getenv("GLADHAND_MODEL")), Mode: f.mode, Profile: f.profile, Yes: f.yes}
}

// fixed reports whether a flag was given that only a new session can have.
func (f *sessionFlags) fixed() bool { return f.agent != "" || f.profile != "" || f.yes }

// apply sets what can be changed in a session that is there already.
func (f *sessionFlags) apply(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
	for _, o := range [][2]string{{"model", f.model}, {"mode", f.mode}} {
		if o[1] != "" {
			if err := c.SetOption(ctx, id, o[0], o[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// runner is `gladhand run`.
type runner struct {
	a *app
	sessionFlags
	session, cwd string
	timeout      time.Duration
	detach       bool
}

func (a *app) runCommand() *cobra.Command {
	r := &runner{a: a}
	cmd := &cobra.Command{
		Use: "run [PROMPT|-]", Short: "Run one turn and print the answer",
		Example: "  gladhand run \"read go.mod and tell me the module name\"\n" +
			"  git diff | gladhand run --mode plan -\n" +
			"  gladhand run --session ID \"and now run go test ./...\"",
		Long: "One turn without a screen; streams the answer. The answer goes to standard output,\n" +
			"everything else to standard error. On a terminal it asks before files are changed\n" +
			"and commands run; without one it denies, unless --yes or --mode allows.\n\n" +
			"Exit status: 0 done, 3 the turn failed, 4 cancelled, 5 denied, 6 unavailable, 7 refused.",
		Args: args(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args) },
	}
	r.add(cmd)
	cmd.Flags().StringVar(&r.session, "session", "", "go on in the session `ID`")
	cmd.Flags().StringVar(&r.cwd, "cwd", "", "the workspace of a new session (default the current directory)")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 0, "cancel the turn after this time, for example 90s")
	cmd.Flags().BoolVar(&r.detach, "detach", false, "print the ids and return once the prompt is stored")
	return cmd
}

func (r *runner) run(ctx context.Context, args []string) error {
	text, err := r.prompt(args)
	if err != nil {
		return err
	}
	if r.session != "" && (r.fixed() || r.cwd != "") {
		return usage(errors.New("--agent, --profile, --yes and --cwd belong to a new session, not to --session"))
	}
	c, err := r.a.connect(ctx, "run")
	if err != nil {
		return err
	}
	defer c.Close()
	interactive := !r.a.json && !r.detach && isTerminal(r.a.in) && isTerminal(r.a.err)
	id, err := r.open(ctx, c, !interactive && !r.detach)
	if err != nil {
		return err
	}
	send := gladhand.SendParams{SessionID: id, PromptID: gladhand.PromptID(gladhand.NewID()), Prompt: acp.TextContent(text)}
	if r.detach {
		return r.sendOnly(ctx, c, send)
	}
	tail := int64(-1)
	at, err := c.Attach(ctx, gladhand.AttachParams{SessionID: id, After: &tail, NoAnswer: !interactive})
	if err != nil {
		return err
	}
	t := &turnFollower{a: r.a, c: c, at: at, id: send.PromptID, s: newScreen(r.a, false)}
	t.s.own[send.PromptID] = true
	t.p = newPrompter(t.s, interactive, func() { _ = flushTyped(r.a.in) })
	// Before the prompt is out: from then on a Ctrl-C must take it back.
	t.signals = make(chan os.Signal, 2)
	signal.Notify(t.signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(t.signals)
	receipt, err := c.Send(ctx, send)
	if err != nil {
		return err
	}
	if r.a.json {
		if err := r.a.emit(ids{at.Session(), receipt.Prompt}); err != nil {
			return err
		}
	} else {
		r.waits(at.Snapshot(), receipt)
	}
	return t.follow(ctx, r.timeout)
}

// waits says why the prompt does not run at once, and what to do about it.
func (r *runner) waits(snap gladhand.Snapshot, receipt gladhand.Receipt) {
	id := snap.Session.ID
	switch {
	case snap.Paused:
		r.a.note("waiting: the queue is paused; go on with: gladhand queue %s resume", id)
	case receipt.Position > 0 && len(snap.Asks) > 0:
		r.a.note("waiting: %d before this one, which asks something; answer it with: gladhand attach %s", receipt.Position, id)
	case receipt.Position > 0 && snap.Turn != 0:
		r.a.note("waiting: %d before this one", receipt.Position)
	}
}

// ids is what `run` prints first with --json, and all of it with --detach.
type ids struct {
	Session gladhand.SessionID `json:"sessionId"`
	Prompt  gladhand.PromptID  `json:"promptId"`
}

// prompt is the text of the arguments, or of standard input for "-".
func (r *runner) prompt(args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(r.a.in, 8<<20))
		if err != nil {
			return "", fmt.Errorf("standard input cannot be read: %w", err)
		}
		text = string(b)
	}
	if strings.TrimSpace(text) == "" {
		return "", usage(errors.New("the prompt is empty"))
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// open finds the session, or makes one.
func (r *runner) open(ctx context.Context, c *client.Client, oneShot bool) (gladhand.SessionID, error) {
	if r.session != "" {
		id := gladhand.SessionID(r.session)
		return id, r.apply(ctx, c, id)
	}
	cwd, err := workspace(r.cwd)
	if err != nil {
		return "", err
	}
	m := r.meta()
	m.OneShot = oneShot
	return c.NewSession(ctx, cwd, m)
}

func (r *runner) sendOnly(ctx context.Context, c *client.Client, p gladhand.SendParams) error {
	receipt, err := c.Send(ctx, p)
	if err != nil {
		return err
	}
	if r.a.json {
		return r.a.emit(ids{p.SessionID, receipt.Prompt})
	}
	r.a.print("session %s prompt %s", p.SessionID, receipt.Prompt)
	return nil
}

// turnFollower shows the turn of one prompt, to its end.
type turnFollower struct {
	a  *app
	c  *client.Client
	at *client.Attachment
	id gladhand.PromptID
	s  *screen
	p  *prompter

	signals chan os.Signal

	turn   gladhand.TurnID // 0 until it began
	denied string          // the first question that was denied, and why
	cancel string          // why we cancelled: "" not, else for people
}

// event is what one wait brings.
type event struct {
	u   client.Update
	err error
}

// pump reads an attachment in the background, one update ahead.
func pump(ctx context.Context, at *client.Attachment) <-chan event {
	ch := make(chan event)
	go func() {
		for {
			u, err := at.Next(ctx)
			select {
			case ch <- event{u, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return ch
}

// leaveAfter is how long a cancelled turn may take to end before we leave it.
const leaveAfter = 10 * time.Second

func (t *turnFollower) follow(ctx context.Context, timeout time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer t.s.end()
	var late, leave <-chan time.Time
	if timeout > 0 {
		late = time.After(timeout)
	}
	says := make(chan string)
	t.p.answer = answerWith(ctx, t.c, func(s string) {
		select {
		case says <- s:
		case <-ctx.Done():
		}
	})
	updates := pump(ctx, t.at)
	var typed <-chan typedLine
	for {
		if t.p.asking() && typed == nil {
			typed = readLines(t.a.in)
		}
		select {
		case e := <-updates:
			if e.err != nil {
				return e.err
			}
			if done, err := t.see(e.u); done {
				return err
			}
		case l := <-typed:
			switch {
			case l.err != nil: // nobody will answer any more
				t.stop(ctx, says, "the terminal was closed")
				typed = make(chan typedLine)
			case t.p.asking():
				t.p.typed(l)
			}
		case s := <-says:
			t.s.line(s)
		case <-late:
			leave = time.After(leaveAfter)
			t.stop(ctx, says, fmt.Sprintf("it took longer than %v", timeout))
		case <-t.signals:
			if t.cancel != "" {
				if t.turn == 0 {
					return &exitError{exitCancelled, errors.New("left; the prompt may still wait: gladhand queue SESSION")}
				}
				return &exitError{exitCancelled, errors.New("left; the turn is being cancelled")}
			}
			leave = time.After(leaveAfter)
			t.stop(ctx, says, "interrupted")
		case <-leave:
			return &exitError{exitCancelled, errors.New("left: the cancelled turn has not ended yet")}
		}
	}
}

// stop cancels the turn once. A prompt that still waits is taken out of the queue
// instead: what runs then is somebody else's.
func (t *turnFollower) stop(ctx context.Context, says chan<- string, why string) {
	if t.cancel != "" {
		return
	}
	t.cancel = why
	id, waits := t.at.Session(), t.turn == 0
	go func() {
		if waits {
			// Only a prompt that is not in the queue any more is what runs.
			if err := t.c.DropPrompt(ctx, id, t.id); gladhand.CodeOf(err) != gladhand.CodeNotFound {
				if err != nil {
					tell(ctx, says, "the prompt was not dropped: "+oneLine(err.Error()))
				}
				return
			}
		}
		if err := t.c.Cancel(ctx, id); err != nil { // it runs, perhaps only just
			tell(ctx, says, "the turn was not cancelled: "+oneLine(err.Error()))
		}
	}()
}

// tell says something on the screen, as long as there is one.
func tell(ctx context.Context, says chan<- string, text string) {
	select {
	case says <- text:
	case <-ctx.Done():
	}
}

// see takes an update; done tells that the turn, or the prompt, has ended.
func (t *turnFollower) see(u client.Update) (done bool, err error) {
	switch u.Link {
	case client.Lost:
		t.s.line("the connection to the daemon was lost; reconnecting…")
		return false, nil
	case client.Back:
		t.s.line("reconnected")
		t.p.reset(t.ours(t.at.Snapshot().Asks))
		return false, nil
	}
	if t.a.json {
		t.a.print("%s", u.Params(t.at.Session()))
	}
	switch u.Tag {
	case gladhand.TagTurnStart, gladhand.TagPrompt:
		return t.progress(u)
	case gladhand.TagTurnEnd:
		var v gladhand.TurnUpdate
		if u.Decode(&v) == nil && (slices.Contains(v.Prompts, t.id) || t.turn != 0 && v.Turn == t.turn) {
			return true, t.ended(v)
		}
		return false, nil
	}
	if t.turn == 0 || u.Meta.Turn != t.turn {
		return false, nil // somebody else's turn, before ours
	}
	t.question(u)
	if !t.a.json && !(t.a.quiet && u.Tag != acp.TagAgentChunk) {
		t.s.show(u)
	}
	return false, nil
}

// progress follows the prompt until its turn begins.
func (t *turnFollower) progress(u client.Update) (done bool, err error) {
	if u.Tag == gladhand.TagTurnStart {
		var v gladhand.TurnUpdate
		if u.Decode(&v) == nil && slices.Contains(v.Prompts, t.id) {
			t.turn = v.Turn
		}
		return false, nil
	}
	var v gladhand.PromptUpdate
	if u.Decode(&v) != nil || v.PromptID != t.id {
		return false, nil
	}
	switch v.State {
	case gladhand.PromptStarted:
		t.turn = u.Meta.Turn
	case gladhand.PromptDone, gladhand.PromptInterrupted:
		return true, &exitError{exitCancelled, errors.New("cancelled: the prompt was dropped from the queue" + by(u))}
	}
	return false, nil
}

func (t *turnFollower) ours(asks []gladhand.Ask) []gladhand.Ask {
	return slices.DeleteFunc(slices.Clone(asks), func(a gladhand.Ask) bool { return a.Turn != t.turn })
}

// question puts the turn's questions, and remembers what was denied.
func (t *turnFollower) question(u client.Update) {
	switch u.Tag {
	case gladhand.TagAsk:
		var v gladhand.AskUpdate
		if u.Decode(&v) == nil && !t.a.json && t.p.canAnswer {
			t.p.add(v.Ask)
		}
	case gladhand.TagAnswer:
		var v gladhand.AnswerUpdate
		if u.Decode(&v) != nil {
			return
		}
		if t.denied == "" && v.Settled != gladhand.SettledCancelled && v.Settled != gladhand.SettledByRule && !allows(v.OptionKind) {
			t.denied = settledText(v, u.Meta.By)
		}
		if t.p.canAnswer {
			t.p.settled(u)
		}
	}
}

// ended makes the exit status of the turn's end.
func (t *turnFollower) ended(v gladhand.TurnUpdate) error {
	t.s.end()
	text := turnEnd(v)
	switch v.StopReason {
	case gladhand.StopEndTurn:
	case gladhand.StopCancelled:
		why := cmp.Or(t.cancel, "by somebody else")
		return &exitError{exitCancelled, errors.New("cancelled: " + why)}
	default:
		return &exitError{exitTurnFailed, errors.New(text)}
	}
	if t.denied == "" {
		return nil
	}
	err := errors.New("something was " + t.denied)
	if !t.p.canAnswer {
		err = fmt.Errorf("something was %s\nRun it on a terminal, allow edits with --mode edits or everything with --yes,\nor answer while it asks: gladhand attach %s", t.denied, t.at.Session())
	}
	return &exitError{exitDenied, err}
}
