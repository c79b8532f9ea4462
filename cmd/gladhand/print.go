package main

import (
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Whatever comes from agents, tools, files or other clients is shown through
// lines or oneLine: what would move the cursor, recolour, reorder or hide text is
// written out instead, so that nobody reads something else than there is.

// lines makes control characters visible; line breaks and tabs stay.
func lines(s string) string { return visible(s, true) }

// oneLine makes control characters visible, line breaks too.
func oneLine(s string) string { return visible(s, false) }

func visible(s string, multi bool) string {
	if multi {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	clean := true
	for _, r := range s {
		if hidden(r) || r == utf8.RuneError {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			writeHex(&b, 'x', rune(s[i]), 2)
		case multi && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case hidden(r) && r < 0x100:
			writeHex(&b, 'x', r, 2)
		case hidden(r) && r < 0x10000:
			writeHex(&b, 'u', r, 4)
		case hidden(r):
			writeHex(&b, 'U', r, 8)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// hidden reports whether a terminal would obey r, or show nothing for it: C0, C1
// and DEL, and Unicode's format characters, line and paragraph separators. The
// joiners stay: emoji and several scripts need them.
func hidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r < 0xad, r == 0x200c, r == 0x200d:
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

func writeHex(b *strings.Builder, kind byte, r rune, digits int) {
	const hex = "0123456789abcdef"
	b.WriteByte('\\')
	b.WriteByte(kind)
	for i := digits - 1; i >= 0; i-- {
		b.WriteByte(hex[r>>(4*i)&15])
	}
}

// cut shortens s to at most n characters.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// style writes colours, or not.
type style struct{ on bool }

// styleFor is the style for a stream: colours only on a terminal that wants them.
func styleFor(f *os.File) style {
	return style{on: isTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) dim(text string) string  { return s.paint("2", text) }
func (s style) bold(text string) string { return s.paint("1", text) }
func (s style) red(text string) string  { return s.paint("31", text) }
func (s style) ask(text string) string  { return s.paint("1;33", text) }
