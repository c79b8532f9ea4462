package main

import (
	"os"

	"golang.org/x/sys/windows"
)

func isTerminal(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}

// flushTyped drops what was typed and not yet read.
func flushTyped(f *os.File) error { return windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }
