package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxRequestDepth is how deep a request may nest. What it carries is passed on
// to others inside further objects, and must stay below the 10,000 levels that
// their decoders take; so only what we are asked to serve has a limit of its own.
const maxRequestDepth = 500

// shape is the direction of a frame: what it asks of its reader.
type shape uint8

const (
	unclear shape = iota // neither request nor response, or both
	request              // a request or a notification
	response
)

// envelope is a decoded frame. Its slices point into the frame. A member that
// is absent is nil.
type envelope struct {
	shape  shape
	id     []byte // raw; nil also when it is unusable
	method []byte // unquoted
	params []byte
	result []byte
	err    []byte
	// code is 0 for a good envelope, else what is wrong with it: CodeParse or
	// CodeInvalidRequest, and flaw in words.
	code int
	flaw string
}

// The members of an envelope, as bits.
const (
	hasVersion = 1 << iota
	hasID
	hasMethod
	hasParams
	hasResult
	hasError
)

var memberBits = map[string]int{
	"jsonrpc": hasVersion, "id": hasID, "method": hasMethod,
	"params": hasParams, "result": hasResult, "error": hasError,
}

// parser is a reusable decoder. Its buffer aliases the frame it works on.
type parser struct {
	buf bytes.Buffer
	dec jsontext.Decoder
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// parse decodes a frame in one pass. Only a frame with a name that occurs twice
// takes a second one, to find out whose it is.
func parse(frame []byte) envelope {
	p := parsers.Get().(*parser)
	e, err := p.run(frame)
	if errors.Is(err, jsontext.ErrDuplicateName) {
		e, err = p.run(frame, jsontext.AllowDuplicateNames(true))
		if e.code == 0 {
			e.refuse("a name occurs twice in one object")
		}
	}
	if len(frame) <= keepScratch { // the pool would keep a large one alive
		parsers.Put(p)
	}
	if err != nil {
		return envelope{code: CodeParse, flaw: "this is not JSON (" + syntaxOf(err) + ")"}
	}
	if e.shape == request && tooDeep(frame) {
		e.refuse("the request nests too deep")
	}
	return e
}

// refuse notes the first thing that is wrong.
func (e *envelope) refuse(flaw string) {
	if e.code == 0 {
		e.code, e.flaw = CodeInvalidRequest, flaw
	}
}

func (p *parser) run(frame []byte, opts ...jsontext.Options) (envelope, error) {
	p.buf = *bytes.NewBuffer(frame)
	p.dec.Reset(&p.buf, opts...)
	var e envelope
	if kind := p.dec.PeekKind(); kind != '{' {
		if err := p.dec.SkipValue(); err != nil {
			return e, err
		}
		if kind == '[' {
			e.refuse("batches are not supported: send one message a line")
		} else {
			e.refuse("a message must be an object")
		}
		return e, p.end()
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return e, err
	}
	var seen, twice int
	for p.dec.PeekKind() != '}' {
		name, err := p.dec.ReadValue()
		if err != nil {
			return e, err
		}
		bit, known := memberOf(name)
		if !known {
			e.refuse("a member's name differs only in case from one of JSON-RPC's")
		}
		value, err := p.dec.ReadValue()
		if err != nil {
			return e, err
		}
		twice |= seen & bit
		seen |= bit
		e.set(bit, value)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return e, err
	}
	e.judge(seen, twice)
	return e, p.end()
}

// end checks that nothing follows the value.
func (p *parser) end() error {
	if _, err := p.dec.ReadToken(); err != io.EOF {
		if err == nil {
			err = errTrailing
		}
		return err
	}
	return nil
}

var errTrailing = errors.New("something follows the message on its line")

// memberOf returns the bit of a quoted name, 0 for one that JSON-RPC does not
// know. ok is false when the name is a known one but for its case.
func memberOf(quoted []byte) (bit int, ok bool) {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = jsontext.AppendUnquote(nil, quoted)
	}
	if bit := memberBits[string(name)]; bit != 0 {
		return bit, true
	}
	text := string(name)
	for known := range memberBits {
		if strings.EqualFold(text, known) {
			return 0, false
		}
	}
	return 0, true
}

func (e *envelope) set(bit int, value []byte) {
	switch bit {
	case hasVersion:
		if string(value) != `"2.0"` && unquote(value) != "2.0" {
			e.refuse(`"jsonrpc" must be "2.0"`)
		}
	case hasID:
		e.id = value
	case hasMethod:
		e.method = value
	case hasParams:
		e.params = value
	case hasResult:
		e.result = value
	case hasError:
		e.err = value
	}
}

// judge finds the direction from the members seen, then what is wrong.
func (e *envelope) judge(seen, twice int) {
	asks, answers := seen&(hasMethod|hasParams) != 0, seen&(hasResult|hasError) != 0
	switch {
	case asks && !answers:
		e.shape = request
	case answers && !asks:
		e.shape = response
	default:
		e.id = nil
		e.refuse("a message is a request (method) or a response (result or error)")
		return
	}
	if twice&hasID != 0 {
		e.id = nil
	}
	if seen&hasVersion == 0 {
		e.refuse(`"jsonrpc":"2.0" is missing`)
	}
	if seen&hasID != 0 && !usableID(e.id) {
		e.id = nil
		e.refuse(`"id" must be a string, a number or null`)
	}
	if e.shape == request {
		e.judgeRequest(seen)
	} else {
		e.judgeResponse(seen)
	}
}

func (e *envelope) judgeRequest(seen int) {
	switch {
	case seen&hasMethod == 0:
		e.refuse(`"method" is missing`)
	case e.method[0] != '"':
		e.refuse(`"method" must be a string`)
	case bytes.IndexByte(e.method, '\\') >= 0:
		e.method, _ = jsontext.AppendUnquote(nil, e.method)
	default:
		e.method = e.method[1 : len(e.method)-1]
	}
	if seen&hasParams != 0 && e.params[0] != '{' && e.params[0] != '[' {
		e.refuse(`"params" must be an object or an array`)
	}
}

func (e *envelope) judgeResponse(seen int) {
	switch {
	case e.id == nil:
		e.refuse(`a response needs an "id"`)
	case seen&hasResult != 0 && seen&hasError != 0:
		e.refuse("a response has a result or an error, not both")
	case seen&hasError != 0 && e.err[0] != '{':
		e.refuse(`"error" must be an object`)
	}
}

// usableID reports whether a raw value may be an id.
func usableID(id []byte) bool {
	if len(id) == 0 {
		return false
	}
	switch c := id[0]; c {
	case '"', '-', 'n':
		return true
	default:
		return '0' <= c && c <= '9'
	}
}

// unquote returns the text of a raw JSON string, or "" for another value.
func unquote(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	b, _ := jsontext.AppendUnquote(nil, raw)
	return string(b)
}

// tooDeep reports whether a valid frame nests deeper than a request may.
func tooDeep(frame []byte) bool {
	if bytes.Count(frame, openObject)+bytes.Count(frame, openArray) <= maxRequestDepth {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(frame); i++ {
		switch c := frame[i]; {
		case c == '"':
			inString = !inString
		case inString:
			if c == '\\' {
				i++
			}
		case c == '{' || c == '[':
			if depth++; depth > maxRequestDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

var openObject, openArray = []byte("{"), []byte("[")

// syntaxOf says what is wrong with JSON, without its content.
func syntaxOf(err error) string {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, errTrailing):
		return errTrailing.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early"
	case errors.As(err, &syntax):
		return fmt.Sprintf("at byte %d", syntax.ByteOffset)
	}
	return "it cannot be read"
}
