package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gladhand"
	"gladhand/tool"
)

// webServer is a test server over real HTTP.
type webServer struct {
	*httptest.Server
	mcp *sdk.Server

	mu   sync.Mutex
	seen []http.Header
}

func (w *webServer) headers() []http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]http.Header(nil), w.seen...)
}

// serveHTTP serves the test server; before may answer a request itself.
func serveHTTP(t *testing.T, o *sdk.StreamableHTTPOptions, before func(http.ResponseWriter, *http.Request) bool) *webServer {
	t.Helper()
	w := &webServer{mcp: testServer(nil)}
	h := http.Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return w.mcp }, o))
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen = append(w.seen, r.Header.Clone())
		w.mu.Unlock()
		if before == nil || !before(rw, r) {
			h.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(w.Close)
	return w
}

// clientFor is an HTTP client that leaves no connections behind.
func clientFor(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Millisecond} // which would end everything
}

func at(url string) Server {
	return Server{
		Name: "web", URL: gladhand.PartlySecret(url+"?key="+canary, "masked"), Timeout: 20 * time.Second,
		Headers: map[string]gladhand.Secret{"Authorization": gladhand.PartlySecret("Bearer "+canary, gladhand.Masked), "X-Own": gladhand.NewSecret("own")},
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*sdk.StreamableHTTPOptions{"streams": nil, "json": {JSONResponse: true}, "stateless": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			w := serveHTTP(t, o, nil)
			s, _ := start(t, quick, Options{HTTP: clientFor(t)}, at(w.URL))
			if r := must(t, s, "echo", `{"x":1}`); r.Text != `{"x":1}` {
				t.Errorf("echo gave %+v", r)
			}
			if r := must(t, s, "rich", `{}`); len(r.Images) != 1 {
				t.Errorf("rich gave %+v", r)
			}
			r, out, err := call(t.Context(), t, s, "progress", `{}`)
			if err != nil || r.Text != "done" || name == "streams" && !strings.Contains(out.Text(1000), "(3/3)") {
				t.Error(r, err, out.Text(1000))
			}
			if name == "streams" {
				if r := must(t, s, "roots", `{}`); r.Text != fileURI(s.o.Dir) {
					t.Errorf("roots gave %q", r.Text)
				}
				if r := must(t, s, "elicit", `{}`); !strings.Contains(r.Text, "not support") {
					t.Errorf("elicit gave %q", r.Text)
				}
				if r := must(t, s, "flood", `{"N":1000}`); r.Text != "flooded" {
					t.Errorf("flood gave %q", r.Text)
				}
				must(t, s, "change", `{}`)
				until(t, "the change was seen", func() bool { return has(s, "added") && !has(s, "echo") })
			}
			for _, h := range w.headers() {
				if h.Get("Authorization") != "Bearer "+canary || h.Get("X-Own") != "own" {
					t.Errorf("the headers were %v", h)
				}
			}
			if got := s.peers[0].cfg.where(); got != `MCP server "web" at `+strings.TrimPrefix(w.URL, "http://") {
				t.Error(got)
			}
		})
	}
}

func TestHTTPCancel(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*sdk.StreamableHTTPOptions{"streams": nil, "json": {JSONResponse: true}} {
		t.Run(name, func(t *testing.T) {
			var calls, cancelled atomic.Int64
			w := serveHTTP(t, o, nil)
			w.mcp.AddTool(plain("wait"), func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				calls.Add(1)
				<-ctx.Done()
				cancelled.Add(1)
				return nil, ctx.Err()
			})
			s, _ := start(t, quick, Options{HTTP: clientFor(t)}, at(w.URL))
			ctx, cancel := context.WithCancel(t.Context())
			c, err := find(t, s, "wait").Prepare(ctx, &tool.Env{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := c.Run(ctx, tool.NewOutput(100, ""))
				done <- err
			}()
			until(t, "it runs", func() bool { return calls.Load() == 1 })
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			until(t, "the server was told", func() bool { return cancelled.Load() == 1 })
			must(t, s, "echo", `{}`) // the connection is as good as before
			if st := s.Status()[0]; st.State != Ready {
				t.Errorf("%+v", st)
			}
		})
	}
}

// Headers go to the host they are for.
func TestRedirect(t *testing.T) {
	t.Parallel()
	other := serveHTTP(t, nil, nil)
	w := serveHTTP(t, nil, func(rw http.ResponseWriter, r *http.Request) bool {
		http.Redirect(rw, r, other.URL, http.StatusTemporaryRedirect)
		return true
	})
	s, _ := start(t, quick, Options{HTTP: clientFor(t)}, at(w.URL))
	must(t, s, "echo", `{}`)
	if len(other.headers()) == 0 {
		t.Fatal("nothing arrived")
	}
	for _, h := range other.headers() {
		if text := fmt.Sprint(h); strings.Contains(text, canary) || h.Get("X-Own") != "" {
			t.Errorf("the other host was told %v", h)
		}
	}
}

// What servers on the net may do instead of answering.
func TestHTTPThatFails(t *testing.T) {
	t.Parallel()
	for want, answer := range map[string]http.HandlerFunc{
		"401 Unauthorized: check its headers": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
		"it answered 500":                     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, canary, 500) },
		"it answered 404":                     func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
		"it answered: no, not with": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no, not with `+canary+`"}}`)
		},
		"a message over 4 MiB and was dropped": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range maxMessage / 1024 * 2 {
				fmt.Fprintf(w, "%01024d", 0)
			}
		},
		"a message over 4 MiB and was dropped ": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range maxMessage / 1024 * 2 {
				fmt.Fprintf(w, "data: %01024d\n", 0)
			}
		},
		"asked more than 64 questions": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 1000 {
				fmt.Fprintf(w, "event:  message \nid: %d\ndata: {\"jsonrpc\":\"2.0\",\"id\":%d,\ndata: \"method\":\"ping\"}\n\n", i, i)
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"did not answer within 1s": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
			<-r.Context().Done()
		},
		`unsupported content type "text/html"`: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>a page</html>") },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			want := strings.TrimSpace(want)
			w := httptest.NewServer(answer)
			t.Cleanup(w.Close)
			tm := quick
			if strings.Contains(want, "within") {
				tm.start = time.Second
			}
			s, _ := start(t, tm, Options{HTTP: clientFor(t)}, at(w.URL))
			until(t, want, func() bool { return s.Status()[0].State == Failed })
			if why := s.Status()[0].Why; !strings.Contains(why, want) {
				t.Errorf("why is %q, not %q", why, want)
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		w := httptest.NewServer(nil)
		w.Close()
		s, _ := start(t, quick, Options{HTTP: clientFor(t)}, at(w.URL))
		until(t, "it failed", func() bool { return s.Status()[0].State == Failed })
		if why := s.Status()[0].Why; !strings.Contains(why, "it cannot be reached: dial tcp") || strings.Contains(why, "http") {
			t.Errorf("why is %q", why)
		}
	})
}

// A server that does not answer when it is asked for a stream of its own is used
// without.
func TestNoStream(t *testing.T) {
	t.Parallel()
	w := serveHTTP(t, nil, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			<-r.Context().Done()
		}
		return r.Method == http.MethodGet
	})
	s, _ := start(t, quick, Options{HTTP: clientFor(t)}, at(w.URL))
	must(t, s, "echo", `{}`)
}

// A server that forgot the session is told of it anew, and the call, which it did
// not take, is made.
func TestForgottenSession(t *testing.T) {
	t.Parallel()
	var forget atomic.Bool
	w := serveHTTP(t, nil, func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && forget.CompareAndSwap(true, false) {
			http.Error(rw, "session not found", http.StatusNotFound)
			return true
		}
		return false
	})
	s, _ := start(t, quick, Options{HTTP: clientFor(t)}, at(w.URL))
	defer func() { // those that were not forgotten really
		for ss := range w.mcp.Sessions() {
			_ = ss.Close()
		}
	}()
	for range 2 * maxRestarts { // as often as it likes
		must(t, s, "echo", `{}`)
		forget.Store(true)
		if r := must(t, s, "echo", `{"n":2}`); r.Text != `{"n":2}` {
			t.Error(r)
		}
	}
}

// A server that is away for a while: a call says so, a later one works.
func TestAway(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	w := serveHTTP(t, nil, func(rw http.ResponseWriter, r *http.Request) bool {
		if away.Load() {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
		return away.Load()
	})
	s, _ := start(t, quick, Options{HTTP: clientFor(t)}, at(w.URL))
	must(t, s, "echo", `{}`)
	away.Store(true)
	_, _, err := call(t.Context(), t, s, "echo", `{}`)
	if err == nil || !strings.Contains(err.Error(), "it answered 503 Service Unavailable") {
		t.Error(err)
	}
	away.Store(false)
	must(t, s, "echo", `{}`)
}

// The transport of 2024.
func TestSSE(t *testing.T) {
	t.Parallel()
	m := testServer(nil)
	h := sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return m }, nil)
	var mu sync.Mutex
	var seen []string
	w := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Get("Authorization"))
		mu.Unlock()
		h.ServeHTTP(rw, r)
	}))
	defer w.Close()
	cfg := at(w.URL)
	cfg.SSE = true
	s, _ := start(t, quick, Options{HTTP: clientFor(t)}, cfg)
	defer s.Close()
	if r := must(t, s, "echo", `{"x":1}`); r.Text != `{"x":1}` {
		t.Error(r)
	}
	if r, out, err := call(t.Context(), t, s, "progress", `{}`); err != nil || r.Text != "done" || !strings.Contains(out.Text(1000), "(3/3)") {
		t.Error(r, err, out.Text(1000))
	}
	must(t, s, "change", `{}`)
	until(t, "the change was seen", func() bool { return has(s, "added") })
	mu.Lock()
	defer mu.Unlock()
	for _, a := range seen {
		if a != "Bearer "+canary {
			t.Errorf("the header was %q", a)
		}
	}
}
