package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// How long a provider may be silent, unless its [Endpoint] says otherwise.
const (
	defaultFirst = 5 * time.Minute // before the first piece of a reply
	defaultIdle  = 2 * time.Minute // after it
)

// Endpoint is where a hosted model is, and what is known of it.
type Endpoint struct {
	// Provider and Model are the halves of its name; Model is its id there.
	Provider, Model string
	// BaseURL is the provider's address; empty is the vendor's own. A path is kept.
	BaseURL string
	// Key returns the key, "" for none. It is asked for each request, so that one
	// that has been replaced is used. Nil is none.
	Key func() string
	// KeyEnv is the environment variable that people put the key in. It says that a
	// key is needed: without one nothing is sent. Empty: it works without.
	KeyEnv string
	// Headers are sent with each request and win over our own. They may be secret.
	Headers map[string]string
	// Client sends the requests; nil is one for the environment's proxies. See
	// [NewHTTPClient].
	Client *http.Client
	// First is how long the first data of a reply, and then each thought that is
	// not shown, may take; 0 is 5 minutes. Idle is the longest silence after it; 0
	// is 2 minutes. Pings and comments do not count as data.
	First, Idle time.Duration
	Limits      Limits
}

// Name is what the model is called: "anthropic/claude-x".
func (e *Endpoint) Name() string { return e.Provider + "/" + e.Model }

// address is the URL of a path at the endpoint; vendor is the base for an
// endpoint without one. A base that ends with the version that path begins with
// is taken too.
func (e *Endpoint) address(vendor, path string) (string, error) {
	base := e.BaseURL
	if base == "" {
		base = vendor
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", &Error{
			Kind: KindRequest, Model: e.Name(), Text: "its address is not an http or https URL", Err: errFutile,
			Mend: "Set providers." + e.Provider + ".url",
		}
	}
	dir := strings.TrimRight(u.Path, "/")
	if first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); strings.HasSuffix(dir, "/"+first) {
		dir = strings.TrimSuffix(dir, "/"+first)
	}
	u.Path, u.RawPath = dir+path, ""
	return u.String(), nil
}

// official reports whether requests go to that host, not to a server that is like
// it.
func (e *Endpoint) official(host string) bool {
	u, err := url.Parse(e.BaseURL)
	return e.BaseURL == "" || err == nil && u.Hostname() == host
}

// key returns the key, or an error when one is needed and is not there.
func (e *Endpoint) key() (string, error) {
	k := ""
	if e.Key != nil {
		k = strings.TrimSpace(e.Key())
	}
	if k == "" && e.KeyEnv != "" {
		return "", &Error{Kind: KindKey, Model: e.Name(), Text: "there is no key for " + e.Provider, Mend: e.keyMend()}
	}
	if strings.ContainsAny(k, "\r\n\x00") {
		return "", &Error{Kind: KindKey, Model: e.Name(), Text: "the key for " + e.Provider + " has a line break in it", Mend: e.keyMend()}
	}
	return k, nil
}

// reply is a provider's answer that is being read. It has one reader.
type reply struct {
	e      *Endpoint
	ctx    context.Context // the caller's
	cancel context.CancelFunc
	http   *http.Response
	body   io.Reader
	src    interface{ next() (event, error) }
	dog    watchdog
	// patience is how long the next data may take.
	patience time.Duration
}

// post sends body, encoded as JSON, and returns the answer once its head is
// there. Errors are *Error, or ctx's. header adds to the headers; it may be nil.
//
// The answer must be closed. It is read with [reply.next], after a choice of
// [reply.useLines] for other streams than server-sent events.
func (e *Endpoint) post(ctx context.Context, url string, body any, header func(http.Header)) (*reply, error) {
	raw, err := encode(body)
	if err != nil {
		return nil, &Error{Kind: KindRequest, Model: e.Name(), Text: "the request cannot be encoded", Err: err}
	}
	return e.do(ctx, http.MethodPost, url, raw, header)
}

// get asks for url, like post.
func (e *Endpoint) get(ctx context.Context, url string, header func(http.Header)) (*reply, error) {
	return e.do(ctx, http.MethodGet, url, nil, header)
}

func (e *Endpoint) do(ctx context.Context, method, url string, raw []byte, header func(http.Header)) (*reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(ctx)
	r := &reply{e: e, ctx: ctx, cancel: cancel, patience: orElse(e.First, defaultFirst)}
	req, err := http.NewRequestWithContext(inner, method, url, bytes.NewReader(raw))
	if err != nil {
		cancel()
		return nil, e.unreachable(err)
	}
	if raw != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("User-Agent", "gladhand")
	if header != nil {
		header(req.Header)
	}
	for k, v := range e.Headers {
		req.Header.Set(k, v)
	}
	r.dog.arm(r.patience, cancel)
	r.http, err = e.client().Do(req)
	stalled := r.dog.disarm()
	if err != nil {
		cancel()
		return nil, r.fail(err, stalled)
	}
	r.body = r.http.Body
	r.src = newSSE(r.body)
	if r.http.StatusCode != http.StatusOK {
		defer r.Close()
		return nil, r.refused()
	}
	if t := r.http.Header.Get("Content-Type"); strings.HasPrefix(strings.ToLower(t), "text/html") {
		defer r.Close()
		return nil, r.page()
	}
	return r, nil
}

// client is e.Client without redirects: a prompt goes where it was sent, or
// nowhere.
func (e *Endpoint) client() *http.Client {
	c := e.Client
	if c == nil {
		c = defaultClient()
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// useLines makes next return lines.
func (r *reply) useLines() { r.src = newLines(r.body) }

// isJSON reports whether the answer is one JSON value rather than a stream.
func (r *reply) isJSON() bool {
	t, _, _ := strings.Cut(r.http.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(t), "application/json")
}

// next returns the next piece of data: io.EOF at the stream's end, otherwise an
// *Error or ctx's. Pings are left out, and do not make silence shorter.
func (r *reply) next() (event, error) {
	r.dog.arm(r.patience, r.drop)
	for {
		ev, err := r.src.next()
		if err == nil && isPing(ev) {
			continue
		}
		stalled := r.dog.disarm()
		switch {
		case err == nil:
			r.patience = orElse(r.e.Idle, defaultIdle)
			return ev, nil
		case stalled, r.ctx.Err() != nil, !errors.Is(err, io.EOF):
			return event{}, r.fail(err, stalled)
		}
		return event{}, io.EOF
	}
}

// isPing reports whether an event only says that the connection lives.
func isPing(ev event) bool {
	if ev.name == "ping" || ev.name == "keepalive" || len(ev.data) == 0 {
		return true
	}
	var t struct{ Type string }
	return len(ev.data) < 100 && bytes.Contains(ev.data, []byte("ping")) && json.Unmarshal(ev.data, &t) == nil && t.Type == "ping"
}

// all reads the whole answer, at most limit bytes of it.
func (r *reply) all(limit int64) ([]byte, error) {
	r.dog.arm(r.patience, r.drop)
	b, err := io.ReadAll(io.LimitReader(r.body, limit+1))
	stalled := r.dog.disarm()
	switch {
	case err != nil:
		return b, r.fail(err, stalled)
	case int64(len(b)) > limit:
		return b[:limit], &Error{Kind: KindCut, Model: r.e.Name(), Text: "the answer is too large"}
	}
	return b, nil
}

// drop ends the answer from another goroutine; its reader is told at once.
func (r *reply) drop() {
	r.cancel()
	if r.http != nil {
		_ = r.http.Body.Close()
	}
}

// fail makes an error of one that the transport gave.
func (r *reply) fail(err error, stalled bool) error {
	if cause := r.ctx.Err(); cause != nil {
		return cause
	}
	if stalled {
		return &Error{
			Kind: KindStall, Model: r.e.Name(), Err: errStall,
			Text: "nothing came for " + span(r.patience), Mend: "Send the prompt again; if it happens often, choose another model",
		}
	}
	if r.http == nil {
		return r.e.unreachable(err)
	}
	return r.e.cut("the reply broke off: "+r.e.plain(cause(err)), err)
}

// cut is a reply that broke off or makes no sense.
func (e *Endpoint) cut(text string, err error) *Error {
	return &Error{Kind: KindCut, Model: e.Name(), Text: text, Mend: "Send the prompt again", Err: e.cleaned(err)}
}

// errStall is the cause of a KindStall.
var errStall = errors.New("no data")

// drain reads what little is left of an answer behind its last event, so that the
// connection can be used again.
func (r *reply) drain() {
	if r.ctx.Err() != nil {
		return
	}
	r.dog.arm(100*time.Millisecond, r.drop)
	_, _ = io.CopyN(io.Discard, r.body, 4<<10)
	r.dog.disarm()
}

// Close ends the answer, wherever it is.
func (r *reply) Close() { r.drop() }

// watchdog calls a function when it has not been disarmed in time. A machine that
// slept, or a process that was stopped, is given the whole time once more.
type watchdog struct {
	mu    sync.Mutex
	timer *time.Timer
	turn  int // counts arm and disarm
	bit   bool
	now   func() time.Time // nil is the clock
}

// overslept is how late a timer has to be for the process to have been away.
const overslept = 2 * time.Second

func (w *watchdog) arm(d time.Duration, bite func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn++
	w.bit = false
	w.start(w.turn, d, false, bite)
}

// start starts the timer; w.mu is held.
func (w *watchdog) start(turn int, d time.Duration, again bool, bite func()) {
	now := w.now
	if now == nil {
		now = time.Now
	}
	began := now()
	w.timer = time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.turn != turn {
			return
		}
		if !again && now().Sub(began) > d+overslept {
			w.start(turn, d, true, bite)
			return
		}
		w.bit = true
		bite()
	})
}

// disarm reports whether it was too late.
func (w *watchdog) disarm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn++
	w.timer.Stop()
	return w.bit
}

// encode is JSON without HTML's escapes, which make source code longer.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}
