package tool

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func numbered(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestReadFile(t *testing.T) {
	big := numbered(5000)
	for _, c := range []struct {
		name, content string
		args          readFileArgs
		first, note   string // how the result begins, and its last line
	}{
		{"small", "a\nb\n", readFileArgs{}, "a\nb\n", "[f: 2 lines, all of it]"},
		{"no final newline", "a\nb", readFileArgs{}, "a\nb\n", "[f: 2 lines, all of it; no newline at the end]"},
		{"empty", "", readFileArgs{}, "", "[f: the file is empty]"},
		{"one newline", "\n", readFileArgs{}, "\n", "[f: 1 line, all of it]"},
		{"CRLF", "a\r\nb\r\n", readFileArgs{}, "a\nb\n", "[f: 2 lines, all of it; CRLF line ends]"},
		{"mixed", "a\r\nb\n", readFileArgs{}, "a\nb\n", "[f: 2 lines, all of it; mixed line ends]"},
		{"BOM", "\xEF\xBB\xBFa\n", readFileArgs{}, "a\n", "[f: 1 line, all of it; byte order mark]"},
		{"Latin-1", "caf\xE9\n", readFileArgs{}, "caf\uFFFD\n", "[f: 1 line, all of it; not UTF-8: other bytes are shown as \uFFFD]"},
		{"UTF-16", string(encodeText([]byte("a\r\nü\r\n"), utf16LE)), readFileArgs{}, "a\nü\n", "[f: 2 lines, all of it; CRLF line ends; UTF-16]"},
		{"many lines", big, readFileArgs{}, "line 1\n", "[f: lines 1–2000 of 5000; go on with line 2001]"},
		{"from a line", big, readFileArgs{Line: 2001}, "line 2001\n", "[f: lines 2001–4000 of 5000; go on with line 4001]"},
		{"the rest", big, readFileArgs{Line: 4001}, "line 4001\n", "[f: lines 4001–5000 of 5000]"},
		{"one line", big, readFileArgs{Line: 7, Limit: 1}, "line 7\n", "[f: lines 7–7 of 5000; go on with line 8]"},
		{"the last line", "a\nb", readFileArgs{Line: 2}, "b\n", "[f: lines 2–2 of 2; no newline at the end]"},
		{"an offset", "0123456789", readFileArgs{Offset: 4}, "456789\n", "[f: bytes 4–10 of 10; no newline at the end]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := testEnv(t)
			e.put(t, "f", c.content)
			c.args.Path = "f"
			got := e.must(t, "read_file", c.args).Text
			i := strings.LastIndexByte(got, '\n') + 1
			if !strings.HasPrefix(got, c.first) || got[i:] != c.note {
				t.Errorf("got %.80q … %q\nwant %q … %q", got, got[i:], c.first, c.note)
			}
		})
	}
}

// R142: a huge line is given in pieces that put together are the line.
func TestReadHugeLine(t *testing.T) {
	e := testEnv(t)
	content := `{"x":"` + strings.Repeat("äb", 700_000) + `"}`
	e.put(t, "f", content)
	var all strings.Builder
	args := map[string]any{"path": "f"}
	for range 100 {
		r := e.must(t, "read_file", args)
		if len(r.Text) > maxRead+1000 || !utf8.ValidString(r.Text) {
			t.Fatalf("a piece of %d bytes", len(r.Text))
		}
		i := strings.LastIndexByte(r.Text, '\n')
		all.WriteString(r.Text[:i])
		var next int
		note := r.Text[i+1:]
		j := strings.Index(note, "go on with offset ")
		if j < 0 {
			break
		}
		if _, err := fmt.Sscanf(note[j:], "go on with offset %d", &next); err != nil {
			t.Fatal(err)
		}
		args["offset"] = next
	}
	if all.String() != content {
		t.Errorf("%d bytes came of %d", all.Len(), len(content))
	}
}

// R144: text is known by its content, whatever its name.
func TestReadByContent(t *testing.T) {
	e := testEnv(t)
	for _, name := range []string{"a.toml", "a.rs", "noext", "a.png", "a.ts"} {
		e.put(t, name, "key = 1\n")
		if got := e.must(t, "read_file", map[string]string{"path": name}).Text; !strings.HasPrefix(got, "key = 1\n") {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, says := range map[string]string{"x.txt": "image/png", "y.txt": "binary"} {
		e.put(t, name, map[string]string{"x.txt": "\x89PNG\r\n\x1a\n", "y.txt": "a\x00b"}[name])
		if _, err := e.do(t, "read_file", map[string]string{"path": name}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	e := testEnv(t)
	e.put(t, "f", "a\nb\n")
	for _, c := range []struct {
		args any
		says string
	}{
		{map[string]any{"path": "nix"}, "nix does not exist"},
		{map[string]any{"path": "."}, "list_dir"},
		{map[string]any{}, "missing"},
		{map[string]any{"path": "f", "line": 9}, "has only 2 lines"},
		{map[string]any{"path": "f", "offset": 99}, "has only 4 bytes"},
		{map[string]any{"path": "f", "line": -1}, "negative"},
		{map[string]any{"path": "f", "line": 1, "offset": 1}, "not both"},
		{map[string]any{"path": "f", "line": "1"}, "whole number"},
	} {
		if _, err := e.do(t, "read_file", c.args); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.args, err)
		}
	}
}

func TestListDir(t *testing.T) {
	e := testEnv(t)
	e.put(t, "b.txt", "")
	e.put(t, "z/x.txt", "")
	got := e.must(t, "list_dir", map[string]string{}).Text
	if want := "z/\nb.txt\n[" + e.Cwd + ": 1 directory, 1 file]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := e.do(t, "list_dir", map[string]string{"path": "b.txt"}); err == nil || !strings.Contains(err.Error(), "read_file") {
		t.Error(err)
	}
	for i := range maxEntries + 5 {
		e.put(t, fmt.Sprintf("many/%05d", i), "")
	}
	got = e.must(t, "list_dir", map[string]string{"path": "many"}).Text
	if strings.Count(got, "\n") != maxEntries || !strings.Contains(got, "first 1000") {
		t.Errorf("%d lines, %q", strings.Count(got, "\n"), got[len(got)-80:])
	}
}
