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
			was, err := c.Show(ctx, id)
			if err != nil {
				return err
			}
			if err := c.Cancel(ctx, id); err != nil {
				return err
			}
			if was.Snapshot.Turn == 0 && len(was.Snapshot.Queue) == 0 {
				return a.done(id, "idle", "has nothing running")
			}
			return a.done(id, "cancelled", "cancelled what was running")
		})
}
