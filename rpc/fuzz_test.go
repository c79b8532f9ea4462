package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// script is a stream that gives what it was given, in pieces, then ends; and
// keeps what is written.
type script struct {
	mu     sync.Mutex
	in     []byte
	piece  int
	out    bytes.Buffer
	closed bool
}

func (s *script) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.in) == 0 || s.closed {
		return 0, io.EOF
	}
	n := copy(p, s.in[:min(s.piece, len(s.in))])
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *script) TryWrite(p []byte) (int, error) { return s.Write(p) }

func (s *script) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// FuzzReader feeds a connection with whatever, in pieces of whatever size. It
// must not panic, must come to an end, and may answer only what the rules allow:
// for each line that is not blank at most one line, a valid response; JSON that
// is none gets −32700, and a handler's answer comes only for a request.
func FuzzReader(f *testing.F) {
	for _, tc := range conformance {
		if len(tc.send) < 2000 {
			f.Add([]byte(tc.send+"\n"), byte(7))
		}
	}
	f.Add([]byte(bom+fence+"\r\n\r\n"+fence), byte(0))
	f.Add([]byte(strings.Repeat("[", 3000)+"\n"+fence), byte(255))
	f.Add([]byte(head+`"id":1,"method":"slow"}`+"\n"+fence+"\n"), byte(1))
	f.Fuzz(func(t *testing.T, in []byte, piece byte) {
		const limit = 2000
		s := &script{in: in, piece: int(piece) + 1}
		conn := New(s, Options{
			Limits: Limits{Frame: limit, InFlight: 2, Linger: time.Nanosecond, Budget: NewBudget(1 << 20)},
			Handler: func(ctx context.Context, r *Request) {
				if r.Method != "slow" {
					echoHandler(ctx, r)
				}
			},
		})
		// A call of ours that an answer may find.
		call, err := conn.Start("ask", nil)
		if err != nil {
			t.Fatal(err)
		}
		conn.Run(context.Background())
		<-conn.Done()
		<-call.Done()
		judgeOutput(t, in, limit, s.out.String())
	})
}

// judgeOutput holds what was answered against what was sent.
func judgeOutput(t *testing.T, in []byte, limit int, out string) {
	t.Helper()
	var parse, invalid, results int // what the lines may cause
	lines := strings.Split(strings.TrimPrefix(string(in), bom), "\n")
	over := false
	for i, line := range lines {
		if i == 0 && strings.HasPrefix(string(in), bom) {
			over = len(strings.TrimSuffix(line, "\r"))+len(bom) > limit
		} else {
			over = len(strings.TrimSuffix(line, "\r")) > limit
		}
		if over {
			break
		}
		line = strings.Trim(line, " \t\r")
		switch {
		case line == "":
		case !json.Valid([]byte(line)) || !utf8.ValidString(line):
			parse++
		case line[0] != '{':
			invalid++
		default:
			results++
		}
	}
	if !strings.HasPrefix(out, head+`"id":"gh-1","method":"ask"}`+"\n") {
		t.Fatalf("our call is not first: %.200q", out)
	}
	answers := strings.SplitAfter(out, "\n")[1:]
	var gotParse, gotTooLarge int
	for i, line := range answers[:len(answers)-1] {
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Version != "2.0" || m.ID == nil || m.Method != "" || (m.Result == nil) == (m.Error == nil) && string(m.Result) != "null" {
			t.Fatalf("no response: %.200q", line)
		}
		if m.Error == nil {
			continue
		}
		switch m.Error.Code {
		case CodeParse:
			gotParse++
			if string(m.ID) != "null" {
				t.Errorf("id %s", m.ID)
			}
		case CodeInvalidRequest:
			if strings.Contains(string(m.Error.Data), "frame_too_large") {
				gotTooLarge++
				if i != len(answers)-2 {
					t.Error("something follows the last error")
				}
			}
		case CodeNoMethod, CodeLimit:
		default:
			t.Errorf("code %d", m.Error.Code)
		}
	}
	if last := answers[len(answers)-1]; last != "" {
		t.Errorf("an unfinished line: %.200q", last)
	}
	if n := len(answers) - 1 - gotTooLarge; n > parse+invalid+results || n < parse+invalid {
		t.Errorf("%d answers to %d+%d+%d lines", n, parse, invalid, results)
	}
	// What encoding/json takes and we do not: lone surrogates, great depth.
	if gotParse < parse || gotParse > parse+results+invalid {
		t.Errorf("%d parse errors, want %d", gotParse, parse)
	}
	if over != (gotTooLarge == 1) {
		t.Errorf("%d frames too large, want %v", gotTooLarge, over)
	}
}

// FuzzDecodeParams must not panic, and must leave v alone when it refuses.
func FuzzDecodeParams(f *testing.F) {
	f.Add([]byte(`{"sessionId":"s","list":[{"Name":"x"}],"x":1}`))
	f.Add([]byte(`{"map":{"a":{"deep":{"deep":null}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p params
		if err := DecodeParams(raw, &p); err != nil {
			if p.SessionID != "" || p.List != nil || p.Raw != nil {
				t.Errorf("v was changed: %+v", p)
			}
			return
		}
		if len(raw) > 0 && !json.Valid(raw) {
			t.Errorf("%q passes", raw)
		}
	})
}
