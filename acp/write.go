package acp

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gladhand"
)

// object writes a JSON object member by member. The zero value is ready.
type object struct {
	b []byte
	// names are those written so far, kept by rewrite only: of a name that comes
	// twice the first stays.
	names []string
}

// has reports whether rewrite wrote the name already.
func (o *object) has(name string) bool { return slices.Contains(o.names, name) }

// key starts a member.
func (o *object) key(name string) {
	switch {
	case o.b == nil:
		o.b = append(make([]byte, 0, 256), '{')
	case len(o.b) > 1:
		o.b = append(o.b, ',')
	}
	o.b = append(appendString(o.b, name), ':')
}

// raw adds a member whose value is JSON already.
func (o *object) raw(name string, val []byte) {
	o.key(name)
	o.b = append(o.b, val...)
}

// str adds a string.
func (o *object) str(name, val string) {
	o.key(name)
	o.b = appendString(o.b, val)
}

// int adds a number.
func (o *object) int(name string, val int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, val, 10)
}

// bool adds true or false.
func (o *object) bool(name string, val bool) {
	o.key(name)
	o.b = strconv.AppendBool(o.b, val)
}

// maybe adds a string unless it is empty.
func (o *object) maybe(name, val string) {
	if val != "" {
		o.str(name, val)
	}
}

// maybeRaw adds a value unless it is absent.
func (o *object) maybeRaw(name string, val []byte) {
	if len(val) > 0 {
		o.raw(name, val)
	}
}

// json returns the object.
func (o *object) json() json.RawMessage {
	if o.b == nil {
		return json.RawMessage("{}")
	}
	return append(o.b, '}')
}

// appendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

func quote(s string) []byte { return appendString(nil, s) }

// array joins values that are JSON already.
func array(items ...[]byte) []byte {
	b := []byte{'['}
	for i, it := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, it...)
	}
	return append(b, ']')
}

// rewrite copies the object b in its order. f gives each member its new name and
// value; a nil value leaves it out. What follows is added by more, which may be
// nil.
func rewrite(b []byte, f func(name string, val []byte) (string, []byte), more func(*object)) json.RawMessage {
	o := object{b: append(make([]byte, 0, len(b)+64), '{')}
	eachMember(b, func(m member) bool {
		if name, val := f(string(m.name), b[m.val.Start:m.val.End]); val != nil && !o.has(name) {
			o.raw(name, val)
			o.names = append(o.names, name)
		}
		return true
	})
	if more != nil {
		more(&o)
	}
	return o.json()
}

// mapItems returns the array b with each item replaced by what f gives for it:
// none, one or several. What is no array is returned as it is.
func mapItems(b []byte, f func(item []byte) [][]byte) []byte {
	if !isArray(b) {
		return b
	}
	var items [][]byte
	eachItem(b, func(s gladhand.Span) bool {
		items = append(items, f(b[s.Start:s.End])...)
		return true
	})
	return array(items...)
}
