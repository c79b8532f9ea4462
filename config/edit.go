package config

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"
)

// put returns d's text with prop set to the literal raw. Only the value's own
// bytes change; a new member goes before the closing brace of its group, behind
// whatever comment is there. (hujson's Patch keeps comments too, but asks for a
// Format of the whole file behind it, which moves everything.)
func (d *document) put(prop string, raw []byte) ([]byte, error) {
	v := d.root
	names := strings.Split(prop, ".")
	for i, name := range names {
		o, ok := v.Value.(*hujson.Object) // a group is one: it was checked
		if !ok {
			return nil, invalid("%s is no object: set it whole", strings.Join(names[:i], "."))
		}
		m := member(o, name)
		if m == nil {
			return d.insert(v, o, names[i:], raw), nil
		}
		v = *m
	}
	return d.splice(v.StartOffset, v.EndOffset, raw), nil
}

func member(o *hujson.Object, name string) *hujson.Value {
	for i := range o.Members {
		if nameOf(o.Members[i].Name) == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// splice replaces text[from:to] and gives the byte order mark back.
func (d *document) splice(from, to int, with []byte) []byte {
	var out []byte
	if d.bom {
		out = append(out, bom...)
	}
	out = append(out, d.text[:from]...)
	out = append(out, with...)
	return append(out, d.text[to:]...)
}

// insert adds names[0] to the object o, which is the value v, with raw below the
// remaining names.
func (d *document) insert(v hujson.Value, o *hujson.Object, names []string, raw []byte) []byte {
	open, end := v.StartOffset, v.EndOffset-1 // the braces
	inner := d.text[open+1 : end]
	flat := bytes.IndexByte(inner, '\n') < 0
	eol := "\n"
	if bytes.Contains(d.text, []byte("\r\n")) {
		eol = "\r\n"
	}
	// Where the text before the closing brace ends: a comment, a comma, a value.
	at := open + 1 + len(bytes.TrimRight(inner, " \t\r\n"))

	if len(o.Members) > 0 && flat {
		sep := ", "
		if o.Members[len(o.Members)-1].Value.AfterExtra != nil { // a trailing comma
			sep = " "
		}
		return d.splice(at, at, []byte(sep+nested(names, raw, "", "")))
	}
	outer := d.indentOf(end)
	if flat {
		outer = d.indentOf(open)
	}
	indent, step := outer+"  ", "  "
	if len(o.Members) > 0 {
		indent = d.indentOf(o.Members[0].Name.StartOffset)
		if s, ok := strings.CutPrefix(indent, outer); ok && s != "" {
			step = s
		}
	}
	text := eol + indent + nested(names, raw, eol+indent, step)
	if flat {
		text += eol + outer // an empty object's brace gets a line of its own
	}
	out := d.splice(at, at, []byte(text))
	if n := len(o.Members); n > 0 {
		last := o.Members[n-1].Value
		if last.AfterExtra == nil { // the comma goes behind the value, before its comment
			i := last.EndOffset
			if d.bom {
				i += len(bom)
			}
			out = append(out[:i:i], append([]byte(","), out[i:]...)...)
		}
	}
	return out
}

// nested writes `"a": {"b": raw}`, on lines of their own when line, the start of
// a line, is not empty.
func nested(names []string, raw []byte, line, step string) string {
	s := string(quote(names[0])) + ": "
	if len(names) == 1 {
		return s + string(raw)
	}
	if line == "" {
		return s + "{" + nested(names[1:], raw, "", "") + "}"
	}
	return s + "{" + line + step + nested(names[1:], raw, line+step, step) + line + "}"
}

// indentOf is the white space that begins the line of offset.
func (d *document) indentOf(offset int) string {
	line := d.text[bytes.LastIndexByte(d.text[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}
