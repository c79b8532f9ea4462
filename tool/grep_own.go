package tool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
)

// ourselves searches without ripgrep: one goroutine walks, as many as there are
// processors read.
func (q *query) ourselves(ctx context.Context, path string) (found, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g := &gather{stop: func() { stop(errEnough) }}
	files := make(chan string, 256)
	var readers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			var buf []byte
			for f := range files {
				if ctx.Err() != nil {
					continue // the walk ends too
				}
				data, err := slurp(f, buf, maxSearched)
				if err != nil {
					g.failed(err)
					continue
				}
				buf = data[:0]
				s := scan{q: q, path: f, line: 1}
				binary := s.file(data)
				g.add(f, s.hits, binary)
			}
		})
	}
	w, err := walk(ctx, path, func(f string, _ fs.DirEntry) bool {
		if q.glob != "" {
			rel, err := filepath.Rel(path, f)
			if err != nil || !doublestar.MatchUnvalidated(q.glob, filepath.ToSlash(rel)) {
				return true
			}
		}
		select {
		case files <- f:
			return true
		case <-ctx.Done():
			return false
		}
	})
	close(files)
	readers.Wait()
	g.unread = g.unread || w.unread
	g.more = g.more || w.left < 0
	if errors.Is(context.Cause(ctx), errEnough) {
		err = nil
	}
	return g.found, err
}

// errEnough ends a search that has gathered enough.
var errEnough = errors.New("enough was found")

// gather takes what is found, from many goroutines.
type gather struct {
	mu sync.Mutex
	found
	stop func()
}

func (g *gather) add(path string, hits []hit, binary bool) {
	if len(hits) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.more:
		return
	case binary:
		g.binary = append(g.binary, path)
	default:
		g.hits = append(g.hits, hits...)
	}
	if len(g.hits)+len(g.binary) >= maxGathered {
		g.more = true
		g.stop()
	}
}

// errNotSearched is for a file that is too large, or is none.
var errNotSearched = errors.New("not searched")

func (g *gather) failed(err error) {
	if errors.Is(err, errNotSearched) || errors.Is(err, fs.ErrNotExist) { // or gone meanwhile
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unread = true
}

// partSize is how much of a large file is in memory.
const partSize = 8 << 20

// large searches one file of any size, parts of it at a time. A line that is longer than
// a part is searched in pieces.
func (q *query) large(ctx context.Context, path string, f io.Reader, part int) (found, error) {
	s := scan{q: q, path: path, line: 1}
	buf := make([]byte, 0, part)
	seen := 0 // bytes at the beginning of buf that were searched, and are context
	for first := true; ; first = false {
		n, err := io.ReadFull(f, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if cerr := ctx.Err(); cerr != nil {
			return found{hits: s.end()}, cerr
		}
		end := err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return found{}, err
		}
		if first {
			buf = bytes.TrimPrefix(buf, []byte(bom[utf8BOM]))
		}
		whole := len(buf)
		if !end {
			if i := bytes.LastIndexByte(buf[seen:], '\n'); i >= 0 {
				whole = seen + i + 1
			}
		}
		s.part(buf[:whole], seen)
		if end || len(s.hits) >= maxGathered {
			return found{hits: s.end(), more: !end}, nil
		}
		keep := lastLines(buf[:whole], q.Context, part/2)
		buf = append(buf[:0], buf[keep:]...)
		seen = whole - keep
	}
}

// lastLines is where the last n lines of b begin, at most limit bytes from its end.
func lastLines(b []byte, n, limit int) int {
	at := len(b)
	for range n {
		if at == 0 {
			break
		}
		before := bytes.LastIndexByte(b[:at-1], '\n') + 1
		if len(b)-before > limit {
			break
		}
		at = before
	}
	return at
}

// scan gathers the hits of one file.
type scan struct {
	q     *query
	path  string
	line  int // the number of the next line to be searched
	count int
	hits  []hit
	given int // the number of the last line in hits
	after int // how many of the next lines are near
}

// file searches a whole file, and reports whether it is binary.
func (s *scan) file(data []byte) (binary bool) {
	switch enc := encodingOf(data); enc {
	case utf16LE, utf16BE:
		data = decodeUTF16(data[len(bom[enc]):], enc)
	default:
		data, binary = data[len(bom[enc]):], isBinary(data)
	}
	s.part(data, 0)
	s.hits = s.end()
	return binary
}

// part searches text[from:], which begins and ends with a line; what is before are the
// lines before, for context.
func (s *scan) part(text []byte, from int) {
	pos := from
	for {
		start, end := s.next(text, pos)
		if start < 0 {
			break
		}
		s.around(text, pos, start)
		s.line += bytes.Count(text[pos:start], []byte("\n"))
		s.count++
		if s.q.Mode == modeContent {
			s.hits = append(s.hits, hit{path: s.path, line: s.line, text: shortLine(text[start:end])})
			s.given, s.after = s.line, s.q.Context
		}
		pos = end
		if pos < len(text) { // the line end
			pos++
			s.line++
		}
		if s.q.Mode == modeFiles || len(s.hits) > maxGathered {
			return
		}
	}
	s.trailing(text[pos:])
	s.line += bytes.Count(text[pos:], []byte("\n"))
}

// next finds the next line, from pos on, that matches: text[start:end], without its end.
func (s *scan) next(text []byte, pos int) (start, end int) {
	for pos < len(text) {
		at := pos
		if lit := s.q.literal; lit != "" {
			i := bytes.Index(text[pos:], []byte(lit))
			if i < 0 {
				return -1, -1
			}
			at += i
		} else if loc := s.q.re.FindIndex(text[pos:]); loc != nil {
			at += loc[0]
		} else {
			return -1, -1
		}
		if at == len(text) && text[at-1] == '\n' {
			return -1, -1 // behind the last line
		}
		start = pos + bytes.LastIndexByte(text[pos:at], '\n') + 1
		end = len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i
		}
		if s.q.literal == "" || s.q.re.Match(text[start:end]) {
			return start, end
		}
		pos = end + 1
	}
	return -1, -1
}

// around gathers the lines between the hit before and that at start which are near
// either: text[pos:start] was not given yet, nor the context before pos.
func (s *scan) around(text []byte, pos, start int) {
	if s.q.Context == 0 || s.q.Mode != modeContent {
		return
	}
	hitLine := s.line + bytes.Count(text[pos:start], []byte("\n"))
	s.trailing(text[pos:start])
	at, n := start, hitLine
	for n > 1 && at > 0 && hitLine-n < s.q.Context && n-1 > s.given {
		at = bytes.LastIndexByte(text[:at-1], '\n') + 1
		n--
	}
	for ; at < start; n++ {
		end := at + bytes.IndexByte(text[at:], '\n')
		s.near(n, text[at:end])
		at = end + 1
	}
}

// trailing gathers the lines behind the last hit that are near it. text begins with
// line s.line, which it does not change.
func (s *scan) trailing(text []byte) {
	for n := s.line; s.after > 0 && len(text) > 0; n++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		s.near(n, line)
		text = rest
		s.after--
	}
}

func (s *scan) near(n int, line []byte) {
	s.hits = append(s.hits, hit{path: s.path, line: n, near: true, text: shortLine(line)})
	s.given = n
}

func (s *scan) end() []hit {
	if s.q.Mode != modeContent && s.count > 0 {
		return []hit{{path: s.path, count: s.count}}
	}
	return s.hits
}
