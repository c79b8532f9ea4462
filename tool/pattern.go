package tool

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is a regular expression as both engines read it: Go's, and that of ripgrep.
//
// Their languages differ in small ways: what \w, \s and \b are, whether { is a letter,
// what is in a class in a class, how $ stands to \r\n, what a dot does with a byte that
// is no UTF-8. So the model's pattern is parsed here, as RE2 syntax, and written anew
// in what both understand alike.
type pattern struct {
	re   *regexp.Regexp // over a whole file: ^ and $ are those of lines
	rust string         // the same for ripgrep; "" when there is none
	// literal is in every line that matches; "" is unknown.
	literal string
}

// errLineEnd refuses a pattern that can only match across lines.
var errLineEnd = errors.New("lines are searched one by one: a pattern cannot contain a line end. Search for a part of one line, with context for what is around it")

func newPattern(text string, fold bool) (*pattern, error) {
	flags := syntax.Perl
	if fold {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(text, flags)
	if err != nil {
		var e *syntax.Error
		if errors.As(err, &e) {
			return nil, fmt.Errorf("the pattern is no regular expression: %s in `%s`; set literal to search for it as text", e.Code, e.Expr)
		}
		return nil, err
	}
	w := patternWriter{boundary: `\b`, noBoundary: `\B`, nothing: `[^\x{0}-\x{10FFFF}]`}
	r := patternWriter{boundary: `(?-u:\b)`, noBoundary: `(?-u:\B)`, nothing: `[a&&b]`}
	if w.write(tree); w.lineEnd {
		return nil, errLineEnd
	}
	r.write(tree)
	re, err := regexp.Compile("(?m)" + w.String())
	if err != nil {
		return nil, fmt.Errorf("the pattern is too large: %w", err)
	}
	p := &pattern{re: re, rust: r.String(), literal: required(tree)}
	if w.broken {
		p.rust, p.literal = "", ""
	}
	return p, nil
}

// patternWriter writes a syntax tree in one of the two languages.
type patternWriter struct {
	strings.Builder
	boundary, noBoundary, nothing string
	lineEnd                       bool // it asks for a line end
	broken                        bool // it asks for U+FFFD, which to Go is also what is no UTF-8
}

func (w *patternWriter) write(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpNoMatch:
		w.WriteString(w.nothing)
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			w.letter(c, re.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		w.class(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.class([]rune{0, unicode.MaxRune})
	case syntax.OpBeginLine, syntax.OpBeginText:
		w.WriteString(`^`)
	case syntax.OpEndLine, syntax.OpEndText:
		w.WriteString(`(?:\r?$)`) // a line ends with \n or \r\n
	case syntax.OpWordBoundary:
		w.WriteString(w.boundary)
	case syntax.OpNoWordBoundary:
		w.WriteString(w.noBoundary)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		w.group(re.Sub, "")
		w.WriteString(times(re))
		if re.Flags&syntax.NonGreedy != 0 {
			w.WriteByte('?')
		}
	case syntax.OpAlternate:
		w.group(re.Sub, "|")
	default: // OpEmptyMatch, OpCapture, OpConcat
		w.group(re.Sub, "")
	}
}

func (w *patternWriter) group(subs []*syntax.Regexp, between string) {
	w.WriteString("(?:")
	for i, s := range subs {
		if i > 0 {
			w.WriteString(between)
		}
		w.write(s)
	}
	w.WriteByte(')')
}

func times(re *syntax.Regexp) string {
	switch {
	case re.Op == syntax.OpStar:
		return "*"
	case re.Op == syntax.OpPlus:
		return "+"
	case re.Op == syntax.OpQuest:
		return "?"
	case re.Max == re.Min:
		return fmt.Sprintf("{%d}", re.Min)
	case re.Max < 0:
		return fmt.Sprintf("{%d,}", re.Min)
	}
	return fmt.Sprintf("{%d,%d}", re.Min, re.Max)
}

func (w *patternWriter) letter(c rune, fold bool) {
	if c == '\n' {
		w.lineEnd = true
	}
	if !fold || unicode.SimpleFold(c) == c {
		w.rune(c)
		return
	}
	w.WriteByte('[')
	w.rune(c)
	for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
		w.rune(f)
	}
	w.WriteByte(']')
}

func (w *patternWriter) rune(c rune) {
	switch {
	case c == utf8.RuneError:
		w.broken = true
		w.WriteRune(c)
	case c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z', c == '_', c == ' ':
		w.WriteRune(c)
	default:
		fmt.Fprintf(w, `\x{%X}`, c)
	}
}

// class writes pairs of first and last. A line end is in no line. A wide class (a dot,
// [^x], \s) takes neither the \r before one nor U+FFFD, which is what Go reads bytes as
// that are no UTF-8, and ripgrep does not match.
func (w *patternWriter) class(pairs []rune) {
	var b patternWriter
	add := func(lo, hi rune) {
		if lo > hi {
			return
		}
		b.rune(lo)
		if lo < hi {
			b.WriteByte('-')
			b.rune(hi)
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		lo, hi := pairs[i], pairs[i+1]
		if lo == hi {
			if lo != '\n' {
				add(lo, hi)
			}
			continue
		}
		from := lo
		for _, gap := range [][2]rune{{'\n', '\n'}, {'\r', '\r'}, {0xD800, 0xDFFF}, {utf8.RuneError, utf8.RuneError}} {
			if gap[1] < from || gap[0] > hi {
				continue
			}
			add(from, gap[0]-1)
			from = gap[1] + 1
		}
		add(from, hi)
	}
	w.broken = w.broken || b.broken
	if b.Len() == 0 {
		w.WriteString(w.nothing)
		return
	}
	w.WriteString("[" + b.String() + "]")
}

// required is the longest text that is in everything that matches, as far as it is
// easily seen.
func required(re *syntax.Regexp) string {
	best := ""
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		for _, s := range re.Sub {
			if l := required(s); len(l) > len(best) {
				best = l
			}
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	}
	return best
}
