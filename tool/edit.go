package tool

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// edit is one replacement in a text.
type edit struct {
	Old string `json:"old_text"`
	New string `json:"new_text"`
	All bool   `json:"replace_all"`
}

// splice is bytes [start,end) of a text to be replaced by with. line is where
// the match begins.
type splice struct {
	start, end int
	with       []byte
	line       int
}

// spliceAll finds each edit in body and returns the splices in order. Edits are
// matched against the body as it is, not against each other's results; matches
// are exact but for \r\n, which both sides may spell \n. Errors say which edit.
func spliceAll(body []byte, edits []edit) ([]splice, error) {
	v := lfView(body)
	var all []splice
	for i, e := range edits {
		which := "old_text"
		if len(edits) > 1 {
			which = fmt.Sprintf("edits[%d].old_text", i)
		}
		found, err := v.match(e, which)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b splice) int { return a.start - b.start })
	for i := 1; i < len(all); i++ {
		if all[i].start < all[i-1].end {
			return nil, fmt.Errorf("two edits touch the same text near line %d; make them one edit", all[i].line)
		}
	}
	return all, nil
}

func (v lfText) match(e edit, which string) ([]splice, error) {
	old := []byte(strings.ReplaceAll(e.Old, "\r\n", "\n"))
	text := []byte(strings.ReplaceAll(e.New, "\r\n", "\n"))
	switch {
	case len(old) == 0:
		return nil, fmt.Errorf("%s is empty; give the text to replace", which)
	case bytes.Equal(old, text):
		return nil, fmt.Errorf("%s and new_text are the same; nothing would change", which)
	}
	var at []int
	for pos := 0; ; {
		i := bytes.Index(v.text[pos:], old)
		if i < 0 {
			break
		}
		at = append(at, pos+i)
		pos += i + 1
		if e.All {
			pos += len(old) - 1
		}
	}
	switch {
	case len(at) == 0:
		return nil, fmt.Errorf("%s was not found; the file is unchanged. %s", which, v.nearest(old))
	case len(at) > 1 && !e.All:
		var lines []string
		for _, pos := range at[:min(len(at), 8)] {
			lines = append(lines, fmt.Sprint(v.line(pos)))
		}
		return nil, fmt.Errorf("%s was found %d times (lines %s); the file is unchanged. Add lines around it until it is unique, or set replace_all",
			which, len(at), strings.Join(lines, ", "))
	}
	out := make([]splice, 0, len(at))
	line, counted := 1, 0
	for _, pos := range at {
		line += bytes.Count(v.text[counted:pos], []byte("\n"))
		counted = pos
		s := v.splice(pos, pos+len(old), text)
		s.line = line
		out = append(out, s)
	}
	return out, nil
}

// splice replaces text positions [start,end) by text, touching only bytes that
// differ, with the line ends that are in use there.
func (v lfText) splice(start, end int, text []byte) splice {
	for len(text) > 0 && start < end && v.text[start] == text[0] {
		start++
		text = text[1:]
	}
	for len(text) > 0 && start < end && v.text[end-1] == text[len(text)-1] {
		end--
		text = text[:len(text)-1]
	}
	return splice{start: v.offset(start), end: v.offset(end), with: v.spell(start, end, text)}
}

// spell gives text the line ends of what it replaces: a line that is the same
// on both sides keeps its own, others take that of the line they replace or
// stand behind.
func (v lfText) spell(start, end int, text []byte) []byte {
	if len(v.crs) == 0 || bytes.IndexByte(text, '\n') < 0 {
		return text
	}
	oldLines, newLines := bytes.SplitAfter(v.text[start:end], []byte("\n")), bytes.SplitAfter(text, []byte("\n"))
	from := pairLines(oldLines, newLines)
	ends := make([]string, len(oldLines)) // by old line; the last piece has no \n
	pos := start
	for i, l := range oldLines {
		pos += len(l)
		if bytes.HasSuffix(l, []byte("\n")) {
			ends[i] = "\n"
			if v.crlf(pos - 1) {
				ends[i] = "\r\n"
			}
		}
	}
	use := v.endAt(start)
	var out []byte
	for i, l := range newLines {
		l, isLine := bytes.CutSuffix(l, []byte("\n"))
		out = append(out, l...)
		if isLine {
			if j := from[i]; j >= 0 && ends[j] != "" {
				use = ends[j]
			}
			out = append(out, use...)
		}
	}
	return out
}

// pairLines tells for each new line which old line it is: the longest common
// subsequence, and between its members pairs in order. −1 is a line of its own.
func pairLines(old, new [][]byte) []int {
	from := make([]int, len(new))
	if len(old)*len(new) > 1<<20 { // too long to compare: in order
		for i := range from {
			from[i] = i
			if i >= len(old) {
				from[i] = -1
			}
		}
		return from
	}
	width := len(new) + 1
	common := make([]int32, (len(old)+1)*width)
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(new) - 1; j >= 0; j-- {
			if bytes.Equal(old[i], new[j]) {
				common[i*width+j] = 1 + common[(i+1)*width+j+1]
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j, gap := 0, 0, 0 // gap: the first old line that no new one was paired with
	for j < len(new) {
		switch {
		case i < len(old) && bytes.Equal(old[i], new[j]):
			from[j] = i
			i, j = i+1, j+1
			gap = i
		case i < len(old) && common[(i+1)*width+j] >= common[i*width+j+1]:
			i++
		default:
			from[j] = -1
			if gap < i {
				from[j] = gap
				gap++
			}
			j++
		}
	}
	return from
}

// content is what a file will say, in pieces: most of a large file that is
// edited is what was loaded, and is not copied.
type content [][]byte

// spliced is body with the splices, which are in order, made.
func spliced(body []byte, splices []splice) content {
	out := make(content, 0, 2*len(splices)+1)
	pos := 0
	for _, s := range splices {
		out = append(out, body[pos:s.start], s.with)
		pos = s.end
	}
	return append(out, body[pos:])
}

func (c content) size() (n int) {
	for _, p := range c {
		n += len(p)
	}
	return n
}

// joined is the content in one piece.
func (c content) joined() []byte { return bytes.Join(c, nil) }

// is reports whether the content is exactly b.
func (c content) is(b []byte) bool {
	for _, p := range c {
		if !bytes.HasPrefix(b, p) {
			return false
		}
		b = b[len(p):]
	}
	return len(b) == 0
}

// sum is the digest of the content; see [sum].
func (c content) sum() string {
	h := sha256.New()
	for _, p := range c {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// WriteTo writes small pieces together.
func (c content) WriteTo(w io.Writer) (int64, error) {
	b := bufio.NewWriterSize(w, min(64<<10, c.size())) // larger pieces pass by it
	n := int64(0)
	for _, p := range c {
		m, err := b.Write(p)
		if n += int64(m); err != nil {
			return n, err
		}
	}
	return n, b.Flush()
}

// nearest tells what in the text looks most like old, so that the next try can
// hit. It never stands in for a match. It looks for old's longest line, and
// compares whole texts only where that one is found.
func (v lfText) nearest(old []byte) string {
	const mostLines, mostTried = 20000, 8
	want := trimmedLines(old)
	want = want[:min(len(want), 40)]
	anchor := 0
	for i, w := range want {
		if len(w) > len(want[anchor]) {
			anchor = i
		}
	}
	have := trimmedLines(v.text[:min(len(v.text), 4<<20)])
	have = have[:min(len(have), mostLines)]
	type place struct{ at, like int }
	var tried []place
	for i, h := range have {
		if like := likeness(want[anchor], h); like >= 40 && i >= anchor {
			tried = append(tried, place{i - anchor, like})
		}
	}
	slices.SortStableFunc(tried, func(a, b place) int { return b.like - a.like })
	best, bestAt := -1, 0
	for _, p := range tried[:min(len(tried), mostTried)] {
		score := 0
		for i, w := range want {
			if p.at+i < len(have) {
				score += likeness(w, have[p.at+i])
			}
		}
		if score > best {
			best, bestAt = score, p.at
		}
	}
	if best < 40*len(want) {
		return "Nothing in the file looks like it; read the file again."
	}
	lines := bytes.SplitAfter(v.text, []byte("\n"))
	from, to := bestAt, min(bestAt+len(want), len(lines))
	near := bytes.TrimRight(bytes.Join(lines[from:to], nil), "\n")
	if len(near) > 2000 {
		near = append(bytes.Clone(near[:2000]), "…"...)
	}
	where := fmt.Sprintf("line %d", from+1)
	if to-from > 1 {
		where = fmt.Sprintf("lines %d–%d", from+1, to)
	}
	return fmt.Sprintf("The nearest text is %s:\n%s", where, clean(near))
}

func trimmedLines(b []byte) []string {
	lines := strings.Split(string(bytes.TrimRight(b, "\n")), "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return lines
}

// likeness is how alike two lines are, from 0 to 100, by their pairs of letters.
func likeness(a, b string) int {
	if a == b {
		return 100
	}
	if len(a) < 2 || len(b) < 2 || len(a) > 4*len(b) || len(b) > 4*len(a) {
		return 0
	}
	a, b = a[:min(len(a), 300)], b[:min(len(b), 300)]
	pairs := map[[2]byte]int{}
	for i := range len(a) - 1 {
		pairs[[2]byte{a[i], a[i+1]}]++
	}
	same := 0
	for i := range len(b) - 1 {
		if p := [2]byte{b[i], b[i+1]}; pairs[p] > 0 {
			pairs[p]--
			same++
		}
	}
	return 200 * same / (len(a) + len(b) - 2)
}

// maxWhole is up to which size a diff shows both files whole, maxHunk how much
// of one change it shows.
const (
	maxWhole = 16 << 10
	maxHunk  = 32 << 10
)

// diffs shows what the splices do to body: whole files when they are small,
// else each changed place with three lines around it.
func diffs(path string, body []byte, splices []splice) []Diff {
	show := func(from, to int, some []splice) Diff {
		local := make([]splice, len(some))
		for i, s := range some {
			local[i] = splice{start: s.start - from, end: s.end - from, with: s.with}
		}
		o := Cut(clean(body[from:to]), maxHunk)
		return Diff{Path: path, Old: &o, New: Cut(clean(spliced(body[from:to], local).joined()), maxHunk)}
	}
	if len(body) <= maxWhole && spliced(body, splices).size() <= maxWhole {
		return []Diff{show(0, len(body), splices)}
	}
	var out []Diff
	for i := 0; i < len(splices) && len(out) < 8; {
		first := i
		from, to := aroundLines(body, splices[i].start, splices[i].end)
		for ; i < len(splices) && splices[i].start <= to; i++ {
			_, to = aroundLines(body, splices[i].start, max(splices[i].end, splices[i].start))
		}
		out = append(out, show(from, to, splices[first:i]))
	}
	return out
}

// aroundLines widens [start,end) to whole lines and three more on each side.
func aroundLines(b []byte, start, end int) (from, to int) {
	from, to = start, end
	for range 4 {
		if from > 0 {
			from = bytes.LastIndexByte(b[:from-1], '\n') + 1
		}
		if to < len(b) {
			if i := bytes.IndexByte(b[to:], '\n'); i >= 0 {
				to += i + 1
			} else {
				to = len(b)
			}
		}
	}
	return from, to
}

var errNothing = errors.New("the file already says exactly that; nothing was changed")
