package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"gladhand/proc"
)

// maxStray is how many lines of standard output may be no messages: banners and
// logs are common mistakes, a server that only prints is none.
const maxStray = 1000

var errStray = fmt.Errorf("it printed over %d lines on its standard output that are no MCP messages", maxStray)

// stdio is a server's process and the connection over its pipes.
type stdio struct {
	gate  *gate
	grace time.Duration

	p      *proc.Process
	in     *io.PipeWriter
	lines  chan []byte // whole lines of standard output, without a buffer
	tail   tail        // the end of standard error
	writes chan struct{}

	closed    chan struct{} // nobody is interested any more
	closeOnce sync.Once
	ended     chan struct{} // the process and its group are gone

	queue []jsonrpc.Message // of Read alone
	stray int

	mu    sync.Mutex
	fault error // why the server was dropped
}

// startStdio starts a server. Errors are package proc's and name the program
// alone.
func startStdio(c proc.Command, g *gate, grace time.Duration) (*stdio, error) {
	out, in := io.Pipe()
	s := &stdio{
		gate: g, grace: grace, in: in,
		lines: make(chan []byte), writes: make(chan struct{}, 1),
		closed: make(chan struct{}), ended: make(chan struct{}),
	}
	c.Stdin, c.Stdout, c.Stderr, c.Grace = out, &splitter{s: s}, &s.tail, grace
	p, err := c.Start()
	if err != nil {
		return nil, err
	}
	s.p = p
	go func() {
		_, _ = p.Wait() // an error is the splitter's, and kept in fault
		_ = out.CloseWithError(io.ErrClosedPipe)
		close(s.ended)
	}()
	return s, nil
}

// Connect implements [sdk.Transport].
func (s *stdio) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// SessionID implements [sdk.Connection].
func (s *stdio) SessionID() string { return "" }

// Read implements [sdk.Connection].
func (s *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		for len(s.queue) > 0 {
			m := s.queue[0]
			s.queue = s.queue[1:]
			ok, err := s.gate.pass(m)
			if err != nil {
				return nil, s.drop(err)
			}
			if ok {
				return m, nil
			}
		}
		select {
		case line := <-s.lines:
			var err error
			if s.queue, err = decode(line); err != nil {
				if s.stray++; s.stray > maxStray {
					return nil, s.drop(errStray)
				}
			}
		case <-s.closed:
			return nil, io.EOF
		case <-s.ended:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Write implements [sdk.Connection]. It gives up when ctx ends; a message that
// has begun goes on in the background, so that no line is cut.
func (s *stdio) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	select {
	case s.writes <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return io.ErrClosedPipe
	}
	if ctx.Err() != nil {
		<-s.writes
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.in.Write(data)
		<-s.writes
		done <- err
	}()
	select {
	case err = <-done:
		s.gate.answered(m)
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return io.ErrClosedPipe
	}
}

// Close implements [sdk.Connection]: it begins the end of the process, and does
// not wait for it.
func (s *stdio) Close() error {
	s.closeOnce.Do(func() {
		close(s.closed)
		go s.end()
	})
	return nil
}

// end closes the input, which is how a server is asked to end; one that does not
// is ended with its group.
func (s *stdio) end() {
	_ = s.in.Close()
	if s.reason() == nil { // one that misbehaved gets no grace
		s.wait(s.grace)
	}
	select {
	case <-s.ended:
		return
	default:
	}
	s.p.Kill("its session does not need it any more")
}

// wait waits for the end of the process and its group, not for ever.
func (s *stdio) wait(most time.Duration) {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-s.ended:
	case <-t.C:
	}
}

// drop ends the server for something it did.
func (s *stdio) drop(err error) error {
	s.mu.Lock()
	if s.fault == nil {
		s.fault = err
	}
	s.mu.Unlock()
	_ = s.Close()
	return err
}

// reason is what the server was dropped for, nil when it was not.
func (s *stdio) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// why says how the server ended, and the last it said about that.
func (s *stdio) why() string {
	if err := s.reason(); err != nil {
		return err.Error() + " and was stopped"
	}
	select {
	case <-s.ended:
	default:
		return "it closed the connection"
	}
	status, _ := s.p.Wait()
	how := fmt.Sprintf("it ended with exit status %d", status.Code)
	if status.Signal != "" {
		how = "it was ended by a signal (" + status.Signal + ")"
	}
	if last := s.tail.last(); last != "" {
		how += ": " + last
	}
	return how
}

// splitter makes lines of a server's standard output. It waits while nobody
// reads them, so that a flood fills the pipe and not our memory.
type splitter struct {
	s   *stdio
	buf []byte
}

func (w *splitter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		rest := p
		if i >= 0 {
			rest = p[:i]
		}
		if len(w.buf)+len(rest) > maxMessage {
			w.buf = nil
			return 0, w.s.drop(errTooLong)
		}
		w.buf = append(w.buf, rest...)
		if i < 0 {
			return n, nil
		}
		p = p[i+1:]
		line := bytes.TrimSuffix(w.buf, []byte("\r"))
		w.buf = nil
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		select {
		case w.s.lines <- line:
		case <-w.s.closed:
			return 0, errors.New("closed")
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) > maxTail {
		p, t.buf, t.cut = p[len(p)-maxTail:], t.buf[:0], true
	}
	if over := len(t.buf) + len(p) - maxTail; over > 0 {
		t.buf, t.cut = append(t.buf[:0], t.buf[over:]...), true
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// last is the last line with something on it, if the whole of it is there: half a
// secret would not be masked.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(string(t.buf), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimSpace(lines[i]) != "" && (i > 0 || !t.cut) {
			return lines[i]
		}
	}
	return ""
}
