package gladhand

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
)

// Masked is what is shown of a [Secret] instead of its text.
const Masked = "•••"

// Secret is a text that is shown to nobody: a key, a header's value, a variable
// of a child's environment. Printing it with whatever verb, logging it and
// encoding it give [Masked]; only [Secret.Reveal] gives the text.
//
// A reference ("env:NAME", "keyring:", "keyring:NAME") says where the text is to
// be found, is no secret itself, and is shown as it is. The zero value is empty.
type Secret struct {
	// fmt prints a struct's unexported fields without asking their methods, and
	// follows one pointer where a verb does not fit; so there are two.
	s **secret
}

type secret struct{ text, shown string }

func hide(text, shown string) Secret {
	if text == "" {
		return Secret{}
	}
	p := &secret{text, shown}
	return Secret{&p}
}

// NewSecret makes a secret of a text.
func NewSecret(text string) Secret {
	if strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "keyring:") {
		return hide(text, text)
	}
	return hide(text, Masked)
}

// PartlySecret makes a secret of a text of which a part may be seen, such as an
// address with a password in it.
func PartlySecret(text, shown string) Secret { return hide(text, shown) }

// Reveal is the text.
func (s Secret) Reveal() string {
	if s.s == nil {
		return ""
	}
	return (*s.s).text
}

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s.s == nil }

// Reference takes a reference apart: "env" or "keyring", and the name, which may
// be empty for the keyring. For anything else kind is "".
func (s Secret) Reference() (kind, name string) {
	kind, name, ok := strings.Cut(s.Reveal(), ":")
	if !ok || kind != "env" && kind != "keyring" {
		return "", ""
	}
	return kind, name
}

// String is what may be seen: "", [Masked], or a reference.
func (s Secret) String() string {
	if s.s == nil {
		return ""
	}
	return (*s.s).shown
}

// Format implements [fmt.Formatter]: no verb shows more than [Secret.String].
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		fmt.Fprintf(f, "%q", s.String())
		return
	}
	_, _ = f.Write([]byte(s.String()))
}

// MarshalJSON implements [json.Marshaler].
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalText implements [encoding.TextMarshaler].
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue implements [slog.LogValuer].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
