package gladhand

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const canary = "sk-canary-0123456789"

func TestSecretIsNeverShown(t *testing.T) {
	s := NewSecret(canary)
	type outer struct {
		Key  Secret
		key  Secret
		Many map[string]Secret
		ptr  *Secret
	}
	o := outer{s, s, map[string]Secret{"a": s}, &s}
	var b bytes.Buffer
	for _, verb := range strings.Split("v +v #v s q x X d t c o b e f g p T U 08d #x -9s", " ") {
		for _, v := range []any{s, &s, o, &o, []Secret{s}, map[string]any{"k": s}, []any{o}} {
			fmt.Fprintf(&b, "%"+verb+"\n", v)
		}
	}
	fmt.Fprintln(&b, s, o, wrapped(s))
	for _, v := range []any{s, &s, o, map[string]Secret{"k": s}} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(raw)
	}
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "s", s, "o", o, "p", &s)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "s", s, "o", o, "p", &s)
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprint([]byte(canary))} {
		if strings.Contains(b.String(), form) {
			t.Errorf("the secret is shown in %s", b.String())
		}
	}
	if !strings.Contains(b.String(), Masked) || s.Reveal() != canary {
		t.Error("it is neither masked nor kept")
	}
}

func wrapped(s Secret) error { return fmt.Errorf("refused: %v %w", s, fmt.Errorf("%s", s)) }

func TestSecretReferencesAreShown(t *testing.T) {
	for text, want := range map[string][3]string{
		"env:NAME": {"env", "NAME", "env:NAME"}, "keyring:": {"keyring", "", "keyring:"}, "keyring:x": {"keyring", "x", "keyring:x"},
		"": {"", "", ""}, "environment:x": {"", "", Masked}, "x": {"", "", Masked},
	} {
		s := NewSecret(text)
		kind, name := s.Reference()
		if kind != want[0] || name != want[1] || s.String() != want[2] || s.Reveal() != text || s.Empty() != (text == "") {
			t.Errorf("%q: %q %q %s", text, kind, name, s)
		}
	}
	if p := PartlySecret("http://u:p@h", "http://h"); p.String() != "http://h" || p.Reveal() != "http://u:p@h" || !PartlySecret("", "x").Empty() {
		t.Error(p)
	}
}
