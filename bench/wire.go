package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	"gladhand/proc"
)

// wire is a client with nothing in it that could be slow: it writes lines and
// splits lines.
type wire struct {
	c     net.Conn
	buf   []byte
	start int // buf[start:end] has been read and not returned
	end   int
	next  int // the last request's id
	out   []byte
}

func newWire(c net.Conn) *wire { return &wire{c: c, buf: make([]byte, 64<<10)} }

// dial connects to a daemon and says hello.
func dial(ctx context.Context, p proc.Place) (*wire, error) {
	c, err := proc.Dial(ctx, p)
	if err != nil {
		return nil, err
	}
	w := newWire(c)
	if _, err := w.call("initialize", `{"protocolVersion":1,"clientInfo":{"name":"bench","version":"0"},"clientCapabilities":{}}`); err != nil {
		c.Close()
		return nil, err
	}
	return w, nil
}

func (w *wire) close() { w.c.Close() }

// line returns the next line with its end; it is valid until the next call.
func (w *wire) line() ([]byte, error) {
	for from := w.start; ; {
		if i := bytes.IndexByte(w.buf[from:w.end], '\n'); i >= 0 {
			line := w.buf[w.start : from+i+1]
			w.start = from + i + 1
			return line, nil
		}
		held := w.end - w.start
		switch {
		case w.start == w.end:
			w.start, w.end = 0, 0
		case w.end == len(w.buf) && w.start > 0:
			copy(w.buf, w.buf[w.start:w.end])
			w.start, w.end = 0, held
		case w.end == len(w.buf):
			w.buf = append(w.buf, make([]byte, len(w.buf))...)
		}
		from = w.end
		n, err := w.c.Read(w.buf[w.end:])
		w.end += n
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// send writes a request and returns what its answer begins with.
func (w *wire) send(method, params string) (answer string, err error) {
	w.next++
	id := strconv.Itoa(w.next)
	w.out = append(w.out[:0], `{"jsonrpc":"2.0","id":`...)
	w.out = append(append(w.out, id...), `,"method":"`...)
	w.out = append(append(w.out, method...), `","params":`...)
	w.out = append(append(w.out, params...), "}\n"...)
	_, err = w.c.Write(w.out)
	return `{"jsonrpc":"2.0","id":` + id + `,`, err
}

// call sends a request and waits for its result, past whatever else comes.
func (w *wire) call(method, params string) (json.RawMessage, error) {
	answer, err := w.send(method, params)
	if err != nil {
		return nil, err
	}
	for {
		line, err := w.line()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		rest, mine := bytes.CutPrefix(line, []byte(answer))
		if !mine {
			continue
		}
		result, ok := bytes.CutPrefix(rest, []byte(`"result":`))
		if !ok {
			return nil, fmt.Errorf("%s: %s", method, line)
		}
		return bytes.TrimSuffix(result, []byte("}\n")), nil
	}
}

// newSession makes a session, attached as ACP has it.
func (w *wire) newSession(cwd string) (string, error) { return w.newSessionOf("", cwd) }

// newSessionOf makes a session with a model.
func (w *wire) newSessionOf(model, cwd string) (string, error) {
	raw, err := w.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[],"_meta":{"gladhand":{"model":%q}}}`, cwd, model))
	if err != nil {
		return "", err
	}
	var v struct {
		SessionID string `json:"sessionId"`
	}
	return v.SessionID, json.Unmarshal(raw, &v)
}

// attach follows a session behind a cursor; −1 is the tail.
func (w *wire) attach(session string, after int) error {
	_, err := w.call("_gladhand/attach", fmt.Sprintf(`{"sessionId":%q,"after":%d}`, session, after))
	return err
}

// prompt stores a prompt of one text.
func (w *wire) prompt(session, text string) error {
	_, err := w.call("_gladhand/send", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, text))
	return err
}

// until reads lines up to one that has text in it.
func (w *wire) until(text string) error {
	for {
		line, err := w.line()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", text, err)
		}
		if bytes.Contains(line, []byte(text)) {
			return nil
		}
	}
}

// stop has a daemon stop, and waits until the connection ends.
func (w *wire) stop() error {
	if _, err := w.call("_gladhand/stop", `{"drainMs":0}`); err != nil {
		return err
	}
	for {
		if _, err := w.line(); err != nil {
			w.close()
			return nil // ended, as it should
		}
	}
}

// numbers reads the numbers that an update covers.
func numbers(line []byte) (from, to uint64, ok bool) {
	i := bytes.LastIndex(line, []byte(`"gladhand":{"from":`))
	if i < 0 {
		return 0, 0, false
	}
	from, rest := number(line[i+len(`"gladhand":{"from":`):])
	rest, ok = bytes.CutPrefix(rest, []byte(`,"to":`))
	to, _ = number(rest)
	return from, to, ok
}

func number(b []byte) (n uint64, rest []byte) {
	for len(b) > 0 && b[0] >= '0' && b[0] <= '9' {
		n = 10*n + uint64(b[0]-'0')
		b = b[1:]
	}
	return n, b
}
