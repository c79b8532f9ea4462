package model

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// What the providers' wires have in common: names and ids they take, pictures,
// and text that may not be empty.

// noText stands where a provider wants text and there is none.
const noText = "(no text)"

// noOutput is the result of a tool that printed nothing.
const noOutput = "(no output)"

// goOn is a prompt for a conversation that ends with the model's own words.
const goOn = "Go on."

// wireNames translates tools' names to ones that every provider takes, letters,
// digits, _ and -, at most 64, and back.
type wireNames map[string]string // from the wire to ours

func newWireNames(tools []Tool) wireNames {
	w := wireNames{}
	for _, t := range tools {
		w[wireName(t.Name)] = t.Name
	}
	return w
}

// ours is the tool's own name.
func (w wireNames) ours(name string) string {
	if n, ok := w[name]; ok {
		return n
	}
	return name
}

// wireName is a tool's name as it is sent.
func wireName(name string) string {
	if isWireWord(name, 64) {
		return name
	}
	clean := strings.Map(func(r rune) rune {
		if r < 128 && isWireByte(byte(r)) {
			return r
		}
		return '_'
	}, name)
	return clean[:min(len(clean), 55)] + "_" + digest(name, 8)
}

// wireID is a call's id as it is sent, at most limit characters.
func wireID(id string, limit int) string {
	if isWireWord(id, limit) {
		return id
	}
	return "c" + digest(id, min(limit, 24)-1)
}

func isWireWord(s string, limit int) bool {
	return s != "" && len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return r >= 128 || !isWireByte(byte(r)) })
}

func isWireByte(b byte) bool {
	return b == '_' || b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// digest is n letters and digits made of s, at most 32.
func digest(s string, n int) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	sum := sha256.Sum256([]byte(s))
	for i, b := range sum {
		sum[i] = alphabet[b%32]
	}
	return string(sum[:n])
}

// blank reports whether s has nothing to read; some providers refuse such text.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// dataURL is an image inside a URL.
func (i Image) dataURL() string {
	return "data:" + i.MIME + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// words is what a model that sees no images is told instead of one.
func (i Image) words() string {
	return fmt.Sprintf("[an image, %s, %d KB: this model cannot see it]", i.MIME, (len(i.Data)+1023)/1024)
}

// looseText is text that some servers send as a list of parts. What is neither is
// no text: it belongs to something that we do not know.
type looseText string

func (t *looseText) UnmarshalJSON(raw []byte) error {
	var parts []struct {
		Text string `json:"text"`
	}
	if len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &parts) == nil {
		for _, p := range parts {
			*t += looseText(p.Text)
		}
		return nil
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil // an object: nothing that we know
	}
	if s != nil {
		*t = looseText(*s)
	}
	return nil
}

// schema is t's, or that of no arguments.
func (t Tool) schema() json.RawMessage {
	if len(t.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Schema
}

// effort is r's when the model knows it, else "".
func (l Limits) effort(r Request) string {
	if slices.Contains(l.Efforts, r.Effort) {
		return r.Effort
	}
	return ""
}

// isObject reports whether raw is a JSON object.
func isObject(raw json.RawMessage) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}

// cutCalls is calls without a last one that the reply's limit left nothing of:
// without arguments it would look like a whole one.
func cutCalls(calls []Call, stop Stop) []Call {
	if n := len(calls); stop == StopMaxTokens && n > 0 && len(calls[n-1].Args) == 0 {
		return calls[:n-1]
	}
	return calls
}

// sendCalls yields calls, and reports whether somebody still listens.
func sendCalls(calls []Call, names wireNames, yield func(Chunk, error) bool) bool {
	for _, c := range calls {
		c.Name, c.Args = names.ours(c.Name), object(c.Args)
		if !yield(Chunk{Call: &c}, nil) {
			return false
		}
	}
	return true
}

// kindOf is the type that an event's data names, "" when it is no JSON.
func kindOf(raw []byte) string {
	var t struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &t) != nil {
		return ""
	}
	return t.Type
}
