package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gladhand/proc"
)

const fanoutClients = 256

// fanout compares 256 clients that follow one session with the same frames
// written to 256 sockets one after the other. In both, one other process reads
// all the sockets, and checks that each got every number.
func (b *bench) fanout(ctx context.Context) (err error) {
	d, place, err := b.scripted("fanout")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	var cursors, turns []float64
	for round := range b.count(30)/10 + 1 {
		turn, err := b.inTurn(b.count(2000))
		if err != nil {
			return fmt.Errorf("in turn: %w", err)
		}
		cursor, err := b.followed(ctx, place, b.count(30_000))
		if err != nil {
			return err
		}
		if round > 0 || b.short { // the first warms up
			turns, cursors = append(turns, turn), append(cursors, cursor)
		}
	}
	var ratios []float64
	for i := range turns {
		ratios = append(ratios, cursors[i]/turns[i])
	}
	b.report(lineFanout, median(ratios), "%.0f updates/s, written in turn %.0f/s, median of %d", median(cursors), median(turns), len(ratios))
	return nil
}

// followed is how many updates a second 256 clients of a daemon get.
func (b *bench) followed(ctx context.Context, place proc.Place, n int) (float64, error) {
	w, err := dial(ctx, place)
	if err != nil {
		return 0, err
	}
	defer w.close()
	id, err := w.newSession(b.dir)
	if err != nil {
		return 0, err
	}
	if _, err := w.call("_gladhand/detach", fmt.Sprintf(`{"sessionId":%q}`, id)); err != nil {
		return 0, err
	}
	return b.flood("follow", place.DataDir, id, n)
}

// inTurn is the same for one goroutine that writes to each socket in turn.
func (b *bench) inTurn(n int) (rate float64, err error) {
	path := filepath.Join(b.dir, "turn.sock")
	p, err := spawn("in-turn", path, strconv.Itoa(n))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	return b.flood("raw", path, "", n)
}

// flood has a process read what 256 connections get.
func (b *bench) flood(kind, where, session string, n int) (rate float64, err error) {
	p, err := spawn("readers", kind, where, session, strconv.Itoa(n))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	var seconds float64
	if err := p.result(&seconds); err != nil {
		return 0, err
	}
	return float64(n) / seconds, nil
}

// pieceText makes an update's frame frameSize bytes long, give or take the
// digits of its numbers.
var pieceText = strings.Repeat("x", 52)

func rawFrame(n int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"abcdefghij234567","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"},"messageId":"%c"},"_meta":{"gladhand":{"from":%d,"to":%d,"turn":1}}}}`+"\n",
		pieceText, 'a'+n%2, n, n)
}

// playInTurn writes each frame to 256 sockets in turn. The connection after
// those says when to begin.
func playInTurn(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", args[0])
	if err != nil {
		return err
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			var conns []net.Conn
			for range fanoutClients + 1 {
				c, err := l.Accept()
				if err != nil {
					return err
				}
				conns = append(conns, c)
			}
			control := conns[fanoutClients]
			if _, err := control.Read(make([]byte, 1)); err != nil {
				return err
			}
			for i := range n {
				frame := rawFrame(i + 1)
				for _, c := range conns[:fanoutClients] {
					if _, err := c.Write(frame); err != nil {
						return err
					}
				}
			}
			return nil
		}()
	}()
	gone := ready()
	if err := <-done; err != nil {
		return err
	}
	<-gone
	return nil
}

// playReaders opens 256 connections, has the flood begin over one more, and
// prints how many seconds passed until all had everything. Arguments: "raw" and a
// socket, or "follow" and a data directory; the session; the number of updates.
func playReaders(args []string) error {
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	var conns []*wire
	connect := func() error {
		w, err := reader(args[0], args[1])
		if err == nil {
			conns = append(conns, w)
		}
		return err
	}
	for range fanoutClients {
		if err := connect(); err != nil {
			return err
		}
		if args[0] == "follow" {
			if err := conns[len(conns)-1].attach(args[2], -1); err != nil {
				return err
			}
		}
	}
	if err := connect(); err != nil {
		return err
	}
	gone := ready()
	seconds, err := readAll(conns[:fanoutClients], n, func() error {
		control := conns[fanoutClients]
		if args[0] == "raw" {
			_, err := control.c.Write([]byte("g"))
			return err
		}
		return control.prompt(args[2], fmt.Sprintf("flood %d %s", n, pieceText))
	})
	if err != nil {
		return err
	}
	out, err := json.Marshal(seconds)
	if err != nil {
		return err
	}
	fmt.Println(string(out))
	<-gone
	for _, w := range conns {
		w.close()
	}
	return nil
}

func reader(kind, where string) (*wire, error) {
	if kind == "raw" {
		c, err := net.Dial("unix", where)
		if err != nil {
			return nil, err
		}
		return newWire(c), nil
	}
	place, err := placeIn(where)
	if err != nil {
		return nil, err
	}
	return dial(context.Background(), place)
}

// seen is what one reader got: the sum over the bytes of n updates.
type seen struct {
	i   int
	sum uint32
	err error
}

// readAll begins the flood and reads it. The first reader looks at every number;
// the others' bytes must be the same as the first's.
func readAll(conns []*wire, n int, begin func() error) (seconds float64, err error) {
	results := make(chan seen, len(conns))
	for i, w := range conns {
		go func() {
			s := seen{i: i}
			if i == 0 {
				s.sum, s.err = w.numbered(n)
			} else {
				s.sum, s.err = w.summed(n)
			}
			results <- s
		}()
	}
	start := time.Now()
	if err := begin(); err != nil {
		return 0, err
	}
	sums := make([]uint32, len(conns))
	for range conns {
		s := <-results
		if s.err != nil {
			return 0, fmt.Errorf("reader %d: %w", s.i, s.err)
		}
		sums[s.i] = s.sum
	}
	seconds = time.Since(start).Seconds()
	for i, sum := range sums {
		if sum != sums[0] {
			return 0, fmt.Errorf("reader %d got other bytes than reader 0", i)
		}
	}
	return seconds, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const pieceTag = `"sessionUpdate":"agent_message_chunk"`

// first reads up to the first update of the flood.
func (w *wire) first() ([]byte, error) {
	for {
		line, err := w.line()
		if err != nil || bytes.Contains(line, []byte(pieceTag)) {
			return line, err
		}
	}
}

// numbered reads n updates one by one, and checks that each begins behind the
// one before.
func (w *wire) numbered(n int) (sum uint32, err error) {
	line, err := w.first()
	var last uint64
	for i := range n {
		if err != nil {
			return 0, fmt.Errorf("after %d of %d updates: %w", i, n, err)
		}
		from, to, ok := numbers(line)
		if !ok || to < from || i > 0 && from != last+1 || !bytes.Contains(line, []byte(pieceTag)) {
			return 0, fmt.Errorf("update %d is not the one behind number %d: %s", i, last, line)
		}
		last = to
		sum = crc32.Update(sum, castagnoli, line)
		if i < n-1 {
			line, err = w.line()
		}
	}
	return sum, nil
}

// summed reads n updates in whatever pieces they come.
func (w *wire) summed(n int) (sum uint32, err error) {
	line, err := w.first()
	if err != nil {
		return 0, err
	}
	sum = crc32.Update(sum, castagnoli, line)
	left := n - 1
	for left > 0 {
		if w.start == w.end {
			w.start = 0
			if w.end, err = w.c.Read(w.buf); w.end == 0 {
				return 0, fmt.Errorf("with %d updates missing: %w", left, err)
			}
		}
		part := w.buf[w.start:w.end]
		if lines := bytes.Count(part, []byte{'\n'}); lines < left {
			left -= lines
		} else {
			end := 0
			for ; left > 0; left-- {
				end += bytes.IndexByte(part[end:], '\n') + 1
			}
			part = part[:end]
		}
		sum = crc32.Update(sum, castagnoli, part)
		w.start += len(part)
	}
	return sum, nil
}
