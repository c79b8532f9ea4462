package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxOther is how much is read of a body that is neither JSON nor a stream.
const maxOther = 64 << 10

// ours are the headers that the transport sets itself.
var ours = map[string]bool{
	"Accept": true, "Connection": true, "Content-Length": true, "Content-Type": true, "Host": true, "Last-Event-Id": true,
	"Mcp-Protocol-Version": true, "Mcp-Session-Id": true, "Transfer-Encoding": true,
}

// link carries the HTTP requests of one server: it adds the configured headers,
// for the configured host alone, and bounds what comes back.
type link struct {
	base    http.RoundTripper
	gate    *gate
	origin  *url.URL
	headers map[string]string
	// patience is how long a stream may take to begin. Servers that have none
	// should say so, and some just do not answer.
	patience time.Duration
	grace    time.Duration   // for the end of a session
	life     context.Context // ends all requests

	mu     sync.Mutex
	conn   sdk.Connection // once there is one
	fault  error          // why the server was dropped
	status int            // of the last request, when it was refused
	keeper string         // host that gave the session
}

// receipt says what became of the request of one call; it travels in the call's
// context, since of the SDK's errors some are about another request.
type receipt struct{ forgot atomic.Bool }

type receiptKey struct{}

// over is a transport that tells l its connection.
type over struct {
	sdk.Transport
	l *link
}

func (o over) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := o.Transport.Connect(ctx)
	if err == nil {
		o.l.mu.Lock()
		o.l.conn = c
		o.l.mu.Unlock()
	}
	return c, err
}

// drop ends the connection for something the server did.
func (l *link) drop(err error) error {
	l.mu.Lock()
	if l.fault == nil {
		l.fault = err
	}
	l.mu.Unlock()
	go l.close()
	return err
}

// close ends the connection; it takes as long as the server to take note of it,
// at most the SDK's 5 s.
func (l *link) close() {
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	if c != nil {
		_ = c.Close()
	}
}

// why says how the connection ended.
func (l *link) why() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault != nil {
		return l.fault.Error() + " and was dropped"
	}
	return "the connection to it was lost"
}

// client returns an HTTP client over l. Given is copied; its time limit, which
// would end streams, is left out.
func (l *link) client(given *http.Client) *http.Client {
	var c http.Client
	if given != nil {
		c = *given
	}
	l.base = c.Transport
	if l.base == nil {
		l.base = http.DefaultTransport
	}
	c.Transport, c.Timeout, c.Jar = l, 0, nil
	return &c
}

// RoundTrip implements [http.RoundTripper].
func (l *link) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if req.URL.Scheme == l.origin.Scheme && req.URL.Host == l.origin.Host {
		for k, v := range l.headers {
			if !ours[http.CanonicalHeaderKey(k)] {
				req.Header.Set(k, v)
			}
		}
	} else {
		// A redirect elsewhere, or an address of the server's choice: who is there
		// is not the one that the headers are for.
		for _, k := range []string{"Authorization", "Cookie", "Referer"} {
			req.Header.Del(k)
		}
		if !l.gaveSession(req.URL.Host) {
			req.Header.Del("Mcp-Session-Id")
		}
		req.URL.User = nil
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(l.life, cancel)
	release := func() { stop(); cancel() }
	wait := time.Duration(0)
	switch req.Method {
	case http.MethodGet:
		wait = l.patience
	case http.MethodDelete: // the end of a session is good manners, no more
		wait = l.grace
	}
	late := time.AfterFunc(cmp.Or(wait, time.Hour), cancel)
	resp, err := l.base.RoundTrip(req.WithContext(ctx))
	inTime := late.Stop()
	l.answered(req, resp)
	switch {
	case req.Method == http.MethodGet && !inTime && req.Context().Err() == nil && l.life.Err() == nil:
		// A stream that does not begin is one that the server does not have.
		if err == nil {
			resp.Body.Close()
		}
		release()
		return &http.Response{
			Status: "405 Method Not Allowed", StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: req,
		}, nil
	case err != nil:
		release()
		return nil, err
	}
	resp.Body = &closer{resp.Body, release}
	return l.bounded(resp)
}

// gaveSession reports whether the session is that host's.
func (l *link) gaveSession(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keeper == host
}

// closer releases a request's context with its body.
type closer struct {
	io.ReadCloser
	release func()
}

func (c *closer) Close() error {
	defer c.release()
	return c.ReadCloser.Close()
}

// answered takes note of what a request came to, and whether it was itself an
// answer to a question.
func (l *link) answered(req *http.Request, resp *http.Response) {
	if req.Method == http.MethodPost {
		if r, ok := req.Context().Value(receiptKey{}).(*receipt); ok {
			r.forgot.Store(resp != nil && resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "")
		}
		l.mu.Lock()
		l.status = 0
		if resp != nil && resp.StatusCode >= 400 {
			l.status = resp.StatusCode
		}
		if resp != nil && resp.Header.Get("Mcp-Session-Id") != "" {
			l.keeper = req.URL.Host
		}
		l.mu.Unlock()
	}
	if req.Method != http.MethodPost || req.GetBody == nil || l.gate.asking.Load() == 0 {
		return
	}
	body, err := req.GetBody()
	if err != nil {
		return
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return
	}
	if m, err := jsonrpc.DecodeMessage(data); err == nil {
		l.gate.answered(m)
	}
}

// bounded replaces a response's body by one of bounded length, and a stream by
// what passes the gate.
func (l *link) bounded(resp *http.Response) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream" && resp.StatusCode/100 == 2:
		resp.Body = &events{body: resp.Body, r: bufio.NewReader(resp.Body), link: l}
	case kind == "application/json":
		// Whole, and here: the SDK gives its connection up when a body breaks off,
		// which it does whenever a call is cancelled.
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if len(data) > maxMessage {
			return nil, l.drop(errTooLong)
		}
		resp.Body = io.NopCloser(bytes.NewReader(data))
	default:
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxOther), resp.Body}
	}
	return resp, nil
}

// events is a stream of server-sent events without those that do not pass the
// gate, written anew: the SDK's reader then sees what was looked at here, however
// the server spelled it. Of an event that does not pass the id stays, which says
// where to go on after a break.
type events struct {
	body io.Closer
	r    *bufio.Reader
	link *link
	out  []byte // of the current event, not yet read
	err  error
}

func (e *events) Close() error { return e.body.Close() }

func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		var one event
		if one, e.err = e.next(); e.err == nil || errors.Is(e.err, io.EOF) {
			var err error
			if e.out, err = e.pass(one); err != nil {
				e.err = err
			}
		}
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

type event struct {
	name, id, retry string
	data            []byte
}

// next reads an event: lines up to an empty one, or to the end.
func (e *events) next() (event, error) {
	var v event
	for room := maxMessage; ; {
		line, err := e.line(room)
		if errors.Is(err, errTooLong) {
			return v, e.link.drop(err)
		}
		room -= len(line)
		text := strings.TrimRight(string(line), "\r\n")
		field, value, _ := strings.Cut(text, ":")
		value = strings.TrimSpace(value)
		switch field {
		case "event":
			v.name = value
		case "id":
			v.id = value
		case "retry":
			v.retry = value
		case "data":
			if v.data != nil {
				v.data = append(v.data, '\n')
			}
			v.data = append(v.data, value...)
		}
		if err != nil || text == "" {
			return v, err
		}
	}
}

// pass is what the SDK sees of an event.
func (e *events) pass(v event) ([]byte, error) {
	switch v.name {
	case "", "message":
		if len(v.data) == 0 {
			break
		}
		m, made, err := decodeOne(v.data)
		if err == nil && made {
			v.data, err = jsonrpc.EncodeMessage(m)
		}
		if err != nil {
			v.data = nil // passed over, like a stray line on standard output
			break
		}
		ok, err := e.link.gate.pass(m)
		if err != nil {
			return nil, e.link.drop(err)
		}
		if !ok {
			v.data = nil
		}
	case "endpoint": // of the transport of 2024
	default:
		v.name, v.data = "", nil
	}
	var b bytes.Buffer
	if v.name != "" && v.data != nil {
		fmt.Fprintf(&b, "event: %s\n", v.name)
	}
	if v.id != "" {
		fmt.Fprintf(&b, "id: %s\n", v.id)
	}
	if v.retry != "" {
		fmt.Fprintf(&b, "retry: %s\n", v.retry)
	}
	if v.data != nil {
		for line := range bytes.SplitSeq(v.data, []byte("\n")) {
			fmt.Fprintf(&b, "data: %s\n", line)
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// line reads up to and with a line feed, at most limit bytes.
func (e *events) line(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errTooLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
