package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of what a server lists.
const (
	maxPerServer   = 128
	maxPages       = 64
	maxDescription = 4 << 10  // bytes
	maxSchema      = 64 << 10 // bytes
	maxToolName    = 64       // bytes, what providers take
	maxRemoteName  = 256      // bytes, of a tool as its server calls it
	maxPrefix      = 30       // bytes, of "mcp__SERVER__"
)

// entry is a tool as its server described it.
type entry struct {
	name        string // as its server calls it
	full        string // as the model calls it
	description string
	schema      json.RawMessage
	digest      string // of all of it
}

// listing is what a server lists, and what about it people should know.
type listing struct {
	tools []*entry
	notes []string
}

func (l *listing) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// list asks the server for its tools, page after page.
func (c *conn) list(ctx context.Context, p *peer) (listing, error) {
	var l listing
	init := c.session.InitializeResult()
	if init == nil || init.Capabilities == nil || init.Capabilities.Tools == nil {
		return l, nil // it has resources or prompts, of which we make nothing
	}
	seen := map[string]bool{}
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := c.session.ListTools(ctx, params)
		if err != nil {
			return l, err
		}
		for _, t := range page.Tools {
			if len(l.tools) == maxPerServer {
				l.note("it has more than %d tools; the first %d are offered", maxPerServer, maxPerServer)
				return l, nil
			}
			e, note := newEntry(p.prefix, t)
			if note != "" {
				l.note("%s", note)
			}
			if e == nil {
				continue
			}
			if seen[e.name] || seen[e.full] {
				l.note("it lists the tool %q twice; the first is offered", shown(e.name))
				continue
			}
			seen[e.name], seen[e.full] = true, true
			l.tools = append(l.tools, e)
		}
		if page.NextCursor == "" {
			return l, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	l.note("its list of tools has more than %d pages; what is on those is offered", maxPages)
	return l, nil
}

// newEntry bounds and cleans what a server says of a tool. Without an entry the
// tool cannot be offered.
func newEntry(prefix string, t *sdk.Tool) (e *entry, note string) {
	if t.Name == "" || len(t.Name) > maxRemoteName || !utf8.ValidString(t.Name) {
		return nil, fmt.Sprintf("a tool is left out: a name has 1 to %d bytes", maxRemoteName)
	}
	e = &entry{name: t.Name, full: fullName(prefix, t.Name), description: describe(t.Description)}
	var err error
	if e.schema, err = checkSchema(t.InputSchema); err != nil {
		e.schema = json.RawMessage(`{"type":"object"}`)
		note = fmt.Sprintf("the tool %q has a schema that cannot be used (%v); the model is told of no arguments", shown(t.Name), err)
	}
	h := sha256.New()
	for _, s := range []string{e.name, e.description, string(e.schema)} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	e.digest = hex.EncodeToString(h.Sum(nil))
	return e, note
}

// checkSchema returns a schema of an object.
func checkSchema(v any) (json.RawMessage, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("it is no object")
	}
	if m["type"] != "object" {
		return nil, errors.New(`its type is not "object"`)
	}
	raw, err := json.Marshal(m) // sorted: the same every time
	if err != nil {
		return nil, errors.New("it is not valid JSON")
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes, and %d are the limit", len(raw), maxSchema)
	}
	return raw, nil
}

// describe is a description, bounded and without control characters.
func describe(s string) string {
	s = strings.Map(func(r rune) rune {
		if isControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.TrimSpace(s)
	if len(s) <= maxDescription {
		return s
	}
	s = s[:maxDescription-len("…")]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}

// prefix is "mcp__SERVER__": no two servers of a set have the same, and no name
// of a tool can be taken for one of another server.
func prefix(server, print string, taken map[string]bool) string {
	s, same := sanitize(server)
	if room := maxPrefix - len("mcp____"); len(s) > room || !same || strings.Contains(s, "__") || strings.HasSuffix(s, "_") || s == "" {
		s = strings.TrimRight(s[:min(len(s), room-7)], "_")
		for strings.Contains(s, "__") {
			s = strings.ReplaceAll(s, "__", "_")
		}
		s += "-" + short(server)
	}
	if taken[s] {
		s = s[:min(len(s), maxPrefix-len("mcp____")-7)] + "-" + short(server, print)
	}
	for n := 2; taken[s]; n++ { // the very same server, given again
		s = fmt.Sprintf("%.10s-%s", s, short(server, print, fmt.Sprint(n)))
	}
	taken[s] = true
	return "mcp__" + s + "__"
}

// fullName is what the model calls a tool: ^[a-zA-Z0-9_-]{1,64}$. A name that had
// to be changed has a hash of what it was.
func fullName(prefix, name string) string {
	s, same := sanitize(name)
	if room := maxToolName - len(prefix); len(s) > room || !same {
		s = s[:min(len(s), room-7)] + "_" + short(name)
	}
	return prefix + s
}

// sanitize replaces what a name must not hold, and reports whether there was
// nothing to replace.
func sanitize(s string) (clean string, same bool) {
	clean = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	return clean, clean == s
}

// short is a hash of 6 hexadecimal digits.
func short(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:3])
}
