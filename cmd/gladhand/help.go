package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// help prints a command's help: an example first, since that is what one looks
// for. It is written by hand: cobra's templates would bring text/template in.
func help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	if cmd.Example != "" {
		fmt.Fprintf(w, "%s\n\n", strings.TrimRight(cmd.Example, "\n"))
	}
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n", strings.TrimSpace(text), cmd.UseLine())
	var shown []*cobra.Command
	width := 0
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			shown = append(shown, c)
			width = max(width, len(c.Name()))
		}
	}
	if len(shown) > 0 {
		if cmd.HasParent() || !cmd.Runnable() {
			fmt.Fprintf(w, "  %s COMMAND\n", cmd.CommandPath())
		}
		fmt.Fprint(w, "\nCommands:\n")
		for _, c := range shown {
			fmt.Fprintf(w, "  %-*s  %s\n", width, c.Name(), c.Short)
		}
	}
	flags(w, "Flags", cmd.LocalNonPersistentFlags())
	if cmd.HasParent() {
		flags(w, "Global flags", cmd.InheritedFlags())
	} else {
		flags(w, "Global flags", cmd.PersistentFlags())
	}
}

func flags(w io.Writer, title string, set *pflag.FlagSet) {
	if text := set.FlagUsages(); text != "" {
		fmt.Fprintf(w, "\n%s:\n%s", title, text)
	}
}

// flagError adds the nearest flag to the error about an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if ok {
		best, at := "", 3 // no suggestion that differs in more
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if d := distance(name, f.Name); d < at || strings.HasPrefix(f.Name, name) {
				best, at = f.Name, min(d, at)
			}
		})
		if best != "" {
			err = fmt.Errorf("%w; did you mean --%s?", err, best)
		}
	}
	return usage(fmt.Errorf("%w\n`%s -h` shows how it is used", err, cmd.CommandPath()))
}

// distance is how many letters must be changed, added or removed between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// args checks the number of arguments; most < 0 is any number.
func args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(fmt.Errorf("something is missing: %s", cmd.UseLine()))
		case most >= 0 && len(args) > most:
			return usage(fmt.Errorf("%q is too much: %s", args[most], cmd.UseLine()))
		}
		return nil
	}
}
