package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gladhand"
)

// quote is what a provider said, to put behind our own words.
func (e *Endpoint) quote(s string) string {
	if s = e.plain(s); s == "" {
		return ""
	}
	return ": “" + s + "”"
}

// plain makes foreign text fit to be shown: no secrets, one line, no control
// characters, at most 500 bytes.
func (e *Endpoint) plain(s string) string {
	const limit = 500
	s = e.masked(s)
	if looksHTML(s) {
		s = tags().ReplaceAllString(s, " ")
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		cut := limit - len("…")
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = strings.TrimSpace(s[:cut]) + "…"
	}
	return s
}

var tags = pattern(`(?is)<(script|style|head)\b.*?</(script|style|head)>|<[^>]*>`)

func looksHTML(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s))
	return strings.HasPrefix(s, "<!doctype") || strings.HasPrefix(s, "<html") || strings.HasPrefix(s, "<head")
}

// masked is s without the key and the headers' values.
func (e *Endpoint) masked(s string) string {
	for _, secret := range e.secrets() {
		s = strings.ReplaceAll(s, secret, gladhand.Masked)
		if q := url.QueryEscape(secret); q != secret {
			s = strings.ReplaceAll(s, q, gladhand.Masked)
		}
		if b, err := json.Marshal(secret); err == nil && len(b) > 2 {
			s = strings.ReplaceAll(s, string(b[1:len(b)-1]), gladhand.Masked)
		}
	}
	return s
}

// secrets are the texts that no message may have in it.
func (e *Endpoint) secrets() []string {
	var list []string
	add := func(s string) {
		if s = strings.TrimSpace(s); len(s) >= 6 {
			list = append(list, s)
		}
	}
	if e.Key != nil {
		add(e.Key())
	}
	for _, v := range e.Headers {
		add(v)
		if _, token, ok := strings.Cut(v, " "); ok {
			add(token)
		}
	}
	if u, err := url.Parse(e.BaseURL); err == nil {
		if p, ok := u.User.Password(); ok {
			add(p)
		}
		for _, vs := range u.Query() {
			for _, v := range vs {
				add(v)
			}
		}
	}
	return list
}

// cleaned is err when its text has no secret in it, else one with the same text
// without.
func (e *Endpoint) cleaned(err error) error {
	if err == nil {
		return nil
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if s := err.Error(); e.masked(s) != s {
		return errors.New(e.masked(s))
	}
	return err
}

// retryAfter is how long a provider asks to wait; 0 when it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return clampWait(ms / 1000)
	}
	if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return clampWait(s)
		}
		if t, err := http.ParseTime(v); err == nil {
			return max(0, t.Sub(now))
		}
	}
	// Limits that are used up say when they are filled again: OpenAI as a duration
	// ("6m0s"), Anthropic as a time.
	var wait time.Duration
	for _, what := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		if h.Get("X-Ratelimit-Remaining-"+what) == "0" {
			v := h.Get("X-Ratelimit-Reset-" + what)
			if d, err := time.ParseDuration(v); err == nil {
				wait = max(wait, d)
			} else if s, err := strconv.ParseFloat(v, 64); err == nil && s < 1e6 {
				wait = max(wait, clampWait(s))
			}
		}
		if h.Get("Anthropic-Ratelimit-"+what+"-Remaining") == "0" {
			if t, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+what+"-Reset")); err == nil {
				wait = max(wait, t.Sub(now))
			}
		}
	}
	if wait == 0 && h.Get("X-Ratelimit-Remaining") == "0" { // OpenRouter: milliseconds since 1970
		if ms, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); err == nil && ms > 1e12 {
			wait = time.UnixMilli(ms).Sub(now)
		}
	}
	return max(0, wait)
}

// clampWait is seconds as a duration, whatever the number.
func clampWait(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, 1e7) * float64(time.Second))
}

// span is a duration for people: "4 s", "2 min", "3 h".
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than a second"
	case d < 100*time.Second:
		return fmt.Sprintf("%d s", int(d.Round(time.Second)/time.Second))
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute)/time.Minute))
	}
	return fmt.Sprintf("%d h", int(d.Round(time.Hour)/time.Hour))
}
