package daemon

import (
	"context"
	"slices"
	"sort"
	"sync"

	"gladhand"
	"gladhand/session"
)

// stream is a stretch of one session as all live readers of one kind get it. It is
// read once and encoded once, by whichever reader comes first; the others copy.
// Nobody waits for anybody: readers that fall behind what is kept make a stream
// of their own, which ends when it meets one that is ahead.
type stream struct {
	of     *streams
	key    streamKey
	trails bool       // it was made behind another
	mu     sync.Mutex // guards what follows; the session's lock is taken under it
	lead   *session.Cursor
	enc    encoder
	// parts are adjacent, oldest first; end is where the newest one ends.
	parts []*part
	bytes int
	end   gladhand.Seq
	// readers are in the stream; those at rest have got all of it.
	readers, resting int
}

const (
	// streamKept is how many bytes a stream keeps for readers that are behind.
	streamKept = 1 << 20
	// streamTake is about how much a reader takes at a time.
	streamTake = 256 << 10
)

// part is what adjacent events are to a reader: frames, and the events they were
// made of. It does not change.
type part struct {
	from, to gladhand.Seq // it covers the numbers from+1 … to of the log
	told     gladhand.Seq // the last number named to the reader before it
	tells    gladhand.Seq // and behind it
	items    []session.Item
	frames   [][]byte
	bytes    int
	// plain: there is nothing to do but to write the frames.
	plain bool
}

// streams finds the stream for a reader. The zero value is ready.
type streams struct {
	mu   sync.Mutex // taken before a stream's
	open map[streamKey][]*stream
}

type streamKey struct {
	s *session.Session
	frameKey
}

// join puts a live reader into the stream that is at its place, or has it still:
// of several the one that is furthest. A reader that leaves must say so.
func (ss *streams) join(s *session.Session, key frameKey, c *session.Cursor, at, told gladhand.Seq) *stream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	k := streamKey{s, key}
	st := ss.at(k, at)
	if st == nil {
		if ss.open == nil {
			ss.open = map[streamKey][]*stream{}
		}
		st = &stream{of: ss, key: k, trails: len(ss.open[k]) > 0, lead: c.Clone(), end: at, enc: encoder{s: s.ID(), key: key, told: told}}
		st.lead.Skip(at)
		ss.open[k] = append(ss.open[k], st)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.readers++
	return st
}

// at is the stream that has a place and is furthest, or nil; mu is held.
func (ss *streams) at(k streamKey, at gladhand.Seq) *stream {
	var best *stream
	var end gladhand.Seq
	for _, st := range ss.open[k] {
		st.mu.Lock()
		if _, ok := st.find(at); ok && (best == nil || st.end > end) {
			best, end = st, st.end
		}
		st.mu.Unlock()
	}
	return best
}

func (st *stream) leave() {
	st.of.mu.Lock()
	defer st.of.mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.readers--; st.readers > 0 {
		return
	}
	list := slices.DeleteFunc(st.of.open[st.key], func(o *stream) bool { return o == st })
	st.of.open[st.key] = list
	if len(list) == 0 {
		delete(st.of.open, st.key)
	}
}

// met reports whether a stream that trails has come to a place that one ahead
// of it has.
func (st *stream) met(at gladhand.Seq) bool {
	if !st.trails {
		return false
	}
	st.of.mu.Lock()
	defer st.of.mu.Unlock()
	best := st.of.at(st.key, at)
	return best != nil && best != st
}

// find returns the index of the part that has what follows a reader's place,
// len(parts) at the end, or false when the reader is elsewhere; mu is held.
func (st *stream) find(at gladhand.Seq) (int, bool) {
	if at >= st.end {
		return len(st.parts), at <= max(st.end, st.lead.Seen())
	}
	i := sort.Search(len(st.parts), func(i int) bool { return st.parts[i].to > at })
	return i, i < len(st.parts) && st.parts[i].from <= at && st.parts[i].after(at) != nil
}

// after is the part behind a number, or nil when that is inside an event.
func (p *part) after(at gladhand.Seq) *part {
	if at == p.from {
		return p
	}
	i := sort.Search(len(p.items), func(i int) bool { return p.items[i].To > at })
	if i == 0 || p.items[i-1].To != at {
		return nil
	}
	rest := *p
	rest.from, rest.items, rest.frames, rest.told = at, p.items[i:], nil, untold
	return &rest
}

// untold is what no reader was told: the frames have to be made again.
const untold = ^gladhand.Seq(0)

// next appends to dst what follows a reader's place, and waits for it with the
// reader's own cursor. Nothing and no error mean that the stream has gone on
// without the reader.
func (st *stream) next(ctx context.Context, c *session.Cursor, at gladhand.Seq, dst []*part) ([]*part, error) {
	for {
		if st.met(at) {
			return dst, nil
		}
		st.mu.Lock()
		i, ok := st.find(at)
		if ok && i == len(st.parts) {
			var err error
			if i, err = st.fill(ctx); err != nil {
				st.mu.Unlock()
				return nil, err
			}
		}
		size := 0
		for ; ok && i < len(st.parts) && size < streamTake; i++ {
			p := st.parts[i]
			if len(dst) == 0 && at > p.from {
				p = p.after(at)
			}
			dst = append(dst, p)
			size += p.bytes
		}
		if !ok || len(dst) > 0 {
			st.mu.Unlock()
			return dst, nil
		}
		c.Skip(st.lead.Seen())
		st.rest(1)
		st.mu.Unlock()
		err := c.Wait(ctx)
		st.mu.Lock()
		st.rest(-1)
		st.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// rest notes a reader that begins to wait, or ends. What all have got is not
// kept; mu is held.
func (st *stream) rest(n int) {
	if st.resting += n; st.resting == st.readers {
		st.parts, st.bytes = nil, 0
	}
}

// fill reads on, and returns the index of the first new part, or len(parts) when
// there is nothing new; mu is held.
func (st *stream) fill(ctx context.Context) (int, error) {
	items, err := st.lead.Poll(ctx)
	if err != nil || len(items) == 0 {
		return len(st.parts), err
	}
	old := 0
	for ; old < len(st.parts) && st.bytes > streamKept; old++ {
		st.bytes -= st.parts[old].bytes
	}
	st.parts = append([]*part(nil), st.parts[old:]...)
	first := len(st.parts)
	st.parts = st.enc.parts(st.parts, st.end, items)
	for _, p := range st.parts[first:] {
		st.bytes += p.bytes
		st.end = p.to
	}
	return first, nil
}
