package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func events(r io.Reader) (list []string, err error) {
	s := newSSE(r)
	for {
		ev, err := s.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return list, err
		}
		list = append(list, ev.name+"|"+string(ev.data))
	}
}

// The forms of the HTML standard, read a byte at a time and in two pieces cut
// everywhere. R124.
func TestSSE(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"data: a\n\ndata: b\n\n", "[|a |b]"},
		{"data: a\r\n\r\ndata: b\r\n\r\n", "[|a |b]"},
		{"data: a\r\rdata: b\r\r", "[|a |b]"},
		{"data: a\r\n\ndata: b\n\r", "[|a |b]"},
		{"event: x\ndata: a\n\n", "[x|a]"},
		{"event: x\n\ndata: a\n\n", "[|a]"}, // an event without data is none, and its name goes with it
		{"data: a\ndata: b\ndata\n\n", "[|a\nb\n]"},
		{"data:a\ndata:  b\n\n", "[|a\n b]"},
		{": ping\n\n:\n\ndata: a\n: more\ndata: b\n\n", "[|a\nb]"},
		{"id: 7\nretry: 100\nnonsense\ndata: a\n\n", "[|a]"},
		{"\xef\xbb\xbfdata: a\n\n", "[|a]"},
		{"data: 日本\nevent: 語\n\n", "[語|日本]"},
		{"data: a\n\ndata: b", "[|a |b]"}, // no last empty line
		{"\n\n\n", "[]"},
		{"", "[]"},
		{"data: [DONE]\n", "[|[DONE]]"},
	} {
		for cut := -1; cut <= len(c.in); cut++ {
			var r io.Reader = iotest.OneByteReader(strings.NewReader(c.in))
			if cut >= 0 {
				r = io.MultiReader(strings.NewReader(c.in[:cut]), strings.NewReader(c.in[cut:]))
			}
			list, err := events(r)
			if got := fmt.Sprint(list); got != c.want || err != nil {
				t.Errorf("%q cut at %d: %s, %v", c.in, cut, got, err)
			}
		}
	}
}

// An event is bounded: in one line, and in many.
func TestSSELimit(t *testing.T) {
	long := strings.Repeat("x", maxEvent-len("data: "))
	if list, err := events(strings.NewReader("data: " + long + "\n\n")); err != nil || len(list) != 1 {
		t.Errorf("at the limit: %d events, %v", len(list), err)
	}
	if _, err := events(strings.NewReader("data: " + long + "x\n\n")); !errors.Is(err, errEventSize) {
		t.Errorf("one over: %v", err)
	}
	part := "data: " + strings.Repeat("x", maxEvent/4) + "\n"
	if _, err := events(strings.NewReader(strings.Repeat(part, 5) + "\n")); !errors.Is(err, errEventSize) {
		t.Errorf("in many lines: %v", err)
	}
}

func TestLines(t *testing.T) {
	l := newLines(iotest.HalfReader(strings.NewReader("{\"a\":1}\n\r\n  \n{\"b\":2}")))
	for _, want := range []string{`{"a":1}`, `{"b":2}`} {
		if ev, err := l.next(); err != nil || string(ev.data) != want {
			t.Errorf("%q, %v", ev.data, err)
		}
	}
	if _, err := l.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte("event: x\r\ndata: a\rdata: b\n\n"), 3)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		whole, err := events(bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		cut = min(max(cut, 0), len(in))
		parts, err := events(io.MultiReader(bytes.NewReader(in[:cut]), iotest.OneByteReader(bytes.NewReader(in[cut:]))))
		if err != nil || fmt.Sprint(whole) != fmt.Sprint(parts) {
			t.Errorf("%q whole, %q in parts, %v", whole, parts, err)
		}
	})
}
