package acp

import (
	"bytes"

	"gladhand"
)

const (
	// RunLimit is how much text, in bytes, a run of appends holds. One append that
	// is longer stands alone.
	RunLimit = 64 << 10
	// RunNumbers is how many numbers an event with lengths covers at most.
	RunNumbers = 8192
)

// Run is the end of a log that may still grow: one event, or adjacent ones that
// make one. Adding costs what is added; an event that was given out never
// changes. A Run is not safe for concurrent use: the log's lock guards it.
type Run struct {
	first *gladhand.Event // as it came
	last  *gladhand.Event
	n     int
	// head is Update up to the end of the text so far, for appends.
	head []byte
	lens []uint32
	made *gladhand.Event // what Event gave since the last Add
	part *gladhand.Event // what After gave since the last Add
	at   gladhand.Seq    // its cursor
}

// NewRun starts a run with an event, which may be of any class and cover several
// numbers.
func NewRun(e *gladhand.Event) *Run { return &Run{first: e, last: e, n: 1, made: e} }

// Opening is the event the run began with: its Tag, ID, Turn, By and First are the
// run's, its Update is the first part only. It costs nothing.
func (r *Run) Opening() *gladhand.Event { return r.first }

// Last is the last number covered.
func (r *Run) Last() gladhand.Seq { return r.last.Last }

// First is the first number covered.
func (r *Run) First() gladhand.Seq { return r.first.First }

// Add takes next into the run, or reports that it cannot: it is another id's, of
// another turn or sender, not adjacent, a Fact, or the run is full. What merges:
//
//   - an append onto an append, when the bytes around their texts are equal;
//   - a replacement onto a replacement that has no _meta, when it sets at least
//     the same members; of a message's, when it extends the text as well.
func (r *Run) Add(next *gladhand.Event) bool {
	if !joins(r.first, r.last, next) {
		return false
	}
	if next.Class == gladhand.Append {
		return r.append(next)
	}
	return r.replace(next)
}

// joins reports whether next may follow what a and b, the ends of a run, hold,
// as far as their texts do not matter.
func joins(a, b, next *gladhand.Event) bool {
	return next.Class == a.Class && a.Class != gladhand.Fact && a.ID != "" && next.ID == a.ID &&
		next.First == b.Last+1 && next.Tag == a.Tag && next.Version == a.Version && next.Turn == a.Turn &&
		sameBy(a, next) && bytes.Equal(a.Prior, next.Prior)
}

func sameBy(a, b *gladhand.Event) bool {
	return a.By == b.By || a.By != nil && b.By != nil && *a.By == *b.By
}

func (r *Run) append(next *gladhand.Event) bool {
	a := r.first
	if !hasText(a) || !hasText(next) {
		return false
	}
	if !bytes.Equal(a.Update[:a.Text.Start], next.Update[:next.Text.Start]) ||
		!bytes.Equal(a.Update[a.Text.End:], next.Update[next.Text.End:]) {
		return false
	}
	head := r.head
	if head == nil {
		head = a.Update[:a.Text.End:a.Text.End]
	}
	have := len(head) - a.Text.Start
	if have+next.Text.Len() > RunLimit || r.numbers()+int(next.Last-next.First) >= RunNumbers {
		return false
	}
	if a.Tag == TagTerminalChunk && have > 0 && head[len(head)-1] == '=' {
		return false // padding ends what can be joined
	}
	r.lens = appendLens(r.lens, r.first, r.n, next, next.Text.Len())
	r.head = append(head, next.Update[next.Text.Start:next.Text.End]...)
	r.grow(next)
	return true
}

func (r *Run) replace(next *gladhand.Event) bool {
	b := r.last
	if !covers(next.Update, b.Update) {
		return false
	}
	if kinds[b.Tag].form != formMessage {
		r.grow(next)
		return true
	}
	if !hasText(b) || !hasText(next) || b.Base < 0 || next.Base != b.Text.Len() || r.numbers() >= RunNumbers ||
		!bytes.HasPrefix(next.Update[next.Text.Start:next.Text.End], b.Update[b.Text.Start:b.Text.End]) {
		return false
	}
	r.lens = appendLens(r.lens, r.first, r.n, next, next.Text.Len()-next.Base)
	r.grow(next)
	return true
}

func (r *Run) grow(next *gladhand.Event) {
	r.last = next
	r.n++
	r.made, r.part = nil, nil
}

// numbers is how many numbers the run covers.
func (r *Run) numbers() int { return int(r.last.Last - r.first.First + 1) }

// appendLens notes what next adds, after what the first event of a run holds.
func appendLens(lens []uint32, first *gladhand.Event, n int, next *gladhand.Event, added int) []uint32 {
	if n == 1 {
		lens = append(make([]uint32, 0, 16), lensOf(first, first.Text.Len()-max(base(first), 0))...)
	}
	return append(lens, lensOf(next, added)...)
}

// lensOf is e.Lens, made up for an event that has none: all of the text is its
// first number's.
func lensOf(e *gladhand.Event, added int) []uint32 {
	if e.Lens != nil {
		return e.Lens
	}
	lens := make([]uint32, e.Last-e.First+1)
	lens[0] = uint32(added)
	return lens
}

func base(e *gladhand.Event) int {
	if e.Class == gladhand.Append {
		return 0
	}
	return e.Base
}

// Event is the run as one event, made at most once between two Adds. It is the
// event the run began with while that is all.
func (r *Run) Event() *gladhand.Event {
	if r.made != nil {
		return r.made
	}
	e := *r.first
	e.Last = r.last.Last
	e.Lens = r.lens[:len(r.lens):len(r.lens)]
	if e.Class == gladhand.Append {
		tail := r.first.Update[r.first.Text.End:]
		e.Update = append(append(make([]byte, 0, len(r.head)+len(tail)), r.head...), tail...)
		e.Text.End = len(r.head)
	} else {
		e.Update, e.Text = r.last.Update, r.last.Text
	}
	r.made = &e
	return r.made
}

// After is Event().After(cursor) at the cost of the part behind the cursor. It is
// made once for all that ask with the same cursor between two Adds. The cursor
// must be below Last.
func (r *Run) After(cursor gladhand.Seq) *gladhand.Event {
	if cursor < r.first.First || r.made != nil || r.head == nil {
		return r.Event().After(cursor)
	}
	if r.part != nil && r.at == cursor {
		return r.part
	}
	n := int(cursor - r.first.First + 1)
	rest := r.lens[n:len(r.lens):len(r.lens)]
	size := 0
	for i := len(rest) - 1; i >= 0; i-- {
		size += int(rest[i])
	}
	e := *r.first
	e.First, e.Last, e.Lens = cursor+1, r.last.Last, rest
	start, tail := r.first.Text.Start, r.first.Update[r.first.Text.End:]
	e.Update = make([]byte, 0, start+size+len(tail))
	e.Update = append(e.Update, r.head[:start]...)
	e.Update = append(e.Update, r.head[len(r.head)-size:]...)
	e.Update = append(e.Update, tail...)
	e.Text.End = start + size
	r.part, r.at = &e, cursor
	return r.part
}

// Merge returns the event that prev and next make, or false when they stay two.
// Adding to a [Run] has the same rules, and does not copy the text each time.
func Merge(prev, next *gladhand.Event) (*gladhand.Event, bool) {
	r := NewRun(prev)
	if !r.Add(next) {
		return nil, false
	}
	return r.Event(), true
}

// covers reports whether next sets at least the members that prev sets, so that
// nothing of prev would show after it. A _meta may say anything, also what adds
// up, so what has one is never replaced in the log.
func covers(next, prev []byte) bool {
	ok := true
	return eachMember(prev, func(m member) bool {
		ok = string(m.name) != "_meta" && find(next, string(m.name)).End > 0
		return ok
	}) && ok
}
