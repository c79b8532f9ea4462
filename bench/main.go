package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == roleFlag {
		if err := play(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintf(os.Stderr, "bench %s: %v\n", os.Args[2], err)
			os.Exit(1)
		}
		return
	}
	b := &bench{out: os.Stdout}
	var only string
	flag.BoolVar(&b.short, "short", false, "a quick look at every line; too little for a verdict")
	flag.BoolVar(&b.strict, "strict", false, "exit with 1 when a budget is short")
	flag.StringVar(&only, "only", "", "comma-separated `groups`: "+strings.Join(groupNames(), ", "))
	flag.StringVar(&b.profiles, "profile", "", "keep CPU profiles of the scripted daemons in `dir`")
	flag.Parse()
	if err := b.run(context.Background(), only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if b.strict && b.missed > 0 {
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	out           io.Writer
	short, strict bool
	profiles      string
	dir           string // temporary; on the disk that TMPDIR names
	missed        int
	echoes        *echo // kept from group to group
	binary        string
}

// group measures one or more lines.
type group struct {
	name    string
	measure func(*bench, context.Context) error
}

var groups = []group{
	{"request", (*bench).request},
	{"fanout", (*bench).fanout},
	{"prompt", (*bench).prompt},
	{"sessions", (*bench).sessions},
	{"history", (*bench).history},
	{"start", (*bench).start},
	{"ls", (*bench).list},
	{"memory", (*bench).memory},
	{"loop", (*bench).loop},
	{"grep", (*bench).search},
	{"edit", (*bench).edit},
	{"yes", (*bench).yes},
}

func groupNames() []string {
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	return names
}

func (b *bench) run(ctx context.Context, only string) (err error) {
	want := strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' })
	for _, w := range want {
		if !slices.Contains(groupNames(), w) {
			return fmt.Errorf("there is no group %q; the groups are %s", w, strings.Join(groupNames(), ", "))
		}
	}
	if b.dir, err = os.MkdirTemp("", "gladhand-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	fmt.Fprintf(b.out, "# %s/%s, %d CPUs, %s\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if b.short {
		fmt.Fprintln(b.out, "# a quick look: too few samples for a verdict")
	}
	fmt.Fprintf(b.out, "# %-37s %10s %10s %10s  %-7s %s\n", "line", "measured", "budget", "goal", "verdict", "from")
	for _, g := range groups {
		if len(want) > 0 && !slices.Contains(want, g.name) {
			continue
		}
		if err := g.measure(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return nil
}

func (b *bench) close() error {
	var err error
	if b.echoes != nil {
		err = b.echoes.close()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// count is how many samples to take: full, or a tenth of it in a short run.
func (b *bench) count(full int) int {
	if b.short {
		return max(full/10, 1)
	}
	return full
}

// fresh makes an empty directory for one purpose.
func (b *bench) fresh(name string) (string, error) {
	dir := filepath.Join(b.dir, name)
	return dir, os.MkdirAll(dir, 0o700)
}
