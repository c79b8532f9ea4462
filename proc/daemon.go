package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// notInherited are variables that speak to the process they were given to, and
// would mislead a daemon that outlives it.
var notInherited = []string{"LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=", "NOTIFY_SOCKET="}

var started sync.Map // pid → chan struct{}, closed when that daemon has ended

// StartDaemon runs this very binary again with the arguments "daemon" and args,
// detached: a session of its own without a terminal, working directory the root,
// standard input and output nowhere, standard error appended to logFile (made
// 0600; "" for nowhere), no other descriptor, environment env (nil: ours).
//
// It returns when the process exists, which says nothing about its health: dial
// it and wait for its hello. [Exited] tells when it failed to start.
func StartDaemon(args []string, logFile string, env []string) (pid int, err error) {
	closeOnExecAll()
	cmd := exec.Command(executable())
	cmd.Args = append([]string{"gladhand", "daemon"}, args...)
	cmd.Dir = rootDir
	if env == nil {
		env = os.Environ()
	}
	cmd.Env = make([]string, 0, len(env))
	for _, kv := range env {
		if !hasAnyPrefix(kv, notInherited) {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	if logFile != "" {
		f, err := openOwn(logFile)
		if err != nil {
			return 0, fmt.Errorf("the daemon's log: %w", err)
		}
		defer f.Close()
		if err := appendOnly(f); err != nil {
			return 0, failed(err, "the daemon's log %s cannot be written", logFile)
		}
		cmd.Stderr = f
	}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return 0, failed(err, "the daemon cannot be started")
	}
	done := make(chan struct{})
	started.Store(cmd.Process.Pid, done)
	go func() {
		_ = cmd.Wait() // no zombie, however long we live
		close(done)
	}()
	return cmd.Process.Pid, nil
}

// Exited returns a channel that is closed when the daemon that this process
// started as pid has ended; nil, which never is, for any other pid.
func Exited(pid int) <-chan struct{} {
	if c, ok := started.Load(pid); ok {
		return c.(chan struct{})
	}
	return nil
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
