// Command bench measures gladhand's budgets of speed and memory, and prints one
// line for each: its name, what was measured, the budget, the goal, and "ok" or
// "short". docs/benchmarks.md tells what each line means and keeps the last
// table.
//
//	go run ./bench             all of it, about two minutes
//	go run ./bench -short      a quick look at every line, for continuous integration
//	go run ./bench -strict     exits with 1 when a budget is short
//	go run ./bench -only attach,replay
//
// Times are nothing without their machine, so each is measured in the same run,
// in turns, beside the limit that it is held against: a raw echo over a Unix
// socket between two processes, a bare commit of SQLite, writing to each socket
// in turn. The daemon is a process of its own: the real binary where that is what
// counts, else this one run again with a scripted agent (child.go, daemon.go).
// What talks to it (wire.go) does nothing but write lines and split lines.
//
// A measurement checks what it counts: that each of 256 readers got every number,
// that a replay has no gap. One that is wrong is an error, not a figure.
package main
