package proc

import (
	"errors"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

const (
	homeVariable = "USERPROFILE"
	pipePrefix   = `\\.\pipe\`
)

// foldCase: Windows compares file names without regard to case.
func foldCase(path string) string { return strings.ToLower(path) }

func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

func stateHome(env func(string) string) (string, error) {
	for _, name := range []string{"XDG_STATE_HOME", "LocalAppData"} {
		if dir := env(name); filepath.IsAbs(dir) {
			return dir, nil
		}
	}
	h, err := home(env)
	return filepath.Join(h, "AppData", "Local"), err
}

func givenEndpoint(socket string) (string, error) {
	if len(socket) <= len(pipePrefix) || !strings.EqualFold(socket[:len(pipePrefix)], pipePrefix) {
		return "", invalid(`%q is not the name of a pipe: on Windows the endpoint looks like %sgladhand-work`, socket, pipePrefix)
	}
	if strings.ContainsRune(socket, 0) || len(socket) > 256 {
		return "", invalid("the pipe name is too long or has a zero byte: 256 characters are the limit")
	}
	return socket, nil
}

func defaultEndpoint(dataDir string, _ func(string) string) (string, error) {
	return pipePrefix + "gladhand-" + hashName(dataDir), nil
}
