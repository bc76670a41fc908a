package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module   = "dispatcher/"
	internal = module + "cmd/dispatcher/internal/"
)

// rule lists what a package may import: packages of this module, and other modules. A trailing /...
// includes all packages below; "*" means no restriction.
type rule struct {
	ours   []string
	others []string
}

// rules is the import table of DESIGN.md. The rule of a package is the one with the longest key
// that is its path or a folder above it.
var rules = map[string]rule{
	module + "selector": {},
	module +
		"selector/score": {
		ours: []string{module + "selector"}, others: []string{"github.com/expr-lang/expr"},
	},
	module + "admission":    {},
	module + "provider":     {},
	module + "provider/sms": {},
	module + "provider/breaker": {
		ours:   []string{module + "provider"},
		others: []string{"github.com/sony/gobreaker/v2"},
	},
	module +
		"provider/smpp": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/settings",
			module + "provider/smpp/...",
		},
	},
	module +
		"provider/smpp/smpptest": {
		ours: []string{
			module + "provider/providertest", module + "provider/sms", module + "provider/smpp/pdu",
		},
	},
	module + "provider/settings": {others: []string{"github.com/agnivade/levenshtein"}},
	module +
		"provider/web": {
		ours: []string{module + "provider", module + "provider/settings"},
	},
	module +
		"provider/web/webtest": {
		ours: []string{
			module + "provider", module + "provider/breaker", module + "provider/providertest",
			module + "provider/web",
		},
	},
	module +
		"provider/aws": {
		ours: []string{
			module + "provider", module + "provider/settings",
			module + "provider/web",
		},
		others: []string{"github.com/aws/aws-sdk-go-v2"},
	},
	module +
		"provider/aws/awstest": {
		ours: []string{
			module + "provider", module + "provider/providertest",
			module + "provider/web/webtest",
		},
	},
	module +
		"provider/bird": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/settings",
			module + "provider/web",
		},
		others: []string{"github.com/golang-jwt/jwt/v5"},
	},
	module +
		"provider/bird/birdtest": {
		ours: []string{
			module + "provider", module + "provider/providertest",
			module + "provider/web/webtest",
		},
	},
	module +
		"provider/httpapi": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/settings",
			module + "provider/web",
		},
	},
	module +
		"provider/httpapi/httpapitest": {
		ours: []string{
			module + "provider", module + "provider/providertest",
			module + "provider/web/webtest",
		},
	},
	module +
		"provider/infobip": {
		ours: []string{
			module + "provider", module + "provider/settings",
			module + "provider/web",
		},
	},
	module +
		"provider/infobip/infobiptest": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/providertest",
			module + "provider/web/webtest",
		},
	},
	module +
		"provider/sinch": {
		ours: []string{
			module + "provider", module + "provider/settings",
			module + "provider/web",
		},
	},
	module +
		"provider/sinch/sinchtest": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/providertest",
			module + "provider/web/webtest",
		},
	},
	module +
		"provider/vonage": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/settings",
			module + "provider/web",
		},
		others: []string{"github.com/golang-jwt/jwt/v5"},
	},
	module +
		"provider/vonage/vonagetest": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/providertest",
			module + "provider/web/webtest",
		},
	},
	module +
		"provider/plivo": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/settings",
			module + "provider/web",
		},
	},
	module +
		"provider/plivo/plivotest": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/providertest",
			module + "provider/web/webtest",
		},
	},
	module +
		"provider/telnyx": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/settings",
			module + "provider/web",
		},
	},
	module +
		"provider/telnyx/telnyxtest": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/providertest",
			module + "provider/web/webtest",
		},
	},
	module +
		"provider/twilio": {
		ours: []string{
			module + "provider", module + "provider/settings",
			module + "provider/web",
		},
	},
	module +
		"provider/twilio/twiliotest": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "provider/providertest",
			module + "provider/web/webtest",
		},
	},
	module +
		"provider/providertest": {
		ours: []string{module + "provider", module + "provider/sms"},
	},
	module + "config": {
		ours: []string{
			module + "selector", module + "selector/score", module + "admission",
			module + "provider/sms", module + "provider/settings",
		},
		others: []string{"github.com/kelseyhightower/envconfig", "go.yaml.in/yaml/v3"},
	},
	module + "ledger": {
		ours: []string{
			module + "provider", module + "provider/sms", module + "admission", module + "ledger/...",
		},
		others: []string{"github.com/jackc/pgx/v5"},
	},
	module + "ledger/primary": {others: []string{"github.com/jackc/pgx/v5"}},
	module +
		"ledger/pgserver": {
		others: []string{
			"github.com/fergusstrange/embedded-postgres", "github.com/jackc/pgx/v5",
		},
	},
	module + "ledger/past": {
		ours:   []string{module + "ledger/migrations"},
		others: []string{"github.com/jackc/pgx/v5"},
	},
	module + "ledger/ledgertest": {ours: []string{module + "ledger/..."}, others: []string{"*"}},
	internal + "envelope":        {ours: []string{module + "selector", module + "provider/sms"}},
	internal + "decide": {ours: []string{
		module + "provider", module + "provider/sms", module + "selector",
		module + "selector/score",
		module + "admission", module + "config", module + "ledger", internal + "envelope",
	}},
	internal + "audit": {ours: []string{
		internal + "decide", internal + "envelope",
		module + "provider", module + "selector", module + "admission", module + "ledger",
	}},
	internal + "seal": {
		ours: []string{module + "ledger"},
		others: []string{
			"github.com/transparency-dev/merkle", "golang.org/x/mod/sumdb/note",
		},
	},
	internal + "evidence": {ours: []string{
		internal + "audit", internal + "seal", module + "ledger", module + "ledger/migrations",
	}},
	internal + "pipeline": {
		ours: []string{
			internal + "decide", internal + "envelope", internal + "tracing",
			module + "provider", module + "selector", module + "admission", module + "ledger",
		},
		others: []string{"github.com/prometheus/client_golang"},
	},
	internal + "kafka": {
		ours: []string{
			module + "ledger", internal + "decide", internal + "envelope", internal + "outage",
		},
		others: []string{
			"github.com/twmb/franz-go", "github.com/prometheus/client_golang",
			"github.com/rs/zerolog", "golang.org/x/sync",
		},
	},
	internal + "status": {ours: []string{
		module + "ledger", module + "config", module + "admission", module + "provider",
		module + "provider/breaker", internal + "decide", internal + "report",
	}},
	internal + "control": {
		ours: []string{
			module + "ledger", module + "config", module + "admission", internal + "app",
			module + "selector", internal + "decide", internal + "envelope", internal + "numbers",
			internal + "pipeline", internal + "report", internal + "status", internal + "steer",
		},
		others: []string{"github.com/aymanbagabas/go-udiff"},
	},
	internal + "lookup": {ours: []string{
		module + "ledger", module + "config", module + "admission", module + "selector",
		internal + "app", internal + "control", internal + "decide", internal + "report",
		internal + "status",
	}},
	internal + "api": {
		ours: []string{
			module + "ledger", module + "config", module + "admission", module + "selector",
			internal + "access", internal + "control", internal + "envelope",
			internal + "lookup", internal + "numbers", internal + "report", internal + "status",
		},
		others: []string{
			"github.com/danielgtaylor/huma/v2", "github.com/rs/zerolog",
			"github.com/jackc/pgx/v5", "github.com/twmb/franz-go",
		},
	},
	internal + "access": {others: []string{"github.com/coreos/go-oidc/v3", "golang.org/x/oauth2"}},
	internal + "plots": {
		ours: []string{internal + "report"}, others: []string{"github.com/go-analyze/charts"},
	},
	internal + "pages": {
		ours: []string{
			module + "ledger", module + "config", module + "selector", internal + "access",
			internal + "control", internal + "lookup", internal + "numbers", internal + "plots",
			internal + "report", internal + "status",
		},
		others: []string{
			"github.com/aymanbagabas/go-udiff", "github.com/go-analyze/charts",
			"github.com/rs/zerolog",
		},
	},
	internal + "outage": {others: []string{"github.com/rs/zerolog"}},
	internal +
		"report": {
		ours: []string{
			internal + "numbers", module + "provider", module + "ledger", module + "config",
			module + "selector", module + "admission", internal + "decide",
			internal + "envelope",
		},
		others: []string{"gonum.org/v1/gonum"},
	},
	internal +
		"inbound": {
		ours: []string{
			module + "ledger", module + "config", module + "provider", internal + "envelope",
		},
		others: []string{"github.com/prometheus/client_golang"},
	},
	internal + "reconcile": {
		ours: []string{module + "provider"}, others: []string{"github.com/xuri/excelize/v2"},
	},
	internal +
		"simulate": {ours: []string{module + "admission", module + "provider/settings"}},
	internal +
		"scoring": {
		ours:   []string{internal + "decide", module + "selector", module + "provider/web"},
		others: []string{"github.com/prometheus/client_golang", "golang.org/x/sync"},
	},
	internal +
		"steer": {
		ours:   []string{module + "ledger", module + "config", module + "selector"},
		others: []string{"github.com/rs/zerolog", "github.com/prometheus/client_golang"},
	},
	internal +
		"receive": {
		ours: []string{
			module + "ledger", module + "provider", internal + "envelope", internal + "tracing",
		},
		others: []string{"github.com/prometheus/client_golang"},
	},
	internal + "statushook": {
		ours: []string{module + "config", module + "provider/web"},
		others: []string{
			"github.com/twmb/franz-go", "github.com/rs/zerolog", "golang.org/x/sync",
			"github.com/prometheus/client_golang",
		},
	},
	internal + "tracing": {others: []string{
		"go.opentelemetry.io/otel", "github.com/twmb/franz-go", "github.com/exaring/otelpgx",
		"github.com/jackc/pgx/v5",
	}},
	internal + "numbers": {others: []string{"github.com/nyaruka/phonenumbers"}},
	internal +
		"console": {
		others: []string{"github.com/prometheus/client_golang"},
	},
	internal +
		"embedded": {
		ours: []string{
			module + "config", module + "selector", module + "ledger/pgserver",
			module + "provider/smpp/smpptest",
		},
		others: []string{"github.com/twmb/franz-go"},
	},
	internal + "embedded/kafkatest": {others: []string{"github.com/twmb/franz-go"}},
	internal +
		"sandbox": {
		ours: []string{module + "provider/..."}, others: []string{"go.yaml.in/yaml/v3"},
	},
	internal + "demo":         {ours: []string{module + "..."}, others: []string{"*"}},
	internal + "app":          {ours: []string{module + "..."}, others: []string{"*"}},
	internal + "bench":        {ours: []string{module + "..."}, others: []string{"*"}},
	module + "config/tier":    {others: []string{"pgregory.net/rapid"}},
	module + "cmd/dispatcher": {ours: []string{module + "..."}, others: []string{"*"}},
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

// packageCell is a row of the table in DESIGN.md.
var packageCell = regexp.MustCompile("(?m)^\\| (`[a-z].*?) \\|")

// rowsOfDesign returns the row in the import table of DESIGN.md of each package that it names, with
// "/..." for one that stands for those below it.
func rowsOfDesign(t *testing.T) map[string]int {
	t.Helper()
	page, err := os.ReadFile("../../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]int{}
	for i, row := range packageCell.FindAllStringSubmatch(section, -1) {
		for name := range strings.SplitSeq(strings.ReplaceAll(row[1], "`", ""), ", ") {
			path := module + name
			if inner, found := strings.CutPrefix(name, "internal/"); found {
				path = internal + inner
			}
			rows[path] = i + 1
		}
	}
	return rows
}

// rowOf returns the row of a package: its own, else that of the nearest folder above it; 0 for
// none.
func rowOf(rows map[string]int, path string) int {
	row, cut := rows[path], 0
	for row == 0 && cut >= 0 {
		if cut = strings.LastIndexByte(path, '/'); cut >= 0 {
			path = path[:cut]
			row = cmp.Or(rows[path+"/..."], rows[path])
		}
	}
	return row
}

// TestImportsFollowTheTable checks the imports of every package of the module, without its tests,
// against its rule and against the order of the rows in DESIGN.md.
func TestImportsFollowTheTable(t *testing.T) {
	t.Parallel()
	standard := standardLibrary(t)
	used := map[string]bool{} // "path import"
	rows := rowsOfDesign(t)
	for _, pkg := range goList(t, "dispatcher/...") {
		path, ok := ruleFor(pkg.ImportPath)
		r := rules[path]
		if !ok {
			t.Errorf("%s is in no row of the import table: add it to DESIGN.md and to "+
				"this test",
				pkg.ImportPath)
			continue
		}
		for _, imported := range pkg.Imports {
			if slices.Contains(standard, imported) || imported == "C" {
				continue
			}
			allowed := r.others
			if strings.HasPrefix(imported, module) {
				allowed = r.ours
				own, other := rowOf(rows, pkg.ImportPath), rowOf(rows, imported)
				if own == 0 || other < own && !slices.Contains(r.ours, module+"...") {
					t.Errorf("%s, of row %d in DESIGN.md, imports %s, of row %d",
						pkg.ImportPath, own, imported, other)
				}
			}
			if !allows(allowed, imported) {
				t.Errorf("%s must not import %s", pkg.ImportPath, imported)
			}
			for _, one := range allowed {
				if allows([]string{one}, imported) {
					used[path+" "+one] = true
				}
			}
		}
	}
	for path, r := range rules {
		for _, one := range slices.Concat(r.ours, r.others) {
			if !used[path+" "+one] {
				t.Errorf("%s may import %s, which it does not: take it out of the table", path, one)
			}
		}
	}
}

// TestThePipelineKnowsNeitherKafkaNorSQLNorHTTP: the pipeline reaches them through the ledger, the
// providers and a Scorer.
func TestThePipelineKnowsNeitherKafkaNorSQLNorHTTP(t *testing.T) {
	t.Parallel()
	for _, pkg := range goList(t, internal+"pipeline") {
		for _, forbidden := range []string{"net/http", "net", "database/sql"} {
			if slices.Contains(pkg.Imports, forbidden) {
				t.Errorf("%s imports %s", pkg.ImportPath, forbidden)
			}
		}
	}
}

// TestEveryClaimIsRolledBackIfItIsNotCommitted: a claim that never ends would keep a connection and
// the locks of its channels.
func TestEveryClaimIsRolledBackIfItIsNotCommitted(t *testing.T) {
	t.Parallel()
	begin := regexp.MustCompile(`(?m)^\s*(\w+), err :?= .*\bLock\(.*$`)
	end := regexp.MustCompile(`^\s*if err != nil \{\n(?:.*\n){1,2}?\s*\}\n` +
		`\s*defer (\w+)\.Rollback\(\)\n`)
	claims := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, at := range begin.FindAllSubmatchIndex(source, -1) {
			claims++
			name, after := string(source[at[2]:at[3]]), source[at[1]+1:]
			if rest := end.FindSubmatch(after); rest == nil || string(rest[1]) != name {
				t.Errorf("%s: defer %s.Rollback() does not follow %s", path, name,
					source[at[0]:at[1]])
			}
		}
		return nil
	})
	if err != nil || claims == 0 {
		t.Errorf("found %d claims, want more: %v", claims, err)
	}
}

// TestTopLevelFoldersAreTheAgreedOnes keeps code out of new top-level folders.
func TestTopLevelFoldersAreTheAgreedOnes(t *testing.T) {
	t.Parallel()
	agreed := []string{
		".ci", ".git", "admission", "bin", "cmd", "config", "data", "deploy", "docs", "internal",
		"ledger", "provider", "selector",
	}
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(agreed, e.Name()) {
			t.Errorf("top-level folder %s is not one of %v", e.Name(), agreed)
		}
	}
}

// ruleFor finds the longest key of rules that is the path or a folder above it.
func ruleFor(path string) (key string, found bool) {
	for at := path; at != ""; {
		_, ok := rules[at]
		if ok && (at == path || at != strings.TrimSuffix(module, "/")) {
			return at, true
		}
		cut := strings.LastIndexByte(at, '/')
		if cut < 0 {
			break
		}
		at = at[:cut]
	}
	return "", false
}

func allows(list []string, imported string) bool {
	for _, a := range list {
		base, below := strings.CutSuffix(a, "/...")
		switch {
		case a == "*", imported == a:
			return true
		case below && (imported == base || strings.HasPrefix(imported, base+"/")):
			return true
		case !strings.HasPrefix(a, module) && strings.HasPrefix(imported, a+"/"):
			return true // a package below an allowed module
		}
	}
	return false
}

func standardLibrary(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pkg := range goList(t, "std") {
		paths = append(paths, pkg.ImportPath)
	}
	return paths
}

func goList(t *testing.T, pattern string) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Standard",
		pattern)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", pattern, err, &stderr)
	}
	var pkgs []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}
