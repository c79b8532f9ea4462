package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"gladhand/tool"
)

// workbench is a workspace to use tools in.
type workbench struct{ *tool.Env }

func newWorkbench(dir string) (workbench, error) {
	dir, err := filepath.EvalSymlinks(dir)
	return workbench{&tool.Env{Cwd: dir, Files: &tool.Files{}, OutputDir: filepath.Join(dir, "output"), Environ: environment()}}, err
}

// use calls a tool as the agent does: prepare, look twice whether anything changed,
// run.
func (w workbench) use(ctx context.Context, name string, args any) (tool.Result, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return tool.Result{}, err
	}
	for _, t := range tool.Builtin() {
		if t.Spec().Name != name {
			continue
		}
		c, err := t.Prepare(ctx, w.Env, raw)
		if err != nil {
			return tool.Result{}, err
		}
		for range 2 {
			if _, err := c.Digest(); err != nil {
				return tool.Result{}, err
			}
		}
		return c.Run(ctx, tool.NewOutput(tool.MaxResult, w.OutputDir))
	}
	return tool.Result{}, fmt.Errorf("there is no tool %s", name)
}

// search compares grep over many small files with ripgrep alone, which prints the same
// lines; both find one line in each thousandth file.
func (b *bench) search(ctx context.Context) error {
	rg, err := exec.LookPath("rg")
	if err != nil {
		fmt.Fprintln(b.out, "  grep: ripgrep is not installed, nothing to compare with")
		return nil
	}
	dir, err := b.fresh("search")
	if err != nil {
		return err
	}
	files := b.count(100_000)
	for i := range files {
		sub := filepath.Join(dir, fmt.Sprintf("d%03d", i/100))
		if i%100 == 0 {
			if err := os.Mkdir(sub, 0o700); err != nil {
				return err
			}
		}
		text := strings.Repeat(fmt.Sprintf("some text of file %d\n", i), 20)
		if i%1000 == 0 {
			text += "here is the needle\n"
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d.txt", i)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	w, err := newWorkbench(dir)
	if err != nil {
		return err
	}
	alone, err := newWorkbench(dir)
	if err != nil {
		return err
	}
	alone.Environ = []string{"PATH="} // where there is no ripgrep
	grep := func(w workbench) (time.Duration, error) {
		begin := time.Now()
		r, err := w.use(ctx, "grep", map[string]string{"pattern": "needle"})
		took := time.Since(begin)
		if err == nil && strings.Count(r.Text, "needle") != files/1000 {
			err = errors.Join(errWrong, errors.New(r.Text))
		}
		return took, err
	}
	var ours, without, theirs []time.Duration
	for i := range 6 {
		took, err := grep(w)
		if err != nil {
			return err
		}
		tookAlone, err := grep(alone)
		if err != nil {
			return err
		}
		begin := time.Now()
		cmd := exec.CommandContext(ctx, rg, "--no-config", "--line-number", "--hidden", "needle", "./")
		cmd.Dir = w.Cwd
		out, err := cmd.Output()
		if err != nil {
			return err
		}
		if bytes.Count(out, []byte("needle")) != files/1000 {
			return errWrong
		}
		if i > 0 { // the first pair warms the cache
			ours, without, theirs = append(ours, took), append(without, tookAlone), append(theirs, time.Since(begin))
		}
	}
	b.report(lineGrep, float64(median(ours))/float64(median(theirs)), "%d files, grep %.0f ms, ripgrep alone %.0f ms; grep without it %.0f ms", files, millis(median(ours)), millis(median(theirs)), millis(median(without)))
	return nil
}

// edit measures edit_file on a large file, from looking to being on disk.
func (b *bench) edit(ctx context.Context) error {
	dir, err := b.fresh("edit")
	if err != nil {
		return err
	}
	w, err := newWorkbench(dir)
	if err != nil {
		return err
	}
	path := filepath.Join(w.Cwd, "large")
	var text bytes.Buffer
	for i := 0; text.Len() < 10_000_000; i++ {
		fmt.Fprintf(&text, "line %d of a large file that has many of them\n", i)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return err
	}
	if _, err := w.use(ctx, "read_file", map[string]any{"path": "large", "limit": 1}); err != nil {
		return err
	}
	var times, bare []time.Duration
	word := "line 100000 of"
	for i := range max(b.count(20), 5) {
		next := fmt.Sprintf("line 100000 (%d) of", i)
		begin := time.Now()
		_, err := w.use(ctx, "edit_file", map[string]any{"path": "large", "edits": []map[string]string{{"old_text": word, "new_text": next}}})
		if err != nil {
			return err
		}
		times = append(times, time.Since(begin))
		word = next
		if took, err := writeAndSync(filepath.Join(dir, "bare"), text.Bytes()); err != nil {
			return err
		} else {
			bare = append(bare, took)
		}
	}
	now, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if want := strings.Replace(text.String(), "line 100000 of", word, 1); string(now) != want {
		return errWrong
	}
	b.report(lineEdit, millis(median(times)), "p50 of %d; writing and syncing the same bytes alone %.0f ms", len(times), millis(median(bare)))
	return nil
}

// writeAndSync is the least that a durable write takes.
func writeAndSync(path string, data []byte) (time.Duration, error) {
	begin := time.Now()
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	return time.Since(begin), err
}

// yes measures what a command that floods its output leaves in memory.
func (b *bench) yes(ctx context.Context) error {
	dir, err := b.fresh("yes")
	if err != nil {
		return err
	}
	w, err := newWorkbench(dir)
	if err != nil {
		return err
	}
	before := heap()
	peak := make(chan int64, 1)
	done := make(chan struct{})
	go func() {
		first, most := int64(0), int64(0)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				peak <- most - first
				return
			case <-tick.C:
				h := heap()
				if first == 0 {
					first = h
				}
				most = max(most, h)
			}
		}
	}()
	r, err := w.use(ctx, "run_command", map[string]any{"command": "yes", "timeout_seconds": 3})
	close(done)
	grown := <-peak
	if err != nil {
		return err
	}
	if !strings.Contains(r.Text, "longer than 3s") {
		return errors.Join(errWrong, errors.New(r.Text[max(0, len(r.Text)-200):]))
	}
	kept := heap() - before // the result among it
	b.report(lineYes, float64(kept)/1e6, "`yes` for 3 s through run_command, %.2f MB of text; the heap grows by %.2f MB after its first quarter of a second", float64(len(r.Text))/1e6, float64(grown)/1e6)
	runtime.KeepAlive(r)
	return nil
}

// heap is what is in use, after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }
