package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tailscale/hujson"

	"gladhand"
)

// File is a settings file and the settings read from it. Its methods may be
// called from any goroutine.
type File struct {
	path string

	mu   sync.Mutex // guards what follows; held over a change's write
	text []byte     // the file as we last read or wrote it; nil: absent
	now  Settings
	set  map[string]bool
}

// Item is one setting as people see it.
type Item struct {
	Prop    string          `json:"prop"`
	Value   json.RawMessage `json:"value"`
	Default json.RawMessage `json:"default"`
	Doc     string          `json:"doc"`
	// Set says that the file names it, be it with the default's value.
	Set bool `json:"set"`
}

// Open reads the settings file. An absent one, also in an absent directory, is
// one with the defaults.
//
// Errors: ReasonInvalid, with data "path", "line" and "column" (from 1, in
// characters), for a file that is not right; ReasonUnavailable for one that
// cannot be read.
func Open(path string) (*File, error) {
	if path == "" {
		return nil, invalid("no place for the settings file is known: name one with --config, or set HOME")
	}
	f := &File{path: path}
	return f, f.Reload()
}

// Reload reads the file anew. On an error, which is one of [Open]'s, the
// settings in force stay.
func (f *File) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := read(f.path)
	if err != nil {
		return err
	}
	now, set, err := validate(text)
	if err != nil {
		return inFile(f.path, err)
	}
	f.text, f.now, f.set = text, now, set
	return nil
}

// Validate reports what is wrong with text as a settings file: ReasonInvalid
// with data "line" and "column" where there is one, or nil.
func Validate(text []byte) error {
	_, _, err := validate(text)
	return err
}

// Validate is the function of the same name.
func (f *File) Validate(text []byte) error { return Validate(text) }

func validate(text []byte) (Settings, map[string]bool, error) {
	d, err := parse(text)
	if err != nil {
		return Settings{}, nil, err
	}
	return d.check()
}

// Path is the file's path, as it was opened.
func (f *File) Path() string { return f.path }

// Settings are those in force, as a copy.
func (f *File) Settings() Settings {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Get returns the value in force of a setting, or of a part of an object setting
// ("providers.local.url"). Secrets in it are masked. An unknown prop is
// ReasonInvalid, and the message names the nearest.
func (f *File) Get(prop string) (json.RawMessage, error) {
	def := find(prop)
	s := f.Settings()
	if def != nil {
		return def.value(&s).json(), nil
	}
	if def = within(prop); def == nil {
		return nil, unknown(prop)
	}
	raw, at := def.value(&s).json(), def.prop
	for _, name := range strings.Split(prop, ".")[1:] {
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil || members[name] == nil {
			if strings.Count(at, ".") == 1 && slices.Contains(memberNames(def.value(&s)), name) {
				return json.RawMessage("null"), nil // there could be one
			}
			return nil, invalid("%s has no %q", at, name)
		}
		raw, at = members[name], at+"."+name
	}
	return raw, nil
}

// List returns all settings.
func (f *File) List() ([]Item, error) {
	f.mu.Lock()
	now, set := f.now, f.set // set is replaced, never changed
	f.mu.Unlock()
	std := Defaults()
	items := make([]Item, 0, len(table))
	for _, def := range table {
		items = append(items, Item{
			Prop: def.prop, Doc: def.doc, Set: set[def.prop],
			Value: def.value(&now).json(), Default: def.value(&std).json(),
		})
	}
	return items, nil
}

// Set changes one setting, or a part of an object setting, durably: when it returns nil, the file has it and so
// have the settings in force; otherwise both are as they were.
//
// Where path is a symbolic link, the file it leads to is replaced and the link
// stays. The file's mode is kept; a new one is 0600, its directories 0700.
//
// Errors: ReasonInvalid for an unknown prop or a wrong value; ReasonConflict
// when the file is no longer what was read; ReasonBlocked, ReasonDiskFull or
// ReasonUnavailable when it cannot be written; the context's, wrapped, when it
// ends before the commit.
func (f *File) Set(ctx context.Context, prop string, value json.RawMessage) error {
	return f.commit(ctx, []change{{prop, value}})
}

type change struct {
	prop  string
	value json.RawMessage
}

// commit makes all changes or none, in order.
func (f *File) commit(ctx context.Context, changes []change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	candidate := f.text
	for _, c := range changes {
		var err error
		if candidate, err = stage(candidate, c); err != nil {
			return err
		}
	}
	now, set, err := validate(candidate)
	if err != nil {
		return unplaced(err)
	}
	if err := f.write(ctx, candidate); err != nil {
		return err
	}
	f.text, f.now, f.set = candidate, now, set
	return nil
}

func stage(text []byte, c change) ([]byte, error) {
	def := find(c.prop)
	raw := bytes.TrimSpace(c.value)
	switch {
	case def != nil:
		var scratch Settings
		if err := def.value(&scratch).set(raw); err != nil {
			return nil, invalid("%w", explain(c.prop, err))
		}
	case within(c.prop) == nil:
		return nil, unknown(c.prop)
	default: // the whole is validated, the part must only be one value
		if v, err := hujsonValue(raw); err != nil || v.StartOffset != 0 || v.EndOffset != len(raw) {
			return nil, invalid("%s must be one JSON value", c.prop)
		}
	}
	if text == nil {
		text = []byte("{}\n")
	}
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	return d.put(c.prop, raw)
}

func hujsonValue(raw []byte) (hujson.Value, error) {
	if len(raw) > maxFile || tooDeep(raw) >= 0 {
		return hujson.Value{}, errors.New("too long or deep")
	}
	return hujson.Parse(raw)
}

// unplaced is err without a place, which would be one in a text that nobody sees.
func unplaced(err error) error {
	var e *gladhand.Error
	if errors.As(err, &e) && e.Data["line"] != nil && e.Err != nil {
		return invalid("%w", e.Err)
	}
	return err
}

func unknown(prop string) error {
	if !quotable(prop) {
		return invalid("there is no such setting: see `gladhand config list`")
	}
	return invalid("there is no setting %q: %s", prop, hint(prop))
}

// write replaces the file by text if it still is f.text.
func (f *File) write(ctx context.Context, text []byte) error {
	target, err := filepath.EvalSymlinks(f.path)
	if errors.Is(err, fs.ErrNotExist) && !exists(f.path) {
		target, err = f.path, os.MkdirAll(filepath.Dir(f.path), 0o700)
	}
	if err != nil {
		return failed(f.path, err)
	}
	unlock, err := lock(ctx, target)
	if err != nil {
		return err
	}
	defer unlock()
	disk, err := read(target)
	if err != nil {
		return err
	}
	if !bytes.Equal(disk, f.text) || (disk == nil) != (f.text == nil) {
		return gladhand.Errorf(gladhand.CodeConflict, gladhand.ReasonConflict,
			"the settings file %s was changed since it was read, nothing was written: look at it, and read it anew before changing it", f.path)
	}
	if err := ctx.Err(); err != nil {
		return gladhand.Errorf(gladhand.CodeCancelled, gladhand.ReasonUnavailable, "the settings file %s was not changed: %w", f.path, err)
	}
	if err := replace(target, text); err != nil {
		return failed(f.path, err)
	}
	if err := syncDir(filepath.Dir(target)); err != nil {
		// It may not last. A change that is reported as failed is not there.
		if disk == nil {
			_ = os.Remove(target)
		} else {
			_ = replace(target, disk)
		}
		return failed(f.path, err)
	}
	return nil
}

// replace writes text beside path, syncs it, and renames it over path. The
// caller holds the lock, so the name beside it is ours.
func replace(path string, text []byte) error {
	mode := fs.FileMode(0o600)
	if fi, err := os.Stat(path); err == nil {
		mode = fi.Mode().Perm()
	}
	tmp := path + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	err = errors.Join(err, w.Chmod(mode))
	if err == nil {
		err = w.Sync()
	}
	err = errors.Join(err, w.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}

// read returns nil for an absent file, and never nil for one that is there.
func read(path string) ([]byte, error) {
	fi, err := os.Stat(path) // before the open, which would wait for a FIFO's writer
	if err == nil && !fi.Mode().IsRegular() {
		return nil, invalid("the settings file %s is not a regular file: name another with --config", path).With("path", path)
	}
	r, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failed(path, err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, failed(path, err)
	}
	return append([]byte{}, text...), nil
}

func failed(path string, err error) error {
	reason := gladhand.ReasonUnavailable
	switch {
	case isDiskFull(err):
		reason = gladhand.ReasonDiskFull
	case errors.Is(err, fs.ErrPermission):
		reason = gladhand.ReasonBlocked
	}
	return gladhand.Errorf(gladhand.CodeInternal, reason, "the settings file %s cannot be used: %w", path, err).With("path", path)
}
