package main

import (
	"context"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
)

func (a *app) cancel() *cobra.Command {
	return a.one("cancel", "Cancel a session's running turn", "gladhand cancel 3kq7",
		func(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
			if err := c.Cancel(ctx, id); err != nil {
				return err
			}
			return a.done(id, "cancelled", "cancelled what was running")
		})
}
