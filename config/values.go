package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"gladhand"
)

// value is one setting within a Settings. set takes a JSON literal; its error
// says what would be right, to follow "NAME must be".
type value interface {
	set(raw []byte) error
	json() json.RawMessage
}

type mustBe string

func (m mustBe) Error() string { return string(m) }

type text struct {
	p   *string
	min int // bytes
}

func (v text) set(raw []byte) error {
	var s *string
	want := mustBe("a string of at most 200 characters")
	if json.Unmarshal(raw, &s) != nil || s == nil || len(*s) > 200 {
		return want
	}
	if len(*s) < v.min {
		return mustBe("a string that is not empty")
	}
	if strings.ContainsFunc(*s, unicode.IsControl) {
		return mustBe("a string without control characters")
	}
	*v.p = *s
	return nil
}

func (v text) json() json.RawMessage { return quote(*v.p) }

type word struct {
	p  *string
	of []string
}

func (v word) set(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		for _, w := range v.of {
			if s == w {
				*v.p = s
				return nil
			}
		}
	}
	return mustBe(`one of "` + strings.Join(v.of, `", "`) + `"`)
}

func (v word) json() json.RawMessage { return quote(*v.p) }

type number struct {
	p        *int
	min, max int
}

func (v number) set(raw []byte) error {
	var n *int
	if json.Unmarshal(raw, &n) != nil || n == nil || *n < v.min || *n > v.max {
		return mustBe(fmt.Sprintf("a whole number from %d to %d", v.min, v.max))
	}
	*v.p = *n
	return nil
}

func (v number) json() json.RawMessage { return fmt.Appendf(nil, "%d", *v.p) }

type duration struct {
	p        *time.Duration
	min, max time.Duration
}

func (v duration) set(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if d, err := time.ParseDuration(s); err == nil && d >= v.min && d <= v.max {
			*v.p = d
			return nil
		}
	}
	return mustBe(fmt.Sprintf(`a time from %s to %s, such as "90s", "30m" or "2h"`, short(v.min), short(v.max)))
}

func (v duration) json() json.RawMessage { return quote(short(*v.p)) }

// short is 30m where Duration says 30m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s) // cannot fail for a string
	return b
}

// quotable reports whether a name from the file may be repeated in an error: what
// looks like a word is one, anything else may be a key in a wrong place.
func quotable(name string) bool {
	for _, r := range name {
		if !unicode.IsLetter(r) && r != '_' && r != '-' && r != '.' && r != '$' {
			return false
		}
	}
	return len(name) <= 40
}

// proxy is how the network is reached; its address may have a password.
type proxy struct{ p *gladhand.Secret }

func (v proxy) set(raw []byte) error {
	want := mustBe(`empty (the environment's), "none", or an address such as "http://proxy:3128" or "socks5://localhost:1080"`)
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil || len(*s) > 500 {
		return want
	}
	if *s == "" || *s == "none" {
		*v.p = gladhand.PartlySecret(*s, *s)
		return nil
	}
	u, err := url.Parse(*s)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" || strings.Contains(*s, gladhand.Masked) {
		return want
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return want
	}
	*v.p = gladhand.PartlySecret(*s, masked(u))
	return nil
}

func (v proxy) json() json.RawMessage { return quote(v.p.String()) }

// masked is an address without what may be secret in it: a password, a query.
func masked(u *url.URL) string {
	user, query := "", ""
	if u.User != nil {
		user = gladhand.Masked + "@"
	}
	if u.RawQuery != "" || u.ForceQuery {
		query = "?" + gladhand.Masked
	}
	return u.Scheme + "://" + user + u.Host + u.EscapedPath() + query
}

// path is an absolute path of a file, or empty.
type path struct{ p *string }

func (v path) set(raw []byte) error {
	var s string
	if err := (text{&s, 0}).set(raw); err != nil || s != "" && !filepath.IsAbs(s) {
		return mustBe("empty, or the absolute path of a file")
	}
	*v.p = s
	return nil
}

func (v path) json() json.RawMessage { return quote(*v.p) }
