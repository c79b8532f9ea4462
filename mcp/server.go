package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"gladhand"
)

// Limits of what may be configured.
const (
	maxServers  = 64
	maxNameLen  = 128
	maxArgs     = 1000
	maxPairs    = 1000 // variables or headers
	callTimeout = 60 * time.Second
)

// Server is one MCP server as configured: by Command or by URL.
type Server struct {
	Name string

	// Command is a program, looked up in the PATH of the server's environment.
	Command string
	Args    []string
	// Env is added to the environment of [Options].
	Env map[string]gladhand.Secret

	// URL is http or https.
	URL     gladhand.Secret
	Headers map[string]gladhand.Secret
	// SSE speaks the transport of 2024, with a stream and a second address.
	SSE bool

	// Timeout is of one call; 0 is 60 s.
	Timeout time.Duration
	// References says that values may be references ("env:NAME", "keyring:NAME"),
	// which is so in the settings. Without it they are taken as they are: what
	// comes over a wire must not name secrets of ours.
	References bool
}

// ParseServers reads the mcpServers of ACP's session/new, v1 or v2. It returns
// those that can be used, and an error about the others: an editor passes what
// its user has configured, and is not refused for one of them.
func ParseServers(raw json.RawMessage) ([]Server, error) {
	if s := strings.TrimSpace(string(raw)); s == "" || s == "null" {
		return nil, nil
	}
	var list []json.RawMessage
	if err := jsonv2.Unmarshal(raw, &list); err != nil {
		return nil, invalid("mcpServers is not a list of objects")
	}
	if len(list) > maxServers {
		return nil, invalid("mcpServers has %d servers; %d are the limit", len(list), maxServers)
	}
	var out []Server
	var errs []error
	seen := map[string]bool{}
	for i, one := range list {
		s, err := parseServer(one, i)
		if err == nil && seen[s.Name] {
			err = invalid("MCP server %q is there twice", shown(s.Name))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		seen[s.Name] = true
		out = append(out, s)
	}
	if len(errs) == 1 {
		return out, errs[0]
	}
	return out, errors.Join(errs...)
}

// pair is an element of env and headers.
type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func parseServer(raw json.RawMessage, i int) (Server, error) {
	var w struct {
		Type    string   `json:"type"`
		Name    string   `json:"name"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
		Env     []pair   `json:"env"`
		URL     string   `json:"url"`
		Headers []pair   `json:"headers"`
	}
	// The library's error may quote a value, and a value may be a secret.
	if err := jsonv2.Unmarshal(raw, &w); err != nil {
		return Server{}, invalid("MCP server %d is not of the shape the protocol has", i+1)
	}
	s := Server{Name: w.Name}
	switch w.Type {
	case "", "stdio":
		s.Command, s.Args, s.Env = w.Command, w.Args, secrets(w.Env)
	case "http", "sse":
		s.URL, s.Headers, s.SSE = secretURL(w.URL), secrets(w.Headers), w.Type == "sse"
	default:
		return Server{}, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonUnsupported,
			"MCP server %q is of the type %q, which is not supported; stdio, http and sse are", shown(w.Name), shown(w.Type))
	}
	return s, s.check()
}

func secrets(pairs []pair) map[string]gladhand.Secret {
	if len(pairs) == 0 {
		return nil
	}
	m := make(map[string]gladhand.Secret, len(pairs))
	for _, p := range pairs {
		m[p.Name] = gladhand.PartlySecret(p.Value, gladhand.Masked)
	}
	return m
}

// secretURL shows an address without what may be secret in it.
func secretURL(text string) gladhand.Secret {
	u, err := url.Parse(text)
	if err != nil {
		return gladhand.PartlySecret(text, gladhand.Masked)
	}
	return gladhand.PartlySecret(text, u.Scheme+"://"+u.Host+u.EscapedPath())
}

// check says what is wrong with a server; nil is nothing.
func (s *Server) check() error {
	name := shown(s.Name)
	switch {
	case strings.TrimSpace(s.Name) == "" || len(s.Name) > maxNameLen || !utf8.ValidString(s.Name):
		return invalid("an MCP server needs a name of at most %d bytes", maxNameLen)
	case (s.Command == "") == s.URL.Empty():
		return invalid("MCP server %q needs a command or a url, one of them", name)
	case len(s.Args) > maxArgs || len(s.Env) > maxPairs || len(s.Headers) > maxPairs:
		return invalid("MCP server %q has more than %d arguments, variables or headers", name, maxArgs)
	case s.Timeout < 0:
		return invalid("MCP server %q has a negative timeout", name)
	}
	for _, a := range append([]string{s.Command}, s.Args...) {
		if strings.ContainsRune(a, 0) {
			return invalid("MCP server %q has a NUL character in its command", name)
		}
	}
	for k, v := range s.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v.Reveal(), 0) {
			return invalid("MCP server %q has a variable that cannot be one: %q", name, shown(k))
		}
	}
	for k, v := range s.Headers {
		if !isToken(k) || !isHeaderValue(v.Reveal()) {
			return invalid("MCP server %q has a header that cannot be one: %q", name, shown(k))
		}
	}
	if !s.URL.Empty() {
		u, err := url.Parse(s.URL.Reveal())
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return invalid("MCP server %q needs a url that begins with http:// or https://", name)
		}
	}
	return nil
}

// print is a fingerprint of how the server is started or reached, without its
// environment and headers: who it is, not what it is told.
func (s *Server) print() string {
	h := sha256.New()
	for _, p := range append([]string{s.Command, s.URL.Reveal(), fmt.Sprint(s.SSE)}, s.Args...) {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// where says what a call to the server is confined by, in words for people.
func (s *Server) where() string {
	if s.Command != "" {
		return fmt.Sprintf("MCP server %q, not confined", shown(s.Name))
	}
	host := ""
	if u, err := url.Parse(s.URL.Reveal()); err == nil {
		host = u.Host
	}
	return fmt.Sprintf("MCP server %q at %s", shown(s.Name), shown(host))
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

func isHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// shown is a foreign name as it may stand in a line for people.
func shown(s string) string {
	s = oneLine(s)
	if r := []rune(s); len(r) > 64 {
		return string(r[:63]) + "…"
	}
	return s
}

// oneLine is foreign text on one line, without what a terminal would obey.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))), " ")
}

// isControl also holds what changes the order in which text is read.
func isControl(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func invalid(format string, args ...any) error {
	return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, format, args...)
}
