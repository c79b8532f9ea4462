package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
)

var errBareJSON = errors.New("the terminal client has no JSON: use `gladhand run --json` or `gladhand attach --json`")

// starter is bare `gladhand`: the terminal client in this directory.
type starter struct {
	a *app
	sessionFlags
	fresh, version bool
}

func (a *app) bare() *cobra.Command {
	s := &starter{a: a}
	cmd := &cobra.Command{
		Use: "gladhand", Short: "Coding agents in one daemon, reached by everybody in one way",
		Example: "  gladhand                     a session in this directory\n" +
			"  gladhand run \"run go test ./...\"",
		Long: "Keeps coding agents running in one small daemon, and gives everybody one way to reach\n" +
			"them. Without a command it picks up this directory's last session, or starts one.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.version {
				return a.printVersion()
			}
			return s.run(cmd.Context())
		},
	}
	s.add(cmd)
	cmd.Flags().BoolVar(&s.fresh, "new", false, "start a new session")
	cmd.Flags().BoolVar(&s.version, "version", false, "print the version")
	return cmd
}

func (s *starter) run(ctx context.Context) error {
	if s.a.json {
		return usage(errBareJSON)
	}
	c, err := s.a.connect(ctx, "terminal")
	if err != nil {
		return err
	}
	defer c.Close()
	in, err := s.open(ctx, c)
	if err != nil {
		return err
	}
	p, skip := lineParams(in)
	p.NoAnswer = !isTerminal(s.a.in)
	at, err := c.Attach(ctx, p)
	if err != nil {
		return err
	}
	snap := at.Snapshot().Session
	l := s.a.newLiner(c, at, false, skip)
	l.seen = gladhand.Seq(*p.After)
	s.a.header(snap, l.tty)
	if l.tty && snap.Model == offlineModel {
		s.a.note("%s", styleFor(s.a.err).dim("this is the offline model, which follows plain requests; try: help"))
	}
	return l.run(ctx)
}

// open picks up this directory's last session when it fits the flags, else it
// starts one.
func (s *starter) open(ctx context.Context, c *client.Client) (gladhand.SessionInfo, error) {
	cwd, err := workspace("")
	if err != nil {
		return gladhand.SessionInfo{}, err
	}
	in, ok, err := last(ctx, c, cwd)
	switch {
	case err != nil:
		return in, err
	case ok && !s.fresh && s.fits(in):
		return in, s.apply(ctx, c, in.ID)
	}
	id, err := c.NewSession(ctx, cwd, s.meta())
	return gladhand.SessionInfo{ID: id}, err
}

// fits reports whether a session is one that the flags ask for: those that
// belong to it from its start.
func (s *starter) fits(in gladhand.SessionInfo) bool {
	return (s.agent == "" || s.agent == in.Agent) && (s.profile == "" || s.profile == in.Profile) && s.yes == in.Yes
}

// homely writes a path in the home directory with a tilde.
func homely(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, home); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		return "~" + rest
	}
	return path
}
