package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// TestAuditInvariantsNamesWhatIsViolated: the command finds nothing in data that the pipeline
// wrote. After a change by hand it describes the violation and sets the exit code.
func TestAuditInvariantsNamesWhatIsViolated(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 20)
	check := func(args ...string) (r result, found invariantsFound) {
		t.Helper()
		r = dispatcher(t, "", o.env, append([]string{"audit", "invariants"}, args...)...)
		if strings.Contains(strings.Join(args, " "), "json") {
			if err := json.Unmarshal([]byte(r.out), &found); err != nil {
				t.Fatalf("%v: %s %s", err, r.out, r.err)
			}
		}
		return r, found
	}
	for _, args := range [][]string{{"--format", "json"}, {"--all", "--format", "json"}} {
		r, found := check(args...)
		if r.code != exitOK || found.Checked != len(ledger.Invariants) || found.Violated != 0 ||
			found.Violations == nil || len(found.Violations) != 0 {
			t.Fatalf("%v: got exit code %d, output %s, error %s", args, r.code, r.out, r.err)
		}
	}
	if r, _ := check(); r.code != exitOK || strings.Count(r.out, " ok ") != len(ledger.Invariants) {
		t.Errorf("got exit code %d, output %s, error %s", r.code, r.out, r.err)
	}
	o.exec(`update dispatcher.channels set active = active + 1 where channel = 'c'`)
	r, found := check("--format", "json")
	want := violation{
		"Admitted ≤ limit", "active_is_what_is_held", "channel c counts 1 in flight, and 0 hold a slot",
	}
	if r.code != exitFailed || len(found.Violations) != 1 || found.Violations[0] != want {
		t.Errorf("got exit code %d, output %s, error %s", r.code, r.out, r.err)
	}
	if r, _ := check(); r.code != exitFailed || !strings.Contains(r.out, "1 violation ") ||
		!strings.Contains(r.out, want.Detail) {
		t.Errorf("got exit code %d, output %s, error %s", r.code, r.out, r.err)
	}
	if r, _ := check("--format", "csv"); r.code != exitFailed || r.out !=
		"guarantee,invariant,detail\nAdmitted ≤ limit,active_is_what_is_held,"+
			"\"channel c counts 1 in flight, and 0 hold a slot\"\n" {
		t.Errorf("got exit code %d, output %s, error %s", r.code, r.out, r.err)
	}
}

// TestAuditInvariantsPrintsStatementsThatRun: the printed statements run in psql without changes.
func TestAuditInvariantsPrintsStatementsThatRun(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 1)
	r := dispatcher(t, "", o.env, "audit", "invariants", "--sql", "--from", "2026-11-20", "--to",
		"2026-11-21")
	if r.code != exitOK || strings.Count(r.out, "as detail") != len(ledger.Invariants) ||
		!strings.Contains(r.out, "'2026-11-22 00:00:00Z'") {
		t.Fatalf("got exit code %d, output %s, error %s", r.code, r.out, r.err)
	}
	if _, err := o.sql.Exec(t.Context(), r.out, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{
		{"--from", "x"},
		{"--from", "2026-11-21", "--to", "2026-11-20"},
		{"--all", "--sql"},
		{"--from", "2020-01-01", "--to", "2020-01-02"},
	} {
		r := dispatcher(t, "", o.env, append([]string{"audit", "invariants"}, args...)...)
		if r.code != exitUsage || r.err == "" {
			t.Errorf("%v: %d: %s", args, r.code, r.err)
		}
	}
}

// TestAuditInvariantsNeedsTheTables: the dispatcher's login may read the tables. The login of
// finance may not, and gets an error that says so.
func TestAuditInvariantsNeedsTheTables(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 1)
	url := o.sql.Config().ConnString()
	for role, code := range map[string]int{
		migrations.RoleApp: exitOK, migrations.RoleFinance: exitUsage,
	} {
		env := append(slices.Clone(o.env), "DISPATCHER_POSTGRES_URL="+ledgertest.As(role, url))
		if r := dispatcher(t, "", env, "audit", "invariants"); r.code != code {
			t.Errorf("%s: got exit code %d, output %s, error %s", role, r.code, r.out, r.err)
		} else if code != exitOK && !strings.Contains(r.err, "permission denied") {
			t.Errorf("%s: got %s", role, r.err)
		}
	}
}
