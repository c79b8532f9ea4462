package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"gladhand/proc"
)

// build makes the real binary as a release would, once a run.
func (b *bench) build(ctx context.Context) (string, error) {
	if b.binary != "" {
		return b.binary, nil
	}
	path := filepath.Join(b.dir, "gladhand")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "gladhand/cmd/gladhand")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	b.binary = path
	return path, nil
}

// served is a daemon of the real binary.
type served struct {
	cmd   *exec.Cmd
	ended chan error
	place proc.Place
	took  time.Duration // from the start of the process to its first answer
	w     *wire
}

// serve starts the real daemon in a data directory and waits for its hello.
func (b *bench) serve(ctx context.Context, dir string) (*served, error) {
	bin, err := b.build(ctx)
	if err != nil {
		return nil, err
	}
	place, err := placeIn(dir)
	if err != nil {
		return nil, err
	}
	s := &served{cmd: exec.Command(bin, b.flags(dir, "daemon")...), place: place, ended: make(chan error, 1)}
	s.cmd.Env = environment()
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.ended <- s.cmd.Wait() }()
	if s.w, err = hello(place, s.ended); err != nil {
		return nil, err
	}
	s.took = time.Since(begin)
	return s, nil
}

func (b *bench) flags(dir string, args ...string) []string {
	return append(args, "--data-dir", dir, "--config", filepath.Join(dir, "config.jsonc"))
}

func (s *served) stop() error {
	return errors.Join(s.w.stop(), <-s.ended)
}

// start measures the way from a process to its first answered hello, in a data
// directory that is not there yet and in one that is. What is reported is the
// slower.
func (b *bench) start(ctx context.Context) error {
	if _, err := b.build(ctx); err != nil {
		return err
	}
	var fresh, again []time.Duration
	for i := range max(b.count(15), 3) {
		dir := filepath.Join(b.dir, fmt.Sprint("start", i))
		for _, list := range []*[]time.Duration{&fresh, &again} {
			s, err := b.serve(ctx, dir)
			if err != nil {
				return err
			}
			*list = append(*list, s.took)
			if err := s.stop(); err != nil {
				return err
			}
		}
	}
	n := len(fresh)
	one, two := ms(median(fresh)), ms(median(again))
	b.report(lineStart, max(one, two), "p50 of %d; the first start %.1f ms, a later one %.1f", n, one, two)
	return nil
}

// list measures `gladhand ls` as a person would wait for it.
func (b *bench) list(ctx context.Context) (err error) {
	dir := filepath.Join(b.dir, "ls")
	s, err := b.serve(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	const sessions = 20
	for range sessions {
		if _, err := s.w.newSession(b.dir); err != nil {
			return err
		}
	}
	var times []time.Duration
	for range max(b.count(20), 5) {
		cmd := exec.CommandContext(ctx, b.binary, b.flags(dir, "ls")...)
		cmd.Env = environment()
		begin := time.Now()
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("gladhand ls: %w", err)
		}
		times = append(times, time.Since(begin))
		if lines := bytes.Count(out, []byte{'\n'}); lines != sessions+1 {
			return fmt.Errorf("gladhand ls printed %d lines for %d sessions:\n%s", lines, sessions, out)
		}
	}
	n := len(times)
	b.report(lineList, ms(median(times)), "p50 of %d, %d sessions", n, sessions)
	return nil
}

// memory measures what the real daemon holds: idle, with many sessions open, and
// after they were closed and it was started again.
func (b *bench) memory(ctx context.Context) error {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		for _, l := range []budget{lineIdle, lineOpen, lineClosed} {
			b.unmeasured(l, "needs /proc")
		}
		return nil
	}
	dir := filepath.Join(b.dir, "memory")
	s, err := b.serve(ctx, dir)
	if err != nil {
		return err
	}
	idle, err := b.settled(s)
	if err != nil {
		return err
	}
	b.report(lineIdle, idle, "VmRSS, settled")
	n := b.count(1000)
	var ids []string
	for range n {
		id, err := s.w.newSession(b.dir)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	open, err := b.settled(s)
	if err != nil {
		return err
	}
	b.report(lineOpen, open-idle, "%d sessions with a client attached, VmRSS %.1f MB", n, open)
	for _, id := range ids {
		if _, err := s.w.call("session/close", fmt.Sprintf(`{"sessionId":%q}`, id)); err != nil {
			return err
		}
	}
	closed, err := b.settled(s)
	if err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	if s, err = b.serve(ctx, dir); err != nil {
		return err
	}
	again, err := b.settled(s)
	if err != nil {
		return err
	}
	b.report(lineClosed, again-idle, "a daemon started over %d of them; the one that closed them keeps %.1f MB for now", n, closed-idle)
	return s.stop()
}

// settled waits until a process's resident memory stays the same, and returns it
// in MB of 2^20 bytes.
func (b *bench) settled(s *served) (float64, error) {
	const step = 100 * time.Millisecond
	least, same := 20, 10 // steps
	if b.short {
		least, same = 5, 3
	}
	var last float64
	steady := 0
	for i := 0; i < least || steady < same; i++ {
		if i > 300 {
			return last, nil // it creeps; say what it is now
		}
		time.Sleep(step)
		now, err := resident(s.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		if d := now - last; d < 0.1 && d > -0.1 {
			steady++
		} else {
			steady, last = 0, now
		}
	}
	return last, nil
}

// resident is a process's VmRSS.
func resident(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(text, []byte("VmRSS:"))
	field := bytes.Fields(rest)
	if !ok || len(field) == 0 {
		return 0, errors.New("no VmRSS")
	}
	kb, err := strconv.Atoi(string(field[0]))
	return float64(kb) / 1024, err
}
