// Command gladhand keeps coding agents running in one small daemon and gives
// everybody one way to reach them.
//
// Each command is a file: flags and wiring, no thought. What a command needs of
// the daemon it asks package client for; what it shows goes through print.go,
// which makes control characters visible, and screen.go, which writes a
// session's updates. line.go is the terminal client, daemon.go the daemon's
// wiring, exit.go the exit codes.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// app is one run of the binary: its streams and global flags.
type app struct {
	in       *os.File
	out, err *os.File

	dataDir, config, socket string
	json, quiet, verbose    bool

	started bool // flags and arguments were fine, the command runs
}

func run(args []string, in, out, err *os.File) int {
	a := &app{in: in, out: out, err: err}
	root := a.root()
	root.SetArgs(args)
	return a.exit(root.ExecuteContext(context.Background()))
}

func (a *app) root() *cobra.Command {
	root := a.bare()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetHelpFunc(help)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.PersistentPreRun = func(*cobra.Command, []string) { a.started = true }

	g := root.PersistentFlags()
	g.StringVar(&a.dataDir, "data-dir", "", "where sessions are kept (GLADHAND_DATA_DIR)")
	g.StringVar(&a.config, "config", "", "the settings file (GLADHAND_CONFIG)")
	g.StringVar(&a.socket, "socket", "", "the daemon's socket (GLADHAND_SOCKET)")
	g.BoolVar(&a.json, "json", false, "print one JSON object a line, and nothing else")
	g.BoolVarP(&a.quiet, "quiet", "q", false, "no notes, only results and errors")
	g.BoolVarP(&a.verbose, "verbose", "v", false, "show more: thoughts, tool output, who comes and goes")

	root.AddCommand(
		a.runCommand(), a.attach(), a.ls(), a.show(),
		a.close(), a.kill(), a.delete(), a.cancel(), a.queue(), a.asks(),
		a.acp(), a.daemon(), a.models(), a.configCommand(), a.doctor(), a.version(),
		a.evalCommand(),
	)
	return root
}

// note tells people something beside the result.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		a.say(a.err, format, args...)
	}
}

// print tells people the result.
func (a *app) print(format string, args ...any) { a.say(a.out, format, args...) }

func (a *app) say(w io.Writer, format string, args ...any) {
	// A closed pipe ends us by a signal; a full disk has nobody to be told.
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}
