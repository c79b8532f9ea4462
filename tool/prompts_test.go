package tool

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "write testdata/*.golden anew")
	long   = flag.Bool("long", false, "look for differences between searches for longer")
)

// What models are given: names, texts and schemas, in the order in which they are
// offered. A change of a word here changes what models do, so it is seen in a review.
func TestPrompts(t *testing.T) {
	var b strings.Builder
	for _, tool := range Builtin() {
		s := tool.Spec()
		var schema bytes.Buffer
		if err := json.Indent(&schema, s.Schema, "", "  "); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "# %s (%s)\n\n%s\n\n%s\n\n", s.Name, s.Kind, strings.TrimSpace(s.Description), strings.TrimSpace(schema.String()))
	}
	golden := filepath.Join("testdata", "prompts.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != b.String() {
		t.Errorf("%s is stale (%v); look at what changed, and write it with: go test ./tool -run Prompts -update", golden, err)
	}
}

// One file a tool, with its text and its arguments beside it, and no others.
func TestOneFileATool(t *testing.T) {
	var names []string
	for _, tool := range Builtin() {
		name := tool.Spec().Name
		names = append(names, name)
		for _, ext := range []string{".go", ".md", ".json"} {
			if _, err := os.Stat(name + ext); err != nil {
				t.Error(err)
			}
		}
	}
	if want := "read_file list_dir glob grep edit_file write_file run_command command_output command_kill update_plan ask_user"; strings.Join(names, " ") != want {
		t.Errorf("the tools are %v", names)
	}
	for _, pattern := range []string{"*.md", "*.json"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			if !slices.Contains(names, strings.TrimSuffix(f, filepath.Ext(f))) {
				t.Errorf("%s belongs to no tool", f)
			}
		}
	}
}

// Which calls may run beside others: those that change nothing.
func TestParallel(t *testing.T) {
	e := testEnv(t)
	e.put(t, "f", "one\n")
	e.Turn, e.Background = &people{}, NewBackground("")
	defer e.Background.Close()
	for name, c := range map[string]struct {
		args any
		want bool
	}{
		"read_file":   {map[string]any{"path": "f"}, true},
		"list_dir":    {map[string]any{}, true},
		"glob":        {map[string]any{"pattern": "*"}, true},
		"grep":        {map[string]any{"pattern": "x"}, true},
		"edit_file":   {one("f", "one", "two"), false},
		"write_file":  {map[string]any{"path": "g", "content": "x"}, false},
		"run_command": {map[string]any{"command": "true"}, false},
		"update_plan": {map[string]any{"entries": []any{}}, false},
		"ask_user":    {map[string]any{"question": "x"}, false},
	} {
		call, err := e.prepare(t, name, c.args)
		if err != nil || call.Parallel != c.want {
			t.Errorf("%s: %+v, %v", name, call, err)
		}
	}
}
