package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"gladhand"
	"gladhand/client"
	"gladhand/config"
	"gladhand/proc"
)

// finding is one thing that doctor looked at.
type finding struct {
	Name  string `json:"name"`
	State string `json:"state"` // ok, info, bad
	Text  string `json:"text"`
	Mend  string `json:"mend,omitempty"`
}

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Say what works here and what does not, with the mend",
		Example: "  gladhand doctor",
		Long:    "Looks at what gladhand needs and what is configured. Exit status 1 when something\nthat is configured does not work.",
		Args:    args(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.examine(cmd.Context()) },
	}
}

func (a *app) examine(ctx context.Context) error {
	d := &examination{a: a}
	d.settings()
	if d.place() {
		d.daemon(ctx)
	}
	d.database()
	d.commands()
	d.model(ctx)
	bad := 0
	for _, f := range d.found {
		if f.State == "bad" {
			bad++
		}
		if a.json {
			if err := a.emit(f); err != nil {
				return err
			}
			continue
		}
		sign := map[string]string{"ok": "✓", "info": "·", "bad": "✗"}[f.State]
		a.print("%s %-9s %s", sign, f.Name, oneLine(f.Text))
		if f.Mend != "" {
			a.print("  %-9s → %s", "", oneLine(f.Mend))
		}
	}
	if bad > 0 {
		return &exitError{exitFailed, fmt.Errorf("%d of %d things do not work", bad, len(d.found))}
	}
	return nil
}

// examination collects findings.
type examination struct {
	a     *app
	found []finding
}

func (d *examination) add(name, state, text, mend string) {
	d.found = append(d.found, finding{name, state, text, mend})
}

func (d *examination) settings() {
	path, _ := d.a.settingsPath()
	if _, err := config.Open(path); err != nil {
		d.add("settings", "bad", err.Error(), "mend the file, then: gladhand config validate")
		return
	}
	if _, err := os.Stat(path); err != nil {
		d.add("settings", "ok", "the defaults; there is no file at "+path, "")
		return
	}
	d.add("settings", "ok", path, "")
}

func (d *examination) place() bool {
	p, err := d.a.place()
	if err == nil {
		err = proc.PrepareDir(p.DataDir)
	}
	if err != nil {
		d.add("data", "bad", err.Error(), "name another directory with --data-dir or GLADHAND_DATA_DIR")
		return false
	}
	d.add("data", "ok", p.DataDir+" is ours alone", "")
	return true
}

func (d *examination) daemon(ctx context.Context) {
	c, err := d.a.connect(ctx, "doctor")
	if err != nil {
		d.add("daemon", "bad", err.Error(), "gladhand daemon logs shows more")
		return
	}
	defer c.Close()
	st, err := c.Status(ctx)
	if err != nil {
		d.add("daemon", "bad", err.Error(), "gladhand daemon restart")
		return
	}
	d.add("daemon", "ok", fmt.Sprintf("answers at %s (pid %d)", st.Endpoint, st.PID), "")
	d.peer(ctx)
	if st.Version == ourVersion() {
		d.add("version", "ok", st.Version, "")
	} else {
		d.add("version", "info", fmt.Sprintf("the daemon is %s, this is %s", st.Version, ourVersion()), "gladhand daemon restart")
	}
	if st.Store == "ok" {
		d.add("store", "ok", "takes what is to be kept", "")
	} else {
		d.add("store", "bad", st.Store, "make room, or see: gladhand daemon logs")
	}
	d.names(c)
}

// names says who we are to others.
func (d *examination) names(c *client.Client) {
	h := c.Handshake()
	d.add("you", "ok", fmt.Sprintf("%s may %s", gladhand.Identity{Name: h.Name}.Display(), h.Rights), "")
}

// peer looks whether the system says who is at the other end.
func (d *examination) peer(ctx context.Context) {
	p, err := d.a.place()
	if err != nil {
		return
	}
	c, err := proc.Dial(ctx, p)
	if err != nil {
		d.add("peer", "bad", err.Error(), "")
		return
	}
	defer c.Close()
	id, err := proc.Peer(c)
	switch {
	case err != nil:
		d.add("peer", "bad", err.Error(), "")
	case !proc.SameUser(id):
		d.add("peer", "bad", "the daemon is another user's", "name another endpoint with --socket")
	default:
		d.add("peer", "ok", fmt.Sprintf("the system vouches for both ends (the daemon is process %d)", id.PID), "")
	}
}

// database says which SQLite is built in, and that it works.
func (d *examination) database() {
	version, err := sqliteVersion()
	if err != nil {
		d.add("sqlite", "bad", err.Error(), "")
		return
	}
	d.add("sqlite", "ok", version, "")
}

func sqliteVersion() (version string, err error) {
	conn, err := sqlite.OpenConn(":memory:", sqlite.OpenReadWrite)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	err = sqlitex.Execute(conn, "SELECT sqlite_version()", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { version = s.ColumnText(0); return nil },
	})
	return version, err
}

// commands says what holds commands back.
func (d *examination) commands() {
	text := "commands are not confined in this version: each one asks, unless --yes"
	if runtime.GOOS == "linux" {
		if path, err := exec.LookPath("bwrap"); err == nil {
			text += "; bubblewrap is at " + path + " and not used yet"
		}
	}
	d.add("commands", "info", text, "")
}
