package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
)

func (a *app) asks() *cobra.Command {
	cmd := &cobra.Command{
		Use: "asks", Short: "List the open questions of all sessions, and answer them",
		Example: "  gladhand asks\n  gladhand asks answer 7fk2 y\n  gladhand asks answer 7fk2 n --reason 'use the staging host'",
		Args:    args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(c *client.Client) error { return a.listAsks(cmd.Context(), c) })
		},
	}
	cmd.AddCommand(a.answer())
	return cmd
}

func (a *app) listAsks(ctx context.Context, c *client.Client) error {
	list, err := c.Asks(ctx)
	if err != nil {
		return err
	}
	for _, ask := range list {
		if a.json {
			if err := a.emit(ask); err != nil {
				return err
			}
			continue
		}
		a.print("%s  session %s  %s ago", oneLine(string(ask.ID)), oneLine(string(ask.Session)), age(ask.At.Format(time.RFC3339Nano)))
		for _, line := range askText(ask) {
			a.print("  %s", line)
		}
		a.print("  %s", keysText(ask))
	}
	if len(list) == 0 && !a.json {
		a.note("nothing is asked")
	}
	return nil
}

func (a *app) answer() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "answer ID OPTION", Short: "Answer an open question: y, a, n, an option's id, or what is asked for",
		Example: "  gladhand asks answer 7fk2 y\n  gladhand asks answer 7fk2 n --reason 'use the staging host'",
		Args:    args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(c *client.Client) error {
				return a.answerOne(cmd.Context(), c, args[0], args[1], reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "what a denial tells the agent")
	return cmd
}

func (a *app) answerOne(ctx context.Context, c *client.Client, id, option, reason string) error {
	list, err := c.Asks(ctx)
	if err != nil {
		return err
	}
	var found []gladhand.Ask
	for _, ask := range list {
		if string(ask.ID) == id {
			found = []gladhand.Ask{ask}
			break
		}
		if id != "" && strings.HasPrefix(string(ask.ID), id) {
			found = append(found, ask)
		}
	}
	switch len(found) {
	case 0:
		return gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonNotFound, "no open question has the id %q; `gladhand asks` lists them", id)
	case 1:
	default:
		return usage(fmt.Errorf("%q is the beginning of %d questions; type more of the id", id, len(found)))
	}
	p, said, err := answerParams(found[0], option, reason)
	if err != nil {
		return err
	}
	r, err := c.Answer(ctx, p)
	if err != nil {
		return err
	}
	if a.json {
		if err := a.emit(r); err != nil {
			return err
		}
	}
	switch r.Status {
	case gladhand.AnswerAccepted:
		if !a.json {
			a.print("answered: %s", oneLine(said))
		}
		return nil
	case gladhand.AnswerAlready:
		who := "somebody"
		if r.By != nil {
			who = oneLine(r.By.Display())
		}
		return &exitError{exitRefused, fmt.Errorf("%s was faster", who)}
	}
	return &exitError{exitUnavailable, fmt.Errorf("too late: that question is settled (%s)", oneLine(string(r.Status)))}
}

// answerParams are those of an answer to ask, and what it says for people.
func answerParams(ask gladhand.Ask, option, reason string) (p gladhand.AnswerParams, said string, err error) {
	p = gladhand.AnswerParams{SessionID: ask.Session, AskID: ask.ID, Reason: reason, Digest: ask.Digest}
	if f, ok := formOf(ask); ok {
		if p.Content, ok = f.fill(option); !ok {
			return p, "", usage(fmt.Errorf("%q does not fit; %s", option, f.hint()))
		}
		if p.Content == nil {
			return p, "no answer", nil
		}
		return p, option, nil
	}
	opt, _, ok := choose(ask, option)
	switch {
	case !ok:
		return p, "", usage(fmt.Errorf("%q is none of the options: %s", option, keysText(ask)))
	case reason != "" && allows(opt.Kind):
		return p, "", usage(fmt.Errorf("a reason goes with a denial"))
	}
	p.OptionID = opt.ID
	return p, opt.Name, nil
}
