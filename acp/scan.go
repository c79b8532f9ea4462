package acp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gladhand"
)

// The scanner below finds where things stand in JSON without decoding it. It
// trusts that valid was asked before, but never reads outside of its input: what
// it does not understand it reports as "not ok".

// valid reports whether b is one JSON value in UTF-8 without duplicate names. A
// lone surrogate escape is let through: agents cut their text in the middle of a
// pair, and its other half is in the next chunk.
func valid(b []byte) bool {
	return utf8.Valid(b) && jsontext.Value(b).IsValid(jsontext.AllowInvalidUTF8(true))
}

// member is one name and value of an object, as bytes.
type member struct {
	name []byte // without quotes, unescaped
	val  gladhand.Span
}

// eachMember calls f for each member of the object that begins b, until f
// returns false. It reports whether b was read to its end or f stopped it.
func eachMember(b []byte, f func(m member) bool) bool {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return true
	}
	for {
		end, ok := skipString(b, i)
		if !ok {
			return false
		}
		name := unescape(b[i+1 : end-1])
		if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
			return false
		}
		i = skipSpace(b, i+1)
		if end, ok = skipValue(b, i); !ok {
			return false
		}
		if !f(member{name: name, val: gladhand.Span{Start: i, End: end}}) {
			return true
		}
		if i = skipSpace(b, end); i >= len(b) {
			return false
		}
		switch b[i] {
		case '}':
			return true
		case ',':
			i = skipSpace(b, i+1)
		default:
			return false
		}
	}
}

// eachItem calls f with the place of each item of the array that begins b.
func eachItem(b []byte, f func(item gladhand.Span) bool) bool {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return false
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return true
	}
	for {
		end, ok := skipValue(b, i)
		if !ok {
			return false
		}
		if !f(gladhand.Span{Start: i, End: end}) {
			return true
		}
		if i = skipSpace(b, end); i >= len(b) {
			return false
		}
		switch b[i] {
		case ']':
			return true
		case ',':
			i = skipSpace(b, i+1)
		default:
			return false
		}
	}
}

// get returns the value of the object's member, nil when it has none.
func get(b []byte, name string) []byte {
	if s := find(b, name); s.End > 0 {
		return b[s.Start:s.End]
	}
	return nil
}

// find is get as a place; the zero Span when there is none.
func find(b []byte, name string) gladhand.Span {
	var at gladhand.Span
	eachMember(b, func(m member) bool {
		if string(m.name) == name {
			at = m.val
			return false
		}
		return true
	})
	return at
}

// str returns the text of a JSON string, and whether b is one.
func str(b []byte) (string, bool) {
	if len(b) < 2 || b[0] != '"' {
		return "", false
	}
	return string(unescape(b[1 : len(b)-1])), true
}

// getStr is the text of the object's member, "" when it is no string.
func getStr(b []byte, name string) string {
	s, _ := str(get(b, name))
	return s
}

// isNull reports whether a member is absent or null.
func isNull(b []byte) bool { return len(b) == 0 || b[0] == 'n' }

func isObject(b []byte) bool { return len(b) > 0 && b[0] == '{' }
func isArray(b []byte) bool  { return len(b) > 0 && b[0] == '[' }

// unescape decodes the inside of a JSON string; without an escape it is that
// inside itself.
func unescape(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	quoted := make([]byte, 0, len(b)+2)
	quoted = append(append(append(quoted, '"'), b...), '"')
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return b
	}
	return []byte(s)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at i.
func skipString(b []byte, i int) (int, bool) {
	if i >= len(b) || b[i] != '"' {
		return i, false
	}
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b), false
		}
		start := i
		i += n
		slashes := 0
		for i-slashes > start && b[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1, true
		}
	}
}

// skipValue returns the index behind the value that begins at i.
func skipValue(b []byte, i int) (int, bool) {
	if i >= len(b) {
		return i, false
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) && !isDelim(b[i]) {
		i++
	}
	return i, i > start
}

func skipNested(b []byte, i int) (int, bool) {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			end, ok := skipString(b, i)
			if !ok {
				return end, false
			}
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
		i++
	}
	return i, false
}

func isDelim(c byte) bool {
	switch c {
	case ',', '}', ']', ':', ' ', '\n', '\t', '\r', '"', '{', '[':
		return true
	}
	return false
}
