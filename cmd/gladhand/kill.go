package main

import (
	"context"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
)

func (a *app) kill() *cobra.Command {
	return a.one("kill", "End a session for good and keep its history", "gladhand kill 3kq7",
		func(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
			if err := c.Kill(ctx, id); err != nil {
				return err
			}
			return a.done(id, "killed", "killed; its history is kept")
		})
}
