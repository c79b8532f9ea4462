//go:build unix

package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const homeVariable = "HOME"

func foldCase(path string) string { return path }

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func stateHome(env func(string) string) (string, error) {
	// The XDG specification: a relative path there is to be ignored.
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	h, err := home(env)
	return filepath.Join(h, ".local", "state"), err
}

func givenEndpoint(socket string) (string, error) {
	if strings.ContainsRune(socket, 0) {
		return "", invalid("the socket %q has a zero byte in its name", socket)
	}
	abs, err := filepath.Abs(socket)
	if err != nil {
		return "", invalid("the socket %q cannot be made absolute: %w", socket, err)
	}
	if len(abs) > MaxSocketPath {
		return "", invalid("the socket path %s has %d bytes, and a socket's path may have %d: choose a shorter one with --socket or GLADHAND_SOCKET", abs, len(abs), MaxSocketPath)
	}
	return abs, nil
}

func defaultEndpoint(dataDir string, env func(string) string) (string, error) {
	if s := filepath.Join(dataDir, "daemon.sock"); len(s) <= MaxSocketPath {
		return s, nil
	}
	name := hashName(dataDir) + ".sock"
	own := fmt.Sprintf("gladhand-%d", os.Geteuid())
	var dirs []string
	if run := env("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		dirs = append(dirs, filepath.Join(run, "gladhand"))
	}
	if tmp := env("TMPDIR"); filepath.IsAbs(tmp) {
		dirs = append(dirs, filepath.Join(tmp, own))
	}
	dirs = append(dirs, filepath.Join("/tmp", own))
	for _, dir := range dirs {
		if s := filepath.Join(dir, name); len(s) <= MaxSocketPath {
			return s, nil
		}
	}
	return "", invalid("no directory for sockets has a path short enough: name one with --socket")
}
