package daemon

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of the documents")

// The table of methods in docs/protocol.md is made from the one in the code.
func TestProtocolDocumentIsCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString("| method | ACP | needs the right to | does |\n| --- | --- | --- | --- |\n")
	names := make([]string, 0, len(methods))
	for name := range methods {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m := methods[name]
		version := ""
		if m.version != 0 {
			version = fmt.Sprintf("v%d only", m.version)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, version, m.needs, m.doc)
	}
	const path, begin, end = "../docs/protocol.md", "<!-- generated: methods -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/protocol.md has no generated part")
	}
	want := before + begin + b.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/protocol.md is not current; run `go test ./daemon -run Document -update`")
	}
}
