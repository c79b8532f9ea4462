package tool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding is how a text file's bytes spell its text.
type encoding int

const (
	plainText encoding = iota // UTF-8, or any other bytes with ASCII line ends
	utf8BOM
	utf16LE // with its byte order mark
	utf16BE
)

var bom = map[encoding]string{utf8BOM: "\xEF\xBB\xBF", utf16LE: "\xFF\xFE", utf16BE: "\xFE\xFF"}

// encodingOf looks at a file's first bytes.
func encodingOf(data []byte) encoding {
	for enc, mark := range bom {
		if bytes.HasPrefix(data, []byte(mark)) {
			return enc
		}
	}
	return plainText
}

// decodeText returns the text of a file without its byte order mark. The bytes
// of what is not UTF-16 stay as they are.
func decodeText(data []byte) (text []byte, enc encoding, err error) {
	enc = encodingOf(data)
	data = data[len(bom[enc]):]
	if enc != utf16LE && enc != utf16BE {
		return data, enc, nil
	}
	if len(data)%2 != 0 {
		return nil, enc, errors.New("it begins like UTF-16 and has an odd number of bytes")
	}
	text = decodeUTF16(data, enc)
	if !bytes.Equal(encodeText(text, enc)[2:], data) {
		return nil, enc, errors.New("it begins like UTF-16 and is not valid UTF-16")
	}
	return text, enc, nil
}

// decodeUTF16 decodes what is behind the mark; what is no UTF-16 becomes U+FFFD.
func decodeUTF16(data []byte, enc encoding) []byte {
	order := binary.ByteOrder(binary.LittleEndian)
	if enc == utf16BE {
		order = binary.BigEndian
	}
	units := make([]uint16, len(data)/2, len(data)/2+1)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	if len(data)%2 != 0 {
		units = append(units, utf8.RuneError)
	}
	return []byte(string(utf16.Decode(units)))
}

// encodeText is the inverse of decodeText.
func encodeText(text []byte, enc encoding) []byte {
	if enc == plainText {
		return text
	}
	out := append(make([]byte, 0, len(text)+3), bom[enc]...)
	switch enc {
	case utf16LE:
		for _, u := range utf16.Encode([]rune(string(text))) {
			out = binary.LittleEndian.AppendUint16(out, u)
		}
	case utf16BE:
		for _, u := range utf16.Encode([]rune(string(text))) {
			out = binary.BigEndian.AppendUint16(out, u)
		}
	default:
		out = append(out, text...)
	}
	return out
}

// binaryKind says what sort of binary file begins with data; "" is text. It
// goes by content only, never by the name.
func binaryKind(data []byte) string {
	if enc := encodingOf(data); enc == utf16LE || enc == utf16BE {
		return ""
	}
	for magic, kind := range map[string]string{
		"\x89PNG\r\n": "a PNG image", "\xFF\xD8\xFF": "a JPEG image", "GIF8": "a GIF image", "%PDF-": "a PDF document",
		"PK\x03\x04": "a ZIP archive", "\x1F\x8B": "gzip data", "\x7FELF": "an ELF program", "SQLite format 3\x00": "an SQLite database",
	} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return kind
		}
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "binary data"
	}
	return ""
}

// lfText is a text in which every line ends with \n: what a model sees and
// matches against. A lone \r is no line end and stays.
type lfText struct {
	text []byte
	crs  []int // where in text the \n stands that was \r\n
}

func lfView(data []byte) lfText {
	if bytes.IndexByte(data, '\r') < 0 {
		return lfText{text: data}
	}
	v := lfText{text: make([]byte, 0, len(data))}
	for len(data) > 0 {
		i := bytes.Index(data, []byte("\r\n"))
		if i < 0 {
			v.text = append(v.text, data...)
			break
		}
		v.text = append(v.text, data[:i]...)
		v.crs = append(v.crs, len(v.text))
		v.text = append(v.text, '\n')
		data = data[i+2:]
	}
	return v
}

// offset is where the text position pos stands in the original bytes.
func (v lfText) offset(pos int) int { return pos + sort.SearchInts(v.crs, pos) }

// crlf reports whether the \n at text position pos was \r\n.
func (v lfText) crlf(pos int) bool {
	i := sort.SearchInts(v.crs, pos)
	return i < len(v.crs) && v.crs[i] == pos
}

// line is the number, from 1, of the line that position pos is in.
func (v lfText) line(pos int) int { return 1 + bytes.Count(v.text[:pos], []byte("\n")) }

// endsOf names a text's line ends: "LF", "CRLF", "mixed", or "" without any.
func (v lfText) ends() string {
	lines := bytes.Count(v.text, []byte("\n"))
	switch len(v.crs) {
	case 0:
		if lines == 0 {
			return ""
		}
		return "LF"
	case lines:
		return "CRLF"
	}
	return "mixed"
}

// endAt is the line end in use at pos: that of the line before it, else of the
// line after it.
func (v lfText) endAt(pos int) string {
	i := bytes.LastIndexByte(v.text[:pos], '\n')
	if i < 0 {
		if i = bytes.IndexByte(v.text[pos:], '\n'); i >= 0 {
			i += pos
		}
	}
	if i >= 0 && v.crlf(i) {
		return "\r\n"
	}
	return "\n"
}

// quirks describes what a reader of the text does not see.
func quirks(data []byte, enc encoding, v lfText) []string {
	var q []string
	if e := v.ends(); e == "CRLF" || e == "mixed" {
		q = append(q, e+" line ends")
	}
	switch {
	case enc == utf8BOM:
		q = append(q, "byte order mark")
	case enc == utf16LE || enc == utf16BE:
		q = append(q, "UTF-16")
	case !utf8.Valid(data):
		q = append(q, "not UTF-8: other bytes are shown as \uFFFD")
	}
	if len(v.text) > 0 && v.text[len(v.text)-1] != '\n' {
		q = append(q, "no newline at the end")
	}
	return q
}

// likeOld spells new text the way the old file is spelled: its encoding and
// mark, and CRLF where all its lines end so and the new text has no \r itself.
func likeOld(old, text []byte) (data []byte, kept []string) {
	body, enc, err := decodeText(old)
	if err != nil {
		return text, nil
	}
	if v := lfView(body); v.ends() == "CRLF" && bytes.IndexByte(text, '\r') < 0 {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
		kept = append(kept, "CRLF line ends")
	}
	if enc != plainText && encodingOf(text) == plainText {
		text = encodeText(text, enc)
		kept = append(kept, map[encoding]string{utf8BOM: "byte order mark", utf16LE: "UTF-16", utf16BE: "UTF-16"}[enc])
	}
	return text, kept
}

// clean is text as it may stand in JSON.
func clean(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
