package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/proc"
	"gladhand/rpc"
)

// errEnded is a daemon that took the connection and ended it without a word: one
// that is stopping, or dying.
var errEnded = gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "the daemon ended the connection without saying hello")

// dialError is a failure to reach anybody.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// connect dials until a daemon says hello, starting one when nobody listens.
func (c *Client) connect(ctx context.Context, first bool) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Patience, errPatience)
	defer cancel()
	if c.o.Waiting != nil {
		t := time.AfterFunc(slow, func() { c.o.Waiting("waiting for the daemon") })
		defer t.Stop()
	}
	c.mu.Lock()
	start := starter{o: &c.o, no: c.o.NoStart || c.stopped}
	c.mu.Unlock()
	defer start.done()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		l, err := c.greet(ctx)
		if err == nil {
			return l, nil
		}
		var nobody *dialError
		switch {
		case ctx.Err() != nil:
			return nil, start.explain(ctx, err)
		case errors.Is(err, errOtherSettings), gladhand.ReasonOf(err) != gladhand.ReasonUnavailable:
			return nil, err
		case !errors.As(err, &nobody): // it is leaving: look again
		default:
			now, serr := start.ensure(err)
			if serr != nil {
				return nil, serr
			}
			if now {
				continue
			}
		}
		if !sleep(ctx, wait) {
			return nil, start.explain(ctx, err)
		}
	}
}

var errPatience = errors.New("it took too long")

// greet dials and says hello.
func (c *Client) greet(ctx context.Context) (*link, error) {
	stream, err := c.o.Dial(ctx)
	if err != nil {
		return nil, &dialError{err}
	}
	l := &link{routes: map[gladhand.SessionID]*Attachment{}}
	l.conn = rpc.New(stream, rpc.Options{Handler: func(_ context.Context, r *rpc.Request) { c.handle(l, r) }})
	go func() { _ = l.conn.Run(context.Background()) }() // its error is Err's
	if err := c.hello(ctx, l); err != nil {
		l.conn.Close()
		return nil, err
	}
	return l, nil
}

func (c *Client) hello(ctx context.Context, l *link) error {
	type info struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	type ours struct {
		Gladhand gladhand.ClientMeta `json:"gladhand"`
	}
	params := struct {
		Version      int      `json:"protocolVersion"`
		Info         info     `json:"clientInfo"`
		Capabilities struct{} `json:"clientCapabilities"`
		Meta         ours     `json:"_meta"`
	}{
		Version: acp.V1, Info: info{c.o.Label, c.o.Version},
		Meta: ours{gladhand.ClientMeta{Version: c.o.Version, Label: c.o.Label}},
	}
	var result struct {
		Meta struct {
			Gladhand *gladhand.HandshakeMeta `json:"gladhand"`
		} `json:"_meta"`
	}
	err := l.conn.Call(ctx, acp.MethodInitialize, params, &result)
	var last *rpc.Error
	switch {
	case err == nil:
	case errors.As(err, &last): // also what ended the connection: the limit of connections
		return fromWire(last)
	case errors.Is(err, rpc.ErrClosed):
		return errEnded
	default:
		return err
	}
	if result.Meta.Gladhand == nil {
		return gladhand.Errorf(gladhand.CodeVersion, gladhand.ReasonVersion, "what answers at %s is no gladhand daemon", c.o.Place.Endpoint)
	}
	l.hello = *result.Meta.Gladhand
	return c.checkConfig(ctx, l)
}

// checkConfig refuses a daemon that runs with another settings file than ours.
func (c *Client) checkConfig(ctx context.Context, l *link) error {
	if !c.o.CheckConfig || c.o.Config == "" {
		return nil
	}
	var st gladhand.StatusResult
	if err := l.conn.Call(ctx, gladhand.MethodStatus, struct{}{}, &st); err != nil {
		return fromWire(err)
	}
	if sameFile(st.Config, c.o.Config) {
		return nil
	}
	e := gladhand.Errorf(gladhand.CodeConflict, gladhand.ReasonUnavailable,
		"the running daemon (pid %d) uses the settings file %s, not %s: stop it with `gladhand daemon stop`, or name no settings file",
		st.PID, st.Config, c.o.Config)
	e.Err = errOtherSettings
	return e
}

// errOtherSettings marks a daemon that is well, but not the one asked for.
var errOtherSettings = errors.New("other settings")

func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	fa, err := os.Stat(a)
	if err != nil {
		return false
	}
	fb, err := os.Stat(b)
	return err == nil && os.SameFile(fa, fb)
}

// starter starts a daemon, once for all the clients that find none.
type starter struct {
	o  *Options
	no bool

	lock    *proc.FileLock // held by the one client that starts it
	exited  <-chan struct{}
	ended   time.Time // when the daemon we started was seen to have ended
	tries   int
	logFrom int64 // size of the log before the last try
}

// restarts are the pauses after which a daemon that ended at once is started
// again: somebody else's may have been there, and left.
var restarts = []time.Duration{300 * time.Millisecond}

// ensure is called when nobody listens (cause says so). It reports whether to
// dial again without a pause.
func (s *starter) ensure(cause error) (now bool, err error) {
	if s.no {
		return false, cause
	}
	if s.lock == nil {
		if err := proc.PrepareDir(s.o.Place.DataDir); err != nil {
			return false, err
		}
		lock, err := proc.Lock(filepath.Join(s.o.Place.DataDir, "start.lock"))
		switch {
		case err == nil:
			s.lock = lock
			return true, nil // somebody may have started it before we had the lock
		case gladhand.ReasonOf(err) == gladhand.ReasonConflict:
			return false, nil // somebody else starts it
		}
		return false, err
	}
	if s.tries > 0 {
		select {
		case <-s.exited:
		default:
			return false, nil // it is on its way
		}
		if s.ended.IsZero() {
			s.ended = time.Now()
		}
		if s.tries > len(restarts) {
			return false, s.failed("the daemon did not start")
		}
		if time.Since(s.ended) < restarts[s.tries-1] {
			return false, nil
		}
	}
	s.tries++
	s.ended = time.Time{}
	s.logFrom = 0
	if fi, err := os.Stat(LogFile(s.o.Place)); err == nil {
		s.logFrom = fi.Size()
	}
	s.exited, err = s.o.Start(*s.o)
	return false, err
}

// done lets the next client start a daemon, should it need one.
func (s *starter) done() {
	if s.lock != nil {
		_ = s.lock.Unlock() // it dies with us anyway
	}
}

// explain says why a connect was given up.
func (s *starter) explain(ctx context.Context, last error) error {
	if cause := context.Cause(ctx); cause != errPatience {
		return cause
	}
	switch {
	case s.no && gladhand.ReasonOf(last) == gladhand.ReasonUnavailable:
		return last
	case s.tries > 0:
		return s.failed("the daemon was started and does not answer")
	}
	return gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable,
		"the daemon at %s took the connection and does not answer: end that process, then try again (%w)", s.o.Place.Endpoint, last)
}

// failed says what went wrong, with the daemon's own last words.
func (s *starter) failed(what string) error {
	e := gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "%s", what)
	if said := lastWords(LogFile(s.o.Place), s.logFrom); said != "" {
		e.Message += ": " + said
	} else {
		e.Message += "; `gladhand daemon` runs it in the foreground and shows why"
	}
	return e
}

// lastWords reads the last line of a log that was written behind from.
func lastWords(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 16 << 10
	fi, err := f.Stat()
	if err != nil || fi.Size() <= from {
		return ""
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(from, fi.Size()-most), most))
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return strings.TrimPrefix(strings.TrimSpace(string(lines[len(lines)-1])), "gladhand: ")
}
