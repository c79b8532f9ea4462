package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// roleFlag is the first argument of a process that this one started.
const roleFlag = "as"

// roles are what such a process can be. A role prints "ready" when it is, reads
// commands from its standard input, and ends with it.
var roles = map[string]func(args []string) error{
	"echo":    playEcho,
	"in-turn": playInTurn,
	"readers": playReaders,
	"daemon":  playDaemon,
}

func play(name string, args []string) error {
	role, ok := roles[name]
	if !ok {
		return fmt.Errorf("there is no role %q", name)
	}
	return role(args)
}

// ready tells the parent that the role is; the channel closes when the parent
// lets go.
func ready() <-chan struct{} {
	gone := make(chan struct{})
	fmt.Println("ready")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(gone)
	}()
	return gone
}

// child is a process of ours.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// spawn runs this binary again in a role, and waits until it is ready.
func spawn(role string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self, append([]string{roleFlag, role}, args...)...)}
	c.cmd.Stderr = os.Stderr
	c.cmd.Env = environment()
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := c.out.ReadString('\n'); line != "ready\n" {
		return nil, errors.Join(fmt.Errorf("%s did not get ready: %q %w", role, line, err), c.end())
	}
	return c, nil
}

// result reads what the role found out.
func (c *child) result(v any) error {
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// end lets the role go, and waits for it.
func (c *child) end() error {
	c.in.Close()
	return c.cmd.Wait()
}

// environment is ours without what would lead a daemon elsewhere.
func environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GLADHAND_") {
			env = append(env, kv)
		}
	}
	return env
}
