//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gladhand"
)

func placeIn(d string) Place { return Place{d, d + "/daemon.sock"} }

func TestListenAndDial(t *testing.T) {
	base := shortDir(t)
	must(t, os.Mkdir(base+"/real", 0o755), os.Symlink(base+"/real", base+"/home"))
	for _, dir := range []string{"plain", "a b", "ü 'é\" 日本", "home/x", strings.Repeat("long", 40)} { // R096, R223, R225
		t.Run(dir, func(t *testing.T) {
			p, err := Locate(base+"/"+dir, "", envOf("XDG_RUNTIME_DIR="+base+"/run"))
			must(t, err)
			_, err = Dial(t.Context(), p)
			wantReason(t, err, gladhand.ReasonUnavailable)
			l, err := Listen(p)
			must(t, err)
			defer l.Close()
			if m := modeOf(t, p.Endpoint); m != 0o600 {
				t.Errorf("socket's mode %o", m)
			}
			if m := modeOf(t, p.DataDir); m != 0o700 {
				t.Errorf("directory's mode %o", m)
			}
			accepted := make(chan net.Conn, 1)
			go func() { c, _ := l.Accept(); accepted <- c }()
			c, err := Dial(t.Context(), p)
			must(t, err)
			defer c.Close()
			s := <-accepted
			defer s.Close()
			for _, end := range []net.Conn{c, s} {
				id, err := Peer(end)
				if err != nil || id.PID != os.Getpid() || !SameUser(id) || id.StartTime == 0 {
					t.Errorf("%+v, %v", id, err)
				}
			}
			must(t, l.Close())
			if _, err := os.Lstat(p.Endpoint); !errors.Is(err, os.ErrNotExist) {
				t.Error("the socket stays")
			}
			l2, err := Listen(p)
			must(t, err)
			must(t, l2.Close())
		})
	}
}

// R086, R088: of many starts at once one listens, the others say who does.
func TestRaceToListen(t *testing.T) {
	p := placeIn(shortDir(t))
	for round := range 3 {
		var racers []*role
		for range 10 {
			racers = append(racers, play(t, nil, "listen", p.DataDir, p.Endpoint))
		}
		for _, r := range racers {
			r.tell("go")
		}
		got := map[string]int{}
		var winner *role
		for _, r := range racers {
			s := r.line()
			got[s]++
			if s == "listening" {
				winner = r
			}
		}
		if got["listening"] != 1 || got["conflict"] != 9 {
			t.Fatalf("round %d: %v", round, got)
		}
		_, err := Listen(p)
		wantReason(t, err, gladhand.ReasonConflict)
		if pid := err.(*gladhand.Error).Data["pid"]; pid != winner.Process.Pid {
			t.Errorf("the holder is %d, the error says %v", winner.Process.Pid, pid)
		}
		winner.kill() // the next round starts over its remains
		for _, r := range racers {
			r.end()
		}
	}
}

// R085, R087: kill -9 leaves a socket; the next start takes its place.
func TestStartAfterKill(t *testing.T) {
	p := placeIn(shortDir(t))
	for i := range 20 {
		r := play(t, nil, "listen", p.DataDir, p.Endpoint)
		r.tell("go")
		if s := r.line(); s != "listening" {
			t.Fatalf("start %d: %s", i, s)
		}
		c, err := Dial(t.Context(), p)
		must(t, err)
		b, _ := io.ReadAll(c)
		c.Close()
		if want := fmt.Sprintf("%d %d\n", r.Process.Pid, os.Getpid()); string(b) != want {
			t.Fatalf("start %d: %q, want %q", i, b, want)
		}
		r.kill()
		if _, err := os.Lstat(p.Endpoint); err != nil {
			t.Fatal("the test shows nothing: kill -9 left no socket")
		}
		_, err = Dial(t.Context(), p)
		wantReason(t, err, gladhand.ReasonUnavailable)
	}
}

// A live socket is never stolen, also when its lock was lost, and not even
// from a server that is stopped.
func TestLiveSocketIsNotStolen(t *testing.T) {
	p := placeIn(shortDir(t))
	r := play(t, nil, "listen", p.DataDir, p.Endpoint)
	r.tell("go")
	if s := r.line(); s != "listening" {
		t.Fatal(s)
	}
	must(t, os.Remove(p.DataDir+"/daemon.lock"))
	_, err := Listen(p)
	wantReason(t, err, gladhand.ReasonConflict)
	must(t, r.Process.Signal(syscall.SIGSTOP))
	_, err = Listen(p)
	wantReason(t, err, gladhand.ReasonConflict)
	must(t, r.Process.Signal(syscall.SIGCONT))
	c, err := Dial(t.Context(), p)
	must(t, err)
	c.Close()
}

// Two data directories that were given one endpoint.
func TestOneEndpointForTwo(t *testing.T) {
	d := shortDir(t)
	l, err := Listen(Place{d + "/a", d + "/run/s"})
	must(t, err)
	defer l.Close()
	_, err = Listen(Place{d + "/b", d + "/run/s"})
	wantReason(t, err, gladhand.ReasonConflict)
	must(t, l.Close())
	l, err = Listen(Place{d + "/b", d + "/run/s"})
	must(t, err)
	must(t, l.Close())
}

func TestCloseLeavesTheSuccessor(t *testing.T) {
	p := placeIn(shortDir(t))
	old, err := Listen(p)
	must(t, err)
	// Somebody cleaned up under a running daemon, and another one started.
	must(t, os.Remove(p.DataDir+"/daemon.lock"), os.Remove(p.Endpoint))
	succ, err := Listen(p)
	must(t, err)
	defer succ.Close()
	must(t, old.Close())
	c, err := Dial(t.Context(), p)
	must(t, err)
	c.Close()
}

func TestEndpointDirectory(t *testing.T) {
	d := shortDir(t)
	must(t, os.Mkdir(d+"/sticky", 0o700), os.Chmod(d+"/sticky", 0o777|os.ModeSticky),
		os.Mkdir(d+"/loose", 0o700), os.Chmod(d+"/loose", 0o775),
		os.Mkdir(d+"/mine", 0o755), os.Symlink(d+"/sticky", d+"/link"))
	for dir, ok := range map[string]bool{"sticky": true, "loose": false, "mine": true, "link": true, "new": true} {
		l, err := Listen(Place{d + "/data", d + "/" + dir + "/s"})
		if !ok {
			wantReason(t, err, gladhand.ReasonBlocked)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		must(t, l.Close())
	}
	// What is no socket is not removed.
	must(t, os.WriteFile(d+"/mine/s", []byte("precious"), 0o600))
	_, err := Listen(Place{d + "/data", d + "/mine/s"})
	wantReason(t, err, gladhand.ReasonBlocked)
	if b, _ := os.ReadFile(d + "/mine/s"); string(b) != "precious" {
		t.Error("the file is gone")
	}
}

// R102: a client does not talk to another user's server, and a start does not
// remove another user's socket.
func TestForeignServer(t *testing.T) {
	asRoot(t)
	d := shortDir(t)
	must(t, os.Chmod(d, 0o777|os.ModeSticky))
	cmd := exec.Command(copyOfSelf(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	r := play(t, cmd, "raw", d+"/s")
	if s := r.line(); s != "listening" {
		t.Fatal(s)
	}
	_, err := Dial(t.Context(), Place{d + "/data", d + "/s"})
	wantReason(t, err, gladhand.ReasonForbidden)
	_, err = Listen(Place{d + "/data", d + "/s"})
	wantReason(t, err, gladhand.ReasonBlocked)
	r.kill()
	_, err = Listen(Place{d + "/data", d + "/s"})
	wantReason(t, err, gladhand.ReasonBlocked)
}

func TestForeignClient(t *testing.T) {
	asRoot(t)
	d := shortDir(t)
	must(t, os.Chmod(d, 0o755))
	l, err := net.Listen("unix", d+"/s")
	must(t, err)
	defer l.Close()
	must(t, os.Chmod(d+"/s", 0o666))
	cmd := exec.Command(copyOfSelf(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	r := play(t, cmd, "dial", d+"/s")
	if s := r.line(); s != "<nil>" {
		t.Fatal(s)
	}
	c, err := l.Accept()
	must(t, err)
	defer c.Close()
	id, err := Peer(c)
	if err != nil || id.UID != nobody || SameUser(id) {
		t.Errorf("%+v, %v", id, err)
	}
}

// While the listener's queue is full, Dial waits for as long as its context.
func TestDialABusyDaemon(t *testing.T) {
	d := shortDir(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	unix.CloseOnExec(fd)
	must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: d + "/s"}), unix.Listen(fd, 0))
	f := os.NewFile(uintptr(fd), "listener")
	l, err := net.FileListener(f)
	must(t, err)
	must(t, f.Close())
	defer l.Close()

	waiting := 0
	for ; ; waiting++ {
		c, err := net.Dial("unix", d+"/s")
		if errors.Is(err, syscall.EAGAIN) {
			break
		}
		must(t, err)
		defer c.Close()
		if waiting == 100 {
			t.Skip("this system queues without a limit")
		}
	}
	p := Place{d, d + "/s"}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = Dial(ctx, p)
	wantReason(t, err, gladhand.ReasonUnavailable)
	if !errors.Is(err, context.DeadlineExceeded) { // and not EAGAIN
		t.Error(err)
	}
	dialed := make(chan error, 1)
	go func() {
		c, err := Dial(t.Context(), p)
		if err == nil {
			c.Close()
		}
		dialed <- err
	}()
	for range waiting + 1 {
		c, err := l.Accept()
		must(t, err)
		defer c.Close()
	}
	must(t, <-dialed)
}
