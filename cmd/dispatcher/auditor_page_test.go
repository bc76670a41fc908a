package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// october is the example ledger of docs/auditor.md.
type october struct {
	t *testing.T
	// owner and finance are the settings of the two logins. files is the folder of the example.
	owner, finance []string
	sql            *pgx.Conn // with the login of finance
	files          string
	report         string // the file that a command of the page writes
}

// auditorPage returns docs/auditor.md and the ledger that its preparation creates.
func auditorPage(t *testing.T) (page string, o *october) {
	t.Helper()
	page = read(t, root+"/docs/auditor.md")
	files, err := filepath.Abs(root + "/deploy/audit/october")
	if err != nil {
		t.Fatal(err)
	}
	address := ledgertest.URL(t)
	o = &october{
		t: t, owner: []string{"DISPATCHER_POSTGRES_URL=" + address}, files: files,
		report: filepath.Join(t.TempDir(), "october.html"),
	}
	o.prepare(page, opened(t, address), address)
	return page, o
}

// prepare runs the block of the page for the administrator. It leaves out the statements for the
// database, which exists, and uses logins of its own names, because other tests share the server.
func (o *october) prepare(page string, admin *pgx.Conn, address string) {
	o.t.Helper()
	_, block, _ := strings.Cut(page, "\n    createdb october\n")
	block, _, _ = strings.Cut(block, "\n\n")
	steps := strings.Split(block, "\n")
	if len(steps) != 4 {
		o.t.Fatalf("unexpected steps of the preparation: %q", steps)
	}
	for _, step := range steps {
		args := splitWords(step)
		switch {
		case args[0] == "export":
		case args[0] == "dispatcher":
			if got := dispatcher(o.t, "", o.owner, args[1:]...); got.code != exitOK {
				o.t.Fatalf("%s: got %+v, want exit code %d", step, got, exitOK)
			}
		case strings.Contains(step, " -f deploy/audit/october/"):
			script := read(o.t, root+"/"+args[len(args)-1])
			if _, err := admin.Exec(o.t.Context(), script); err != nil {
				o.t.Fatal(err)
			}
		case strings.HasSuffix(step, ` in role `+migrations.RoleFinance+`"`):
			as := login(o.t, admin, address, migrations.RoleFinance)
			o.finance, o.sql = []string{"DISPATCHER_POSTGRES_URL=" + as}, opened(o.t, as)
		default:
			o.t.Fatalf("unknown step %q", step)
		}
	}
}

var argument = regexp.MustCompile(`"[^"]*"|\S+`)

// splitWords splits a command line of the page as a shell does.
func splitWords(line string) []string {
	all := argument.FindAllString(strings.ReplaceAll(line, "\\\n", " "), -1)
	for i := range all {
		all[i] = strings.Trim(all[i], `"`)
	}
	return all
}

// run runs a command of the page with the login of finance and returns its output.
func (o *october) run(line string) string {
	o.t.Helper()
	args := splitWords(line)
	if args[0] == "psql" {
		var all []string
		rows, err := o.sql.Query(o.t.Context(), args[3], pgx.QueryExecModeSimpleProtocol)
		for err == nil && rows.Next() {
			var values []string
			for _, raw := range rows.RawValues() {
				values = append(values, string(raw))
			}
			all = append(all, strings.Join(values, "|"))
		}
		if err != nil || rows.Err() != nil {
			o.t.Fatalf("%s: %v, %v", line, err, rows.Err())
		}
		return strings.Join(all, "\n")
	}
	for i, arg := range args {
		args[i] = strings.Replace(arg, "deploy/audit/october", o.files, 1)
		if arg == "october.html" {
			args[i] = o.report
		}
	}
	got := dispatcher(o.t, "", o.finance, args[1:]...)
	if got.code != exitOK && got.code != exitFailed || got.err != "" || privateIn(got.out) != "" {
		o.t.Fatalf("%s: got %+v", line, got)
	}
	return got.out
}

var commandOfPage = regexp.MustCompile(`(?m)^\$ ((?:.*\\\n)*.*)$`)

// TestTheAuditorsPageShowsWhatItsCommandsPrint runs the commands of the page one after the other,
// with the login of finance. "..." in the page stands for left-out lines.
func TestTheAuditorsPageShowsWhatItsCommandsPrint(t *testing.T) {
	t.Parallel()
	page, o := auditorPage(t)
	commands := 0
	for _, block := range fence.FindAllString(page, -1) {
		block = strings.TrimSuffix(strings.TrimPrefix(block, "```\n"), "```")
		for _, at := range commandOfPage.FindAllStringSubmatchIndex(block, -1) {
			commands++
			line, shown := block[at[2]:at[3]], strings.TrimPrefix(block[at[1]:], "\n")
			shown, _, _ = strings.Cut(shown, "\n$ ")
			printed := o.run(line)
			rest := "\n" + printed + "\n"
			for piece := range strings.SplitSeq("\n"+strings.TrimSpace(shown)+"\n", "\n...\n") {
				if piece = strings.Trim(piece, "\n"); piece == "" {
					continue
				}
				_, after, found := strings.Cut(rest, "\n"+piece+"\n")
				if !found {
					t.Errorf("$ %s\nprints\n%s\nwant, from the page:\n%s", line, printed, piece)
				}
				rest = "\n" + after
			}
			if !strings.Contains(shown, "...") && strings.TrimSpace(rest) != "" {
				t.Errorf("$ %s\nalso prints%s", line, rest)
			}
		}
	}
	if commands < 12 {
		t.Errorf("found %d commands on the page", commands)
	}
	if html, err := os.ReadFile(o.report); err != nil || !strings.Contains(string(html), "<svg") ||
		!strings.Contains(string(html), "b carried 14.32 % instead of 17.17 %") {
		t.Errorf("the written report of the month: %v", err)
	}
}

// TestTheExampleIsAsADispatcherWritesIt: the choices of the example can be derived again with their
// draws, and closing its days gives its figures.
func TestTheExampleIsAsADispatcherWritesIt(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	_, o := auditorPage(t)
	keys := append(o.owner, "DISPATCHER_DRAW_KEY_FILE="+o.files+"/draw.key")
	for _, day := range []string{"2026-10-13", "2026-10-21", "2026-10-25"} {
		got := dispatcher(t, "", keys, "audit", "verify", "--day", day)
		if got.code != exitOK || !strings.Contains(got.out, "every choice is as it is on record") ||
			strings.Contains(got.out, "not drawn again") {
			t.Errorf("%s: got %+v, want exit code %d, %q in the output and no %q in the output",
				day, got, exitOK, "every choice is as it is on record", "not drawn again")
		}
	}
	for _, day := range []string{"2026-10-13", "2026-10-21"} {
		got := dispatcher(t, "", o.owner, "report", "close", "--day", day)
		if !strings.Contains(got.out, "is as it was when it was closed") {
			t.Errorf("%s: got %+v, want %q in the output", day, got, "is as it was when it was closed")
		}
	}
}
