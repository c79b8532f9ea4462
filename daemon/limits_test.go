package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gladhand/proc"
)

// listen serves a house on a real socket.
func (h *house) listen() proc.Place {
	h.t.Helper()
	place := proc.Place{DataDir: h.dir, Endpoint: filepath.Join(h.t.TempDir(), "s.sock")}
	l, err := proc.Listen(place)
	if err != nil {
		h.t.Fatal(err)
	}
	go h.accept(l)
	h.t.Cleanup(func() { l.Close(); h.serving.Wait() })
	return place
}

func dialPlace(t *testing.T, place proc.Place) net.Conn {
	t.Helper()
	c, err := proc.Dial(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

const sayInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n"

// At the limit of connections all are served; one over gets one error and the
// end, and the others do not notice.
func TestConnectionLimit(t *testing.T) {
	h := newHouse(t, hello)
	if err := h.config.Set(t.Context(), "limits.connections", json.RawMessage("2")); err != nil {
		t.Fatal(err)
	}
	place := h.listen()
	var served []net.Conn
	ask := func(c net.Conn) string {
		if _, err := io.WriteString(c, sayInitialize); err != nil && !errors.Is(err, syscall.EPIPE) {
			t.Fatal(err)
		}
		b := make([]byte, 1<<16)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	for range 2 {
		c := dialPlace(t, place)
		if got := ask(c); !strings.Contains(got, `"result"`) {
			t.Fatalf("a connection within the limit got %s", got)
		}
		served = append(served, c)
	}
	over := dialPlace(t, place)
	text, err := io.ReadAll(over)
	if err != nil {
		t.Fatal(err)
	}
	want := `"code":-32004`
	if got := string(text); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) ||
		!strings.Contains(got, `"id":null`) || !strings.Contains(got, `"reason":"connection_limit"`) || !strings.Contains(got, `"limit":2`) {
		t.Fatalf("one over the limit got %q", got)
	}
	for _, c := range served {
		if got := ask(c); !strings.Contains(got, `"id":1`) {
			t.Fatalf("a served connection got %s", got)
		}
	}
}

// Who does not say initialize in time is disconnected without a word.
func TestInitializeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, hello)
		p := h.dial(1, human("ana"))
		time.Sleep(InitializeTimeout - time.Second)
		synctest.Wait()
		if p.over() {
			t.Fatal("ended before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !p.over() || p.count() != 0 {
			t.Fatalf("after the time: ended %v, %d lines", p.over(), p.count())
		}
	})
}

// fullTable is a listener without a descriptor left, until it is closed.
type fullTable struct {
	net.Listener
	tries int
}

func (l *fullTable) Accept() (net.Conn, error) {
	if l.tries++; l.tries > 100 {
		return nil, net.ErrClosed
	}
	return nil, syscall.EMFILE
}

// R100: when connections cannot be accepted, the daemon tries again at its pace
// and says so once.
func TestAcceptBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, hello)
		var log bytes.Buffer
		h.log = slog.New(slog.NewTextHandler(&log, nil))
		start := time.Now()
		h.accept(&fullTable{})
		if took := time.Since(start); took != 100*acceptBackoff {
			t.Errorf("a hundred tries took %v", took)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("it was said %d times", n)
		}
	})
}

func (p *peer) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}
