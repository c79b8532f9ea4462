package main

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// unified is a change of a file as a unified diff; a nil before is a new file.
func unified(path string, before *string, after string) string {
	from, old := path, ""
	if before == nil {
		from = "/dev/null"
	} else {
		old = *before
	}
	text := strings.Split(udiff.Unified(from, path, old, after), "\n")
	for i := range text {
		text[i] = visibleTabs(text[i])
	}
	return strings.Join(text, "\n")
}

// mostDiff is how many lines of a change a question shows.
const mostDiff = 40

// shortDiff is a change as a question shows it.
func shortDiff(path string, before *string, after string) []string {
	head := "    " + oneLine(path)
	if before == nil {
		head += " (new file)"
	}
	text := []string{head}
	body := strings.Split(strings.TrimRight(unified(path, before, after), "\n"), "\n")
	body = body[min(2, len(body)):] // without the names
	for i, line := range body {
		if i == mostDiff {
			return append(text, fmt.Sprintf("    … %d more lines", len(body)-i))
		}
		text = append(text, "    "+line)
	}
	return text
}

// visibleTabs is oneLine, but leaves tabs, which are no danger to a line.
func visibleTabs(line string) string {
	parts := strings.Split(line, "\t")
	for i := range parts {
		parts[i] = oneLine(parts[i])
	}
	return strings.Join(parts, "\t")
}
