package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/acp"
	"gladhand/client"
)

func (a *app) queue() *cobra.Command {
	return &cobra.Command{
		Use:   "queue SESSION [drop ID | move ID POSITION | pause | resume]",
		Short: "Show and change what waits in a session",
		Example: "  gladhand queue 3kq7\n  gladhand queue 3kq7 drop p2\n  gladhand queue 3kq7 move p3 1\n" +
			"  gladhand queue 3kq7 pause",
		Args: args(1, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := queueChange(args[1:])
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), func(c *client.Client) error {
				id := gladhand.SessionID(args[0])
				if change != nil {
					if err := change(cmd.Context(), c, id); err != nil {
						return err
					}
				}
				return a.showQueue(cmd.Context(), c, id)
			})
		},
	}
}

type queueFunc func(context.Context, *client.Client, gladhand.SessionID) error

// queueChange parses what is to be done to a queue; nil only shows it.
func queueChange(args []string) (queueFunc, error) {
	switch {
	case len(args) == 0:
		return nil, nil
	case args[0] == "drop" && len(args) == 2:
		return func(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
			return c.DropPrompt(ctx, id, gladhand.PromptID(args[1]))
		}, nil
	case args[0] == "move" && len(args) == 3:
		n, err := strconv.Atoi(args[2])
		if err != nil || n < 1 {
			return nil, usage(fmt.Errorf("the position is a number from 1, not %q", args[2]))
		}
		return func(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
			return c.MovePrompt(ctx, id, gladhand.PromptID(args[1]), n)
		}, nil
	case (args[0] == "pause" || args[0] == "resume") && len(args) == 1:
		return func(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
			return c.PauseQueue(ctx, id, args[0] == "pause")
		}, nil
	}
	return nil, usage(errors.New("after the session comes nothing, or: drop ID, move ID POSITION, pause, resume"))
}

func (a *app) showQueue(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
	r, err := c.Queue(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		for _, p := range r.Queue {
			if err := a.emit(p); err != nil {
				return err
			}
		}
		return nil
	}
	if r.Paused {
		a.print("the queue is paused; `gladhand queue %s resume` lets it go on", oneLine(string(id)))
	}
	if len(r.Queue) == 0 {
		a.note("nothing waits")
		return nil
	}
	return a.queueTable(r.Queue)
}

func (a *app) queueTable(queue []gladhand.Prompt) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "#\tID\tFROM\tDELIVERY\tAGE\tPROMPT")
	for i, p := range queue {
		text := strings.Join(strings.Fields(acp.Text(p.Content)), " ")
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", i+1, oneLine(string(p.ID)), oneLine(p.By.Display()), oneLine(string(p.Delivery)),
			age(p.At.Format(time.RFC3339Nano)), cut(oneLine(text), 60))
	}
	return w.Flush()
}
