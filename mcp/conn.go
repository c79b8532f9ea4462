//lint:file-ignore SA1019 servers of today still ask for roots and sampling

package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gladhand"
	"gladhand/proc"
)

// killPatience is how long a killed process may take to be gone: one that hangs
// in the kernel is not waited for.
const killPatience = 5 * time.Second

// versions are the protocol versions that are tried, one connection each. The
// first is spoken by every server there is: one that knows a newer version
// answers to it too, and older servers end themselves when the first thing they
// hear is not "initialize". The second, the SDK's newest, is for servers that do
// not know "initialize" any more.
var versions = []string{"2025-11-25", ""}

// conn is one life of a server.
type conn struct {
	session *sdk.ClientSession
	gate    *gate
	cancel  context.CancelFunc
	done    chan struct{} // closed when the connection has ended
	kick    chan struct{} // has an element when the tools changed

	stdio *stdio // one of the two
	link  *link
}

// dial starts or reaches the server and lists its tools. It gives up when the
// server takes too long.
func (p *peer) dial(ctx context.Context) (*conn, listing, error) {
	end := time.Now().Add(p.set.t.start)
	var err error
	for _, v := range versions {
		var c *conn
		if c, err = p.connect(ctx, v, end); err == nil {
			var l listing
			within, cancel := context.WithDeadline(ctx, end)
			l, err = c.list(within, p)
			cancel()
			if err == nil {
				return c, l, nil
			}
			err = fmt.Errorf("it did not list its tools: %w", p.reason(c, err))
			c.close()
			return nil, l, err
		}
		wire := answer(err)
		if wire == nil || wire.Code != jsonrpc.CodeMethodNotFound && wire.Code != sdk.CodeUnsupportedProtocolVersion {
			break
		}
	}
	return nil, listing{}, err
}

// connect makes one connection.
func (p *peer) connect(ctx context.Context, version string, end time.Time) (*conn, error) {
	// Not ended by ctx: what is under way when the set closes is ended in order.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &conn{gate: &gate{}, cancel: cancel, done: make(chan struct{}), kick: make(chan struct{}, 1)}
	c.gate.changed = func() {
		select {
		case c.kick <- struct{}{}:
		default:
		}
	}
	within, stop := context.WithDeadline(ctx, end)
	transport, err := p.transport(within, life, c)
	stop()
	if err != nil {
		cancel()
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "gladhand", Version: p.set.o.Version}, &sdk.ClientOptions{
		Logger:                 slog.New(slog.DiscardHandler),
		Capabilities:           &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}},
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true}, // one permission, one call
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { c.gate.handled() },
	})
	client.AddRoots(&sdk.Root{URI: fileURI(p.set.o.Dir), Name: filepath.Base(p.set.o.Dir)})
	type outcome struct {
		session *sdk.ClientSession
		err     error
	}
	got := make(chan outcome, 1)
	go func() {
		s, err := client.Connect(life, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		got <- outcome{s, err}
	}()
	late := time.NewTimer(time.Until(end))
	defer late.Stop()
	select {
	case o := <-got:
		if o.err != nil {
			err = p.reason(c, o.err)
			c.close()
			return nil, err
		}
		c.session = o.session
	case <-late.C:
		c.close()
		return nil, fmt.Errorf("it did not answer within %v", p.set.t.start)
	case <-ctx.Done():
		c.close()
		return nil, ctx.Err()
	}
	go func() {
		_ = c.session.Wait()
		close(c.done)
	}()
	return c, nil
}

// transport starts the process, or prepares the client. Ctx is for the start, life
// for what comes of it.
func (p *peer) transport(ctx, life context.Context, c *conn) (sdk.Transport, error) {
	if p.cfg.Command != "" {
		env := slices.Clone(p.set.o.Environ)
		for k, v := range p.cfg.Env {
			text, err := p.reveal(ctx, v)
			if err != nil {
				return nil, fmt.Errorf("its variable %s cannot be had: %w", shown(k), err)
			}
			env = append(env, k+"="+text)
		}
		s, err := startStdio(proc.Command{Path: p.cfg.Command, Args: p.cfg.Args, Dir: p.set.o.Dir, Env: env}, c.gate, p.set.t.grace)
		if err != nil {
			return nil, err
		}
		c.stdio = s
		return s, nil
	}
	origin, err := url.Parse(p.cfg.URL.Reveal())
	if err != nil {
		return nil, errors.New("its url is none")
	}
	l := &link{gate: c.gate, life: life, origin: origin, headers: map[string]string{}, patience: p.set.t.patience, grace: p.set.t.grace}
	for k, v := range p.cfg.Headers {
		text, err := p.reveal(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("its header %s cannot be had: %w", shown(k), err)
		}
		if !isHeaderValue(text) {
			return nil, fmt.Errorf("its header %s has a character that no header may have", shown(k))
		}
		l.headers[k] = text
	}
	client := l.client(p.set.o.HTTP)
	c.link = l
	if p.cfg.SSE {
		l.patience = p.set.t.start // without the stream there is nothing
		return over{&sdk.SSEClientTransport{Endpoint: origin.String(), HTTPClient: client, MaxEventSize: 2 * maxMessage}, l}, nil
	}
	return over{&sdk.StreamableClientTransport{Endpoint: origin.String(), HTTPClient: client, MaxEventSize: 2 * maxMessage}, l}, nil
}

// reveal is the text of a value, from now on masked.
func (p *peer) reveal(ctx context.Context, v gladhand.Secret) (string, error) {
	text := v.Reveal()
	if kind, _ := v.Reference(); kind != "" && p.cfg.References {
		var err error
		if text, err = p.set.o.Reveal(ctx, v); err != nil {
			return "", err
		}
	}
	// A directory that is there is no secret, and masking it would make the errors
	// about what is in it useless.
	if _, err := os.Stat(text); !filepath.IsAbs(text) || err != nil {
		p.mask.add(text)
	}
	return text, nil
}

// reason is why something failed: what is known of the server's end is a better
// answer than what the protocol made of it.
func (p *peer) reason(c *conn, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("it did not answer within %v", p.set.t.start)
	case c.link != nil:
		return c.link.reason(err)
	case answer(err) != nil:
		return fmt.Errorf("it answered: %w", answer(err))
	}
	select {
	case <-c.stdio.closed: // it was dropped, or ended a moment ago
		c.stdio.wait(p.set.t.grace)
	case <-c.stdio.ended:
	default:
		return err
	}
	return errors.New(c.stdio.why())
}

// answer is the error that the server answered with, nil when it did not. The SDK
// also marks what its transport refused with one.
func answer(err error) *jsonrpc.Error {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && wire.Message != "rejected by transport" {
		return wire
	}
	return nil
}

// why says how the connection ended.
func (c *conn) why() string {
	if c.stdio != nil {
		return c.stdio.why()
	}
	return c.link.why()
}

// close ends the connection, and the process with its group, and waits for that.
func (c *conn) close() {
	if c.stdio != nil {
		_ = c.stdio.Close()
		c.stdio.wait(2*c.stdio.grace + killPatience)
	} else {
		c.link.close()
	}
	c.cancel()
	if c.session != nil {
		_ = c.session.Close() // nothing is under way any more
	}
}

// fileURI is a directory as a file URI.
func fileURI(dir string) string {
	path := filepath.ToSlash(dir)
	if runtime.GOOS == "windows" && !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// reason is an error of a request in words.
func (l *link) reason(err error) error {
	l.mu.Lock()
	fault, status := l.fault, l.status
	l.mu.Unlock()
	var request *url.Error
	switch {
	case fault != nil:
		return errors.New(l.why())
	case answer(err) != nil:
		return fmt.Errorf("it answered: %w", answer(err))
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("it refused with %d %s: check its headers; signing in with OAuth is not supported", status, http.StatusText(status))
	case status >= 400:
		return fmt.Errorf("it answered %d %s", status, http.StatusText(status))
	case errors.As(err, &request):
		return fmt.Errorf("it cannot be reached: %w", request.Err) // without its address
	}
	return err
}
