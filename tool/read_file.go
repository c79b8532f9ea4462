package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// maxRead is how many bytes one read_file gives, maxReadLines how many lines.
const (
	maxRead      = 64 << 10
	maxReadLines = 2000
)

//go:embed read_file.md
var readFileText string

//go:embed read_file.json
var readFileSchema []byte

type readFile struct{}

type readFileArgs struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Limit  int    `json:"limit"`
	Offset int64  `json:"offset"`
}

func (readFile) Spec() Spec {
	return Spec{Name: "read_file", Description: readFileText, Schema: readFileSchema, Kind: "read"}
}

func (readFile) Title(args json.RawMessage) string {
	var a readFileArgs
	peek(args, &a)
	return "Read " + oneLine(a.Path, 80)
}

func (t readFile) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	var a readFileArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	if a.Line < 0 || a.Limit < 0 || a.Offset < 0 {
		return nil, errors.New("line, limit and offset cannot be negative; lines count from 1")
	}
	if a.Line > 0 && a.Offset > 0 {
		return nil, errors.New("give line or offset, not both")
	}
	call, err := env.look(t, a.Path, args, func(ctx context.Context, path string) (Result, error) {
		img, note, err := readImage(path, env.show(path))
		if err != nil || img != nil {
			return Result{Text: note, Images: imagesOf(img)}, err
		}
		text, err := readText(ctx, env, path, a)
		return Result{Text: text}, err
	})
	if err != nil {
		return nil, err
	}
	call.Locations[0].Line = a.Line
	return call, nil
}

// readText reads the asked-for part and a last line in brackets that says what
// part it is, what cannot be seen in it, and how to go on.
func readText(ctx context.Context, env *Env, path string, a readFileArgs) (string, error) {
	f, fi, err := openRegular(path, env.show(path))
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 8192)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return "", plain(env.show(path), err)
	}
	head = head[:n]
	if kind := binaryKind(head); kind != "" {
		return "", fmt.Errorf("%s is %s (%d bytes), not text", env.show(path), kind, fi.Size())
	}
	src, enc, err := textSource(f, head, fi.Size())
	if err != nil {
		return "", fmt.Errorf("%s: %w", env.show(path), err)
	}
	r := reader{line: max(a.Line, 1), limit: maxReadLines, offset: a.Offset, size: fi.Size(), hash: fi.Size() <= maxFile}
	if a.Limit > 0 {
		r.limit = min(a.Limit, maxReadLines)
	}
	if err := r.scan(ctx, src); err != nil {
		return "", plain(env.show(path), err)
	}
	if r.hash {
		d := hex.EncodeToString(r.sum)
		if enc == utf16LE || enc == utf16BE { // the hash was of the decoded text
			if d, err = digestOf(path, env.show(path)); err != nil {
				return "", err
			}
		}
		env.Files.saw(path, d)
	}
	return r.describe(env.show(path), enc)
}

// textSource returns the file's bytes from its beginning, decoded if it is UTF-16.
func textSource(f *os.File, head []byte, size int64) (io.Reader, encoding, error) {
	enc := encodingOf(head)
	if enc != utf16LE && enc != utf16BE {
		_, err := f.Seek(0, io.SeekStart)
		return f, enc, err
	}
	if size > maxFile/4 {
		return nil, enc, errors.New("UTF-16 files of this size cannot be read")
	}
	data, err := io.ReadAll(io.MultiReader(bytes.NewReader(head), f))
	if err != nil {
		return nil, enc, err
	}
	text, _, err := decodeText(data)
	return bytes.NewReader(text), enc, err
}

// reader picks lines or bytes out of a stream, in one pass and bounded memory.
type reader struct {
	line, limit int
	offset      int64
	hash        bool  // go on to the end, for the digest and the number of lines
	size        int64 // of the file; what was read, when all of it was

	text      []byte // what was picked
	from      int64  // where it begins
	firstLine int
	lines     int // line ends in it
	full      bool
	pos       int64 // bytes read
	ends      int   // line ends read
	last      byte
	sum       []byte
}

func (r *reader) scan(ctx context.Context, src io.Reader) error {
	h := sha256.New()
	buf := make([]byte, 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := src.Read(buf)
		if n > 0 {
			if r.hash {
				h.Write(buf[:n])
			}
			r.take(buf[:n])
		}
		if err == io.EOF {
			r.size = r.pos
		}
		if err == io.EOF || (r.full && !r.hash) {
			r.sum = h.Sum(nil)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *reader) take(b []byte) {
	r.last = b[len(b)-1]
	for len(b) > 0 && !r.full {
		if r.offset > r.pos { // skip to the offset, counting lines
			n := min(int64(len(b)), r.offset-r.pos)
			r.skip(b[:n])
			b = b[n:]
			continue
		}
		if r.offset == 0 && r.ends < r.line-1 { // skip to the line
			n := len(b)
			if i := bytes.IndexByte(b, '\n'); i >= 0 {
				n = i + 1
			}
			r.skip(b[:n])
			b = b[n:]
			continue
		}
		if r.text == nil {
			r.from, r.firstLine = r.pos, r.ends+1
			r.text = []byte{}
		}
		n := len(b)
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			n = i + 1
		}
		if len(r.text)+n > maxRead {
			n = maxRead - len(r.text)
			r.full = true
		}
		r.text = append(r.text, b[:n]...)
		before := r.ends
		r.skip(b[:n])
		r.lines += r.ends - before
		b = b[n:]
		if r.lines == r.limit {
			r.full = true
		}
	}
	r.skip(b)
}

func (r *reader) skip(b []byte) {
	r.pos += int64(len(b))
	r.ends += bytes.Count(b, []byte("\n"))
}

// describe is the text with its last line.
func (r *reader) describe(name string, enc encoding) (string, error) {
	total := r.ends
	if r.pos > 0 && r.last != '\n' {
		total++
	}
	switch {
	case r.pos == 0:
		return fmt.Sprintf("[%s: the file is empty]", name), nil
	case r.text == nil && r.offset > 0:
		return "", fmt.Errorf("%s has only %d bytes", name, r.pos)
	case r.text == nil:
		return "", fmt.Errorf("%s has only %s", name, count(total, "line"))
	}
	text, end := r.text, r.from+int64(len(r.text))
	if r.full && r.lines < r.limit { // cut by size: at a line end, else at a character
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			text = text[:i+1]
		} else {
			text = trimPartial(text)
		}
		end = r.from + int64(len(text))
	}
	raw := text
	if enc == utf8BOM && r.from == 0 {
		text = bytes.TrimPrefix(text, []byte(bom[utf8BOM]))
	}
	v := lfView(text)
	notes := []string{r.extent(total, v, end)}
	q := quirks(raw, enc, v)
	if end < r.size && len(q) > 0 && strings.HasPrefix(q[len(q)-1], "no newline") {
		q = q[:len(q)-1]
	}
	notes = append(notes, q...)
	if end < r.size {
		notes = append(notes, r.goOn(text, end))
	}
	shown := string(v.text)
	if !utf8.ValidString(shown) {
		shown = clean(v.text)
	}
	if !strings.HasSuffix(shown, "\n") {
		shown += "\n"
	}
	return fmt.Sprintf("%s[%s: %s]", shown, name, strings.Join(notes, "; ")), nil
}

// extent says which part of the file the text is.
func (r *reader) extent(total int, v lfText, end int64) string {
	if r.from == 0 && end == r.size {
		return count(total, "line") + ", all of it"
	}
	lines := bytes.Count(v.text, []byte("\n"))
	if len(v.text) > 0 && v.text[len(v.text)-1] != '\n' {
		if r.offset > 0 || end < r.size { // a piece of a line
			return fmt.Sprintf("bytes %d–%d of %d", r.from, end, r.size)
		}
		lines++
	}
	if !r.hash {
		return fmt.Sprintf("lines %d–%d", r.firstLine, r.firstLine+lines-1)
	}
	return fmt.Sprintf("lines %d–%d of %d", r.firstLine, r.firstLine+lines-1, total)
}

func (r *reader) goOn(text []byte, end int64) string {
	if text[len(text)-1] == '\n' && r.offset == 0 {
		return fmt.Sprintf("go on with line %d", r.firstLine+bytes.Count(text, []byte("\n")))
	}
	return fmt.Sprintf("go on with offset %d", end)
}
