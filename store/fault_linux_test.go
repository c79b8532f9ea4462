package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gladhand"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

func init() {
	// ack stores event after event, and says of each whether it was stored.
	helpers["ack"] = func(dir string) error {
		n, err := strconv.Atoi(os.Getenv("GLADHAND_STORE_N"))
		if err != nil {
			return err
		}
		o := Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
		if os.Getenv("GLADHAND_STORE_WIDE") != "" {
			o.fanOut, o.recentMax = 1, 20 // as with many sessions
		}
		s, err := Open(context.Background(), dir, o)
		if err != nil {
			return err
		}
		for i := gladhand.Seq(1); i <= gladhand.Seq(n); i++ {
			err := s.Commit(context.Background(), func(tx *Tx) error { return tx.PutEvents("a", marked(i, 2000)) })
			said := fmt.Sprintf("acked %d\n", i)
			if err != nil {
				said = fmt.Sprintf("failed %d %s %v\n", i, gladhand.ReasonOf(err), (s.Health() != nil))
			}
			if _, err := os.Stdout.WriteString(said); err != nil {
				return err
			}
		}
		if err := s.Close(); err != nil {
			fmt.Printf("close %s\n", gladhand.ReasonOf(err))
		}
		return nil
	}
	helpers["full"] = fillDisk
	helpers["readonly"] = readOnlyDisk
}

// prepared is a store that has session a and is closed.
func prepared(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := openIn(t, dir, Options{})
	withSession(t, s, "a")
	closeStore(t, s)
	return dir
}

// underStrace runs the helper ack; it skips the test where strace cannot work.
func underStrace(t *testing.T, dir string, n int, wide bool, args ...string) (stdout, stderr, trace string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: faults of the disk are not injected")
	}
	if out, err := exec.Command(strace, "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here (%s): faults of the disk are not injected", bytes.TrimSpace(out))
	}
	log := filepath.Join(t.TempDir(), "trace")
	cmd := helper(t, "ack", dir, append([]string{strace, "-f", "-y", "-o", log}, args...)...)
	cmd.Env = append(cmd.Env, fmt.Sprintf("GLADHAND_STORE_N=%d", n))
	if wide {
		cmd.Env = append(cmd.Env, "GLADHAND_STORE_WIDE=1")
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), string(b)
}

var (
	callLine    = regexp.MustCompile(`^(\d+) +(\w+)\(\d+<([^>]*)>(.*)$`)
	success     = regexp.MustCompile(`\) += \d+$`)
	resumedLine = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
)

// TestSyncBeforeAck watches the system calls: when an acknowledgement is
// written, all that was written to the write-ahead log since the last one has
// been synced, and something was.
func TestSyncBeforeAck(t *testing.T) {
	dir := prepared(t)
	const n = 60
	stdout, _, trace := underStrace(t, dir, n, false, "-e", "trace=write,pwrite64,fsync,fdatasync")
	if got := strings.Count(stdout, "acked"); got != n {
		t.Fatalf("%d acknowledgements:\n%s", got, stdout)
	}
	acks, writes, syncs, dirty := 0, 0, 0, false
	wal := filepath.Join(dir, fileName+"-wal")
	open := map[string]string{} // thread → path of a call that has not returned
	returned := func(call, path, rest string) {
		ok := success.MatchString(rest)
		switch {
		case path != wal || !ok:
		case call == "pwrite64":
			writes++
			dirty = true
		case call == "fsync" || call == "fdatasync":
			syncs++
			dirty = false
		}
	}
	for line := range strings.Lines(trace) {
		line = strings.TrimSuffix(line, "\n")
		if m := resumedLine.FindStringSubmatch(line); m != nil {
			returned(m[2], open[m[1]], m[3])
			continue
		}
		m := callLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		thread, call, path, rest := m[1], m[2], m[3], m[4]
		if call == "write" && strings.Contains(rest, `"acked `) {
			acks++
			if dirty || writes == 0 || syncs == 0 {
				before, _, _ := strings.Cut(trace, line)
				t.Fatalf("acknowledgement %d: %d writes and %d syncs before it, unsynced: %v\n%s%s", acks, writes, syncs, dirty, before[max(0, len(before)-4000):], line)
			}
			writes, syncs = 0, 0
		}
		if strings.HasSuffix(rest, "<unfinished ...>") {
			open[thread] = path
			continue
		}
		returned(call, path, rest)
	}
	if acks != n {
		t.Fatalf("saw %d acknowledgements in the trace", acks)
	}
}

// TestInjectedFaults lets system calls on the files fail. Whatever fails is
// reported, with the reason; the store goes on without being opened again; and
// what is in it afterwards is exactly what was acknowledged (R164, R165).
func TestInjectedFaults(t *testing.T) {
	const n = 120
	wal, db := fileName+"-wal", fileName
	for i, tt := range []struct {
		file, inject string
		reason       gladhand.Reason // of the failed commits; "" for none
		close        gladhand.Reason // of Close
		warn         string
	}{
		{wal, "fsync,fdatasync:error=EIO:when=20..25", gladhand.ReasonUnavailable, "", "nothing can be stored"},
		{wal, "fsync,fdatasync:error=EIO:when=40..100+7", gladhand.ReasonUnavailable, "", ""},
		{wal, "fsync,fdatasync:error=ENOSPC:when=30", gladhand.ReasonUnavailable, "", ""},
		{wal, "pwrite64:error=EIO:when=50..60", gladhand.ReasonUnavailable, "", "works again"},
		{wal, "pwrite64:error=ENOSPC:when=51+37", gladhand.ReasonDiskFull, "", ""},
		{wal, "pwrite64:retval=0:when=52+41", gladhand.ReasonDiskFull, "", ""}, // a short write
		{wal, "fsync,fdatasync:error=EIO:when=21..60+3", gladhand.ReasonUnavailable, "", ""},
		{wal, "pwrite64:error=ENOSPC:when=60..300+11", gladhand.ReasonDiskFull, "", ""},
		{db, "pwrite64:error=EIO:when=1", "", gladhand.ReasonUnavailable, ""}, // the checkpoint's
		{db, "fsync,fdatasync:error=EIO:when=1", "", gladhand.ReasonUnavailable, ""},
	} {
		t.Run(tt.file+" "+strings.ReplaceAll(tt.inject, ":", " "), func(t *testing.T) {
			t.Parallel()
			dir := prepared(t)
			path := filepath.Join(dir, tt.file)
			stdout, stderr, trace := underStrace(t, dir, n, i%2 == 1, "-P", path, "-e", "trace=pwrite64,fsync,fdatasync", "-e", "inject="+tt.inject)
			if !strings.Contains(trace, "(INJECTED)") {
				t.Fatal("nothing was injected")
			}
			acked, failed, closed := outcome(t, stdout)
			for _, f := range failed {
				if f != string(tt.reason)+" true" {
					t.Errorf("failed with %q, want %q and bad health", f, tt.reason)
				}
			}
			if tt.reason != "" && len(failed) == 0 || len(acked)+len(failed) != n {
				t.Errorf("%d acknowledged, %d failed of %d", len(acked), len(failed), n)
			}
			// strace counts each thread's calls, so those of Close may be hit too.
			if closed != tt.close && (tt.close != "" || closed != tt.reason) {
				t.Errorf("Close: %q, want %q", closed, tt.close)
			}
			if !strings.Contains(stderr, tt.warn) {
				t.Errorf("no warning %q in\n%s", tt.warn, stderr)
			}
			diff(t, "stored", firsts(t, openIn(t, dir, Options{}), "a"), acked)
		})
	}
}

// outcome reads what the helper ack said.
func outcome(t *testing.T, said string) (acked []gladhand.Seq, failed []string, closed gladhand.Reason) {
	t.Helper()
	for line := range strings.Lines(said) {
		var seq gladhand.Seq
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, rest, _ := strings.Cut(rest, " ")
		if word == "close" {
			closed = gladhand.Reason(number)
			continue
		}
		if _, err := fmt.Sscan(number, &seq); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if word == "acked" {
			acked = append(acked, seq)
		} else {
			failed = append(failed, rest)
		}
	}
	return acked, failed, closed
}

// TestKill kills a process that stores, at any moment: what it acknowledged is
// there, with at most the one more that was on its way, and the file is sound.
func TestKill(t *testing.T) {
	kills := 8
	if *long {
		kills = 200
	}
	dir := prepared(t)
	before := 0 // stored by earlier processes, which stored the same events
	for i := range kills {
		acked := killed(t, dir, 1+i*37%200, i%2 == 1)
		s := openIn(t, dir, Options{})
		got := firsts(t, s, "a")
		if n := len(got); n < max(before, acked) || n > max(before, acked+1) || !slices.Equal(got, upTo(gladhand.Seq(n))) {
			t.Fatalf("kill %d: %d stored before, %d acknowledged, now there are %v", i, before, acked, got)
		}
		if last, err := s.LastSeq(t.Context(), "a"); err != nil || last != gladhand.Seq(len(got)) {
			t.Fatalf("kill %d: last number %d of %d (%v)", i, last, len(got), err)
		}
		integrity(t, s)
		closeStore(t, s)
		before = len(got)
	}
}

// killed runs the helper ack, kills it after some acknowledgements, and returns
// how many there were in the end.
func killed(t *testing.T, dir string, after int, wide bool) (acked int) {
	t.Helper()
	cmd := helper(t, "ack", dir)
	cmd.Env = append(cmd.Env, "GLADHAND_STORE_N=1000000")
	if wide {
		cmd.Env = append(cmd.Env, "GLADHAND_STORE_WIDE=1")
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill() // also when the test gives up
	lines := bufio.NewScanner(stdout)
	for lines.Scan() { // what it says until it is dead counts too
		if _, err := fmt.Sscanf(lines.Text(), "acked %d", &acked); err != nil {
			t.Error(lines.Text())
		}
		if acked == after {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	return acked
}

func integrity(t *testing.T, s *Store) {
	t.Helper()
	if err := s.read(t.Context(), func(c *conn) error {
		return sqlitex.ExecuteTransient(c.Conn, "PRAGMA integrity_check", &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
			if text := st.ColumnText(0); text != "ok" {
				t.Error(text)
			}
			return nil
		}})
	}); err != nil {
		t.Fatal(err)
	}
}

// onTmpfs runs a helper as root of its own user and mount namespace, where it
// can mount a small file system over dir.
func onTmpfs(t *testing.T, name string) {
	t.Helper()
	cmd := helper(t, name, t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), errCannotMount.Error()) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("namespaces or mounts are not allowed here, so the disk is not filled: %v %s", err, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

var errCannotMount = errors.New("cannot mount")

func mountTmpfs(dir, size string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=700"); err != nil {
		return fmt.Errorf("%w: %v", errCannotMount, err)
	}
	return nil
}

// R163, R164: a disk that is full is reported as that; once it has space again
// the open store goes on; and what was acknowledged is there, nothing else.
func TestDiskFull(t *testing.T) { onTmpfs(t, "full") }

func fillDisk(dir string) error {
	if err := mountTmpfs(dir, "3m"); err != nil {
		return err
	}
	filler := filepath.Join(dir, "filler")
	fill := func() {
		f, _ := os.Create(filler)
		b := make([]byte, 4096)
		for {
			if _, err := f.Write(b); err != nil {
				_ = f.Close()
				return
			}
		}
	}
	// A first start on a full disk leaves nothing that hinders the next.
	fill()
	if _, err := Open(context.Background(), filepath.Join(dir, "data"), Options{}); gladhand.ReasonOf(err) != gladhand.ReasonDiskFull {
		return fmt.Errorf("open on a full disk: %v", err)
	}
	_ = os.Remove(filler)
	s, err := Open(context.Background(), filepath.Join(dir, "data"), Options{})
	if err != nil {
		return err
	}
	if err := s.Commit(context.Background(), func(tx *Tx) error { return tx.PutSession(newSession("a")) }); err != nil {
		return err
	}
	var acked []gladhand.Seq
	next := gladhand.Seq(0)
	put := func() error {
		next++
		n := next
		err := s.Commit(context.Background(), func(tx *Tx) error { return tx.PutEvents("a", marked(n, 3000)) })
		if err == nil {
			acked = append(acked, n)
		}
		return err
	}
	for round := range 5 {
		if err := put(); err != nil {
			return fmt.Errorf("round %d: with space: %w", round, err)
		}
		fill()
		var err error
		for range 2000 { // the write-ahead log has room of its own at first
			if err = put(); err != nil {
				break
			}
		}
		if gladhand.ReasonOf(err) != gladhand.ReasonDiskFull || gladhand.ReasonOf(s.Health()) != gladhand.ReasonDiskFull {
			return fmt.Errorf("round %d: full, got %v, health %v", round, err, s.Health())
		}
		if _, err := s.Events(context.Background(), "a", 0, 1000); err != nil {
			return fmt.Errorf("reading on a full disk: %w", err)
		}
		if err := os.Remove(filler); err != nil {
			return err
		}
		if err := put(); err != nil {
			return fmt.Errorf("round %d: with space again: %w", round, err)
		}
		if err := s.Health(); err != nil {
			return fmt.Errorf("round %d: health %w", round, err)
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	return stored(filepath.Join(dir, "data"), acked)
}

// stored compares what a store holds with what was acknowledged.
func stored(dir string, acked []gladhand.Seq) error {
	s, err := Open(context.Background(), dir, Options{})
	if err != nil {
		return err
	}
	events, err := s.Events(context.Background(), "a", 0, 1<<30)
	if err != nil {
		return err
	}
	var got []gladhand.Seq
	for _, e := range events {
		got = append(got, e.First)
	}
	if !slices.Equal(got, acked) {
		return fmt.Errorf("stored %v, acknowledged %v", got, acked)
	}
	return s.Close()
}

// A home that cannot be written gets a message that says what to do.
func TestReadOnlyDisk(t *testing.T) { onTmpfs(t, "readonly") }

func readOnlyDisk(dir string) error {
	if err := mountTmpfs(dir, "3m"); err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	s, err := Open(context.Background(), data, Options{})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("%w: %v", errCannotMount, err)
	}
	for _, d := range []string{data, filepath.Join(dir, "new")} {
		_, err := Open(context.Background(), d, Options{})
		if gladhand.ReasonOf(err) != gladhand.ReasonUnavailable || !strings.Contains(err.Error(), "--data-dir") || !strings.Contains(err.Error(), d) {
			return fmt.Errorf("open %s: %v", d, err)
		}
	}
	return nil
}

// R156: a network file system is refused by its number, before anything is
// written, and the message says what to do.
func TestNetworkFileSystem(t *testing.T) {
	old := statfsType
	defer func() { statfsType = old }()
	for number, name := range map[uint32]string{0x6969: "NFS", 0xFE534D42: "SMB2", 0x5346414F: "AFS"} {
		statfsType = func(string) (uint32, error) { return number, nil }
		dir := t.TempDir()
		err := tryOpen(t, dir)
		wantReason(t, err, gladhand.CodeInternal, gladhand.ReasonUnavailable)
		if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "--data-dir") {
			t.Error(err)
		}
		diff(t, "files", tree(t, dir), map[string]string{})
	}
	statfsType = func(string) (uint32, error) { return 0, errors.New("not known here") }
	if err := tryOpen(t, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// R156: locks that do not work, as on NFS without its lock daemon, end in a
// message and not in a wait for ever.
func TestLocksThatDoNotWork(t *testing.T) {
	dir := prepared(t)
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: faults of the disk are not injected")
	}
	cmd := helper(t, "try", dir, strace, "-f", "-o", "/dev/null", "-P", filepath.Join(dir, fileName), "-P", filepath.Join(dir, fileName+"-shm"),
		"-e", "trace=fcntl", "-e", "inject=fcntl:error=EINVAL")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "--data-dir") || !strings.Contains(string(out), "unavailable") {
		t.Errorf("said %q", out)
	}
}
