package mcp

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"sync"

	"gladhand"
)

const (
	// minSecret is the length from which a value is masked: "1" and "true" are no
	// secrets, and masking them would leave no text readable.
	minSecret = 6
	maxWhy    = 300 // characters of a server's text in a status
)

// mask replaces a server's secrets in texts. The zero value replaces nothing.
type mask struct {
	mu     sync.Mutex
	values []string // longest first
}

// add takes a value, and each of its lines and words: "Bearer" is no secret, what
// follows it is.
func (m *mask) add(value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range append(strings.Fields(value), value, strings.TrimSpace(value)) {
		if len(v) >= minSecret && !strings.EqualFold(v, "Bearer") && !slices.Contains(m.values, v) {
			m.values = append(m.values, v)
		}
	}
	slices.SortFunc(m.values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// addURL takes what may be secret in an address: user, password and query. The
// address itself becomes its visible part.
func (m *mask) addURL(text string) {
	u, err := url.Parse(text)
	if err != nil {
		m.add(text)
		return
	}
	if u.User != nil {
		m.add(u.User.Username())
		if p, ok := u.User.Password(); ok {
			m.add(p)
		}
		m.add(u.User.String())
	}
	for _, values := range u.Query() {
		for _, v := range values {
			m.add(v)
			m.add(url.QueryEscape(v))
		}
	}
	if u.RawQuery != "" {
		m.add(u.RawQuery)
	}
}

// apply masks the secrets in s.
func (m *mask) apply(s string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.values {
		s = strings.ReplaceAll(s, v, gladhand.Masked)
	}
	return s
}

// line is a server's text as it may stand in a line of ours.
func (m *mask) line(s string) string {
	s = oneLine(m.apply(s))
	if r := []rune(s); len(r) > maxWhy {
		return string(r[:maxWhy-1]) + "…"
	}
	return s
}
