package model

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxEvent is how large one event of a stream, or one line of it, may be.
const maxEvent = 8 << 20

// errEventSize says that a stream's event is over maxEvent.
var errEventSize = fmt.Errorf("an event of the stream is over %d MiB", maxEvent>>20)

// event is one server-sent event. Data is valid until the next one is read.
type event struct {
	name string
	data []byte
}

// sse reads server-sent events as the HTML standard has them: lines end with CR,
// LF or CRLF, comments are left out, the data lines of an event are joined. Unlike
// a browser it takes an event that the end of the stream stands behind, for there
// are servers that leave the last empty line out.
type sse struct {
	r      *bufio.Reader
	line   []byte
	data   []byte
	begun  bool // the first line has been read
	skipLF bool // the last line ended with CR
}

func newSSE(r io.Reader) *sse { return &sse{r: bufio.NewReaderSize(r, 16<<10)} }

// next returns the next event that has data, or io.EOF.
func (s *sse) next() (event, error) {
	var e event
	s.data = s.data[:0]
	some := false // a data line has been seen
	for {
		err := s.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return event{}, err
		}
		if len(s.line) == 0 { // the event's end, or the stream's
			if some {
				e.data = s.data
				return e, nil
			}
			if err != nil {
				return event{}, io.EOF
			}
			e.name = ""
			continue
		}
		field, value, _ := bytes.Cut(s.line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.name = string(value)
		case "data":
			if some {
				s.data = append(s.data, '\n')
			}
			if len(s.data)+len(value) > maxEvent {
				return event{}, errEventSize
			}
			s.data = append(s.data, value...)
			some = true
		}
	}
}

// readLine reads s.line, without its end. With io.EOF it is the last one.
func (s *sse) readLine() error {
	s.line = s.line[:0]
	for {
		if _, err := s.r.Peek(1); err != nil {
			return err
		}
		buf, err := s.r.Peek(s.r.Buffered())
		if err != nil {
			return err
		}
		if s.skipLF && buf[0] == '\n' {
			buf = buf[1:]
			_, _ = s.r.Discard(1) // it is there
		}
		s.skipLF = false
		n := bytes.IndexAny(buf, "\r\n")
		end := n >= 0
		if !end {
			n = len(buf)
		}
		if len(s.line)+n > maxEvent {
			return errEventSize
		}
		s.line = append(s.line, buf[:n]...)
		if end {
			s.skipLF = buf[n] == '\r'
			n++
		}
		_, _ = s.r.Discard(n) // it is there
		if end {
			if !s.begun {
				s.begun = true
				s.line = bytes.TrimPrefix(s.line, []byte("\xef\xbb\xbf"))
			}
			return nil
		}
	}
}

// lines reads a stream of one JSON value a line.
type lines struct{ sse }

func newLines(r io.Reader) *lines { return &lines{*newSSE(r)} }

// next returns the next line that is not empty, or io.EOF.
func (l *lines) next() (event, error) {
	for {
		err := l.readLine()
		if len(bytes.TrimSpace(l.line)) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			return event{data: l.line}, nil
		}
		if err != nil {
			return event{}, err
		}
	}
}
