//go:build unix

package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// group is the process group of a [Process]; its number is the main process's.
type group struct{ id int }

// prepare asks for a session of its own: a group, and no terminal for a
// program to ask passwords on.
func (g *group) prepare(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func (g *group) adopt(p *os.Process) error {
	g.id = p.Pid
	return nil
}

// terminate asks; a stopped process must go on to hear it.
func (g group) terminate() {
	_ = syscall.Kill(-g.id, syscall.SIGTERM)
	_ = syscall.Kill(-g.id, syscall.SIGCONT)
}

func (g group) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) }

// alive reports whether a process that can still do something is in the group.
func (g group) alive() bool {
	return syscall.Kill(-g.id, 0) != syscall.ESRCH && !onlyZombies(g.id)
}

func (g group) close() {}

func statusOf(s *os.ProcessState) ExitStatus {
	st := ExitStatus{Code: s.ExitCode()}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		st.Code, st.Signal = -1, ws.Signal().String()
	}
	return st
}
