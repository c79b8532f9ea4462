package proc

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"gladhand"
)

// A pid whose process has ended may be another's by now: it is not reported.
func TestPeerThatIsGone(t *testing.T) {
	d := shortDir(t)
	l, err := net.Listen("unix", d+"/s")
	must(t, err)
	defer l.Close()
	r := play(t, nil, "dial", d+"/s")
	c, err := l.Accept()
	must(t, err)
	defer c.Close()
	r.end()
	id, err := Peer(c)
	if err != nil || id.PID != 0 || id.StartTime != 0 || id.Exe != "" || !SameUser(id) {
		t.Errorf("%+v, %v", id, err)
	}
}

func TestPeerInAnotherPidNamespace(t *testing.T) {
	asRoot(t)
	d := shortDir(t)
	cmd := exec.Command(self(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	r := play(t, cmd, "listen", d, d+"/s")
	r.tell("go")
	if s := r.line(); s != "listening" {
		t.Fatal(s)
	}
	c, err := Dial(t.Context(), Place{d, d + "/s"})
	must(t, err)
	defer c.Close()
	b := make([]byte, 100)
	n, _ := c.Read(b)
	if string(b[:n]) != "1 0\n" { // it is 1 there, and we are nobody it knows
		t.Errorf("%q", b[:n])
	}
}

func TestPeerOfNoSocket(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	_, err := Peer(a)
	wantReason(t, err, gladhand.ReasonUnsupported)
}

func TestPeerKnowsTheProgram(t *testing.T) {
	p := placeIn(shortDir(t))
	r := play(t, nil, "listen", p.DataDir, p.Endpoint)
	r.tell("go")
	if s := r.line(); s != "listening" {
		t.Fatal(s)
	}
	c, err := Dial(t.Context(), p)
	must(t, err)
	defer c.Close()
	id, err := Peer(c)
	start, _ := startTime(r.Process.Pid)
	exe, _ := os.Executable()
	if err != nil || id.PID != r.Process.Pid || id.StartTime != start || start == 0 || id.Exe != exe {
		t.Errorf("%+v, %v; want %d, %d, %s", id, err, r.Process.Pid, start, exe)
	}
}
