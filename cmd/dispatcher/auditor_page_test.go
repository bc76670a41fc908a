package main

import (
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/note"

	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/config/tier"
	"dispatcher/ledger"
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

// updateOctober writes deploy/audit/october/seals.sql anew.
var updateOctober = flag.Bool("update-october", false, "seal the example of docs/auditor.md again")

// octoberKey signs the log of the example and nothing else, so it is not a secret. Its second line
// is deploy/audit/october/seal.pub.
const octoberKey = "PRIVATE+KEY+october.example.com+4048c515+Ab7167yr+bqS1vW8jWLrKBHf92wFT9DUpsoDkRIx9Sa7" +
	"\noctober.example.com+4048c515+AXo1nAfcrmkG04m/eE8Y4QyWALi/HCphLObgVuXzp1Op"

// TestTheExampleIsSealed: the checkpoints of deploy/audit/october/seals.sql are those of its rows.
func TestTheExampleIsSealed(t *testing.T) {
	if !*updateOctober {
		tier.LongOnly(t)
	}
	t.Parallel()
	_, o := auditorPage(t)
	keys, err := seal.ParseKeys("october", strings.Split(octoberKey, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Connect(t.Context(), ledger.Config{
		URL: strings.TrimPrefix(o.owner[0], "DISPATCHER_POSTGRES_URL="), Region: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	var last *ledger.Seal
	var rows []string
	add := func(s ledger.Seal, evidence []ledger.Evidence) {
		w, err := keys.Begin(last)
		for i := range evidence {
			if err == nil {
				err = w.Add(&evidence[i])
			}
		}
		if err == nil {
			err = w.Close(&s)
		}
		if err != nil {
			t.Fatal(err)
		}
		last, s.Number = &s, int64(len(rows)+1)
		lines := strings.Split(s.Checkpoint, "\n")
		const layout = "2006-01-02 15:04Z"
		rows = append(rows, fmt.Sprintf("(%d, timestamptz '%s', timestamptz '%s', %t, %d,\n  '%s',\n"+
			"  '%s', '%s')", s.Number, s.From.Format(layout), s.To.Format(layout),
			s.Closings, s.Size, base64.StdEncoding.EncodeToString(s.Nodes), lines[2],
			strings.Fields(lines[4])[2]))
	}
	var found []ledger.Evidence
	keep := func(e *ledger.Evidence) error {
		found = append(found, *e)
		// The seals of the example have format 1, so that its commands show that format verified.
		if e.Seq > 0 {
			found[len(found)-1].Parts[ledger.PartLater] = e.Later1
		}
		return nil
	}
	// A seal for each hour in which something happened, and one for those between.
	from := time.Date(2026, 9, 30, 23, 0, 0, 0, time.UTC)
	end := time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)
	for hour := from; hour.Before(end); hour = hour.Add(time.Hour) {
		next := hour.Add(time.Hour)
		found = nil
		if err := l.Seals.Evidence(t.Context(), hour, next, keep); err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			continue
		}
		if from.Before(hour) {
			add(ledger.Seal{From: from, To: hour}, nil)
		}
		add(ledger.Seal{From: hour, To: next}, found)
		from = next
	}
	add(ledger.Seal{From: from, To: end}, nil)
	found = nil
	for day := range 31 {
		date := fmt.Sprintf("2026-10-%02d", day+1)
		if err := l.Seals.ClosingsOf(t.Context(), date, keep); err != nil {
			t.Fatal(err)
		}
	}
	add(ledger.Seal{From: time.Unix(0, 0).UTC(), To: end, Closings: true}, found)
	// The statement around the values is written by hand.
	head, rest, _ := strings.Cut(read(t, o.files+"/seals.sql"), "from (values\n")
	_, tail, whole := strings.Cut(rest, "\n) v (number")
	if !whole {
		t.Fatal("seals.sql has no list of values")
	}
	seals := head + "from (values\n" + strings.Join(rows, ",\n") + "\n) v (number" + tail
	for name, want := range map[string]string{"seals.sql": seals, "checkpoint.txt": last.Checkpoint} {
		file := o.files + "/" + name
		if *updateOctober {
			if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if read(t, file) != want {
			t.Errorf("%s is not that of the example: -update-october writes it anew", file)
		}
	}
}

// prepare runs the block of the page for the administrator. It leaves out the statements for the
// database, which exists, and uses logins of its own names, because other tests share the server.
func (o *october) prepare(page string, admin *pgx.Conn, address string) {
	o.t.Helper()
	_, block, _ := strings.Cut(page, "\n    createdb october\n")
	block, _, _ = strings.Cut(block, "\n\n")
	steps := strings.Split(block, "\n")
	if len(steps) != 5 {
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
	tier.LongOnly(t)
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
	t.Run("seals that were written anew are found", o.findsSealsThatWereWrittenAnew)
}

// findsSealsThatWereWrittenAnew: somebody with the signer key changes a day in the log
// and signs all seals of that day. They fit each other, but not the checkpoint that was kept.
// Whoever deletes the log, or its end, leaves messages that must be in it.
func (o *october) findsSealsThatWereWrittenAnew(t *testing.T) {
	address := strings.TrimPrefix(o.owner[0], "DISPATCHER_POSTGRES_URL=")
	admin := opened(t, address)
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: address, Region: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	verify := func(args ...string) (found verification, code int) {
		t.Helper()
		got := dispatcher(t, "", o.finance, append([]string{
			"audit", "verify", "--day", "2026-10-23", "--without-keys", "--format", "json",
			"--seal-keys", o.files + "/seal.pub",
		}, args...)...)
		return decoded[verification](t, got), got.code
	}
	kept := []string{"--checkpoint", o.files + "/checkpoint.txt"}
	if found, code := verify(kept...); code != exitOK {
		t.Fatalf("before anything was changed: exit code %d, %+v", code, found)
	}
	signer, err := note.NewSigner(strings.Split(octoberKey, "\n")[0])
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 10, 23, 0, 0, 0, 0, time.UTC)
	var seals []ledger.Seal
	if err := l.Seals.Each(t.Context(), day.Add(-time.Hour), day.Add(23*time.Hour),
		func(s *ledger.Seal) error {
			one := *s
			one.Leaves = slices.Clone(s.Leaves)
			seals = append(seals, one)
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	before, err := l.Seals.Number(t.Context(), seals[0].Number-1)
	if err != nil {
		t.Fatal(err)
	}
	log, err := seal.Resume(uint64(before.Size), before.Nodes) //nolint:gosec // It is not negative.
	if err != nil {
		t.Fatal(err)
	}
	forged := false
	for i := range seals {
		s := &seals[i]
		if len(s.Leaves) > 0 && !forged {
			s.Leaves[seal.LeafSize-1] ^= 1
			forged = true
		}
		err := log.Add(s.Leaves)
		checkpoint, signErr := log.Sign(signer)
		if err := errors.Join(err, signErr); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Exec(t.Context(), `update dispatcher.seals
			set leaves = $2, nodes = $3, checkpoint = $4 where number = $1`, s.Number, s.Leaves,
			log.Nodes(), checkpoint); err != nil {
			t.Fatal(err)
		}
	}
	if found, _ := verify(); !forged || found.ByKind["checkpoint"] != 0 {
		t.Errorf("the seals should fit each other: %+v", found.ByKind)
	}
	if found, code := verify(kept...); code != exitFailed || found.ByKind["checkpoint"] != 1 {
		t.Errorf("with the kept checkpoint: exit code %d, %+v", code, found.ByKind)
	}
	for _, sql := range []string{
		`delete from dispatcher.seals where from_at >= '2026-10-22'`, `delete from dispatcher.seals`,
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if found, code := verify(); code != exitFailed || found.ByKind["checkpoint"] == 0 {
			t.Errorf("%s: exit code %d, %+v", sql, code, found.ByKind)
		}
	}
}

// TestTheExampleIsAsADispatcherWritesIt: the choices of the example can be derived again with their
// draws, and closing its days gives its figures.
func TestTheExampleIsAsADispatcherWritesIt(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	_, o := auditorPage(t)
	keys := append(o.owner, "DISPATCHER_DRAW_KEY_FILE="+o.files+"/draw.key")
	for n := range 31 {
		day := fmt.Sprintf("2026-10-%02d", n+1)
		got := dispatcher(t, "", keys, "audit", "verify", "--day", day, "--seal-keys",
			o.files+"/seal.pub", "--checkpoint", o.files+"/checkpoint.txt")
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
