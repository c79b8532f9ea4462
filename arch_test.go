package gladhand_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// house is the design's table: each package, and what of the module it may
// import. "*" is everything. Change the table first, in a commit that says why.
var house = map[string]string{
	".":            "",
	"rpc":          "",
	"acp":          ".",
	"store":        ".",
	"config":       ".",
	"session":      ". acp store",
	"proc":         ".",
	"policy":       ".",
	"sandbox":      "proc",
	"model":        ".",
	"tool":         ". sandbox",
	"mcp":          ". tool proc",
	"agent":        ". acp model tool policy",
	"client":       ". rpc acp proc",
	"eval":         ". acp client sandbox",
	"daemon":       ". rpc acp store config session proc",
	"cmd/gladhand": "*",
	// What only tests and measurements use.
	"acp/acptest": ". acp",
	"bench":       "*",
	"interop":     "*",
}

// Budgets of size; tests and generated files do not count.
const (
	fileMax, fileP90   = 850, 450
	funcMax, funcP99   = 125, 100
	structMax          = 18
	importsMax         = 7
	forbiddenNames     = "manager util utils helper helpers common base misc"
	importsMaxExcepted = "daemon cmd/gladhand bench interop"
)

type source struct {
	pkg, path string
	file      *ast.File
	fset      *token.FileSet
	lines     int
}

func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); path != "." && (strings.HasPrefix(n, ".") || n == "testdata" || n == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		list = append(list, source{filepath.ToSlash(filepath.Dir(path)), path, file, fset, strings.Count(string(text), "\n")})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestImportsGoDownward(t *testing.T) {
	inModule := map[string]map[string]bool{}
	for _, s := range sources(t) {
		allowed, known := house[s.pkg]
		if !known {
			t.Errorf("%s: package %s is not in the table", s.path, s.pkg)
			continue
		}
		for _, spec := range s.file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if path != "gladhand" && !strings.HasPrefix(path, "gladhand/") {
				continue
			}
			name := strings.TrimPrefix(strings.TrimPrefix(path, "gladhand"), "/")
			if name == "" {
				name = "."
			}
			if allowed != "*" && !slices.Contains(strings.Fields(allowed), name) {
				t.Errorf("%s imports %s, which %s may not", s.path, path, s.pkg)
			}
			if inModule[s.pkg] == nil {
				inModule[s.pkg] = map[string]bool{}
			}
			inModule[s.pkg][name] = true
		}
	}
	for pkg, names := range inModule {
		if len(names) > importsMax && !slices.Contains(strings.Fields(importsMaxExcepted), pkg) {
			t.Errorf("%s imports %d packages of the module, more than %d", pkg, len(names), importsMax)
		}
	}
}

func TestEveryPackageTeaches(t *testing.T) {
	words := map[string]int{}
	for _, s := range sources(t) {
		if s.file.Doc != nil {
			words[s.pkg] += len(strings.Fields(s.file.Doc.Text()))
		}
		if slices.Contains(strings.Fields(forbiddenNames), s.file.Name.Name) {
			t.Errorf("%s: a package called %s says nothing", s.path, s.file.Name.Name)
		}
	}
	for pkg := range house {
		if _, err := os.Stat(pkg); err != nil {
			t.Errorf("the table has %s, the tree does not", pkg)
		} else if n := words[pkg]; n < 15 && pkg != "interop" {
			t.Errorf("package %s has a comment of %d words", pkg, n)
		}
	}
}

func TestSizes(t *testing.T) {
	var files, funcs []int
	for _, s := range sources(t) {
		files = append(files, s.lines)
		if s.lines > fileMax {
			t.Errorf("%s has %d lines, more than %d", s.path, s.lines, fileMax)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body == nil {
					return true
				}
				lines := s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
				funcs = append(funcs, lines)
				if lines > funcMax {
					t.Errorf("%s: %s has %d lines, more than %d", s.path, n.Name, lines, funcMax)
				}
			case *ast.TypeSpec:
				st, ok := n.Type.(*ast.StructType)
				if !ok {
					return true
				}
				fields := 0
				for _, f := range st.Fields.List {
					fields += max(1, len(f.Names))
				}
				if fields > structMax {
					t.Errorf("%s: %s has %d fields, more than %d", s.path, n.Name, fields, structMax)
				}
			}
			return true
		})
	}
	for what, p := range map[string]struct {
		sizes   []int
		percent int
		limit   int
	}{"files": {files, 90, fileP90}, "functions": {funcs, 99, funcP99}} {
		slices.Sort(p.sizes)
		if got := p.sizes[len(p.sizes)*p.percent/100]; got > p.limit {
			t.Errorf("%d %% of the %s should have at most %d lines; it is %d", p.percent, what, p.limit, got)
		}
	}
	t.Logf("%d files, %d functions", len(files), len(funcs))
}

// R105, R147: protocol streams are read by package rpc alone, and processes are
// started by package proc alone.
func TestOneWayToDoIt(t *testing.T) {
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			if spec.Path.Value == `"os/exec"` && !slices.Contains([]string{"proc", "cmd/gladhand", "bench", "interop"}, s.pkg) {
				t.Errorf("%s imports os/exec; use package proc", s.path)
			}
		}
		if s.pkg == "cmd/gladhand" {
			continue // reads a person's lines
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "bufio" && sel.Sel.Name == "NewScanner" {
				t.Errorf("%s uses bufio.Scanner, which has a limit of its own on lines", s.path)
			}
			return true
		})
	}
}
