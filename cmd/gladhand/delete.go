package main

import (
	"context"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
)

func (a *app) delete() *cobra.Command {
	return a.one("delete", "Remove a session and its history", "gladhand delete 3kq7",
		func(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
			if err := c.Delete(ctx, id); err != nil {
				return err
			}
			return a.done(id, "deleted", "deleted")
		})
}
