package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// canary is the key in all tests here: no error may have it in it.
const canary = "sk-canary-0123456789"

// wire is a server that plays a provider, and what it was asked.
type wire struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
	paths  []string
}

func newWire(t *testing.T, answer http.HandlerFunc) *wire {
	t.Helper()
	w := &wire{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.bodies, w.heads, w.paths = append(w.bodies, string(b)), append(w.heads, r.Header.Clone()), append(w.paths, r.URL.Path)
		w.mu.Unlock()
		answer(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

// asked is the last request's body.
func (w *wire) asked() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bodies[len(w.bodies)-1]
}

func (w *wire) times() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.bodies)
}

// endpoint is one at w.
func (w *wire) endpoint() Endpoint {
	return Endpoint{
		Provider: "acme", Model: "m1", BaseURL: w.URL, Key: func() string { return canary }, KeyEnv: "ACME_KEY",
		Client: w.Client(), Limits: Limits{Window: 200_000, Output: 8000, Images: true},
	}
}

// makers are the three providers of this file's authors.
var makers = map[string]func(Endpoint) Model{"anthropic": NewAnthropic, "chat": NewOpenAIChat, "responses": NewOpenAIResponses}

// stream sends text as a stream of events, a byte at a time when slow.
func stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	w.(http.Flusher).Flush()
}

// trace is a reply as lines that one can compare.
func trace(ctx context.Context, m Model, r Request) (string, error) {
	var b strings.Builder
	text, thought := "", ""
	flush := func() {
		if thought != "" {
			fmt.Fprintf(&b, "thought %q\n", thought)
		}
		if text != "" {
			fmt.Fprintf(&b, "text %q\n", text)
		}
		text, thought = "", ""
	}
	for c, err := range m.Generate(ctx, r) {
		if err != nil {
			flush()
			return b.String(), err
		}
		if c.Thought != "" && text != "" || c.Text != "" && thought != "" {
			flush()
		}
		text, thought = text+c.Text, thought+c.Thought
		if c.State != nil {
			flush()
			fmt.Fprintf(&b, "state %s\n", c.State)
		}
		if c.Call != nil {
			flush()
			fmt.Fprintf(&b, "call %s %s\n", c.Call.Name, c.Call.Args)
		}
		if c.Notice != "" {
			flush()
			fmt.Fprintf(&b, "notice %s\n", c.Notice)
		}
		if u := c.Usage; u != nil {
			flush()
			fmt.Fprintf(&b, "usage in %d (read %d, write %d) out %d, $%.6f of %d\n", u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Cost, u.Window)
		}
		if c.Stop != "" {
			flush()
			fmt.Fprintf(&b, "stop %s\n", c.Stop)
		}
	}
	flush()
	return b.String(), nil
}

func hello() Request {
	return Request{Messages: []Message{{Role: User, Turn: 1, Parts: []Part{{Text: "hello"}}}}}
}

// firstEvents begin a reply of each provider, with the word "half".
var firstEvents = map[string]string{
	"anthropic": "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"half\"}}\n\n",
	"chat":      "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"half\"},\"finish_reason\":null}]}\n\n",
	"responses": "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"half\"}\n\n",
}

// R185, R186, R187: a provider that falls silent is given up, whatever pings it
// sends, and nothing is left behind.
func TestStall(t *testing.T) {
	for name, open := range makers {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			for _, ping := range []string{"", ": ping\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n", "data: {\"type\":\"ping\"}\n\n"} {
				w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
					stream(rw, firstEvents[name])
					tick := time.NewTicker(2 * time.Millisecond)
					defer tick.Stop()
					for {
						select {
						case <-tick.C:
							stream(rw, ping)
						case <-r.Context().Done(): // it is let go
							return
						}
					}
				})
				e := w.endpoint()
				e.Idle = 60 * time.Millisecond
				got, err := trace(t.Context(), open(e), hello())
				var f *Error
				if got != "text \"half\"\n" || !errors.As(err, &f) || f.Kind != KindStall {
					t.Errorf("%q: %q, %v", ping, got, err)
				}
				w.Client().CloseIdleConnections()
				w.Close()
			}
		})
	}
}

// A provider that does not even begin is given up too; one whose data comes
// slowly, but comes, is not.
func TestFirstAndSlow(t *testing.T) {
	for name, open := range makers {
		w := newWire(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		e := w.endpoint()
		e.First = 30 * time.Millisecond
		var f *Error
		if _, err := trace(t.Context(), open(e), hello()); !errors.As(err, &f) || f.Kind != KindStall {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for range 30 {
			<-tick.C
			stream(rw, firstEvents["chat"])
		}
		stream(rw, "data: [DONE]\n\n")
	})
	e := w.endpoint()
	e.Idle = 400 * time.Millisecond // less than all of it takes
	if _, err := trace(t.Context(), NewOpenAIChat(e), hello()); err != nil {
		t.Errorf("slow: %v", err)
	}
}

// Cancelling ends a reply in mid-stream at once, with ctx's error.
func TestCancel(t *testing.T) {
	for name, open := range makers {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			gone := newGone()
			w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
				stream(rw, firstEvents[name])
				<-r.Context().Done()
				close(gone)
			})
			ctx, cancel := context.WithCancel(t.Context())
			for c, err := range open(w.endpoint()).Generate(ctx, hello()) {
				if c.Text == "half" {
					go cancel() // while it waits for the next event
					continue
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%+v, %v", c, err)
				}
				var f *Error
				if errors.As(err, &f) {
					t.Errorf("a fault: %v", err)
				}
			}
			<-gone // the server knows
			w.Client().CloseIdleConnections()
			w.Close()
			cancel()
			if _, err := trace(ctx, open(w.endpoint()), hello()); !errors.Is(err, context.Canceled) {
				t.Errorf("begun after: %v", err)
			}
		})
	}
}

func newGone() chan struct{} { return make(chan struct{}) }

// Who stops listening lets the connection go.
func TestBreak(t *testing.T) {
	for name, open := range makers {
		gone := newGone()
		w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
			stream(rw, firstEvents[name])
			<-r.Context().Done()
			close(gone)
		})
		for range open(w.endpoint()).Generate(t.Context(), hello()) {
			break
		}
		<-gone
	}
}

// A reply that was read to its end gives its connection back.
func TestConnectionIsKept(t *testing.T) {
	for name, open := range makers {
		text, err := os.ReadFile("testdata/" + name + "/hello.sse")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		from := map[string]bool{}
		w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			from[r.RemoteAddr] = true
			mu.Unlock()
			stream(rw, string(text))
		})
		m := open(w.endpoint())
		for range 3 {
			if _, err := trace(t.Context(), m, hello()); err != nil {
				t.Fatal(err)
			}
		}
		if mu.Lock(); len(from) != 1 {
			t.Errorf("%s: %d connections", name, len(from))
		}
		mu.Unlock()
	}
}

// R183: a timer that fires late because the process was away gets its time again,
// once.
func TestWatchdog(t *testing.T) {
	var w watchdog
	bitten := newGone()
	w.arm(time.Millisecond, func() { close(bitten) })
	<-bitten
	if !w.disarm() {
		t.Error("it bit, and says it did not")
	}
	w.arm(time.Hour, func() { t.Error("it bit in the first hour") })
	if w.disarm() {
		t.Error("it did not bite, and says it did")
	}
	began, reads := time.Now(), 0
	w.now = func() time.Time { // each time an hour later than the last
		reads++
		return began.Add(time.Duration(reads) * time.Hour)
	}
	bitten = newGone()
	w.arm(time.Millisecond, func() { close(bitten) })
	<-bitten
	if w.disarm(); reads != 3 { // armed, late, armed again
		t.Errorf("the clock was read %d times", reads)
	}
}

// Redirects are not followed: neither the prompt nor the key goes elsewhere.
func TestRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		other := newWire(t, func(http.ResponseWriter, *http.Request) {})
		w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, other.URL+"/x?token=secret", status)
		})
		_, err := trace(t.Context(), NewOpenAIChat(w.endpoint()), hello())
		var f *Error
		if !errors.As(err, &f) || f.Kind != KindRequest || f.Status != status || !strings.Contains(f.Text, other.URL+"/x") || strings.Contains(f.Text, "token") {
			t.Errorf("%d: %v", status, err)
		}
		if other.times() > 0 {
			t.Errorf("%d was followed", status)
		}
	}
}

// Nothing is sent without a key where one is needed, and without it elsewhere.
func TestKey(t *testing.T) {
	for name, open := range makers {
		w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500) })
		e := w.endpoint()
		e.Key = func() string { return "" }
		var f *Error
		if _, err := trace(t.Context(), open(e), hello()); !errors.As(err, &f) || f.Kind != KindKey || !strings.Contains(f.Mend, "ACME_KEY") || !strings.Contains(f.Mend, "providers.acme.key") || !strings.Contains(f.Mend, "gladhand models") || w.times() > 0 {
			t.Errorf("%s: %v after %d requests", name, err, w.times())
		}
		e.Key = func() string { return "two\nlines" }
		if _, err := trace(t.Context(), open(e), hello()); !errors.As(err, &f) || f.Kind != KindKey || w.times() > 0 {
			t.Errorf("%s: %v after %d requests", name, err, w.times())
		}
		e.Key, e.KeyEnv = nil, ""
		if _, err := trace(t.Context(), open(e), hello()); !errors.As(err, &f) || f.Kind != KindOverload {
			t.Errorf("%s without a key: %v", name, err)
		}
		if h := w.heads[0]; h.Get("Authorization")+h.Get("X-Api-Key") != "" {
			t.Errorf("%s sent a key that is none", name)
		}
		e.Headers = map[string]string{"authorization": "Bearer own", "X-Extra": "1", "User-Agent": "me"}
		_, _ = trace(t.Context(), open(e), hello())
		if h := w.heads[1]; h.Get("Authorization") != "Bearer own" || h.Get("X-Extra") != "1" || h.Get("User-Agent") != "me" {
			t.Errorf("%s: headers %v", name, h)
		}
	}
}

// No error has a secret in it, whatever the server and the network do.
func TestCanary(t *testing.T) {
	odd := `he"ader\secret+1`
	answers := []http.HandlerFunc{
		func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(401)
			fmt.Fprintf(rw, `{"error":{"message":"bad key %s %s %s"}}`, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), canary)
		},
		func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(502)
			fmt.Fprintf(rw, "<html>%s %q %s</html>", canary, odd, odd)
		},
		func(rw http.ResponseWriter, _ *http.Request) {
			stream(rw, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"x\",\"message\":\""+canary+"\"}}\n\n")
		},
		func(rw http.ResponseWriter, _ *http.Request) { stream(rw, "data: {\"garbage "+canary+"\n\n") },
		func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Location", "http://"+canary+".example/"+canary)
			rw.WriteHeader(302)
		},
		func(rw http.ResponseWriter, _ *http.Request) {
			c, _, err := rw.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(c, "HTTP/9 "+canary+"\r\n\r\n")
				_ = c.Close()
			}
		},
	}
	for name, open := range makers {
		for i, answer := range answers {
			w := newWire(t, answer)
			e := w.endpoint()
			e.Headers = map[string]string{"X-Secret": odd}
			e.BaseURL = strings.Replace(w.URL, "http://", "http://user:"+canary+"@", 1) + "?api-key=" + canary
			_, err := trace(t.Context(), open(e), hello())
			if err == nil {
				t.Errorf("%s %d: no error", name, i)
				continue
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if s := fmt.Sprintf("%v %+v", e, e); strings.Contains(s, "canary") || strings.Contains(s, "ader") && strings.Contains(s, "secret+1") {
					t.Errorf("%s %d: %s", name, i, s)
				}
			}
		}
		dead := Endpoint{Provider: "p", Model: "m", BaseURL: "http://user:" + canary + "@127.0.0.1:1/?k=" + canary, Key: func() string { return canary }}
		_, err := trace(t.Context(), open(dead), hello())
		var f *Error
		if !errors.As(err, &f) || f.Kind != KindOffline || strings.Contains(fmt.Sprintf("%+v", err), "canary") || f.Err != nil && strings.Contains(f.Err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAddress(t *testing.T) {
	for _, c := range []struct{ base, vendor, path, want string }{
		{"", "https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"},
		{"http://h/v1/", "", "/v1/messages", "http://h/v1/messages"},
		{"http://h/anthropic", "", "/v1/messages", "http://h/anthropic/v1/messages"},
		{"http://h:1/v1", "", "/chat/completions", "http://h:1/v1/chat/completions"},
		{"https://h/openai/deployments/d?api-version=2", "", "/chat/completions", "https://h/openai/deployments/d/chat/completions?api-version=2"},
		{"h:1/v1", "", "/x", ""},
		{"ftp://h", "", "/x", ""},
		{"http://", "", "/x", ""},
	} {
		e := Endpoint{Provider: "p", Model: "m", BaseURL: c.base}
		got, err := e.address(c.vendor, c.path)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q %q: %q, %v", c.base, c.path, got, err)
		}
	}
}
