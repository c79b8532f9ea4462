package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// matrixFile is one file of the matrix: how it is spelled, and what it is.
type matrixFile struct {
	ends  string // of its lines, in turn
	enc   string
	final bool // ends with a line end
	mode  os.FileMode
	kind  string // file, symlink, hard link
}

func (m matrixFile) name() string {
	ends := map[string]string{"\n": "LF", "\r\n": "CRLF", "\n\r\n": "mixed", "\r": "CR"}[m.ends]
	final := "final"
	if !m.final {
		final = "no final"
	}
	return strings.Join([]string{ends, m.enc, final, m.mode.String(), m.kind}, ",")
}

// text is the file's text with each line's end, before it is encoded.
func (m matrixFile) text(lines []string) string {
	var b strings.Builder
	each := strings.SplitAfter(m.ends, "\n")
	if each[len(each)-1] == "" {
		each = each[:len(each)-1]
	}
	for i, l := range lines {
		b.WriteString(l)
		if i < len(lines)-1 || m.final {
			b.WriteString(each[i%len(each)])
		}
	}
	return b.String()
}

func (m matrixFile) bytes(text string) []byte {
	switch m.enc {
	case "BOM":
		return encodeText([]byte(text), utf8BOM)
	case "UTF-16LE":
		return encodeText([]byte(text), utf16LE)
	case "UTF-16BE":
		return encodeText([]byte(text), utf16BE)
	case "Latin-1":
		return bytes.ReplaceAll([]byte(text), []byte("é"), []byte{0xE9})
	}
	return []byte(text)
}

func matrix() (all []matrixFile) {
	kinds, modes := []string{"file", "symlink", "hard link"}, []os.FileMode{0o644, 0o600, 0o755}
	if runtime.GOOS == "windows" {
		kinds, modes = kinds[:1], modes[:1]
	}
	for _, ends := range []string{"\n", "\r\n", "\n\r\n", "\r"} {
		for _, enc := range []string{"UTF-8", "BOM", "UTF-16LE", "UTF-16BE", "Latin-1"} {
			for _, final := range []bool{true, false} {
				// Modes do not meet the spelling: each with each kind is enough.
				for i, kind := range kinds {
					all = append(all, matrixFile{ends, enc, final, modes[(i+len(all)/len(kinds))%len(modes)], kind})
				}
			}
		}
	}
	return all
}

// R126, R128, R140: line ends × encoding × final newline × kind of file × mode.
// One edit inside a line, one over two lines, and an append: what
// was not meant stays, byte for byte, and so do mode, link and the other name.
func TestFidelityMatrix(t *testing.T) {
	for _, m := range matrix() {
		t.Run(m.name(), func(t *testing.T) {
			lines := []string{"première", "second line", "third", "last"}
			if m.enc == "Latin-1" {
				lines[0] = "prémier" // é becomes one byte that is no UTF-8
			}
			e := testEnv(t)
			path, other := m.make(t, e, lines)

			// Inside a line.
			e.must(t, "edit_file", one(path, "second", "SECOND"))
			lines[1] = "SECOND line"
			m.check(t, e, other, lines)

			// Over a line end, where there is one that a model can see.
			if m.ends != "\r" {
				e.must(t, "edit_file", one(path, "line\nthird", "Line\nTHIRD"))
				lines[1], lines[2] = "SECOND Line", "THIRD"
				m.check(t, e, other, lines)
			}

			// A line more at the end, ended as the last line end before it is.
			e.must(t, "edit_file", map[string]any{"path": path, "append": "more"})
			text := m.text(lines)
			switch {
			case m.ends == "\r" && m.final: // no line end that a model can see: LF
				text += "\nmore\n"
			case m.ends == "\r":
				text += "\nmore\n"
			default:
				end := "\n"
				if i := strings.LastIndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
					end = "\r\n"
				}
				if !m.final {
					text += end
				}
				text += "more" + end
			}
			m.checkBytes(t, e, other, m.bytes(text))
		})
	}
}

// make writes the file and returns the path to edit it by, and the name that must
// show the same afterwards.
func (m matrixFile) make(t *testing.T, e *Env, lines []string) (path, other string) {
	t.Helper()
	file := filepath.Join(e.Cwd, "f")
	if err := os.WriteFile(file, m.bytes(m.text(lines)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, m.mode); err != nil {
		t.Fatal(err)
	}
	switch m.kind {
	case "symlink":
		if err := os.Symlink("f", filepath.Join(e.Cwd, "other")); err != nil {
			t.Fatal(err)
		}
		return "other", "f"
	case "hard link":
		if err := os.Link(file, filepath.Join(e.Cwd, "other")); err != nil {
			t.Fatal(err)
		}
		return "other", "f"
	}
	return "f", "f"
}

func (m matrixFile) check(t *testing.T, e *Env, other string, lines []string) {
	t.Helper()
	m.checkBytes(t, e, other, m.bytes(m.text(lines)))
}

func (m matrixFile) checkBytes(t *testing.T, e *Env, other string, want []byte) {
	t.Helper()
	if got := e.get(t, other); got != string(want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	fi, err := os.Lstat(filepath.Join(e.Cwd, "f"))
	if err != nil || fi.Mode().Perm() != m.mode && runtime.GOOS != "windows" {
		t.Errorf("mode %v, %v; want %v", fi.Mode(), err, m.mode)
	}
	switch m.kind {
	case "symlink":
		if to, err := os.Readlink(filepath.Join(e.Cwd, "other")); err != nil || to != "f" {
			t.Errorf("the link leads to %q, %v", to, err)
		}
		e.onlyFiles(t, "f", "other")
	case "hard link":
		o, err := os.Lstat(filepath.Join(e.Cwd, "other"))
		if err != nil || !os.SameFile(fi, o) {
			t.Errorf("the names are two files now: %v", err)
		}
		e.onlyFiles(t, "f", "other")
	default:
		e.onlyFiles(t, "f")
	}
}
