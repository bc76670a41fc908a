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

// TestDocumentsAreParsedInOnePlaceEach lists the functions of the program that parse a routing
// document. An edit returns a document that has been read, so a command parses what it was given
// here, once, and nothing else: a new row needs a reason.
func TestDocumentsAreParsedInOnePlaceEach(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"routing.go":              {"readRouting", "storedDocument"},
		"routing_commands.go":     {"routingRollbackCommand", "readDocument"},
		"internal/app/reload.go":  {"applyFirst", "reload"},
		"internal/app/routing.go": {"keptEffects"},
		"internal/bench/serve.go": {"readRouting"},
		"internal/demo/demo.go":   {"judge"},
		"internal/steer/steer.go": {"refresh"},
	}
	if diff := cmp.Diff(want, parsers(t)); diff != "" {
		t.Error(diff)
	}
}

// parsers are the functions, by file, that call a function of package config which parses a document.
func parsers(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				for range callsOfParsers(f) {
					found[filepath.ToSlash(path)] = append(found[filepath.ToSlash(path)], f.Name.Name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// callsOfParsers counts the calls within a function.
func callsOfParsers(f *ast.FuncDecl) int {
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
