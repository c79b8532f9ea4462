package store

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gladhand"

	"zombiezen.com/go/sqlite"
)

// helpers are what this test binary does when it is started as another process.
var helpers = map[string]func(dir string) error{}

// long makes the property tests and the crashes more.
var long = flag.Bool("long", false, "run the long versions of the tests")

func TestMain(m *testing.M) {
	if name := os.Getenv("GLADHAND_STORE_HELPER"); name != "" {
		if err := helpers[name](os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	checks := "25"
	if *long {
		checks = "1000"
	}
	if err := errors.Join(flag.Set("rapid.checks", checks), flag.Set("rapid.nofailfile", "true")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// helper is a command that runs this binary as the named helper in dir.
func helper(t *testing.T, name, dir string, wrap ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(wrap, self, dir)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GLADHAND_STORE_HELPER="+name)
	return cmd
}

func init() {
	// own opens the store, says so, and keeps it until its input ends.
	helpers["own"] = func(dir string) error {
		s, err := Open(context.Background(), dir, Options{})
		if err != nil {
			return err
		}
		fmt.Println("open")
		_, _ = os.Stdin.Read(make([]byte, 1))
		return s.Close()
	}
	// try opens the store and prints what became of it.
	helpers["try"] = func(dir string) error {
		s, err := Open(context.Background(), dir, Options{})
		if err != nil {
			fmt.Printf("%d %s %s\n", gladhand.CodeOf(err), gladhand.ReasonOf(err), err)
			return nil
		}
		fmt.Println("opened")
		return s.Close()
	}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

func tryOpen(t *testing.T, dir string) error {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{})
	if err == nil {
		_ = s.Close()
	}
	return err
}

// R065, R088: the second owner of a directory fails at once, and is told who
// the first one is.
func TestSecondOwner(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, Options{})
	withSession(t, s, "a")
	err := tryOpen(t, dir)
	wantReason(t, err, gladhand.CodeConflict, gladhand.ReasonConflict)
	if !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("does not name the owner: %v", err)
	}
	out, err := helper(t, "try", dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("(pid %d)", os.Getpid())) {
		t.Errorf("another process: %s (%v)", out, err)
	}
	commit(t, s, func(tx *Tx) error { return tx.PutEvents("a", fact(1)) })
	closeStore(t, s)
	if err := tryOpen(t, dir); err != nil {
		t.Fatalf("after the owner has gone: %v", err)
	}
}

// Of many that open at once, one wins.
func TestOneOwner(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	won := make(chan *Store, 20)
	for range 20 {
		wg.Go(func() {
			s, err := Open(t.Context(), dir, Options{})
			if err == nil {
				won <- s
			} else if gladhand.CodeOf(err) != gladhand.CodeConflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(won)
	n := 0
	for s := range won {
		n++
		closeStore(t, s)
	}
	if n != 1 {
		t.Fatalf("%d owners", n)
	}
}

// R057: the lock of an owner that was killed is free at once.
func TestKilledOwner(t *testing.T) {
	dir := t.TempDir()
	cmd := helper(t, "own", dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := stdout.Read(make([]byte, 100)); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	wantReason(t, tryOpen(t, dir), gladhand.CodeConflict, gladhand.ReasonConflict)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := tryOpen(t, dir); err != nil {
		t.Fatal(err)
	}
}

// R083, R084, R093: what a lock file says, or that there is one, means nothing.
func TestStaleLockFile(t *testing.T) {
	for _, note := range []string{"", "1\n", strconv.Itoa(os.Getppid()), "\x00\x00", strings.Repeat("9", 1000)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, lockName), []byte(note), 0o600); err != nil {
			t.Fatal(err)
		}
		s := openIn(t, dir, Options{})
		err := tryOpen(t, dir)
		wantReason(t, err, gladhand.CodeConflict, gladhand.ReasonConflict)
		if !strings.Contains(err.Error(), fmt.Sprintf("(pid %d)", os.Getpid())) {
			t.Errorf("after the note %q: %v", note, err)
		}
		closeStore(t, s)
	}
}

// setVersion makes the database of a later gladhand.
func setVersion(t *testing.T, dir string, version int) {
	t.Helper()
	c, err := sqlite.OpenConn(filepath.Join(dir, fileName), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, c, fmt.Sprintf("PRAGMA user_version = %d", version))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// R162: a database of a later version is refused, naming both versions, and no
// byte of it changes.
func TestNewerVersion(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, Options{})
	withSession(t, s, "a")
	closeStore(t, s)
	setVersion(t, dir, len(migrations)+1)
	before := tree(t, dir)
	err := tryOpen(t, dir)
	wantReason(t, err, gladhand.CodeVersion, gladhand.ReasonVersion)
	for _, v := range []int{len(migrations), len(migrations) + 1} {
		if !strings.Contains(err.Error(), fmt.Sprintf("version %d", v)) {
			t.Errorf("does not name version %d: %v", v, err)
		}
	}
	diff(t, "files", sansLock(tree(t, dir)), sansLock(before))
}

// sansLock leaves out the lock file, whose note names the last owner.
func sansLock(files map[string]string) map[string]string {
	delete(files, lockName)
	return files
}

// The later version may be in the write-ahead log only, when its daemon was
// killed: neither it nor the database changes.
func TestNewerVersionInLog(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	s := openIn(t, from, Options{})
	withSession(t, s, "a")
	execute(t, s.w.c.Conn, fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1)) // the writer is idle
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(filepath.Join(from, fileName+suffix))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fileName+suffix), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, dir)
	wantReason(t, tryOpen(t, dir), gladhand.CodeVersion, gladhand.ReasonVersion)
	after := tree(t, dir)
	for _, name := range []string{fileName, fileName + "-wal"} {
		if after[name] != before[name] {
			t.Errorf("%s changed", name)
		}
	}
}

func TestForeignAndDamagedDatabases(t *testing.T) {
	header := func(t *testing.T, change func([]byte)) []byte {
		dir := t.TempDir()
		closeStore(t, openIn(t, dir, Options{}))
		b, err := os.ReadFile(filepath.Join(dir, fileName))
		if err != nil {
			t.Fatal(err)
		}
		change(b)
		return b
	}
	for name, content := range map[string][]byte{
		"text":            []byte(strings.Repeat("not a database\n", 100)),
		"short":           []byte("SQLite format 3\x00"),
		"other program's": header(t, func(b []byte) { copy(b[68:], "abcd") }),
		"zeroed schema":   header(t, func(b []byte) { clear(b[100:4096]) }),
		"zeroed":          header(t, func(b []byte) { clear(b) }),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, fileName)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			wantReason(t, tryOpen(t, dir), gladhand.CodeInternal, gladhand.ReasonMalformed)
			if b, err := os.ReadFile(path); err != nil || string(b) != string(content) {
				t.Error("it was changed")
			}
		})
	}
	t.Run("empty", func(t *testing.T) { // what a full disk leaves of a first start
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := tryOpen(t, dir); err != nil {
			t.Fatal(err)
		}
	})
}

func TestErrorsOfSQLite(t *testing.T) {
	for code, want := range map[sqlite.ResultCode]struct {
		reason gladhand.Reason
		text   string
	}{
		sqlite.ResultFull:             {gladhand.ReasonDiskFull, "free some space"},
		sqlite.ResultIOErrSHMSize:     {gladhand.ReasonDiskFull, "free some space"},
		sqlite.ResultProtocol:         {gladhand.ReasonUnavailable, "network file system"}, // R156
		sqlite.ResultIOErrShortRead:   {gladhand.ReasonUnavailable, "network file system"}, // R158
		sqlite.ResultIOErrLock:        {gladhand.ReasonUnavailable, "network file system"},
		sqlite.ResultBusy:             {gladhand.ReasonUnavailable, "another program"},
		sqlite.ResultBusySnapshot:     {gladhand.ReasonUnavailable, "another program"},
		sqlite.ResultReadOnlyDBMoved:  {gladhand.ReasonUnavailable, "--data-dir"},
		sqlite.ResultCantOpen:         {gladhand.ReasonUnavailable, "--data-dir"},
		sqlite.ResultIOErrFsync:       {gladhand.ReasonUnavailable, "disk"},
		sqlite.ResultCorrupt:          {gladhand.ReasonMalformed, "damaged"},
		sqlite.ResultNotADB:           {gladhand.ReasonMalformed, "damaged"},
		sqlite.ResultConstraintUnique: {gladhand.ReasonUnavailable, "does not work"},
	} {
		cause := fmt.Errorf("step: %w", code.ToError())
		err := typed(cause, "/the/dir")
		if gladhand.ReasonOf(err) != want.reason || !strings.Contains(err.Error(), want.text) || !strings.Contains(err.Error(), "/the/dir") {
			t.Errorf("%v: %q %v", code, gladhand.ReasonOf(err), err)
		}
		if !errors.Is(err, cause) {
			t.Errorf("%v: the cause is lost", code)
		}
	}
	for _, cause := range []error{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOSPC}, &fs.PathError{Op: "open", Path: "x", Err: syscall.EDQUOT}} {
		wantReason(t, typed(cause, "d"), gladhand.CodeInternal, gladhand.ReasonDiskFull)
	}
	for _, cause := range []error{fs.ErrPermission, syscall.EROFS, syscall.EACCES} {
		err := typed(cause, "d")
		wantReason(t, err, gladhand.CodeInternal, gladhand.ReasonUnavailable)
		if !strings.Contains(err.Error(), "--data-dir") {
			t.Error(err)
		}
	}
}
