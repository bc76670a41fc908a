package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentsAreParsedInOnePlaceEach counts the calls that parse a routing document, by file. A
// command parses its input once. An edit returns the parsed document, so nothing is parsed again. A
// further call needs a reason.
func TestDocumentsAreParsedInOnePlaceEach(t *testing.T) {
	t.Parallel()
	want := map[string]int{
		"routing.go":                  1, // a file
		"routing_read.go":             1, // a file
		"internal/api/routing.go":     1, // the body of a request
		"internal/app/closing.go":     1, // the version with the time zone of a day
		"internal/app/contracts.go":   1, // the version with contracts
		"internal/app/reload.go":      2, // the first document; the routing in force
		"internal/app/routing.go":     1, // a version applied in between
		"internal/bench/serve.go":     1,
		"internal/control/history.go": 2, // an old version that is applied again; a stored version
		"internal/demo/demo.go":       1,
		"internal/pages/edit.go":      1, // the text of a form
		"internal/steer/steer.go":     1,
	}
	if diff := cmp.Diff(want, parsers(t)); diff != "" {
		t.Error(diff)
	}
}

// parsers counts, by file, the calls of functions of package config that parse a document.
func parsers(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		if calls := callsOfParsers(file); calls > 0 {
			found[filepath.ToSlash(path)] = calls
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// callsOfParsers counts the calls in a file.
func callsOfParsers(f *ast.File) int {
	calls := 0
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "config" {
				switch call.Sel.Name {
				case "ParseDocument", "ParseApplied", "ParseRouting", "ParseVersion":
					calls++
				}
			}
		}
		return true
	})
	return calls
}
