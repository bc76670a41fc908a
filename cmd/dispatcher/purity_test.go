package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pure are the packages whose functions depend on their arguments only: decisions, the audit that
// derives them again, and the arithmetic that both use.
var pure = []string{
	"internal/decide", "internal/audit", "internal/envelope", "../../selector", "../../admission",
}

// harmless is the part of the standard library that reads neither clock nor machine, and shares no
// state between calls. The exceptions are in impure.
var harmless = []string{
	"bytes", "cmp", "crypto/hmac", "crypto/sha256", "encoding/binary", "encoding/hex",
	"encoding/json", "errors", "fmt", "hash", "hash/fnv", "iter", "maps", "math", "math/big",
	"math/bits",
	"net/url", "slices", "strconv", "strings", "time", "unicode", "unicode/utf8",
}

// impure are the functions of harmless packages that are not pure.
var impure = map[string][]string{
	"time": {
		"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer",
		"NewTicker", "Local", "LoadLocation",
	},
	"fmt": {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// TestDecisionsArePure: a decision depends on its arguments only. It uses no I/O, clock, goroutine
// or lock, and no package variable that changes.
func TestDecisionsArePure(t *testing.T) {
	t.Parallel()
	for _, folder := range pure {
		names, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		files := token.NewFileSet()
		var sources []*ast.File
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				source, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				sources = append(sources, source)
			}
		}
		if len(sources) == 0 {
			t.Errorf("%s has no files", folder)
		}
		for at, what := range impurities(files, sources) {
			t.Errorf("%s %s", files.Position(at), what)
		}
	}
}

// TestWhatIsImpureIsFound: the test above finds each kind of impurity.
func TestWhatIsImpureIsFound(t *testing.T) {
	t.Parallel()
	const head = `package p
import ("fmt"; "time")
var (
	n int
	m = map[string]int{}
	s struct{ n int }
)
`
	found := func(code string) map[token.Pos]string {
		files := token.NewFileSet()
		source, err := parser.ParseFile(files, "p.go", head+code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(code, err)
		}
		return impurities(files, []*ast.File{source})
	}
	for what, code := range map[string]string{
		"the clock":             `func f() { _ = time.Now() }`,
		"the clock as a value":  `func f() { now := time.Now; _ = now() }`,
		"the zone":              `func f(t time.Time) { _ = t.In(time.Local) }`,
		"what is printed":       `func f() { fmt.Println() }`,
		"a goroutine":           `func f() { go f() }`,
		"a channel":             `func f(c chan int) {}`,
		"a receive":             `func f(c C) { <-c }`,
		"a variable":            `func f() { n = 1 }`,
		"a counter":             `func f() { n++ }`,
		"a map":                 `func f() { m["a"] = 1 }`,
		"an entry of a map":     `func f() { delete(m, "a") }`,
		"a field":               `func f() { s.n += 2 }`,
		"a pointer to a field":  `func f() *int { return &s.n }`,
		"a variable in a range": `func f() { for n = range 3 {} }`,
	} {
		if len(found(code)) == 0 {
			t.Errorf("%s is not found in %s", what, code)
		}
	}
	const own = `func f() (n int) {
		m := map[string]int{"a": int(time.Second)}
		m["b"], n = 2, 3
		delete(m, fmt.Sprint(m))
		for n := range 3 { n++ }
		return n
	}`
	if all := found(own); len(all) > 0 {
		t.Errorf("what is a function's own counts as impure: %v", all)
	}
}

// impurities returns, by position, what makes results of a package depend on more than arguments.
// Only the package itself is type-checked, which is enough to know its variables.
func impurities(files *token.FileSet, sources []*ast.File) map[token.Pos]string {
	uses := map[*ast.Ident]types.Object{}
	check := types.Config{Importer: emptyImporter{}, Error: func(error) {}}
	scope := types.NewScope(nil, token.NoPos, token.NoPos, "")
	if p, _ := check.Check("p", files, sources, &types.Info{Uses: uses}); p != nil {
		scope = p.Scope() // the only errors are the missing imports
	}
	found := map[token.Pos]string{}
	changes := func(e ast.Expr) {
		if name := variableOf(e); name != nil {
			if v, ok := uses[name].(*types.Var); ok && v.Parent() == scope {
				found[e.Pos()] = "changes " + name.Name + ", a variable of the package"
			}
		}
	}
	for _, source := range sources {
		for _, i := range source.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			if !strings.HasPrefix(path, module) && !slices.Contains(harmless, path) {
				found[i.Pos()] = "imports " + path
			}
		}
		ast.Inspect(source, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if p, ok := n.X.(*ast.Ident); ok {
					if of, ok := uses[p].(*types.PkgName); ok &&
						slices.Contains(impure[of.Imported().Path()], n.Sel.Name) {
						found[n.Pos()] = "uses " + p.Name + "." + n.Sel.Name
					}
				}
			case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
				found[n.Pos()] = "deals with another goroutine"
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					changes(e)
				}
			case *ast.RangeStmt:
				changes(n.Key)
				changes(n.Value)
			case *ast.IncDecStmt:
				changes(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					changes(n.X)
				}
				if n.Op == token.ARROW {
					found[n.Pos()] = "deals with another goroutine"
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.Ident)
				if ok && slices.Contains([]string{"delete", "clear", "copy"}, f.Name) {
					changes(n.Args[0])
				}
			}
			return true
		})
	}
	return found
}

// variableOf returns the variable that an expression is a part of; nil for none.
func variableOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// emptyImporter finds no package. The type checker continues without it.
type emptyImporter struct{}

func (emptyImporter) Import(path string) (*types.Package, error) {
	return nil, errors.New("no " + path)
}
