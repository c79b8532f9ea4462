package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
)

// attacher is `gladhand attach`.
type attacher struct {
	a     *app
	watch bool
	after int64
	given bool // --after was
}

func (a *app) attach() *cobra.Command {
	t := &attacher{a: a}
	cmd := &cobra.Command{
		Use: "attach [SESSION]", Short: "Follow and drive a session",
		Example: "  gladhand attach\n  gladhand attach 3kq7 --watch\n  gladhand attach 3kq7 --json --after 120",
		Long: "Follow a session and type prompts into it; without SESSION this directory's last one.\n" +
			"Others may be attached too: you see their prompts with their names, and whoever\n" +
			"answers a question first answers it for all. Ctrl-C cancels a turn, Ctrl-D leaves.\n" +
			"What is piped in is sent as prompts, a line each; questions are then only shown.",
		Args: args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.given = cmd.Flags().Changed("after")
			return t.run(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVar(&t.watch, "watch", false, "only look")
	cmd.Flags().Int64Var(&t.after, "after", 0, "start behind the event with the number `N`; -1 is the last one")
	return cmd
}

func (t *attacher) run(ctx context.Context, args []string) error {
	if t.after < -1 {
		return usage(errors.New("--after is the number of an event, 0 for all of them, or -1"))
	}
	c, err := t.a.connect(ctx, "attach")
	if err != nil {
		return err
	}
	defer c.Close()
	in, err := t.a.find(ctx, c, args)
	if err != nil {
		return err
	}
	p, skip := lineParams(in)
	if t.given || t.a.json {
		p.After, skip = &t.after, false
	}
	p.NoAnswer = t.watch || t.a.json || !isTerminal(t.a.in)
	if t.watch {
		p.Role = gladhand.RoleObserver
	}
	at, err := c.Attach(ctx, p)
	if err != nil {
		return err
	}
	if t.a.json {
		return t.a.stream(ctx, at)
	}
	l := t.a.newLiner(c, at, t.watch, skip)
	l.seen = gladhand.Seq(max(0, *p.After))
	if *p.After < 0 {
		l.seen = l.until
	}
	t.a.header(at.Snapshot().Session, l.tty)
	return l.run(ctx)
}

// find is the session that an argument names, or this directory's last one.
func (a *app) find(ctx context.Context, c *client.Client, args []string) (gladhand.SessionInfo, error) {
	if len(args) > 0 {
		r, err := c.Show(ctx, gladhand.SessionID(args[0]))
		return r.Snapshot.Session, err
	}
	cwd, err := workspace("")
	if err != nil {
		return gladhand.SessionInfo{}, err
	}
	in, ok, err := last(ctx, c, cwd)
	if err == nil && !ok {
		err = gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonNotFound,
			"this directory has no session; `gladhand` starts one, `gladhand ls` lists those elsewhere")
	}
	return in, err
}

// last is the last session of a directory that can still run.
func last(ctx context.Context, c *client.Client, cwd string) (in gladhand.SessionInfo, ok bool, err error) {
	list, err := c.Sessions(ctx, gladhand.SessionsParams{All: true, Cwd: cwd})
	if err != nil {
		return in, false, err
	}
	for _, s := range list {
		if s.State != gladhand.StateKilled && s.State != gladhand.StateUnusable {
			return s, true, nil
		}
	}
	return in, false, nil
}

// stream prints updates as JSON until the session is gone or somebody stops us.
func (a *app) stream(ctx context.Context, at *client.Attachment) error {
	id := at.Session()
	for {
		u, err := at.Next(ctx)
		switch {
		case err != nil:
			return err
		case u.Link == client.Lost:
			a.note("the connection to the daemon was lost; reconnecting…")
		case u.Link == client.Back:
			a.note("reconnected")
		default:
			a.print("%s", u.Params(id))
		}
	}
}

// header says where one is.
func (a *app) header(in gladhand.SessionInfo, typing bool) {
	if a.quiet {
		return
	}
	st := styleFor(a.err)
	title := ""
	if in.Title != "" {
		title = " · " + cut(oneLine(in.Title), 60)
	}
	a.note("%s", st.dim("session "+string(in.ID)+title+" · "+oneLine(in.Agent)+" · "+oneLine(in.Model)+" · mode "+oneLine(in.Mode)+" · "+oneLine(homely(in.Cwd))))
	if typing {
		a.note("%s", st.dim("type a request; Ctrl-C cancels a turn, Ctrl-D leaves and the session goes on"))
	}
}
