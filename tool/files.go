package tool

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"gladhand"
)

// maxFile is the largest file that is edited, overwritten or remembered.
const maxFile = 64 << 20

// maxRemembered bounds how many files a session remembers having read.
const maxRemembered = 4096

// Files remembers the state in which a session's tools last saw or wrote each
// file. It is safe for concurrent use; the zero value is ready.
type Files struct {
	mu   sync.Mutex
	seen map[string]string // resolved path → digest
}

func (f *Files) saw(path, digest string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[string]string{}
	}
	if _, ok := f.seen[path]; !ok && len(f.seen) >= maxRemembered {
		for old := range f.seen { // any one: it then has to be read again
			delete(f.seen, old)
			break
		}
	}
	f.seen[path] = digest
}

func (f *Files) last(path string) (digest string, ok bool) {
	if f == nil {
		return "", false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	digest, ok = f.seen[path]
	return digest, ok
}

// resolve makes path absolute and follows every symbolic link in it, also when
// the file, or what a link points to, is not there yet.
func (e *Env) resolve(path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New(`argument "path" is missing`)
	case strings.ContainsRune(path, 0):
		return "", errors.New("the path contains a NUL character")
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.Cwd, path)
	}
	return follow(filepath.Clean(path), 0)
}

func follow(path string, depth int) (string, error) {
	if depth > 40 {
		return "", fmt.Errorf("%s: too many symbolic links", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", plain(path, err)
	}
	if target, err := os.Readlink(path); err == nil { // a link to nothing
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		return follow(target, depth+1)
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	if parent, err = follow(parent, depth+1); err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

// still returns an error when given no longer leads to resolved.
func (e *Env) still(given, resolved string) error {
	now, err := e.resolve(given)
	if err == nil && now != resolved {
		err = fmt.Errorf("%s leads somewhere else now (%s); nothing was done", given, now)
	}
	return err
}

// look makes the call of a tool that only looks at what a path names. What it says
// when the call runs is what is wanted: only where the path leads to is bound.
func (e *Env) look(t Tool, given string, args json.RawMessage, run func(ctx context.Context, path string) (Result, error)) (*Call, error) {
	path, err := e.resolve(given)
	if err != nil {
		return nil, err
	}
	name := t.Spec().Name
	return &Call{
		Title:     t.Title(args),
		Locations: []Location{{Path: path}},
		Action:    gladhand.Action{Tool: name, Effect: gladhand.EffectRead, Paths: []string{path}},
		Parallel:  true,
		Digest: func() (string, error) {
			now, err := e.resolve(given)
			return digest(name, string(args), now), err
		},
		Run: func(ctx context.Context, _ *Output) (Result, error) {
			if err := e.still(given, path); err != nil {
				return Result{}, err
			}
			return run(ctx, path)
		},
	}, nil
}

// show is path as people and models see it: relative inside the workspace.
func (e *Env) show(path string) string {
	if rel, err := filepath.Rel(e.Cwd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// fileState is a file as it was at one moment.
type fileState struct {
	exists bool
	data   []byte
	digest string // "absent" when it is not there
}

// absent is the digest of a file that is not there.
const absent = "absent"

// load reads a regular file whole. shown is the path in errors.
func load(path, shown string) (fileState, error) {
	f, fi, err := openRegular(path, shown)
	if errors.Is(err, fs.ErrNotExist) {
		return fileState{digest: absent}, nil
	}
	if err != nil {
		return fileState{}, err
	}
	defer f.Close()
	if fi.Size() > maxFile {
		return fileState{}, fmt.Errorf("%s has %d bytes; files over %d MiB are not edited, use a command", shown, fi.Size(), maxFile>>20)
	}
	data := make([]byte, 0, fi.Size()+512)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			return fileState{exists: true, data: data, digest: sum(data)}, nil
		case err != nil:
			return fileState{}, plain(shown, err)
		case len(data) > maxFile:
			return fileState{}, fmt.Errorf("%s is growing beyond %d MiB", shown, maxFile>>20)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// now looks at the file's present state and returns its digest. It compares the
// bytes with those it was loaded with, which takes a fraction of the time that
// hashing them again would.
func (s fileState) now(path, shown string) (string, error) {
	f, _, err := openRegular(path, shown)
	if errors.Is(err, fs.ErrNotExist) {
		return absent, nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	rest := s.data
	buf := make([]byte, min(256<<10, len(s.data)+1))
	for s.exists {
		n, err := f.Read(buf)
		if n > len(rest) || !bytes.Equal(buf[:n], rest[:n]) {
			break
		}
		rest = rest[n:]
		switch {
		case err == io.EOF && len(rest) == 0:
			return s.digest, nil
		case err == io.EOF: // it is shorter now
			return sum(s.data[:len(s.data)-len(rest)]), nil
		case err != nil:
			return "", plain(shown, err)
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", plain(shown, err)
	}
	return hashed(f, shown)
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// digestOf looks at a file's present state.
func digestOf(path, shown string) (string, error) {
	f, _, err := openRegular(path, shown)
	if errors.Is(err, fs.ErrNotExist) {
		return absent, nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	return hashed(f, shown)
}

func hashed(f *os.File, shown string) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", plain(shown, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// openRegular opens a regular file for reading, and nothing that could block or
// has no end.
func openRegular(path, shown string) (*os.File, os.FileInfo, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, nil, plain(shown, err)
	}
	if err := regular(shown, fi); err != nil {
		return nil, nil, err
	}
	f, err := openNonblock(path)
	if err != nil {
		return nil, nil, plain(shown, err)
	}
	if fi, err = f.Stat(); err == nil { // it may have been swapped
		err = regular(shown, fi)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

func regular(shown string, fi os.FileInfo) error {
	switch {
	case fi.IsDir():
		return fmt.Errorf("%s is a directory; list it with list_dir", shown)
	case !fi.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file (%s)", shown, fi.Mode().Type())
	}
	return nil
}

// plain is err in words a model and a person can act on; errors.Is still works.
func plain(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &pathError{path + " does not exist", err}
	case errors.Is(err, fs.ErrPermission):
		return &pathError{path + ": permission denied", err}
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return &pathError{path + ": " + pe.Err.Error(), err}
	}
	return err
}

type pathError struct {
	text string
	err  error
}

func (e *pathError) Error() string { return e.text }
func (e *pathError) Unwrap() error { return e.err }

// locks has a lock for each path that is being written in this process.
var locks struct {
	sync.Mutex
	held map[string]*pathLock
}

type pathLock struct {
	sync.Mutex
	users int // guarded by locks
}

// lockPath waits until nobody else in this process writes path.
func lockPath(path string) (unlock func()) {
	locks.Lock()
	if locks.held == nil {
		locks.held = map[string]*pathLock{}
	}
	l := locks.held[path]
	if l == nil {
		l = &pathLock{}
		locks.held[path] = l
	}
	l.users++
	locks.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		locks.Lock()
		if l.users--; l.users == 0 {
			delete(locks.held, path)
		}
		locks.Unlock()
	}
}

// errChanged says that a file is not what it was when the call was prepared.
func errChanged(shown string) error {
	return fmt.Errorf("%s changed since it was read; nothing was written. Read it again and repeat the change on what it says now", shown)
}

// tempName is a name beside path that nothing else uses, short whatever path is.
func tempName(path, what string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".gladhand-%s-%s", what, strings.ToLower(rand.Text()[:12])))
}
