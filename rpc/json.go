package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// strict reads our own types, which are tagged for encoding/json, but takes no
// duplicate names, no invalid UTF-8 and no name in another case.
var strict = jsonv2.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonv2.MatchCaseInsensitiveNames(false),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	jsonv1.MergeWithLegacySemantics(false),
	jsonv1.ReportErrorsWithLegacySemantics(false),
)

var strictKnown = jsonv2.JoinOptions(strict, jsonv2.RejectUnknownMembers(true))

// decode reads JSON strictly. Unknown members pass, in whatever case.
func decode(raw []byte, v any) error { return jsonv2.Unmarshal(raw, v, strict) }

// DecodeParams reads a request's parameters, an object, into v, a pointer to a
// struct. Names that occur twice, invalid UTF-8 and members that differ only in
// case from a known one are refused, at every level that v describes; unknown
// members pass. Absent parameters leave v as it is. What it returns is an
// [*Error] of CodeInvalidParams that names the place.
func DecodeParams(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		return nil
	}
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic("rpc: DecodeParams needs a pointer")
	}
	if target.Elem().Kind() == reflect.Struct && raw[0] != '{' {
		return badParams("params must be an object")
	}
	// Most parameters have known members only: then none can be a variant.
	before := reflect.New(target.Elem().Type()).Elem()
	before.Set(target.Elem())
	err := jsonv2.Unmarshal(raw, v, strictKnown)
	if err == nil {
		return nil
	}
	target.Elem().Set(before)
	if errors.Is(err, jsonv2.ErrUnknownName) {
		dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
		if err := checkCase(dec, target.Type(), ""); err != nil {
			return err
		}
		if err = jsonv2.Unmarshal(raw, v, strict); err == nil {
			return nil
		}
		target.Elem().Set(before)
	}
	return badParams(explainJSON(err))
}

func badParams(text string) *Error {
	return &Error{Code: CodeInvalidParams, Message: text, Data: reasonData("invalid", "", 0)}
}

// explainJSON says in words what does not fit, and where.
func explainJSON(err error) string {
	var semantic *jsonv2.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "params have a name twice"
	case errors.As(err, &semantic):
		where := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
		if where == "" {
			where = "params"
		}
		if want := kindWord(semantic.GoType); want != "" {
			return fmt.Sprintf("%s must be %s", where, want)
		}
		return where + " cannot be used as it is"
	case errors.As(err, &syntax):
		return "params are not JSON"
	}
	return "params cannot be read"
}

func kindWord(t reflect.Type) string {
	if t == nil {
		return ""
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if ownDecoder(t) {
		return ""
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return ""
}

// checkCase walks a valid value beside the type it goes into and refuses a
// member that is a known one but for its case.
func checkCase(dec *jsontext.Decoder, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer && !ownDecoder(t) {
		t = t.Elem()
	}
	kind := dec.PeekKind()
	walks := kind == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map) ||
		kind == '[' && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array)
	if !walks || ownDecoder(t) {
		return skip(dec)
	}
	if _, err := dec.ReadToken(); err != nil {
		return badParams(explainJSON(err))
	}
	var known fields
	if t.Kind() == reflect.Struct {
		known = fieldsOf(t)
	}
	for k := dec.PeekKind(); k != '}' && k != ']'; k = dec.PeekKind() {
		inner, at := reflect.Type(nil), path
		if kind == '{' {
			token, err := dec.ReadToken()
			if err != nil {
				return badParams(explainJSON(err))
			}
			name := token.String()
			at = path + "." + name
			if t.Kind() == reflect.Map {
				inner = t.Elem()
			} else if inner = known.exact[name]; inner == nil {
				if want, ok := known.folded[strings.ToLower(name)]; ok {
					return badParams(fmt.Sprintf("%s must be spelled %q", strings.TrimPrefix(at, "."), want))
				}
			}
		} else {
			inner = t.Elem()
		}
		var err error
		if inner == nil {
			err = skip(dec)
		} else {
			err = checkCase(dec, inner, at)
		}
		if err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return badParams(explainJSON(err))
	}
	return nil
}

func skip(dec *jsontext.Decoder) error {
	if err := dec.SkipValue(); err != nil {
		return badParams(explainJSON(err))
	}
	return nil
}

var (
	v1Unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	v2Unmarshaler = reflect.TypeFor[jsonv2.UnmarshalerFrom]()
)

// ownDecoder reports whether t reads its JSON itself.
func ownDecoder(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(v1Unmarshaler) || p.Implements(v2Unmarshaler) || t == reflect.TypeFor[jsontext.Value]()
}

// fields are the members that a struct knows.
type fields struct {
	exact  map[string]reflect.Type
	folded map[string]string // lower case → exact
}

var fieldCache sync.Map // reflect.Type → fields

func fieldsOf(t reflect.Type) fields {
	if f, ok := fieldCache.Load(t); ok {
		return f.(fields)
	}
	f := fields{map[string]reflect.Type{}, map[string]string{}}
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if !sf.IsExported() || name == "-" || sf.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		if _, ok := f.exact[name]; !ok {
			f.exact[name] = sf.Type
			f.folded[strings.ToLower(name)] = name
		}
	}
	fieldCache.Store(t, f)
	return f
}

// encode appends v as JSON. A json.RawMessage passes as it is, an empty one and
// nil are null; HTML's characters stay what they are.
func encode(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case json.RawMessage:
		if len(v) > 0 {
			return append(dst, v...), nil
		}
		return append(dst, "null"...), nil
	case nil:
		return append(dst, "null"...), nil
	}
	e := encoders.Get().(*encoder)
	defer e.give()
	if err := e.enc.Encode(v); err != nil {
		return dst, err
	}
	return append(dst, bytes.TrimSuffix(e.buf.Bytes(), []byte("\n"))...), nil
}

// keepScratch is the largest buffer that is kept for reuse.
const keepScratch = 256 << 10

// encoder is a reusable encoder with the buffer it writes to.
type encoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.enc = json.NewEncoder(&e.buf)
	e.enc.SetEscapeHTML(false)
	return e
}}

func (e *encoder) give() {
	if e.buf.Cap() <= keepScratch {
		e.buf.Reset()
		encoders.Put(e)
	}
}

// scratch is a reusable buffer in which a frame is put together.
type scratch struct{ b []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func takeScratch() *scratch { return scratches.Get().(*scratch) }

func (s *scratch) give() {
	if cap(s.b) <= keepScratch {
		s.b = s.b[:0]
		scratches.Put(s)
	}
}
