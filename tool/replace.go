package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// put makes data the content of the file at path, which must still be in the
// state base. See the package comment for how. shown is the path in errors.
func put(path, shown string, base fileState, data content) error {
	unlock := lockPath(path)
	defer unlock()
	if !base.exists {
		return create(path, shown, data)
	}
	s, err := stage(path, shown, base, data)
	if err != nil {
		return err
	}
	defer s.discard()
	return s.commit()
}

// create makes a new file; one that appeared meanwhile is left alone.
func create(path, shown string, data content) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return plain(filepath.Dir(shown), err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return errChanged(shown)
	}
	if err != nil {
		return plain(shown, err)
	}
	if err := writeSync(f, data); err != nil {
		_ = os.Remove(path)
		return plain(shown, err)
	}
	syncDir(filepath.Dir(path))
	return nil
}

// writeSync writes all of data to f, makes it durable, and closes f.
func writeSync(f *os.File, data content) error {
	_, err := data.WriteTo(f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// staged is a change that is ready beside its file, and not yet visible.
type staged struct {
	path, shown string
	base        fileState
	// temp holds the new content, or, for a change in place, a backup of the old.
	temp    string
	inPlace bool
	data    content
}

// stage writes a temporary file with the new content and the old one's mode,
// owner and attributes. Where that cannot be done it prepares a change in place.
func stage(path, shown string, base fileState, data content) (*staged, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, errChanged(shown)
	}
	if !fi.Mode().IsRegular() {
		return nil, errChanged(shown)
	}
	if fi.Mode().Perm()&0o222 == 0 {
		return nil, fmt.Errorf("%s is read-only; make it writable first if it is meant to change", shown)
	}
	s := &staged{path: path, shown: shown, base: base, data: data, temp: tempName(path, "new")}
	if links(path, fi) == 1 {
		err = writeTemp(s.temp, data)
		if err == nil {
			err = copyAttributes(path, s.temp, fi)
		}
		if err == nil {
			return s, nil
		}
		_ = os.Remove(s.temp)
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
			return nil, plain(shown, err)
		}
	}
	s.inPlace = true
	s.temp = tempName(path, "backup")                 // commit looks that the file is still what is backed up
	if writeTemp(s.temp, content{base.data}) != nil { // the directory is not ours to write in
		s.temp = tempName(filepath.Join(os.TempDir(), "x"), "backup")
		err = writeTemp(s.temp, content{base.data})
	}
	if err != nil {
		_ = os.Remove(s.temp)
		return nil, plain(shown, err)
	}
	return s, nil
}

func writeTemp(path string, data content) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return writeSync(f, data)
}

// commit makes the change visible when the file is still what it was.
// Between the look and the rename only a few instructions pass; a writer outside
// this process that hits exactly them is not seen.
func (s *staged) commit() error {
	now, err := s.base.now(s.path, s.shown)
	if err != nil {
		return err
	}
	if fi, err := os.Lstat(s.path); err != nil || !fi.Mode().IsRegular() || now != s.base.digest {
		return errChanged(s.shown)
	}
	if s.inPlace {
		return s.overwrite()
	}
	if err := os.Rename(s.temp, s.path); err != nil {
		return plain(s.shown, err)
	}
	s.temp = ""
	syncDir(filepath.Dir(s.path))
	return nil
}

// overwrite writes in place, and puts the old content back when that fails.
func (s *staged) overwrite() error {
	err := overwrite(s.path, s.data)
	if err == nil {
		return nil
	}
	old, backupErr := os.ReadFile(s.temp)
	if backupErr == nil {
		backupErr = overwrite(s.path, content{old})
	}
	if backupErr != nil {
		kept := s.temp
		s.temp = ""
		return fmt.Errorf("writing %s failed (%v) and its old content could not be put back; it is kept in %s", s.shown, err, kept)
	}
	return plain(s.shown, err)
}

func overwrite(path string, data content) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = data.WriteTo(f)
	if err == nil {
		err = f.Truncate(int64(data.size()))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// discard removes what stage left.
func (s *staged) discard() {
	if s.temp != "" {
		_ = os.Remove(s.temp)
	}
}
