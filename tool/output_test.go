package tool

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Whatever is written in whatever pieces: the text is the whole when it fits,
// else the beginning and the end of it, valid and bounded; and the file has it all.
func TestOutputProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		limit := 2 * rapid.IntRange(4, 32).Draw(rt, "half")
		show := rapid.IntRange(8, 80).Draw(rt, "show")
		o := NewOutput(limit, dir)
		d := &decoder{to: o}
		var all []byte
		for _, p := range rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("aé≤😀\n")), 0, 20, -1), 0, 20).Draw(rt, "text") {
			all = append(all, p...)
		}
		for rest := all; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
			_, _ = d.Write(rest[:n])
			rest = rest[n:]
		}
		_ = d.Close()
		text := o.Text(show)
		_ = o.Close()
		half := min(limit, show) / 2
		if !utf8.ValidString(text) {
			rt.Fatalf("not UTF-8: %q", text)
		}
		if len(all) <= 2*half {
			if text != string(all) {
				rt.Fatalf("got %q, want %q", text, all)
			}
		} else {
			head, tail, ok := strings.Cut(text, "[… ")
			_, tail, ok2 := strings.Cut(tail, " …]\n")
			if !ok || !ok2 || len(head) > half+1 || len(tail) > half {
				rt.Fatalf("%q", text)
			}
			if !bytes.HasPrefix(all, []byte(strings.TrimSuffix(head, "\n"))) || !bytes.HasSuffix(all, []byte(tail)) {
				rt.Fatalf("%q is not of %q", text, all)
			}
		}
		if o.Total() != int64(len(all)) {
			rt.Fatalf("total %d of %d", o.Total(), len(all))
		}
		if len(all) > limit {
			b, err := os.ReadFile(o.File())
			if err != nil || !bytes.Equal(b, all) {
				rt.Fatalf("file %q, %v", b, err)
			}
		} else if o.File() != "" {
			rt.Fatal("a file for what fits")
		}
	})
}

func TestDecoderReplaces(t *testing.T) {
	for in, want := range map[string]string{
		"a\xffb": "a\uFFFDb", "\xe2\x89": "\uFFFD", "ok": "ok", "\xe2\x89x": "\uFFFDx", "\x80\x80": "\uFFFD",
	} {
		o := NewOutput(100, "")
		d := &decoder{to: o}
		_, _ = d.Write([]byte(in))
		_ = d.Close()
		if got := o.Text(100); got != want {
			t.Errorf("%q → %q, want %q", in, got, want)
		}
	}
}

// Each tool's schema is valid JSON with the same names as its arguments, and its
// text is there.
func TestSpecs(t *testing.T) {
	for _, tool := range Builtin() {
		s := tool.Spec()
		var schema struct {
			Type       string
			Properties map[string]any
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(s.Schema, &schema); err != nil || schema.Type != "object" || schema.Additional == nil || *schema.Additional {
			t.Errorf("%s: schema %v, %v", s.Name, schema, err)
		}
		if len(s.Description) < 40 || s.Kind == "" {
			t.Errorf("%s: %q, %q", s.Name, s.Description, s.Kind)
		}
		for name := range schema.Properties {
			raw, _ := json.Marshal(map[string]any{name: map[string]int{"x": 1}})
			_, err := tool.Prepare(t.Context(), testEnv(t), raw)
			if err == nil || strings.Contains(err.Error(), "no argument") {
				t.Errorf("%s does not know its argument %s: %v", s.Name, name, err)
			}
		}
		for _, args := range []string{"", "null", "[]", `{"path":1}`, "\xff"} {
			if tool.Title(json.RawMessage(args)) == "" {
				t.Errorf("%s has no title for %q", s.Name, args)
			}
		}
	}
	for args, says := range map[string]string{
		`{"path":"a","path":"b"}`: "duplicate", "{\"path\":\"\xff\"}": "UTF-8", `{"path":`: "JSON", `{"PATH":"a"}`: "no argument",
	} {
		_, err := named("read_file").Prepare(t.Context(), testEnv(t), json.RawMessage(args))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
