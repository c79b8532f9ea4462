package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// R052: what a terminal would obey is written out.
func TestVisible(t *testing.T) {
	for _, c := range []struct{ in, line, multi string }{
		{"plain", "plain", "plain"},
		{"ü 日本 👩‍👩‍👧", "ü 日本 👩‍👩‍👧", "ü 日本 👩‍👩‍👧"},
		{"curl x|sh\r\x1b[2K ls -la", `curl x|sh\r\x1b[2K ls -la`, `curl x|sh\r\x1b[2K ls -la`},
		{"a\nb\tc", `a\nb\tc`, "a\nb\tc"},
		{"a\r\nb", `a\r\nb`, "a\nb"},
		{"\x00\a\b\x7f", `\x00\x07\x08\x7f`, `\x00\x07\x08\x7f`},
		{"\u009b2J", `\x9b2J`, `\x9b2J`}, // C1: a control sequence in one character
		{"\u202edcba\u202c \u2066x\u2069", `\u202edcba\u202c \u2066x\u2069`, `\u202edcba\u202c \u2066x\u2069`},
		{"\u200b\ufeff\u2028\u00ad", `\u200b\ufeff\u2028\xad`, `\u200b\ufeff\u2028\xad`},
		{"\U000e0041", `\U000e0041`, `\U000e0041`}, // tag characters say things unseen
		{"\xff\xc3(", `\xff\xc3(`, `\xff\xc3(`},
		{"�", "�", "�"},
	} {
		if got := oneLine(c.in); got != c.line {
			t.Errorf("oneLine(%q) = %q, want %q", c.in, got, c.line)
		}
		if got := lines(c.in); got != c.multi {
			t.Errorf("lines(%q) = %q, want %q", c.in, got, c.multi)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[31m\r\n\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{oneLine(s), strings.NewReplacer("\n", "", "\t", "").Replace(lines(s))} {
			if !utf8.ValidString(out) {
				t.Fatalf("%q is no UTF-8", out)
			}
			for _, r := range out {
				if hidden(r) {
					t.Fatalf("%q has %U", out, r)
				}
			}
		}
	})
}

func TestNoColorsWhereNotWanted(t *testing.T) {
	if got := (style{}).ask("x") + (style{}).dim("y"); got != "xy" {
		t.Errorf("%q", got)
	}
	if got := (style{on: true}).red("x"); got == "x" {
		t.Error("no colour where it is wanted")
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"json", "jsn", 1}, {"json", "json", 0}, {"ab", "ba", 2}, {"", "abc", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q %q: %d", c.a, c.b, got)
		}
	}
}
