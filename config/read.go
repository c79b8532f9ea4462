package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"gladhand"
)

const (
	// maxFile bounds a settings file, in bytes.
	maxFile = 1 << 20
	// maxDepth bounds its nesting. The parser recurses without a bound: half a
	// million brackets overflow the stack, which ends the whole process.
	maxDepth = 64
)

var bom = []byte("\ufeff")

// document is a parsed text. Offsets in root are those of text.
type document struct {
	text []byte // without the byte order mark
	bom  bool
	root hujson.Value
}

func parse(text []byte) (*document, error) {
	body, marked := bytes.CutPrefix(text, bom)
	d := &document{text: body, bom: marked}
	if len(text) > maxFile {
		return nil, invalid("it is over %d bytes", maxFile)
	}
	if !utf8.Valid(body) {
		i := 0
		for i < len(body) {
			r, n := utf8.DecodeRune(body[i:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			i += n
		}
		return nil, d.at(i, "it is not UTF-8 here: save the file as UTF-8")
	}
	if i := tooDeep(body); i >= 0 {
		return nil, d.at(i, "it is nested more than %d deep", maxDepth)
	}
	// A last line that is a comment may lack its end.
	whole := append(append([]byte(nil), body...), '\n')
	if len(bytes.TrimSpace(body)) == 0 {
		whole = []byte("{}")
		d.text = whole
	}
	root, err := hujson.Parse(whole)
	if err != nil {
		return nil, syntaxError(d, err)
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, d.at(root.StartOffset, "the settings must be an object: { … }")
	}
	d.root = root
	return d, nil
}

// tooDeep returns the offset of the first bracket beyond maxDepth, or −1. Those
// in strings and comments do not count.
func tooDeep(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '/':
			end, from := "\n", i+1
			if bytes.HasPrefix(b[i:], []byte("/*")) {
				end, from = "*/", i+2
			}
			n := bytes.Index(b[min(from, len(b)):], []byte(end))
			if n < 0 {
				return -1 // the parser will say so
			}
			i = from + n + len(end) - 1
		}
	}
	return -1
}

var hujsonPlace = regexp.MustCompile(`^hujson: line (\d+), column (\d+): `)

func syntaxError(d *document, err error) error {
	msg, line, column := err.Error(), 1, 1
	if m := hujsonPlace.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		column, _ = strconv.Atoi(m[2])
		msg = msg[len(m[0]):]
	}
	// What follows is the literal, which may well be a key.
	if strings.HasPrefix(msg, "invalid literal:") {
		msg = "a string or a number that is not one"
	}
	return placed(line, column, "this is not JSON: %s", msg)
}

// check reads the settings out of d and says which the file has.
func (d *document) check() (Settings, map[string]bool, error) {
	s, set := Defaults(), map[string]bool{}
	err := d.object(d.root.Value.(*hujson.Object), "", &s, set)
	if err != nil {
		return Settings{}, nil, err
	}
	return s, set, nil
}

func (d *document) object(o *hujson.Object, prefix string, s *Settings, set map[string]bool) error {
	seen := map[string]bool{}
	for i := range o.Members {
		name, v := o.Members[i].Name, o.Members[i].Value
		key := nameOf(name)
		prop := prefix + key
		if seen[key] {
			return d.at(name.StartOffset, "%q is there twice: remove one", prop)
		}
		seen[key] = true
		sub, isObject := v.Value.(*hujson.Object)
		def := find(prop)
		// A dot within a key would name a setting that it is not.
		dotted := bytes.IndexByte([]byte(key), '.') >= 0
		switch {
		case prop == "$schema":
			// for editors
		case dotted && def != nil:
			return d.at(name.StartOffset, "%q must be written as an object within an object", prop)
		case def != nil:
			if err := def.value(s).set(d.text[v.StartOffset:v.EndOffset]); err != nil {
				at := v.StartOffset
				var m *misfit
				if errors.As(err, &m) {
					at += m.offset
				}
				return d.at(at, "%w", explain(prop, err))
			}
			set[prop] = true
		case !dotted && isGroup(prop) && isObject:
			if err := d.object(sub, prop+".", s, set); err != nil {
				return err
			}
		case !dotted && isGroup(prop):
			return d.at(v.StartOffset, "%s must be an object: %s", prop, hint(prop))
		case !quotable(prop):
			return d.at(name.StartOffset, "there is no such setting: see `gladhand config list`")
		default:
			return d.at(name.StartOffset, "there is no setting %q: %s", prop, hint(prop))
		}
	}
	return nil
}

func nameOf(v hujson.Value) string {
	lit, _ := v.Value.(hujson.Literal)
	var s string
	_ = json.Unmarshal(lit, &s) // the parser saw that it is a string
	return s
}

// at is an error about the text at offset.
func (d *document) at(offset int, format string, args ...any) error {
	before := d.text[:min(offset, len(d.text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return placed(line, column, format, args...)
}

// placed is an error at a line and column, both from 1; columns count characters.
func placed(line, column int, format string, args ...any) error {
	return invalid("line %d, column %d: %w", line, column, fmt.Errorf(format, args...)).
		With("line", line).With("column", column)
}

// inFile names the file of an error found in it.
func inFile(path string, err error) error {
	e := invalid("the settings file %s: %w", path, err).With("path", path)
	var cause *gladhand.Error
	if errors.As(err, &cause) {
		for _, k := range []string{"line", "column"} {
			if v, ok := cause.Data[k]; ok {
				e = e.With(k, v)
			}
		}
	}
	return e
}

func invalid(format string, args ...any) *gladhand.Error {
	return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, format, args...)
}
