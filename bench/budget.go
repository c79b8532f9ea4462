package main

import (
	"fmt"
	"slices"
	"time"
)

// budget is one line of the table: what must hold, and where we are going.
type budget struct {
	name    string
	unit    string
	budget  float64
	goal    float64 // 0: none beyond the budget
	atLeast bool    // more is better
}

// The lines, in the order in which they are printed.
var (
	lineRequest  = budget{"request and response of 300 bytes", "× echo", 4, 2.5, false}
	lineFanout   = budget{"updates to 256 clients", "× in turn", 8, 14, true}
	lineToken    = budget{"model's first token to an update", "µs", 200, 0, false}
	lineStep     = budget{"a step of the loop, without the model", "ms", 2, 0, false}
	lineGrep     = budget{"grep over 100,000 files", "× ripgrep", 1.5, 0, false}
	lineEdit     = budget{"edit_file on 10 MB", "ms", 50, 0, false}
	lineYes      = budget{"kept of a flood of output", "MB", 2, 0, false}
	linePrompt   = budget{"prompt stored, above a bare commit", "× echo", 5, 0, false}
	lineSessions = budget{"128 sessions at once", "× one", 8, 12, true}
	lineAttach   = budget{"attach at 1,000,000 events, above 10", "ms", 5, 0, false}
	lineReplay   = budget{"replay", "events/s", 300_000, 0, true}
	lineStart    = budget{"daemon start to first hello", "ms", 60, 25, false}
	lineList     = budget{"gladhand ls", "ms", 25, 12, false}
	lineIdle     = budget{"idle daemon", "MB", 35, 20, false}
	lineOpen     = budget{"1,000 open idle sessions", "MB more", 60, 0, false}
	lineClosed   = budget{"1,000 closed sessions", "MB more", 2, 0, false}
)

// holds reports whether a measured value is within the budget.
func (l budget) holds(v float64) bool {
	if l.atLeast {
		return v >= l.budget
	}
	return v <= l.budget
}

func (l budget) sign() string {
	if l.atLeast {
		return "≥ "
	}
	return "≤ "
}

// report prints a line. from has the figures that the value was made of.
func (b *bench) report(l budget, v float64, from string, args ...any) {
	verdict := "ok"
	if !l.holds(v) {
		verdict = "short"
		b.missed++
	}
	goal := "–"
	if l.goal != 0 {
		goal = figure(l.goal)
	}
	fmt.Fprintf(b.out, "  %-37s %10s %10s %10s  %-7s %s\n", l.name+", "+l.unit, figure(v), l.sign()+figure(l.budget), goal, verdict, fmt.Sprintf(from, args...))
}

// unmeasured prints a line that this system cannot measure.
func (b *bench) unmeasured(l budget, why string) {
	fmt.Fprintf(b.out, "  %-37s %10s %10s %10s  %-7s %s\n", l.name+", "+l.unit, "–", l.sign()+figure(l.budget), "–", "–", why)
}

// figure prints a number with three digits, or all of a large one.
func figure(v float64) string {
	switch {
	case v >= 1000 || v <= -1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100 || v <= -100 || v == float64(int(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// median is the middle value; it sorts.
func median[T time.Duration | float64](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
