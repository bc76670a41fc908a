package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
)

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestQueriesOfTheGuidesRun(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(document(t,
		"audit.md")+document(t, "receipts.md"),
		-1)
	if len(blocks) < 5 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		for query := range strings.SplitSeq(block[1], ";") {
			if _, err := conn.Exec(t.Context(), query); err != nil {
				t.Errorf("%v in %s", err, query)
			}
		}
	}
}

// TestColumnsOfTheAuditGuideAreThoseOfTheViews compares the guide with the schema.
func TestColumnsOfTheAuditGuideAreThoseOfTheViews(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	view := regexp.MustCompile("(?m)^- `audit\\.(\\w+)\\(([^)]*)\\)`")
	views := view.FindAllStringSubmatch(document(t, "audit.md"), -1)
	if len(views) < 9 {
		t.Fatalf("%d views", len(views))
	}
	for _, view := range views {
		var columns string
		err := conn.QueryRow(t.Context(), `
			select string_agg(column_name, ', ' order by ordinal_position)
			from information_schema.columns
			where table_schema = 'audit' and table_name = $1`, view[1]).Scan(&columns)
		if err != nil || columns != strings.Join(strings.Fields(view[2]), " ") {
			t.Errorf("audit.%s: differing columns %s (%v)", view[1], columns, err)
		}
	}
}

// TestEveryViewIsInTheLogOrSaidNotToBe: an auditor who reads that the log shows every change must
// not be wrong about a view that was added later.
func TestEveryViewIsInTheLogOrSaidNotToBe(t *testing.T) {
	t.Parallel()
	inLog := []string{
		"ambiguous", "attempt_figures", "attempts", "carried_figures", "choice_figures", "closings",
		"dead_records", "erasures", "guard_trips", "limit_restarts", "limit_windows", "messages",
		"operator_actions", "opt_outs", "ramp_moves", "receipts", "reconciliation_differences",
		"reconciliation_totals", "reconciliations", "routing_versions", "seals", "top_ups",
	}
	// from those
	derived := []string{"attempt_sums", "carried_sums", "choice_sums", "draw_keys", "weights"}
	_, lacking, found := strings.Cut(document(t, "evidence.md"), "## What it does not prove")
	if lacking, _, _ = strings.Cut(lacking, "\n## "); !found {
		t.Fatal("evidence.md has no such part")
	}
	conn, err := pgx.Connect(t.Context(), ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	views := names(t, conn, `select table_name::text from information_schema.views
		where table_schema = 'audit' order by 1`)
	for _, view := range views {
		if !slices.Contains(inLog, view) && !slices.Contains(derived, view) &&
			!strings.Contains(lacking, "`audit."+view+"`") {
			t.Errorf("evidence.md does not say that audit.%s is not in the log", view)
		}
	}
	if len(views) < 20 {
		t.Errorf("only %d views: %v", len(views), views)
	}
}

// TestEveryStoryIsInTheTestingGuide: the guide says which tier runs a story, and what it proves. So
// it does of every other test that only the long tier runs.
func TestEveryStoryIsInTheTestingGuide(t *testing.T) {
	t.Parallel()
	guide := document(t, "testing.md")
	test := regexp.MustCompile(`^(Test\w+)\(t \*testing\.T\)`)
	stories := 0
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "tier_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		isStory := strings.HasPrefix(filepath.Base(path), "e2e_")
		for function := range strings.SplitSeq(string(source), "\nfunc ") {
			name := test.FindStringSubmatch(function)
			if name == nil || !isStory && !strings.Contains(function, "\ttier.LongOnly(t") {
				continue
			}
			stories++
			if !strings.Contains(guide, "`"+name[1]+"`") {
				t.Errorf("%s: testing.md does not name %s", path, name[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if stories < 60 {
		t.Errorf("found only %d stories", stories)
	}
}
