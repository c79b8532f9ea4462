package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/tailscale/hujson"

	"gladhand"
)

// misfit is what is wrong with a part of an object setting. It never holds a
// value, and of names only what is quotable.
type misfit struct {
	offset int    // within the setting's text
	path   string // the part, ".local.url"; "" is the whole
	says   string // to follow the path: "must be …"
}

func (m *misfit) Error() string { return strings.TrimPrefix(m.path, ".") + " " + m.says }

// explain makes a sentence of what [value.set] says about prop.
func explain(prop string, err error) error {
	var m *misfit
	if errors.As(err, &m) {
		return fmt.Errorf("%s%s %s", prop, m.path, m.says)
	}
	return fmt.Errorf("%s must be %w", prop, err)
}

// part is a value within an object setting, and its place.
type part struct {
	v    hujson.Value
	path string
}

// whole parses the text of an object setting.
func whole(raw []byte) (part, error) {
	v, err := hujsonValue(raw)
	if err != nil || v.StartOffset != 0 || v.EndOffset != len(raw) {
		return part{}, mustBe("an object, { … }")
	}
	return part{v, ""}, nil
}

func (p part) must(format string, args ...any) error {
	return &misfit{p.v.StartOffset, p.path, "must be " + fmt.Sprintf(format, args...)}
}

// at is the part called name; a name that may be a secret is left out.
func (p part) at(name string, v hujson.Value) part {
	if letters := strings.Map(dropDigits, name); !quotable(letters) || len(name)-len(letters) > 4 {
		name = "…"
	}
	return part{v, p.path + "." + name}
}

func dropDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// each calls f for every member. kind says what the members are, and fits
// whether a name may be one of theirs.
func (p part) each(kind string, fits func(string) error, most int, f func(name string, v part) error) error {
	o, ok := p.v.Value.(*hujson.Object)
	if !ok {
		return p.must("an object, { … }")
	}
	if len(o.Members) > most {
		return p.must("an object of at most %d %ss", most, kind)
	}
	seen := map[string]bool{}
	for _, m := range o.Members {
		name := nameOf(m.Name)
		if err := fits(name); err != nil {
			return &misfit{m.Name.StartOffset, p.path, err.Error()}
		}
		if seen[name] {
			return &misfit{m.Name.StartOffset, p.at(name, m.Value).path, "is there twice: remove one"}
		}
		seen[name] = true
		if err := f(name, p.at(name, m.Value)); err != nil {
			return err
		}
	}
	return nil
}

// fields reads an object with known members.
func (p part) fields(read map[string]func(part) error) error {
	known := func(name string) error {
		if read[name] != nil {
			return nil
		}
		names := make([]string, 0, len(read))
		for n := range read {
			names = append(names, n)
		}
		if !quotable(name) {
			return fmt.Errorf("has a member that there is not: there are %s", list(names))
		}
		if near := nearest(strings.ToLower(name), names); near != "" {
			return fmt.Errorf("has no %q: did you mean %q?", name, near)
		}
		return fmt.Errorf("has no %q: there are %s", name, list(names))
	}
	return p.each("member", known, len(read)+1, func(name string, v part) error { return read[name](v) })
}

// elements reads an array.
func (p part) elements(what string, most int, f func(part) error) error {
	a, ok := p.v.Value.(*hujson.Array)
	if !ok || len(a.Elements) > most {
		return p.must("a list of at most %d %s, [ … ]", most, what)
	}
	for i, e := range a.Elements {
		if err := f(part{e, fmt.Sprintf("%s[%d]", p.path, i)}); err != nil {
			return err
		}
	}
	return nil
}

// literal decodes a number, a truth value or a string into target, and reports
// whether it fits.
func (p part) literal(target any) bool {
	lit, ok := p.v.Value.(hujson.Literal)
	return ok && !bytes.Equal(lit, []byte("null")) && json.Unmarshal(lit, target) == nil
}

// The readers of one member each.

func intoText(to *string, most int) func(part) error {
	return func(p part) error {
		var s string
		if !p.literal(&s) || len(s) > most || strings.ContainsFunc(s, unicode.IsControl) {
			return p.must("a string of at most %d characters, none of them a control character", most)
		}
		*to = s
		return nil
	}
}

func intoWord(to *string, words ...string) func(part) error {
	return func(p part) error {
		if err := (word{to, words}).set(p.raw()); err != nil {
			return p.must("%v", err)
		}
		return nil
	}
}

// raw is a literal's text.
func (p part) raw() []byte {
	lit, _ := p.v.Value.(hujson.Literal)
	return lit
}

func intoTruth(to *bool) func(part) error {
	return func(p part) error {
		if !p.literal(to) {
			return p.must("true or false")
		}
		return nil
	}
}

func intoNumber(to *int, most int) func(part) error {
	return func(p part) error {
		if !p.literal(to) || *to < 0 || *to > most {
			return p.must("a whole number from 0 to %d", most)
		}
		return nil
	}
}

func intoDollars(to *float64) func(part) error {
	return func(p part) error {
		if !p.literal(to) || *to < 0 || *to > 1e6 {
			return p.must("US dollars for a million tokens, such as 2.5")
		}
		return nil
	}
}

func intoTime(to *time.Duration, least, most time.Duration) func(part) error {
	return func(p part) error {
		if err := (duration{to, least, most}).set(p.raw()); err != nil {
			return p.must("%v", err)
		}
		return nil
	}
}

func intoTexts(to *[]string, most, length int) func(part) error {
	return func(p part) error {
		*to = nil
		return p.elements("strings", most, func(e part) error {
			var s string
			if err := intoText(&s, length)(e); err != nil {
				return err
			}
			*to = append(*to, s)
			return nil
		})
	}
}

// intoSecret reads a key, or where one is: env:NAME, keyring:, keyring:NAME.
func intoSecret(to *gladhand.Secret) func(part) error {
	return func(p part) error {
		var s string
		if !p.literal(&s) || len(s) > 8192 || strings.ContainsFunc(s, unicode.IsControl) {
			return p.must("a key, env:NAME or keyring:, without control characters")
		}
		if strings.Contains(s, gladhand.Masked) {
			return &misfit{p.v.StartOffset, p.path, "is the mask that stands for a key: write the key itself, env:NAME or keyring:, or change only what is to be changed, by its path"}
		}
		secret := gladhand.NewSecret(s)
		if kind, name := secret.Reference(); kind == "env" && !isVariable(name) {
			return p.must("env: and the name of a variable, such as env:MY_KEY")
		}
		*to = secret
		return nil
	}
}

func intoSecrets(to *map[string]gladhand.Secret, kind string, fits func(string) error) func(part) error {
	return func(p part) error {
		*to = map[string]gladhand.Secret{}
		return p.each(kind, fits, 100, func(name string, v part) error {
			var s gladhand.Secret
			err := intoSecret(&s)(v)
			(*to)[name] = s
			return err
		})
	}
}

// intoAddress reads an http address; its query, where there may be one, is not
// shown.
func intoAddress(to *gladhand.Secret, query bool) func(part) error {
	return func(p part) error {
		var s string
		want := p.must(`an address such as "http://127.0.0.1:8080/v1", without a name or password in it`)
		if !p.literal(&s) || len(s) > 2000 || strings.Contains(s, gladhand.Masked) {
			return want
		}
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" && !query {
			return want
		}
		*to = gladhand.PartlySecret(s, masked(u))
		return nil
	}
}

var (
	errName     = errors.New("must have names of at most 32 lower-case letters, digits, - and _, the first a letter or digit")
	errVariable = errors.New("must have names of variables: letters, digits and _")
	errHeader   = errors.New("must have names of headers: letters, digits and -")
)

// isName holds the names of providers and servers.
func isName(s string) error {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (i == 0 || c != '_' && c != '-') {
			return errName
		}
	}
	if len(s) == 0 || len(s) > 32 {
		return errName
	}
	return nil
}

func isVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 128
}

func variable(s string) error {
	if !isVariable(s) {
		return errVariable
	}
	return nil
}

// header holds the names of headers, RFC 9110's tokens.
func header(s string) error {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return errHeader
		}
	}
	if len(s) == 0 || len(s) > 128 {
		return errHeader
	}
	return nil
}
