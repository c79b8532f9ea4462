//go:build unix

package mcp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gladhand/tool"
)

// R071, R073, R074: a server that heeds nothing is killed with what it started.
func TestClose(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "pids")
	s, _ := start(t, quick, Options{}, stdioServer(t, "stubborn", map[string]string{"MARK": mark}), stdioServer(t, "serve", nil))
	must(t, s, "echo", `{}`)
	text, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	var server, grandchild int
	if _, err := fmt.Sscan(string(text), &server, &grandchild); err != nil {
		t.Fatal(err)
	}
	c, err := find(t, s, "ignore").Prepare(t.Context(), &tool.Env{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, done := tool.NewOutput(1000, ""), make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), out)
		done <- err
	}()
	<-out.Changed()
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("a call outlived its set")
	}
	for _, pid := range []int{server, grandchild} {
		until(t, "the process is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) })
	}
	if tools := s.Tools(t.Context()); len(tools) > 0 {
		if _, err := tools[0].Prepare(t.Context(), &tool.Env{}, nil); err == nil {
			_, _, err = call(t.Context(), t, s, "echo", `{}`)
			if err == nil {
				t.Error("a closed set makes calls")
			}
		}
	}
}

// zombie: nobody may reap a grandchild in a container.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(b), ") Z")
}

// R073: servers that die at once leave no zombies, nor what they started.
func TestNoZombies(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc")
	}
	wrapper := Server{Name: "wrapper", Command: "/bin/sh", Args: []string{"-c", "sleep 3600 & exec false"}}
	all := []Server{wrapper}
	for range maxServers - 1 {
		all = append(all, Server{Name: fmt.Sprint(len(all)), Command: "/bin/false"})
	}
	s, _ := start(t, quick, Options{}, all...)
	until(t, "all have failed for good", func() bool {
		s.Tools(t.Context()) // and are tried again, three times
		for _, p := range s.peers {
			p.mu.Lock()
			done := p.state == Failed && p.tries > maxRestarts
			p.mu.Unlock()
			if !done {
				return false
			}
		}
		return true
	})
	if st := s.Status()[1]; !strings.Contains(st.Why, "exit status 1") {
		t.Errorf("%+v", st)
	}
	until(t, "no zombie is left", func() bool {
		dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, d := range dirs {
			b, err := os.ReadFile(d)
			_, rest, _ := strings.Cut(string(b), ") ")
			if err == nil && strings.HasPrefix(rest, fmt.Sprintf("Z %d ", os.Getpid())) {
				return false
			}
		}
		return true
	})
}
