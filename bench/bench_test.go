package main

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestVerdicts(t *testing.T) {
	most := budget{name: "a", unit: "ms", budget: 5}
	least := budget{name: "b", unit: "×", budget: 8, goal: 14, atLeast: true}
	for _, c := range []struct {
		l    budget
		v    float64
		want string
	}{
		{most, 5, "ok"}, {most, 5.01, "short"}, {least, 8, "ok"}, {least, 7.99, "short"},
	} {
		var out bytes.Buffer
		b := &bench{out: &out}
		b.report(c.l, c.v, "from %d", 7)
		if f := strings.Fields(out.String()); f[len(f)-3] != c.want || (b.missed == 1) != (c.want == "short") {
			t.Errorf("%v of %+v: %s", c.v, c.l, &out)
		}
	}
}

// feed gives n readers what lines makes for each of them.
func feedReaders(t *testing.T, n int, lines func(reader int) []byte) error {
	t.Helper()
	var conns []*wire
	var ends []net.Conn
	for range n {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close(); theirs.Close() })
		conns, ends = append(conns, newWire(ours)), append(ends, theirs)
	}
	_, err := readAll(conns, 50, func() error {
		for i, c := range ends {
			go func() {
				// What follows a fault is not read.
				_, _ = c.Write(append([]byte("{\"something\":\"else\"}\n"), lines(i)...))
				c.Close()
			}()
		}
		return nil
	})
	return err
}

func updates(leaveOut, twice int) []byte {
	var all []byte
	for i := range 50 {
		if i != leaveOut {
			all = append(all, rawFrame(i+1)...)
		}
		if i == twice {
			all = append(all, rawFrame(i+1)...)
		}
	}
	return all
}

// A flood in which a reader misses something is an error, not a figure.
func TestReadersMissNothing(t *testing.T) {
	if err := feedReaders(t, 5, func(int) []byte { return updates(-1, -1) }); err != nil {
		t.Errorf("all got everything: %v", err)
	}
	for _, bad := range []int{0, 3} {
		for name, lines := range map[string][]byte{
			"lost":                    updates(20, -1),
			"repeated":                updates(-1, 20),
			"lost, and another twice": updates(20, 30),
		} {
			if err := feedReaders(t, 5, func(i int) []byte {
				if i == bad {
					return lines
				}
				return updates(-1, -1)
			}); err == nil {
				t.Errorf("%s at reader %d was not noticed", name, bad)
			}
		}
	}
}

func TestLines(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	long := strings.Repeat("y", 200<<10)
	go func() {
		for _, piece := range []string{"a", "b\nc\n", long, "\n\nlast\n"} {
			_, _ = theirs.Write([]byte(piece))
		}
		theirs.Close()
	}()
	w := newWire(ours)
	for _, want := range []string{"ab", "c", long, "", "last"} {
		if line, err := w.line(); err != nil || string(line) != want+"\n" {
			t.Fatalf("got %.20q of %d, %v; want %.20q", line, len(line), err, want)
		}
	}
	if _, err := w.line(); err == nil {
		t.Error("no error at the end")
	}
}

func TestFramesAreOfOneSize(t *testing.T) {
	for _, n := range []int{10_000, 29_999} {
		if size := len(rawFrame(n)); size < frameSize-5 || size > frameSize+5 {
			t.Errorf("frame %d has %d bytes", n, size)
		}
		from, to, ok := numbers(rawFrame(n))
		if !ok || from != uint64(n) || to != uint64(n) {
			t.Errorf("frame %d has the numbers %d to %d, %v", n, from, to, ok)
		}
	}
	if size := len(fmt.Sprintf(`{"jsonrpc":"2.0","id":10000,"method":"status","params":%s}`+"\n", statusParams())); size != frameSize {
		t.Errorf("a request has %d bytes", size)
	}
}
