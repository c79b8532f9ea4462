package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// testEnv is a workspace in a temporary directory.
func testEnv(t testing.TB) *Env {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Env{Cwd: dir, Files: &Files{}}
}

func (e *Env) put(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(e.Cwd, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func (e *Env) get(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(e.Cwd, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// named finds a tool.
func named(name string) Tool {
	for _, t := range Builtin() {
		if t.Spec().Name == name {
			return t
		}
	}
	panic(name)
}

// prepare prepares a call; args are encoded.
func (e *Env) prepare(t testing.TB, name string, args any) (*Call, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return named(name).Prepare(t.Context(), e, raw)
}

// do prepares and runs a call.
func (e *Env) do(t testing.TB, name string, args any) (Result, error) {
	t.Helper()
	c, err := e.prepare(t, name, args)
	if err != nil {
		return Result{}, err
	}
	return c.Run(t.Context(), NewOutput(MaxResult, ""))
}

func (e *Env) must(t testing.TB, name string, args any) Result {
	t.Helper()
	r, err := e.do(t, name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

func one(path, old, text string) editFileArgs {
	return editFileArgs{Path: path, Edits: []edit{{Old: old, New: text}}}
}

// R126, R128: the matrix of line ends × edits. Only the bytes of the change
// change, and lines that come new have the line ends in use there.
func TestEditKeepsBytes(t *testing.T) {
	files := map[string]string{
		"LF":               "alpha\nbeta\ngamma\ndelta\n",
		"CRLF":             "alpha\r\nbeta\r\ngamma\r\ndelta\r\n",
		"mixed":            "alpha\r\nbeta\ngamma\r\ndelta\n",
		"bare CR":          "al\rpha\nbeta\r\ngam\rma\ndelta\r",
		"no final newline": "alpha\nbeta\ngamma\ndelta",
		"CRLF, no final":   "alpha\r\nbeta\r\ngamma\r\ndelta",
		"BOM, LF":          "\xEF\xBB\xBFalpha\nbeta\ngamma\ndelta\n",
		"BOM, CRLF":        "\xEF\xBB\xBFalpha\r\nbeta\r\ngamma\r\ndelta\r\n",
		"Latin-1":          "alpha\nb\xE9\nbeta\ngamma\n\xFF\xFEdelta\n",
		"UTF-16 LE":        string(encodeText([]byte("alpha\r\nbeta\r\ngamma\r\n\U0001F600delta"), utf16LE)),
		"UTF-16 BE":        string(encodeText([]byte("alpha\nbeta\ngamma\ndelta\n"), utf16BE)),
	}
	edits := []struct {
		name, old, text string
		raw             string // old as bytes of the file; empty: same as old
	}{
		{name: "word", old: "beta", text: "BETA"},
		{name: "longer", old: "beta", text: "beta and more ü"},
		{name: "delete", old: "beta", text: ""},
	}
	for fname, content := range files {
		for _, ed := range edits {
			t.Run(fname+"/"+ed.name, func(t *testing.T) {
				e := testEnv(t)
				e.put(t, "f", content)
				r := e.must(t, "edit_file", one("f", ed.old, ed.text))
				old, text := []byte(ed.old), []byte(ed.text)
				if enc := encodingOf([]byte(content)); enc == utf16LE || enc == utf16BE {
					old, text = encodeText(old, enc)[2:], encodeText(text, enc)[2:]
				}
				want := strings.Replace(content, string(old), string(text), 1)
				if got := e.get(t, "f"); got != want {
					t.Errorf("got  %q\nwant %q", got, want)
				}
				if !strings.Contains(r.Text, "exact match") { // R132
					t.Errorf("the result does not say how it matched: %s", r.Text)
				}
			})
		}
	}
}

// R128: a model writes \n; the file's own ends are found and used.
func TestEditAcrossLines(t *testing.T) {
	for _, c := range []struct{ name, file, old, text, want string }{
		{"CRLF, a line more", "a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\nb\n", "a\r\nx\r\nb\r\nc\r\n"},
		{"CRLF, old text with CRLF", "a\r\nb\r\nc\r\n", "a\r\nb", "a\r\nB", "a\r\nB\r\nc\r\n"},
		{"CRLF, lines joined", "a\r\nb\r\nc\r\n", "a\nb", "ab", "ab\r\nc\r\n"},
		{"LF, new text with CRLF", "a\nb\n", "b", "b\r\nc", "a\nb\nc\n"},
		{"mixed, each line keeps its own", "a\r\nb\nc\r\nd\n", "a\nb\nc\n", "A\nb\nC\n", "A\r\nb\nC\r\nd\n"},
		{"mixed, new line after CRLF", "a\r\nb\nc\r\n", "a\n", "a\nx\n", "a\r\nx\r\nb\nc\r\n"},
		{"mixed, new line after LF", "a\r\nb\nc\r\n", "b\n", "b\nx\n", "a\r\nb\nx\nc\r\n"},
		{"mixed, line gone", "a\r\nb\nc\r\n", "a\nb\nc\n", "a\nc\n", "a\r\nc\r\n"},
		{"one line without an end", "abc", "b", "x\ny", "ax\nyc"},
		{"bare CR is no line end", "a\rb\r\nc", "a\rb\nc", "a\rB\nc", "a\rB\r\nc"},
		{"from the first byte to the last", "a\r\nb", "a\nb", "x", "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := testEnv(t)
			e.put(t, "f", c.file)
			e.must(t, "edit_file", one("f", c.old, c.text))
			if got := e.get(t, "f"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A property over random texts: the edit is what it is on the \n view, and every
// byte outside the lines it touches is the same.
func TestEditProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "", "xy", "é", "\r", "q\rq"}), 1, 12).Draw(rt, "lines")
		var body []byte
		for i, l := range lines {
			body = append(body, l...)
			if i < len(lines)-1 || rapid.Bool().Draw(rt, "final") {
				body = append(body, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end")...)
			}
		}
		v := lfView(body)
		if len(v.text) == 0 {
			return
		}
		start := rapid.IntRange(0, len(v.text)-1).Draw(rt, "start")
		end := rapid.IntRange(start+1, len(v.text)).Draw(rt, "stop")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "\n", "zz"}), 0, 6).Draw(rt, "new"), "")
		s := v.splice(start, end, []byte(text))
		after := spliced(body, []splice{s}).joined()
		want := string(v.text[:start]) + text + string(v.text[end:])
		// A \r before a \n that is now together reads as one line end: the only
		// way in which the view may differ.
		if got := string(lfView(after).text); got != want && barely(got) != barely(want) {
			rt.Fatalf("body %q [%d:%d] %q: view %q, want %q", body, start, end, text, got, want)
		}
		if !bytes.HasPrefix(after, body[:s.start]) || !bytes.HasSuffix(after, body[s.end:]) {
			rt.Fatalf("bytes outside the splice changed: %q → %q", body, after)
		}
		if s.start < v.offset(start) || s.end > v.offset(end) {
			rt.Fatalf("the splice [%d:%d] leaves the match", s.start, s.end)
		}
	})
}

// barely is s without the \r before each \n.
func barely(s string) string {
	for strings.Contains(s, "\r\n") {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	return s
}

// R129, R133: nothing is written on anything but an exact, unique match.
func TestEditRefuses(t *testing.T) {
	const content = "func main() {\n\tprintln(\"one\")\n\tprintln(\"two\")\n\tprintln(\"two\")\n}\n"
	for _, c := range []struct {
		name string
		args any
		says []string
	}{
		{"one letter off", one("f", "printn(\"one\")", "x"), []string{"not found", "line 2", `println("one")`}},
		{"blanks differ", one("f", "func main() {\n  println(\"one\")", "x"), []string{"not found", "lines 1–2"}},
		{"nothing like it", one("f", "zzzzzzzzzz", "x"), []string{"not found", "Nothing in the file"}},
		{"twice", one("f", `println("two")`, "x"), []string{"2 times", "lines 3, 4", "replace_all"}},
		{"overlapping itself", one("g", "aa", "b"), []string{"2 times"}},
		{"empty", one("f", "", "x"), []string{"empty"}},
		{"the same", one("f", "main", "main"), []string{"same"}},
		{"no edits", map[string]any{"path": "f"}, []string{"give edits"}},
		{"no file", one("nix", "a", "b"), []string{"does not exist", "write_file"}},
		{"a directory", one(".", "a", "b"), []string{"directory"}},
		{"binary", one("bin", "a", "b"), []string{"PNG"}},
		{"overlapping edits", editFileArgs{Path: "f", Edits: []edit{{Old: "func main", New: "x"}, {Old: "main() {", New: "y"}}}, []string{"two edits"}},
		{"second edit fails", editFileArgs{Path: "f", Edits: []edit{{Old: "func", New: "x"}, {Old: "zzzzzz", New: "y"}}}, []string{"edits[1].old_text", "not found"}},
		{"unknown argument", map[string]any{"path": "f", "edit": []edit{}}, []string{`no argument "edit"`}},
		{"wrong type", map[string]any{"path": "f", "edits": "x"}, []string{`argument "edits" is not a list`}},
		{"wrong case", map[string]any{"Path": "f"}, []string{`no argument "Path"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := testEnv(t)
			e.put(t, "f", content)
			e.put(t, "g", "aaa")
			e.put(t, "bin", "\x89PNG\r\n\x1a\n\x00\x00")
			_, err := e.do(t, "edit_file", c.args)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the error does not say %q: %v", s, err)
				}
			}
			if e.get(t, "f") != content || e.get(t, "g") != "aaa" {
				t.Error("the file was changed")
			}
		})
	}
}

func TestEditSeveral(t *testing.T) {
	e := testEnv(t)
	e.put(t, "f", "one two three two\nlast")
	r := e.must(t, "edit_file", editFileArgs{Path: "f", Append: "end", Edits: []edit{{Old: "three", New: "one"}, {Old: "one", New: "three"}, {Old: "two", New: "2", All: true}}})
	if got, want := e.get(t, "f"), "three 2 one 2\nlast\nend\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.Contains(r.Text, "4 replacements") {
		t.Errorf("report: %s", r.Text)
	}
}

// R135, R136, R138: a stale read is refused, an own edit is not stale.
func TestStale(t *testing.T) {
	a := testEnv(t)
	b := &Env{Cwd: a.Cwd, Files: &Files{}}
	a.put(t, "f", "one\n")
	if _, err := a.do(t, "write_file", map[string]string{"path": "f", "content": "x"}); err == nil || !strings.Contains(err.Error(), "not read yet") {
		t.Errorf("an unread file was overwritten: %v", err)
	}
	a.must(t, "read_file", map[string]string{"path": "f"})
	b.must(t, "read_file", map[string]string{"path": "f"})
	a.must(t, "write_file", map[string]string{"path": "f", "content": "from a\n"})
	for _, c := range []struct {
		tool string
		args any
	}{{"write_file", map[string]string{"path": "f", "content": "from b\n"}}, {"edit_file", one("f", "from", "not")}} {
		if _, err := b.do(t, c.tool, c.args); err == nil || !strings.Contains(err.Error(), "changed since it was read") {
			t.Errorf("%s on a stale read: %v", c.tool, err)
		}
	}
	a.must(t, "edit_file", one("f", "from a", "two"))
	a.must(t, "edit_file", one("f", "two", "three"))
	a.must(t, "write_file", map[string]string{"path": "f", "content": "four\n"})
	if got := a.get(t, "f"); got != "four\n" {
		t.Errorf("got %q", got)
	}
}

// R137: whatever writes between prepare and run, and between the temporary file
// and the rename, wins; nothing is lost and nothing is left behind.
func TestWriterInBetween(t *testing.T) {
	for _, c := range []struct {
		name string
		args any
		tool string
	}{
		{"edit", one("f", "one", "two"), "edit_file"},
		{"new file", map[string]string{"path": "new", "content": "x"}, "write_file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := testEnv(t)
			e.put(t, "f", "one\n")
			call, err := e.prepare(t, c.tool, c.args)
			if err != nil {
				t.Fatal(err)
			}
			before, _ := call.Digest()
			e.put(t, "f", "one, by another\n")
			e.put(t, "new", "by another\n")
			if after, _ := call.Digest(); after == before {
				t.Error("the digest did not see the change")
			}
			if _, err := call.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "changed since") {
				t.Errorf("it was written over: %v", err)
			}
			if e.get(t, "f") != "one, by another\n" || e.get(t, "new") != "by another\n" {
				t.Error("the other's text is lost")
			}
			e.onlyFiles(t, "f", "new")
		})
	}
	t.Run("staged", func(t *testing.T) {
		e := testEnv(t)
		path := e.put(t, "f", "one\n")
		base, err := load(path, "f")
		if err != nil {
			t.Fatal(err)
		}
		s, err := stage(path, "f", base, content{[]byte("two\n")})
		if err != nil {
			t.Fatal(err)
		}
		e.put(t, "f", "by another\n")
		if err := s.commit(); err == nil {
			t.Error("it was written over")
		}
		s.discard()
		if e.get(t, "f") != "by another\n" {
			t.Error("the other's text is lost")
		}
		e.onlyFiles(t, "f")
	})
}

func (e *Env) onlyFiles(t *testing.T, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(e.Cwd)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, f := range entries {
		have = append(have, f.Name())
	}
	if fmt.Sprint(have) != fmt.Sprint(names) {
		t.Errorf("files %v, want %v", have, names)
	}
}

// R140: mode, symbolic link and hard links stay.
func TestEditKeepsTheFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes and links as on Unix")
	}
	e := testEnv(t)
	path := e.put(t, "f", "one\n")
	if err := os.Chmod(path, 0o751); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("f", filepath.Join(e.Cwd, "link")); err != nil {
		t.Fatal(err)
	}
	e.must(t, "edit_file", one("link", "one", "two"))
	fi, err := os.Lstat(filepath.Join(e.Cwd, "link"))
	if err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if fi, _ = os.Lstat(path); fi.Mode().Perm() != 0o751 || e.get(t, "f") != "two\n" {
		t.Errorf("mode %v, content %q", fi.Mode(), e.get(t, "f"))
	}
	if err := os.Link(path, filepath.Join(e.Cwd, "hard")); err != nil {
		t.Fatal(err)
	}
	e.must(t, "edit_file", one("f", "two", "three, longer"))
	e.must(t, "edit_file", one("hard", "three, longer", "3"))
	if e.get(t, "f") != "3\n" || e.get(t, "hard") != "3\n" {
		t.Errorf("the names differ: %q, %q", e.get(t, "f"), e.get(t, "hard"))
	}
	e.onlyFiles(t, "f", "hard", "link")
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := e.do(t, "edit_file", one("hard", "3", "4")); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a read-only file was changed: %v", err)
	}
}

func TestWriteFile(t *testing.T) {
	e := testEnv(t)
	r := e.must(t, "write_file", map[string]string{"path": "a/b/c.txt", "content": "hé\n"})
	if e.get(t, "a/b/c.txt") != "hé\n" || !strings.Contains(r.Text, "Created") {
		t.Errorf("%q, %s", e.get(t, "a/b/c.txt"), r.Text)
	}
	e.put(t, "w", "\xEF\xBB\xBFone\r\ntwo\r\n")
	if got := e.must(t, "read_file", map[string]string{"path": "w"}).Text; !strings.HasPrefix(got, "one\ntwo\n[") || !strings.Contains(got, "CRLF") {
		t.Errorf("read: %q", got)
	}
	r = e.must(t, "write_file", map[string]string{"path": "w", "content": "one\n2\n"})
	if got := e.get(t, "w"); got != "\xEF\xBB\xBFone\r\n2\r\n" || !strings.Contains(r.Text, "CRLF") {
		t.Errorf("got %q; %s", got, r.Text)
	}
	if _, err := e.do(t, "write_file", map[string]string{"path": "x"}); err == nil {
		t.Error("no content was accepted")
	}
}

// A dangling link is followed to where the file would be: what is decided on is
// what is written.
func TestResolve(t *testing.T) {
	e := testEnv(t)
	out := testEnv(t)
	for _, l := range [][2]string{{filepath.Join(out.Cwd, "target"), "dangling"}, {out.Cwd, "dir"}, {"loop", "loop"}} {
		if err := os.Symlink(l[0], filepath.Join(e.Cwd, l[1])); err != nil {
			t.Skip(err)
		}
	}
	for given, want := range map[string]string{
		"dangling":    filepath.Join(out.Cwd, "target"),
		"dir/x/y":     filepath.Join(out.Cwd, "x", "y"),
		"a/../b":      filepath.Join(e.Cwd, "b"),
		"../b":        filepath.Join(filepath.Dir(e.Cwd), "b"),
		e.Cwd + "/c/": filepath.Join(e.Cwd, "c"),
	} {
		if got, err := e.resolve(given); err != nil || got != want {
			t.Errorf("%s → %s, %v; want %s", given, got, err, want)
		}
	}
	for _, bad := range []string{"", "loop", "a\x00b"} {
		if got, err := e.resolve(bad); err == nil {
			t.Errorf("%q → %s", bad, got)
		}
	}
	call, err := e.prepare(t, "write_file", map[string]string{"path": "dangling", "content": "x"})
	if err != nil {
		t.Fatal(err)
	}
	if got := call.Action.Paths[0]; got != filepath.Join(out.Cwd, "target") {
		t.Errorf("decided on %s", got)
	}
	// The link is turned round after it was decided on.
	_ = os.Remove(filepath.Join(e.Cwd, "dangling"))
	if err := os.Symlink(filepath.Join(out.Cwd, "other"), filepath.Join(e.Cwd, "dangling")); err != nil {
		t.Fatal(err)
	}
	if _, err := call.Run(t.Context(), nil); err == nil {
		t.Error("it was written through a link that changed")
	}
	out.onlyFiles(t)
}

func BenchmarkEdit10MB(b *testing.B) {
	e := testEnv(b)
	text := strings.Repeat("a line of a large file, with some text in it\n", 10<<20/45)
	e.put(b, "f", "first\n"+text)
	for i := 0; b.Loop(); i++ {
		old, text := "first\n", "second\n"
		if i%2 == 1 {
			old, text = text, old
		}
		c, err := e.prepare(b, "edit_file", one("f", old, text))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Digest(); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Run(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// Many sessions edit one file at once: each edit is made or refused, none is lost.
func TestConcurrentEdits(t *testing.T) {
	first := testEnv(t)
	const sessions, each = 4, 8
	var body strings.Builder
	for i := range sessions * each {
		fmt.Fprintf(&body, "old %d.\n", i)
	}
	first.put(t, "f", body.String())
	var wg sync.WaitGroup
	for n := range sessions {
		wg.Go(func() {
			e := &Env{Cwd: first.Cwd, Files: &Files{}}
			for i := n * each; i < (n+1)*each; {
				_, err := e.do(t, "edit_file", one("f", fmt.Sprintf("old %d.", i), fmt.Sprintf("new %d.", i)))
				switch {
				case err == nil:
					i++
				case strings.Contains(err.Error(), "changed since"):
					if _, err := e.do(t, "read_file", map[string]string{"path": "f"}); err != nil {
						t.Error(err)
						return
					}
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got, want := first.get(t, "f"), strings.ReplaceAll(body.String(), "old", "new"); got != want {
		t.Errorf("edits were lost:\n%s", got)
	}
	first.onlyFiles(t, "f")
}
