package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gladhand"
	"gladhand/client"
)

// running connects to the daemon without starting one; nil when none runs.
func (a *app) running(ctx context.Context) (*client.Client, error) {
	o, err := a.options("cli")
	if err != nil {
		return nil, err
	}
	o.NoStart, o.CheckConfig = true, false
	c, err := client.Connect(ctx, o)
	if gladhand.ReasonOf(err) == gladhand.ReasonUnavailable {
		return nil, nil
	}
	return c, err
}

func (a *app) daemonStart() *cobra.Command {
	return &cobra.Command{
		Use: "start", Short: "Start the daemon, if none runs", Example: "  gladhand daemon start", Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.running(cmd.Context())
			if err != nil {
				return err
			}
			if c != nil {
				defer c.Close()
				return a.daemonIs(c, "runs already")
			}
			return a.startDaemon(cmd.Context())
		},
	}
}

func (a *app) startDaemon(ctx context.Context) error {
	return a.with(ctx, func(c *client.Client) error { return a.daemonIs(c, "started") })
}

func (a *app) daemonIs(c *client.Client, what string) error {
	h := c.Handshake()
	if a.json {
		return a.emit(h)
	}
	a.print("the daemon %s (pid %d, %s)", what, h.PID, h.Endpoint)
	return nil
}

func (a *app) daemonStop() *cobra.Command {
	var drain time.Duration
	cmd := &cobra.Command{
		Use: "stop", Short: "Stop the daemon; sessions and queues are kept", Example: "  gladhand daemon stop\n  gladhand daemon stop --drain 1m",
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			stopped, err := a.stopDaemon(cmd.Context(), drain, cmd.Flags().Changed("drain"))
			switch {
			case err != nil:
				return err
			case a.json:
				return a.emit(map[string]bool{"stopped": stopped})
			case stopped:
				a.print("the daemon stopped")
			default:
				a.print("no daemon runs")
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&drain, "drain", 0, "how long running turns may go on (default the setting stop.drain)")
	return cmd
}

// stopDaemon stops the daemon and waits until it has gone. It reports false when
// none ran.
func (a *app) stopDaemon(ctx context.Context, drain time.Duration, given bool) (bool, error) {
	c, err := a.running(ctx)
	if err != nil || c == nil {
		return false, err
	}
	defer c.Close()
	gone := c.Ended()
	var params any = struct{}{}
	if given {
		params = gladhand.StopParams{DrainMS: int(drain.Milliseconds())}
	}
	if err := c.Call(ctx, gladhand.MethodStop, params, nil); err != nil {
		select {
		case <-gone: // it went before it could answer
		default:
			return false, err
		}
	}
	select {
	case <-gone:
		return true, nil
	case <-time.After(slowStop):
		a.note("waiting for running turns to end…")
	}
	select {
	case <-gone:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

const slowStop = 700 * time.Millisecond

func (a *app) daemonRestart() *cobra.Command {
	return &cobra.Command{
		Use: "restart", Short: "Stop the daemon and start it again", Example: "  gladhand daemon restart", Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := a.stopDaemon(cmd.Context(), 0, false); err != nil {
				return err
			}
			return a.startDaemon(cmd.Context())
		},
	}
}

func (a *app) daemonStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say whether a daemon runs, and how it is", Example: "  gladhand daemon status", Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.running(cmd.Context())
			if err != nil {
				return err
			}
			if c == nil {
				return errNoDaemon
			}
			defer c.Close()
			st, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			return a.printStatus(st)
		},
	}
}

func (a *app) printStatus(st gladhand.StatusResult) error {
	if a.json {
		return a.emit(st)
	}
	a.print("pid       %d", st.PID)
	a.print("version   %s", oneLine(st.Version))
	a.print("endpoint  %s", oneLine(st.Endpoint))
	a.print("data      %s", oneLine(st.DataDir))
	a.print("settings  %s", oneLine(st.Config))
	a.print("up        %s", age(st.StartedAt))
	a.print("sessions  %d open, %d running, %d questions open", st.Sessions, st.Running, st.Asks)
	a.print("clients   %d", st.Clients)
	a.print("store     %s", oneLine(st.Store))
	if st.Version != ourVersion() {
		a.note("the daemon's version is not this one's (%s); `gladhand daemon restart` runs this one", ourVersion())
	}
	return nil
}

func (a *app) daemonLogs() *cobra.Command {
	var follow bool
	var n int
	cmd := &cobra.Command{
		Use: "logs", Short: "Print the daemon's log", Example: "  gladhand daemon logs -n 50\n  gladhand daemon logs -f", Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 0 {
				return usage(fmt.Errorf("-n is a number of lines"))
			}
			place, err := a.place()
			if err != nil {
				return err
			}
			// The file, not the daemon: one looks at it when there is no daemon.
			return a.logs(cmd.Context(), client.LogFile(place), n, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as it grows")
	cmd.Flags().IntVarP(&n, "lines", "n", 100, "how many of its last `LINES`")
	return cmd
}

// logs prints the last n lines of a file, and what comes then.
func (a *app) logs(ctx context.Context, path string, n int, follow bool) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonNotFound, "there is no log yet at %s", path)
	}
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	at, err := a.lastLines(f, n)
	if err != nil || !follow {
		return err
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		grown, err := io.Copy(a.out, io.NewSectionReader(f, at, 1<<40))
		if err != nil {
			return err
		}
		at += grown
		if next, err := os.Open(path); err == nil { // the log may have been rotated
			if sameAsLog(f, path) {
				next.Close()
				continue
			}
			f.Close()
			f, at = next, 0
		}
	}
}

// lastLines prints the last n lines and returns the size of what it has seen.
func (a *app) lastLines(f *os.File, n int) (int64, error) {
	const most = 4 << 20
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	r := bufio.NewReader(io.NewSectionReader(f, max(0, fi.Size()-most), most))
	ring := make([]string, 0, min(n, 1<<16))
	for {
		line, err := r.ReadString('\n')
		if line != "" && n > 0 {
			if len(ring) == n {
				ring = ring[1:]
			}
			ring = append(ring, line)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	_, err = io.WriteString(a.out, strings.Join(ring, ""))
	return fi.Size(), err
}
