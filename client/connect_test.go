package client

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"gladhand"
	"gladhand/proc"
	"gladhand/rpc"
)

func place(t *testing.T) proc.Place {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := proc.Locate(dir, "", func(string) string { return "" })
	if err != nil {
		t.Skip("no place for a socket: ", err)
	}
	return p
}

// daemons start as goroutines that listen for real.
type daemons struct {
	t      *testing.T
	starts atomic.Int32
	mu     sync.Mutex
	l      net.Listener
}

func (d *daemons) start(o Options) (<-chan struct{}, error) {
	d.starts.Add(1)
	exited := make(chan struct{})
	l, err := proc.Listen(o.Place)
	if err != nil {
		close(exited)
		return exited, nil
	}
	d.mu.Lock()
	d.l = l
	d.mu.Unlock()
	d.t.Cleanup(func() { l.Close() })
	f := newFake(d.t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
		gladhand.MethodStatus: func(_ *fake, _ *rpc.Conn, r *rpc.Request) {
			r.Reply(gladhand.StatusResult{PID: 7, Config: "/etc/one.jsonc"})
		},
	})
	go func() {
		defer close(exited)
		for {
			s, err := l.Accept()
			if err != nil {
				return
			}
			var c *rpc.Conn
			c = rpc.New(s, rpc.Options{Handler: func(_ context.Context, r *rpc.Request) { f.handle(c, r) }})
			go func() { _ = c.Run(context.Background()) }()
		}
	}()
	return exited, nil
}

// R086: ten clients at once start one daemon.
func TestTenAtOnceStartOne(t *testing.T) {
	d := &daemons{t: t}
	p := place(t)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			c, err := Connect(t.Context(), Options{Place: p, Start: d.start})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := c.Status(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := d.starts.Load(); n != 1 {
		t.Errorf("%d daemons were started", n)
	}
}

// R085: a socket that a killed daemon left is no daemon.
func TestStaleSocket(t *testing.T) {
	p := place(t)
	l, err := net.Listen("unix", p.Endpoint)
	if err != nil {
		t.Skip("no Unix sockets: ", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	d := &daemons{t: t}
	c, err := Connect(t.Context(), Options{Place: p, Start: d.start})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestNoStart(t *testing.T) {
	_, err := Connect(t.Context(), Options{Place: place(t), NoStart: true, Start: func(Options) (<-chan struct{}, error) {
		t.Error("a daemon was started")
		return nil, nil
	}})
	if gladhand.ReasonOf(err) != gladhand.ReasonUnavailable {
		t.Errorf("got %v", err)
	}
}

func TestDaemonThatDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, nil)
		f.setDown(true)
		starts := 0
		o := Options{Place: proc.Place{DataDir: dir}, Dial: f.dial, Start: func(o Options) (<-chan struct{}, error) {
			starts++
			ended := make(chan struct{})
			close(ended)
			log, err := os.OpenFile(LogFile(o.Place), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			defer log.Close()
			_, err = log.WriteString("earlier\ngladhand: the settings file has an error in line 3\n")
			return ended, err
		}}
		_, err := Connect(t.Context(), o)
		if gladhand.ReasonOf(err) != gladhand.ReasonUnavailable || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("got %v", err)
		}
		if starts != 2 {
			t.Errorf("started %d times", starts)
		}
	})
}

// A process that takes connections and says nothing is no reason to hang.
func TestDaemonThatDoesNotAnswer(t *testing.T) {
	p := place(t)
	l, err := proc.Listen(p)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	said := make(chan string, 1)
	_, err = Connect(t.Context(), Options{Place: p, Patience: slow + slow/2, Waiting: func(s string) { said <- s }})
	if gladhand.ReasonOf(err) != gladhand.ReasonUnavailable {
		t.Errorf("got %v", err)
	}
	if len(said) != 1 {
		t.Error("nobody was told of the wait")
	}
}

func TestContextEndsAConnect(t *testing.T) {
	p := place(t)
	l, err := proc.Listen(p)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			cancel()
		}
	}()
	if _, err := Connect(ctx, Options{Place: p}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOtherSettingsFile(t *testing.T) {
	d := &daemons{t: t}
	p := place(t)
	own := filepath.Join(t.TempDir(), "mine.jsonc")
	_, err := Connect(t.Context(), Options{Place: p, Start: d.start, Config: own, CheckConfig: true})
	if gladhand.ReasonOf(err) != gladhand.ReasonUnavailable || !strings.Contains(err.Error(), "/etc/one.jsonc") {
		t.Errorf("got %v", err)
	}
	c, err := Connect(t.Context(), Options{Place: p, Start: d.start, Config: "/etc/./one.jsonc", CheckConfig: true})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestSomethingElseAnswers(t *testing.T) {
	o := Options{Place: place(t)}
	l, err := proc.Listen(o.Place)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		s, err := l.Accept()
		if err != nil {
			return
		}
		c := rpc.New(s, rpc.Options{Handler: func(_ context.Context, r *rpc.Request) {
			r.Reply(json.RawMessage(`{"protocolVersion":1}`)) // an ACP agent that is not ours
		}})
		_ = c.Run(context.Background())
	}()
	if _, err := Connect(t.Context(), o); gladhand.ReasonOf(err) != gladhand.ReasonVersion {
		t.Errorf("got %v", err)
	}
}

// The limit of connections is told, and not taken for a daemon that is leaving.
func TestConnectionLimit(t *testing.T) {
	p := place(t)
	l, err := proc.Listen(p)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			s, err := l.Accept()
			if err != nil {
				return
			}
			rpc.New(s, rpc.Options{}).Refuse(gladhand.Errorf(gladhand.CodeLimit, gladhand.ReasonConnectionLimit, "512 connections are open"))
		}
	}()
	if _, err := Connect(t.Context(), Options{Place: p}); gladhand.ReasonOf(err) != gladhand.ReasonConnectionLimit {
		t.Errorf("got %v", err)
	}
}

func TestStream(t *testing.T) {
	d := &daemons{t: t}
	s, err := Stream(t.Context(), Options{Place: place(t), Start: d.start})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + "\n")); err != nil {
		t.Fatal(err)
	}
	var answer struct{ ID int }
	if err := json.NewDecoder(s).Decode(&answer); err != nil || answer.ID != 1 {
		t.Errorf("%v %v", answer, err)
	}
}
