// Command vulnindex lays out the Go vulnerability database for govulncheck from
// the entries of the module golang.org/x/vulndb, as golang.org/doc/security/vuln
// describes its schema: vulnindex ENTRIES OUT.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

type entry struct {
	ID        string `json:"id"`
	Modified  string `json:"modified"`
	Withdrawn string `json:"withdrawn"`
	Affected  []struct {
		Package struct {
			Name string `json:"name"`
		} `json:"package"`
		Ranges []struct {
			Events []struct {
				Fixed string `json:"fixed"`
			} `json:"events"`
		} `json:"ranges"`
	} `json:"affected"`
}

type vuln struct {
	ID       string `json:"id"`
	Modified string `json:"modified"`
	Fixed    string `json:"fixed,omitempty"`
}

type module struct {
	Path  string `json:"path"`
	Vulns []vuln `json:"vulns"`
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "vulnindex:", err)
		os.Exit(1)
	}
}

func run(entries, out string) error {
	files, err := filepath.Glob(filepath.Join(entries, "*.json"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no entries in %s: %w", entries, err)
	}
	for _, dir := range []string{"ID", "index"} {
		if err := os.MkdirAll(filepath.Join(out, dir), 0o755); err != nil {
			return err
		}
	}
	byPath := map[string]*module{}
	newest := ""
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		if e.Withdrawn != "" {
			continue
		}
		newest = max(newest, e.Modified)
		if err := os.WriteFile(filepath.Join(out, "ID", e.ID+".json"), raw, 0o644); err != nil {
			return err
		}
		for _, a := range e.Affected {
			m := byPath[a.Package.Name]
			if m == nil {
				m = &module{Path: a.Package.Name}
				byPath[a.Package.Name] = m
			}
			v := vuln{ID: e.ID, Modified: e.Modified}
			for _, r := range a.Ranges {
				for _, ev := range r.Events {
					v.Fixed = max(v.Fixed, ev.Fixed)
				}
			}
			m.Vulns = append(m.Vulns, v)
		}
	}
	modules := make([]*module, 0, len(byPath))
	for _, m := range byPath {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *module) int { return strings.Compare(a.Path, b.Path) })
	if err := write(filepath.Join(out, "index", "modules.json"), modules); err != nil {
		return err
	}
	return write(filepath.Join(out, "index", "db.json"), map[string]string{"modified": newest})
}

func write(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}
