package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// TestAProgramOfTheAuditorsDerivesTenThousandChoices: deploy/audit/replay.py is written from
// docs/audit.md and the views, and uses nothing of this program.
func TestAProgramOfTheAuditorsDerivesTenThousandChoices(t *testing.T) {
	tier.LongOnly(t) // it needs Python
	t.Parallel()
	o := emptyAuditDB(t)
	const each = 1000
	for i, route := range []string{
		"weights: {a: 25, b: 15, c: 60}",
		"weights: {a: 0.125, b: 33.4, c: 7}, fallback: redraw",
		"weights: {c: 0.000001, b: 1.5, a: 0}, fallback: redraw",
		"weights: {b: 10, a: 20, c: 70.0}, fallback: round_robin",
		"weights: {b: 10, c: 20, a: 70}, fallback: best_worker",
		"mode: round_robin, channels: [b, a, c]",
		"mode: longest_idle, channels: [a, b, c]",
		"mode: best_worker, weights: {b: 1, a: 2, c: 3}, fallback: redraw",
		"mode: order, channels: [b, a, c]",
	} {
		document := strings.Replace(testRouting, "weights: {a: 25, b: 15, c: 60}", route, 1)
		o.send(fmt.Sprintf("r%d", i), document, each)
	}
	o.send("r11", strings.Replace(testRouting, "weights: {", "sticky: true, weights: {", 1), each)
	// Health weighting lowers a weight, and the lowered weight stays under the next document.
	o.send("r9", testRouting, each)
	stored, err := o.ledger.Routing.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.ledger.Routing.ApplyEffects(t.Context(), ledger.NewEffects{
		Expect: stored.Version, Author: "health", Reason: "errors",
		Overrides: []byte(`{"weights": {"default": {"c": "4.5"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	o.send("r10", testRouting, each)

	// A dead record and the message that it was replayed as have the same id.
	o.exec(`insert into dispatcher.messages (seq, id, lane, state, reason, detail, finished_at)
		values (` + ledgertest.NewSeq + `, 'r0-000007', 'otp', 'dead', 'no_route', 'none', now())`)

	folder := o.export()
	as := regexp.MustCompile(`^12001 messages and \d{5} attempts derived again; ` +
		`every choice is as it is on record\n$`)
	out, code := replay(t, folder, "--keys", folder+"/draw.key")
	if code != 0 || !as.MatchString(out) {
		t.Fatalf("%d: got %s", code, out)
	}
	out, code = replay(t, folder)
	what, rest, _ := strings.Cut(out, "\n")
	if code != 0 || !strings.Contains(what, "by redraw, without keys") || !as.MatchString(rest) {
		t.Fatalf("without keys: %d: %s", code, out)
	}
	for _, tampered := range []struct{ what, from, to string }{
		{"draw: stored", `(?m)^(\d+,r0-000007,default,1),(\d+),`, "$1,${2}1,"},
		{"first_choice: stored", `(?m)^(\d+,r0-000011,.*),[abc],1,`, "$1,zzz,1,"},
		{"channel: stored", `(?m)^(\d+,r0-.*),c,first_choice,`, "$1,b,first_choice,"},
		{"channel: stored", `(?m)^(\d+,r1-.*),c,fallback,`, "$1,b,fallback,"},
		{"draw: stored", `(?m)^(\d+,r11-000007,default,.*,)-?(\d+)$`, "${1}7$2"},
		{"draw: stored", `(?m)^(\d+,r11-000009,default,\d+),(\d+),`, "$1,${2}1,"},
		{"size: stored", `(?m)^(\d+,r2-000003,default,3,\d+),`, "$1,7"},
		{"order: stored", `(?m)^(\d+,r6-.*""line"": "")(a [^,]*),(b [^,]*),`, "$1$3,$2,"},
		{"order: stored", `(?m)^(\d+,r5-.*""after"": )0`, "${1}1"},
		{"order: stored", `(?m)^(\d+,r5-.*""after"": )2`, "${1}3"},
		{"order: stored", `(?m)^(\d+,r8-.*""line"": "")b `, "${1}a "},
		{"draw_key: stored", `(?m)^(\d+,r1-000009,.*),[0-9a-f]{8},`, "$1,00000000,"},
		{"version: stored", `(?m)^(\d+,r1-000009,default),2,`, "$1,99,"},
		{"ranking: stored", `(?m)^(\d+,r3-.*,fallback),"\{.*$`, "$1,"},
		{"attempt: stored", `(?m)^(\d+,r0-.*),1,(b,first_choice)`, "$1,2,$2"},
	} {
		file := filepath.Join(folder, "choices.csv")
		whole := read(t, file)
		at := regexp.MustCompile(tampered.from).FindStringSubmatchIndex(whole)
		if at == nil {
			t.Errorf("nothing matches %s", tampered.from)
			continue
		}
		var changed []byte
		changed = append(changed, whole[:at[0]]...)
		changed = regexp.MustCompile(tampered.from).ExpandString(changed, tampered.to, whole, at)
		changed = append(changed, whole[at[1]:]...)
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		out, code := replay(t, folder, "--keys", folder+"/draw.key")
		found := strings.Count(out, "\n") - 1 // a changed first choice differs from its attempt, too
		if code != 1 || !strings.Contains(out, tampered.what) || found > 2 {
			t.Errorf("%s -> %s: exit code %d\n%s", tampered.from, tampered.to, code, out)
		}
		if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// copyStatement matches one statement of deploy/audit/export.sql.
var copyStatement = regexp.MustCompile(`(?s)(copy \(.*?header\))\s*\\g (\S+)`)

// export runs deploy/audit/export.sql as psql would, with the login of finance, and returns the
// folder.
func (o *auditDB) export() string {
	o.t.Helper()
	folder := o.t.TempDir()
	if err := os.WriteFile(folder+"/draw.key", []byte("# old keys stay\n\n"+auditKey+"\n"), 0o600); err != nil {
		o.t.Fatal(err)
	}
	url, _ := strings.CutPrefix(o.env[0], "DISPATCHER_POSTGRES_URL=")
	finance, err := pgx.Connect(o.t.Context(), ledgertest.As(migrations.RoleFinance, url))
	if err != nil {
		o.t.Fatal(err)
	}
	defer finance.Close(o.t.Context()) //nolint:errcheck // Nothing depends on a clean end.
	statements := copyStatement.FindAllStringSubmatch(read(o.t, "../../deploy/audit/export.sql"), -1)
	if len(statements) != 2 {
		o.t.Fatalf("export.sql has %d statements", len(statements))
	}
	for _, s := range statements {
		sql := strings.NewReplacer(":'day'", "'"+time.Now().UTC().Format(time.DateOnly)+"'",
			":'zone'", "'UTC'").Replace(s[1])
		var out bytes.Buffer
		if _, err := finance.PgConn().CopyTo(o.t.Context(), &out, sql); err != nil {
			o.t.Fatalf("%s: got error %v", sql, err)
		}
		if err := os.WriteFile(filepath.Join(folder, s[2]), out.Bytes(), 0o600); err != nil {
			o.t.Fatal(err)
		}
	}
	return folder
}

// replay runs deploy/audit/replay.py on the files of a folder.
func replay(t *testing.T, folder string, args ...string) (out string, code int) {
	t.Helper()
	return python(t, append(append([]string{"../../deploy/audit/replay.py"}, args...),
		folder+"/weights.csv", folder+"/choices.csv")...)
}

// python runs a program.
func python(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", args...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
