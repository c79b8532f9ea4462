package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  gladhand version", Args: args(0, 0),
		RunE: func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	if a.json {
		return a.emit(map[string]string{"version": ourVersion(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
	}
	a.print("gladhand %s", ourVersion())
	return nil
}
