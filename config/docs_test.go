package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of the documents")

// The table of settings in docs/settings.md is made from the one in the code.
func TestSettingsDocumentIsCurrent(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "none.jsonc"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := f.List()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| setting | default | is |\n| --- | --- | --- |\n")
	for _, it := range list {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", it.Prop, it.Default, it.Doc)
	}
	const path, begin, end = "../docs/settings.md", "<!-- generated: settings -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/settings.md has no generated part")
	}
	want := before + begin + b.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/settings.md is not current; run `go test ./config -run Document -update`")
	}
}
