package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
)

func (a *app) show() *cobra.Command {
	var transcript, diff bool
	cmd := &cobra.Command{
		Use: "show SESSION", Short: "Show one session: what it is, what waits, what it changed",
		Example: "  gladhand show 3kq7\n  gladhand show 3kq7 --transcript > talk.md\n  gladhand show 3kq7 --diff",
		Args:    args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(c *client.Client) error {
				id := gladhand.SessionID(args[0])
				switch {
				case transcript && a.json:
					return eachUpdate(cmd.Context(), c, id, func(u client.Update) bool { a.print("%s", u.Params(id)); return true })
				case transcript:
					return a.transcript(cmd.Context(), c, id)
				case diff:
					return a.changes(cmd.Context(), c, id)
				}
				return a.summary(cmd.Context(), c, id)
			})
		},
	}
	cmd.Flags().BoolVar(&transcript, "transcript", false, "the whole conversation, as Markdown; with --json its updates")
	cmd.Flags().BoolVar(&diff, "diff", false, "the changes it made to files")
	cmd.MarkFlagsMutuallyExclusive("transcript", "diff")
	return cmd
}

func (a *app) summary(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
	r, err := c.Show(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(r)
	}
	in := r.Snapshot.Session
	row := func(name, value string) {
		if value != "" {
			a.print("%-10s %s", name, value)
		}
	}
	row("session", string(in.ID))
	row("title", oneLine(in.Title))
	row("state", stateText(in))
	row("why", oneLine(in.Reason))
	row("workspace", oneLine(homely(in.Cwd)))
	row("agent", oneLine(in.Agent))
	row("model", oneLine(in.Model))
	row("mode", oneLine(in.Mode)+map[bool]string{true: ", everything is allowed (--yes)"}[in.Yes])
	row("profile", oneLine(in.Profile))
	row("made", age(in.Created)+" ago")
	row("active", age(in.Updated)+" ago")
	var names []string
	for _, who := range r.Snapshot.Clients {
		names = append(names, oneLine(who.Display()))
	}
	row("attached", strings.Join(names, ", "))
	for i, path := range r.Files {
		row(map[bool]string{true: "changed"}[i == 0], oneLine(homely(path)))
	}
	if r.Snapshot.Paused {
		row("queue", "paused")
	}
	if len(r.Snapshot.Queue) > 0 {
		a.print("\nwaiting:")
		if err := a.queueTable(r.Snapshot.Queue); err != nil {
			return err
		}
	}
	for _, ask := range r.Snapshot.Asks {
		a.print("\nasks %s:", oneLine(string(ask.ID)))
		for _, line := range askText(ask) {
			a.print("  %s", line)
		}
		a.print("  %s", keysText(ask))
	}
	return nil
}
