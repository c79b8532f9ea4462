package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
)

func (a *app) ls() *cobra.Command {
	var all bool
	var grep string
	cmd := &cobra.Command{
		Use: "ls", Short: "List sessions",
		Example: "  gladhand ls\n  gladhand ls --all --grep 'module name'",
		Args:    args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(c *client.Client) error { return a.list(cmd.Context(), c, all, grep) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "closed and killed ones too")
	cmd.Flags().StringVar(&grep, "grep", "", "only those whose transcript has `TEXT`, in upper or lower case")
	return cmd
}

func (a *app) list(ctx context.Context, c *client.Client, all bool, grep string) error {
	list, err := c.Sessions(ctx, gladhand.SessionsParams{All: all})
	if err != nil {
		return err
	}
	if grep != "" {
		if list, err = searched(ctx, c, list, grep); err != nil {
			return err
		}
	}
	if a.json {
		for _, s := range list {
			if err := a.emit(s); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		a.note("no sessions; `gladhand` starts one here%s", map[bool]string{false: ", `gladhand ls --all` shows closed ones too"}[all])
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTITLE\tAGENT\tMODEL\tSTATE\tCLIENTS\tASKS\tWORKSPACE\tAGE")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", s.ID, cut(oneLine(or(s.Title, "–")), 40), oneLine(s.Agent), oneLine(s.Model),
			stateText(s), s.Clients, s.Asks, oneLine(homely(s.Cwd)), age(s.Updated))
	}
	return w.Flush()
}

func stateText(s gladhand.SessionInfo) string {
	text := string(s.State)
	if s.Queued > 0 {
		text += fmt.Sprintf(" +%d", s.Queued)
	}
	return text
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// age is how long ago an RFC 3339 time was.
func age(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return "?"
	}
	d := time.Since(t)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// searched keeps the sessions whose transcript has the text.
func searched(ctx context.Context, c *client.Client, list []gladhand.SessionInfo, grep string) ([]gladhand.SessionInfo, error) {
	needle := strings.ToLower(grep)
	var found []gladhand.SessionInfo
	for _, s := range list {
		if s.State == gladhand.StateUnusable {
			continue
		}
		has := strings.Contains(strings.ToLower(s.Title), needle)
		m := matcher{needle: needle}
		if err := eachUpdate(ctx, c, s.ID, func(u client.Update) bool {
			has = has || m.see(u)
			return !has
		}); err != nil {
			return nil, err
		}
		if has {
			found = append(found, s)
		}
	}
	return found, nil
}

// matcher looks for a text in messages that come in pieces.
type matcher struct {
	needle string
	of     string // the message that the tail is of
	tail   string
}

func (m *matcher) see(u client.Update) bool {
	text, of := textOf(u)
	if text == "" {
		return false
	}
	text = strings.ToLower(text)
	if of == m.of {
		text = m.tail + text
	}
	m.of, m.tail = of, text[max(0, len(text)-len(m.needle)):]
	return strings.Contains(text, m.needle)
}

// eachUpdate reads a session's whole log, page by page, until f returns false.
func eachUpdate(ctx context.Context, c *client.Client, id gladhand.SessionID, f func(client.Update) bool) error {
	for after := gladhand.Seq(0); ; {
		page, err := c.Events(ctx, gladhand.EventsParams{SessionID: id, After: after, Limit: 1000})
		if err != nil {
			return err
		}
		for _, u := range page.Updates {
			if !f(client.UpdateOf(u)) {
				return nil
			}
		}
		if !page.More || page.Next <= after {
			return nil
		}
		after = page.Next
	}
}
