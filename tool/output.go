package tool

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxSpill is how much of a flood the file for the whole output takes.
const maxSpill = 32 << 20

// Output collects what a running call prints: the first and the last half of
// its limit, in constant memory and constant time a byte. It is safe for
// concurrent use; the zero value is not usable, see [NewOutput].
type Output struct {
	limit   int
	changed chan struct{}

	mu       sync.Mutex
	head     []byte
	tail     []byte // at most limit bytes, of which the last limit/2 count
	total    int64
	spillDir string
	spill    *os.File
	spilled  int64
	path     string
}

// NewOutput returns an Output that keeps limit bytes, an even number. With a directory,
// output beyond the limit is kept whole in a file there (up to 32 MiB); with limit 0 that
// is all it keeps.
func NewOutput(limit int, dir string) *Output {
	return &Output{limit: limit &^ 1, spillDir: dir, changed: make(chan struct{}, 1)}
}

// Changed has one element when something was written since the last receive.
func (o *Output) Changed() <-chan struct{} { return o.changed }

// Write adds valid UTF-8. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.write(p)
	o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (o *Output) write(p []byte) {
	o.spillOver(p)
	o.total += int64(len(p))
	half := o.limit / 2
	if room := half - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head = append(o.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > half {
		p = p[len(p)-half:]
		o.tail = o.tail[:0]
	}
	if len(o.tail)+len(p) > 2*half {
		keep := half - len(p)
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-keep:]...)
	}
	o.tail = append(o.tail, p...)
}

// spillOver writes p, and before the first time what came before it, to the
// file for the whole output. A full disk only ends the file.
func (o *Output) spillOver(p []byte) {
	if o.spillDir == "" || o.total+int64(len(p)) <= int64(o.limit) {
		return
	}
	if o.spill == nil {
		err := os.MkdirAll(o.spillDir, 0o700)
		var f *os.File
		if err == nil {
			f, err = os.CreateTemp(o.spillDir, "output-*.txt") // 0600
		}
		if err != nil {
			o.spillDir = ""
			return
		}
		o.spill, o.path = f, f.Name()
		p = bytes.Join([][]byte{o.head, o.tail, p}, nil)
	}
	if room := maxSpill - o.spilled; int64(len(p)) > room {
		p = p[:room]
	}
	n, err := o.spill.Write(p)
	o.spilled += int64(n)
	if err != nil || o.spilled >= maxSpill {
		o.closeSpill()
		o.spillDir = ""
	}
}

func (o *Output) closeSpill() {
	if o.spill != nil {
		_ = o.spill.Close()
		o.spill = nil
	}
}

// Close closes the file for the whole output, if there is one.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeSpill()
	o.spillDir = ""
	return nil
}

// File is where the whole output is; empty when all of it fits.
func (o *Output) File() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.path
}

// Total is how many bytes were written.
func (o *Output) Total() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// Text is what was written, at most limit bytes (or the Output's own limit when
// that is smaller) and a line that says how much is left out.
func (o *Output) Text(limit int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	half := min(limit, o.limit) / 2
	tail := o.tail
	if o.total <= int64(2*half) {
		return string(o.head) + string(tail)
	}
	head := o.head
	if len(head) > half {
		head = head[:half]
	}
	if len(tail) < half { // the head reaches into the last half
		all := append(bytes.Clone(o.head), tail...)
		tail = all
	}
	tail = tail[max(0, len(tail)-half):]
	return joinCut(head, tail, o.total)
}

// Cut shortens s to limit bytes, head and tail, saying how much is left out.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	half := limit / 2
	return joinCut([]byte(s[:half]), []byte(s[len(s)-half:]), int64(len(s)))
}

// joinCut puts head and tail together at character boundaries, at line ends
// where one is near.
func joinCut(head, tail []byte, total int64) string {
	head = trimPartial(head)
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	if i := bytes.LastIndexByte(head, '\n'); i >= len(head)-200 && i >= 0 {
		head = head[:i+1]
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < 200 && i+1 < len(tail) {
		tail = tail[i+1:]
	}
	var b strings.Builder
	b.Write(head)
	if len(head) > 0 && head[len(head)-1] != '\n' {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[… %d bytes left out …]\n", total-int64(len(head)+len(tail)))
	b.Write(tail)
	return b.String()
}

// trimPartial drops an unfinished character at the end.
func trimPartial(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// decoder makes valid UTF-8 of a byte stream that is cut anywhere: it holds an
// unfinished character back until the rest arrives, and replaces what is no
// UTF-8 by U+FFFD. One stream needs one decoder.
type decoder struct {
	to      io.Writer
	pending []byte
}

func (d *decoder) Write(p []byte) (int, error) {
	n := len(p)
	if len(d.pending) > 0 {
		p = append(d.pending, p...)
		d.pending = nil
	}
	whole := trimPartial(p)
	if rest := p[len(whole):]; len(rest) > 0 {
		d.pending = bytes.Clone(rest)
	}
	if len(whole) > 0 {
		_, _ = d.to.Write(bytes.ToValidUTF8(whole, []byte("\uFFFD")))
	}
	return n, nil
}

// Close writes what is still held back.
func (d *decoder) Close() error {
	if len(d.pending) > 0 {
		_, _ = d.to.Write([]byte("\uFFFD"))
		d.pending = nil
	}
	return nil
}
