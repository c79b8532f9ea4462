package tool

import (
	"bufio"
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
func (q *query) ourselves(ctx context.Context, path string, fi fs.FileInfo) (found, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g := &gather{stop: func() { stop(errEnough) }}
	if !fi.IsDir() {
		g.add(q.file(ctx, path))
		return g.found, nil
	}
	files := make(chan string, 256)
	var readers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			for f := range files {
				g.add(q.file(ctx, f))
			}
		})
	}
	err := walk(ctx, path, func(f string, e fs.DirEntry) bool {
		if q.glob != "" {
			rel, err := filepath.Rel(path, f)
			if err != nil || !doublestar.MatchUnvalidated(q.glob, filepath.ToSlash(rel)) {
				return true
			}
		}
		if fi, err := e.Info(); err != nil || fi.Size() > maxSearched {
			return true
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

func (g *gather) add(hits []hit) {
	if len(hits) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.more {
		return
	}
	g.hits = append(g.hits, hits...)
	if len(g.hits) >= maxGathered {
		g.more = true
		g.stop()
	}
}

// file searches one file. One that cannot be read, or is not text, has nothing.
func (q *query) file(ctx context.Context, path string) []hit {
	f, _, err := openRegular(path, path)
	if err != nil {
		return nil
	}
	defer f.Close()
	r := bufio.NewReaderSize(io.LimitReader(f, maxSearched), 64<<10)
	if head, _ := r.Peek(8192); bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	s := lines{q: q, path: path}
	for ctx.Err() == nil {
		line, err := readLine(r)
		if bytes.IndexByte(line, 0) >= 0 {
			return nil // binary after all
		}
		if len(line) > 0 {
			s.take(bytes.TrimSuffix(line, []byte("\n")))
		}
		if err != nil || len(s.hits) > maxGathered {
			break
		}
	}
	return s.end()
}

// readLine reads a line of any length.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.ReadSlice('\n')
		long = append(long, line...)
	}
	return long, err
}

// lines gathers the hits of one file.
type lines struct {
	q      *query
	path   string
	n      int
	count  int
	hits   []hit
	before []hit // lines before that may turn out to be near
	after  int   // how many of the next lines are near
}

func (s *lines) take(line []byte) {
	s.n++
	if !s.q.re.Match(bytes.TrimSuffix(line, []byte("\r"))) {
		switch {
		case s.q.Context == 0 || s.q.Mode != modeContent:
		case s.after > 0:
			s.after--
			s.hits = append(s.hits, hit{path: s.path, line: s.n, near: true, text: shortLine(line)})
		default:
			s.before = append(s.before, hit{path: s.path, line: s.n, near: true, text: shortLine(line)})
			if len(s.before) > s.q.Context {
				s.before = s.before[1:]
			}
		}
		return
	}
	s.count++
	if s.q.Mode != modeContent {
		return
	}
	s.hits = append(append(s.hits, s.before...), hit{path: s.path, line: s.n, text: shortLine(line)})
	s.before, s.after = nil, s.q.Context
}

func (s *lines) end() []hit {
	if s.q.Mode != modeContent && s.count > 0 {
		return []hit{{path: s.path, count: s.count}}
	}
	return s.hits
}
