package main

import (
	"context"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
)

// one makes a command that does something to one session.
func (a *app) one(use, short, example string, f func(context.Context, *client.Client, gladhand.SessionID) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " SESSION", Short: short, Example: "  " + example, Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(c *client.Client) error {
				r, err := c.Show(cmd.Context(), gladhand.SessionID(args[0])) // the whole id, to be told
				if err != nil {
					return err
				}
				return f(cmd.Context(), c, r.Snapshot.Session.ID)
			})
		},
	}
}

// done reports a change of a session's state.
func (a *app) done(id gladhand.SessionID, state, text string) error {
	if a.json {
		return a.emit(struct {
			Session gladhand.SessionID `json:"sessionId"`
			State   string             `json:"state"`
		}{id, state})
	}
	a.print("%s %s", id, text)
	return nil
}

func (a *app) close() *cobra.Command {
	return a.one("close", "End a session's agent and keep everything for later", "gladhand close 3kq7",
		func(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
			detached, err := c.CloseSession(ctx, id)
			switch {
			case err != nil:
				return err
			case detached:
				return a.done(id, "open", "stays open: others are attached, or have work in it")
			}
			return a.done(id, "closed", "closed; `gladhand attach "+string(id)+"` goes on with it")
		})
}
