//go:build unix

package proc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gladhand"
)

// The test binary plays the other processes of a test: PROC_TEST_ROLE names
// the role, the arguments are its own.
func TestMain(m *testing.M) {
	role := os.Getenv("PROC_TEST_ROLE")
	if len(os.Args) > 1 && os.Args[1] == "daemon" {
		role = "daemon"
	}
	f, ok := map[string]func(args []string){
		"listen":  roleListen,
		"raw":     roleRaw,
		"dial":    roleDial,
		"daemon":  roleDaemon,
		"spawner": roleSpawner,
		"sleeper": roleSleeper,
	}[role]
	if !ok {
		os.Exit(m.Run())
	}
	f(os.Args[1:])
}

// roleListen: DATA SOCKET. Waits for a line, listens, prints what came of it,
// accepts until its input ends.
func roleListen(args []string) {
	in := bufio.NewReader(os.Stdin)
	_, _ = in.ReadString('\n')
	l, err := Listen(Place{args[0], args[1]})
	if err != nil {
		fmt.Println(gladhand.ReasonOf(err))
		return
	}
	fmt.Println("listening")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			id, _ := Peer(c)
			fmt.Fprintf(c, "%d %d\n", os.Getpid(), id.PID)
			c.Close()
		}
	}()
	_, _ = io.Copy(io.Discard, in)
	l.Close()
}

// roleRaw: SOCKET. A server that follows no rule of ours.
func roleRaw(args []string) {
	l, err := net.Listen("unix", args[0])
	if err == nil {
		err = os.Chmod(args[0], 0o777)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("listening")
	_, _ = io.Copy(io.Discard, os.Stdin)
	l.Close()
}

// roleDial: SOCKET. Connects and is gone.
func roleDial(args []string) {
	_, err := net.Dial("unix", args[0])
	fmt.Println(err)
}

type daemonReport struct {
	PID, Session int
	Cwd          string
	Args         []string
	Env          []string
	FDs          map[string]string
	Exe          string
}

// roleDaemon: daemon FILE. Says what it finds about itself.
func roleDaemon(args []string) {
	fmt.Fprintln(os.Stderr, "a line for the log")
	r := daemonReport{PID: os.Getpid(), Args: os.Args, Env: os.Environ(), FDs: descriptors("self")}
	r.Session, _ = getsid()
	r.Cwd, _ = os.Getwd()
	r.Exe, _ = os.Readlink("/proc/self/exe")
	b, _ := json.Marshal(r)
	_ = os.WriteFile(args[1]+".new", b, 0o600)
	_ = os.Rename(args[1]+".new", args[1])
}

// roleSpawner: REPORT LOG. Removes its own program, then starts a daemon.
func roleSpawner(args []string) {
	exe, _ := os.Executable()
	_ = os.Remove(exe)
	pid, err := StartDaemon([]string{args[0]}, args[1], append(os.Environ(), "NOTIFY_SOCKET=/x", "PROC_TEST_ROLE="))
	fmt.Println(pid, err)
	if err == nil {
		<-Exited(pid)
	}
}

// roleSleeper starts a command and prints its descriptors.
func roleSleeper([]string) {
	p, err := (&Command{Path: "sleep", Args: []string{"60"}, Stdout: io.Discard, Stderr: io.Discard}).Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	b, _ := json.Marshal(descriptors(fmt.Sprint(p.PID())))
	p.Kill("seen")
	fmt.Println(string(b))
}

// descriptors maps the open descriptors of a process to what they are.
func descriptors(pid string) map[string]string {
	dir := "/proc/" + pid + "/fd"
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	names, _ := f.Readdirnames(-1)
	f.Close()
	out := map[string]string{}
	for _, n := range names {
		// Of our own, the one that reads the directory is gone by now; Go's
		// runtime has an epoll and two files of its cgroup.
		to, err := os.Readlink(filepath.Join(dir, n))
		if err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			out[n] = to
		}
	}
	return out
}

// role is the test binary in another role.
type role struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func play(t *testing.T, cmd *exec.Cmd, name string, args ...string) *role {
	t.Helper()
	if cmd == nil {
		cmd = exec.Command(self(t))
	}
	cmd.Args = append([]string{name}, args...)
	// The race detector would wait a second at each exit.
	cmd.Env = append(os.Environ(), "PROC_TEST_ROLE="+name, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	r := &role{Cmd: cmd}
	var err error
	if r.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Skipf("cannot start a process for %s: %v", name, err)
	}
	t.Cleanup(func() { r.end() })
	return r
}

func (r *role) line() string {
	s, _ := r.out.ReadString('\n')
	return strings.TrimSpace(s)
}

func (r *role) tell(s string) { _, _ = io.WriteString(r.in, s+"\n") }

// end closes its input and reaps it.
func (r *role) end() {
	r.in.Close()
	_ = r.Wait()
}

// kill is kill -9.
func (r *role) kill() {
	_ = r.Process.Kill()
	_ = r.Wait()
}

func self(t *testing.T) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// copyOfSelf is the test binary where everybody may run it.
func copyOfSelf(t *testing.T) string {
	b, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	f := filepath.Join(shortDir(t), "copy")
	if err := os.Chmod(filepath.Dir(f), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

// shortDir is a directory whose sockets stay below the limit.
func shortDir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("/tmp", "gh")
	if err != nil {
		t.Fatal(err)
	}
	d, err = filepath.EvalSymlinks(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

// until polls a condition; it fails the test when it does not come true.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !cond(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

func wantReason(t *testing.T, err error, want gladhand.Reason) {
	t.Helper()
	if err == nil || gladhand.ReasonOf(err) != want {
		t.Fatalf("got %q (%v), want reason %q", gladhand.ReasonOf(err), err, want)
	}
}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to act as another user")
	}
}

const nobody = 65534
