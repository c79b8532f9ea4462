package proc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"gladhand"
)

// MaxSocketPath is the longest endpoint path, in bytes: what every system's
// sockaddr_un holds (macOS 103, Linux 107), with room to spare.
const MaxSocketPath = 100

// Place is where a daemon lives. Places are equal when they mean the same
// daemon.
type Place struct {
	// DataDir is absolute, its parent without symbolic links.
	DataDir string
	// Endpoint is the path of a Unix socket or the name of a named pipe.
	Endpoint string
}

// Locate finds the place that the flags dataDir and socket (both may be empty)
// and the environment mean. It touches nothing but reads links.
//
// Data directory: dataDir, GLADHAND_DATA_DIR, $XDG_STATE_HOME/gladhand,
// ~/.local/state/gladhand; on Windows %LocalAppData%\gladhand instead of the
// last two. Endpoint: socket, GLADHAND_SOCKET, else daemon.sock in the data
// directory or, when that is over [MaxSocketPath], a name of fixed length in
// $XDG_RUNTIME_DIR/gladhand or ${TMPDIR:-/tmp}/gladhand-$UID. On Windows it is
// a pipe named by a hash of the data directory.
//
// Errors: ReasonInvalid when a given endpoint is too long or no home directory
// is known.
func Locate(dataDir, socket string, env func(string) string) (Place, error) {
	dir, err := locateData(dataDir, env)
	if err != nil {
		return Place{}, err
	}
	if socket == "" {
		socket = env("GLADHAND_SOCKET")
	}
	if socket != "" {
		end, err := givenEndpoint(socket)
		return Place{DataDir: dir, Endpoint: end}, err
	}
	end, err := defaultEndpoint(dir, env)
	return Place{DataDir: dir, Endpoint: end}, err
}

func locateData(flag string, env func(string) string) (string, error) {
	dir := flag
	if dir == "" {
		dir = env("GLADHAND_DATA_DIR")
	}
	if dir == "" {
		state, err := stateHome(env)
		if err != nil {
			return "", err
		}
		dir = filepath.Join(state, "gladhand")
	}
	if strings.ContainsRune(dir, 0) {
		return "", invalid("the data directory %q has a zero byte in its name", dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", invalid("the data directory %q cannot be made absolute: %w", dir, err)
	}
	return canonical(abs), nil
}

// canonical resolves the links above path, as far as it exists, so that one
// directory has one name and one hash. The last element is left alone:
// [PrepareDir] must see that it is a link.
func canonical(path string) string {
	parent, base := filepath.Split(path)
	parent = filepath.Clean(parent)
	if parent == path || base == "" {
		return path
	}
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(parent)
		if err == nil {
			return filepath.Join(real, rest, base)
		}
		up := filepath.Dir(parent)
		if up == parent {
			return path
		}
		rest = filepath.Join(filepath.Base(parent), rest)
		parent = up
	}
}

func home(env func(string) string) (string, error) {
	if h := env(homeVariable); filepath.IsAbs(h) {
		return h, nil
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir, nil
	}
	return "", invalid("no home directory is known: set %s, or name a data directory with --data-dir", homeVariable)
}

// hashName is a name of fixed length for a path (16 hex digits), the same in
// daemon and client whatever characters the path has.
func hashName(path string) string {
	sum := sha256.Sum256([]byte(foldCase(path)))
	return hex.EncodeToString(sum[:8])
}

func invalid(format string, args ...any) *gladhand.Error {
	return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, format, args...)
}

func blocked(format string, args ...any) *gladhand.Error {
	return gladhand.Errorf(gladhand.CodeForbidden, gladhand.ReasonBlocked, format, args...)
}

func conflict(format string, args ...any) *gladhand.Error {
	return gladhand.Errorf(gladhand.CodeConflict, gladhand.ReasonConflict, format, args...)
}

func unavailable(format string, args ...any) *gladhand.Error {
	return gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, format, args...)
}

func notFound(format string, args ...any) *gladhand.Error {
	return gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonNotFound, format, args...)
}

// failed is for what the system refused: a full disk, a read-only file system,
// a missing permission.
func failed(err error, format string, args ...any) *gladhand.Error {
	reason := gladhand.ReasonUnavailable
	switch {
	case isDiskFull(err):
		reason = gladhand.ReasonDiskFull
	case errors.Is(err, os.ErrPermission):
		reason = gladhand.ReasonBlocked
	}
	return gladhand.Errorf(gladhand.CodeInternal, reason, format+": %w", append(args, err)...)
}
