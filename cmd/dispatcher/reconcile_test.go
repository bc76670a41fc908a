package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
	"dispatcher/provider"
	"dispatcher/selector"
)

// bill is a ledger whose messages were sent over channel c, a minute apart, and the lines of c's
// file.
type bill struct {
	t     *testing.T
	url   string
	sql   *pgx.Conn
	env   []string
	begin time.Time
	lines []string
}

// billed is a message of a bill. digits end its number. Without an outcome it was accepted.
type billed struct {
	id, digits, references string
	segments               int
	outcome                string
	minute                 int
}

func openBill(t *testing.T, messages ...billed) *bill {
	t.Helper()
	b := &bill{
		t: t, url: ledgertest.URL(t),
		begin: time.Now().UTC().Add(-6 * time.Hour).Truncate(time.Minute),
	}
	l := openSeeded(t, b.url)
	b.sql = opened(t, b.url)
	b.env = []string{
		"DISPATCHER_POSTGRES_URL=" + b.url,
		"DISPATCHER_DRAW_KEY_FILE=" + write(t, "draw.key", strings.Repeat("0b", 32)+"\n"+auditKey),
	}
	key, err := selector.ParseKey(auditKey)
	if err != nil {
		t.Fatal(err)
	}
	var all []ledger.Message
	for i, m := range messages {
		message := drawn(m.id, int64(i), "c")
		message.NumberHMAC = decide.NumberHMAC(key, "+447700900"+m.digits)
		all = append(all, message)
	}
	seqs := map[string]int64{}
	for _, m := range claimed(t, l, all...) {
		seqs[m.ID] = m.Seq
	}
	var settlements []ledger.Settlement
	for _, m := range messages {
		s := ledger.Settlement{
			Seq: seqs[m.id], ID: m.id, Attempt: 1, Outcome: provider.Accepted, Reference: m.references,
			Segments: m.segments, PriceMicros: int64(m.segments) * 28_000, State: ledger.Accepted,
		}
		switch m.outcome {
		case "rejected":
			s.Outcome, s.State, s.Segments, s.PriceMicros = provider.Rejected, ledger.Rejected, 0, 0
		case "unknown":
			s.Outcome, s.State, s.Reason, s.Code = provider.Unknown, ledger.Unknown, "ambiguous_final", "timeout"
			s.Ambiguity = &ledger.Ambiguity{
				Key: "key of " + m.id, Step: ledger.NoStep, Until: time.Now(),
				ResolvedAs: ledger.Unresolved,
			}
		}
		settlements = append(settlements, s)
	}
	if err := l.Settlements.Settle(t.Context(), settlements); err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		at := b.at(m.minute)
		b.exec(`update dispatcher.attempts set claimed_at = $2, settled_at = $2 where message_seq = $1`,
			seqs[m.id], at)
		b.exec(`update dispatcher.messages set received_at = $2,
			finished_at = case when finished_at is not null then $2::timestamptz end where seq = $1`,
			seqs[m.id], at)
		b.exec(`update dispatcher.ambiguous set opened_at = $2, closed_at = $2 where message_seq = $1`,
			seqs[m.id], at)
	}
	b.exec(`update dispatcher.routing_versions set created_at = $1`, b.begin.Add(-time.Hour))
	return b
}

func (b *bill) at(minute int) time.Time {
	return b.begin.Add(time.Duration(minute)*time.Minute + 300*time.Millisecond)
}

func (b *bill) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.sql.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatalf("%s: got error %v", sql, err)
	}
}

// addLine adds a line to c's file.
func (b *bill) addLine(minute int, reference, digits, segments, price, currency, status string) {
	if digits != "" {
		digits = "447700900" + digits
	}
	b.lines = append(b.lines, strings.Join([]string{
		b.at(minute).Format("2006-01-02 15:04:05"), reference, digits, segments, price, currency,
		status,
	}, ","))
}

// reconcile runs the command on the lines.
func (b *bill) reconcile(code int, args ...string) reconciled {
	b.t.Helper()
	return decoded[reconciled](b.t, b.run(b.env, code, append(args, "--format", "json")...))
}

func (b *bill) run(env []string, code int, args ...string) result {
	b.t.Helper()
	file := write(b.t, "bill.csv", "time,reference,number,segments,price,currency,status\n"+
		strings.Join(b.lines, "\n")+"\n")
	got := dispatcher(b.t, "", env, slices.Concat([]string{"reconcile", "c", "--file", file}, args)...)
	if got.code != code || strings.Contains(got.out+got.err, "7700900") {
		b.t.Fatalf("%v: got %+v", args, got)
	}
	return got
}

// stored counts the rows of all tables of results.
func (b *bill) stored() (n int) {
	b.t.Helper()
	if err := b.sql.QueryRow(b.t.Context(), `select
		(select count(*) from audit.reconciliations) + (select count(*) from audit.reconciliation_totals)
		+ (select count(*) from audit.reconciliation_differences)`).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// differences are the differences in short form.
func (r *reconciled) differences() (all []string) {
	for _, d := range slices.Concat(r.Differences, r.Missing, r.Extra) {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s%s %s|%s %s", d.Field, d.ID,
			d.Reference, d.Ours, d.Theirs, d.Currency)))
	}
	slices.Sort(all)
	return all
}

// everyKind is a bill with each kind of difference.
func everyKind(t *testing.T) *bill {
	t.Helper()
	b := openBill(t,
		billed{id: "same", digits: "001", references: "r1", segments: 1, minute: 0},
		billed{id: "parts", digits: "002", references: "p1 p2 p3", segments: 3, minute: 1},
		billed{id: "short", digits: "003", references: "q1 q2", segments: 2, minute: 2},
		billed{id: "dearer", digits: "004", references: "r4", segments: 1, minute: 3},
		billed{id: "euros", digits: "005", references: "r5", segments: 1, minute: 4},
		billed{id: "missing", digits: "006", references: "r6", segments: 1, minute: 5},
		billed{id: "numbered", digits: "007", segments: 2, minute: 6},
		billed{id: "failed", digits: "008", references: "r8", segments: 1, minute: 7},
		billed{id: "rejected", digits: "009", references: "r9", outcome: "rejected", minute: 8},
		billed{id: "one-line", digits: "010", references: "s1 s2", segments: 2, minute: 9},
		billed{id: "twice-called", digits: "011", references: "t1", segments: 2, minute: 10},
		billed{id: "last", digits: "012", references: "r12", segments: 1, minute: 20},
	)
	b.addLine(0, "r1", "001", "1", "0.028", "GBP", "delivered")
	b.addLine(0, "r1", "001", "1", "0.028", "GBP", "delivered")
	for _, part := range []string{"p1", "p2", "p3"} {
		b.addLine(1, part, "002", "1", "0.028", "GBP", "delivered")
	}
	b.addLine(2, "q1", "003", "1", "0.028", "GBP", "sent")
	b.addLine(3, "r4", "004", "1", "0.03000001", "GBP", "sent")
	b.addLine(4, "r5", "005", "1", "0.028", "EUR", "sent")
	b.addLine(8, "", "007", "2", "0.056", "GBP", "sent")
	b.addLine(7, "r8", "008", "1", "0", "GBP", "failed")
	b.addLine(8, "r9", "009", "1", "0.028", "GBP", "sent")
	b.addLine(9, "s1", "010", "2", "0.056", "GBP", "sent")
	b.addLine(10, "t1", "011", "1", "0.028", "GBP", "sent") // a line for each part, under one id
	b.addLine(10, "t1", "011", "1", "0.028", "GBP", "sent")
	b.addLine(11, "x1", "099", "1", "0.0000004", "GBP", "sent")
	b.addLine(11, "x2", "098", "1", "0.0000004", "GBP", "sent")
	b.addLine(12, "x3", "097", "1", "0", "GBP", "failed") // neither accepted it
	b.addLine(20, "r12", "012", "1", "0.028", "GBP", "sent")
	return b
}

// TestEachKindOfDifference: the totals are the exact sums of all lines and all attempts.
func TestEachKindOfDifference(t *testing.T) {
	t.Parallel()
	b := everyKind(t)
	got := b.reconcile(exitFailed, "--dry-run")
	want := []string{
		"currency euros" + "r5 GBP|EUR",
		"duplicate r1 |0.028 GBP",
		"ours_only missing 0.028| GBP",
		"outcome failed" + "r8 accepted|not_taken",
		"outcome rejected" + "r9 rejected|taken",
		"price dearer" + "r4 0.028|0.03000001 GBP",
		"price failed" + "r8 0.028|0 GBP",
		"price short" + "q1 0.056|0.028 GBP",
		"segments short" + "q1 2|1",
		"theirs_only x1 |0.0000004 GBP",
		"theirs_only x2 |0.0000004 GBP",
	}
	if diff := cmp.Diff(want, got.differences()); diff != "" {
		t.Error(diff)
	}
	if got.Lines != 18 || got.Matched != 11 || got.OursOnly != 1 || got.TheirsOnly != 3 ||
		got.Differing != 7 || len(got.Totals) != 2 || !got.DryRun || got.Signed != nil {
		t.Errorf("got %+v", got)
	}
	// Twice 0.0000004 is a micro: only the total is rounded.
	for i, want := range []struct{ ours, theirs int64 }{{0, 28_000}, {476_000, 422_001}} {
		if g := got.Totals[i]; g.OursMicros != want.ours || g.TheirsMicros == nil ||
			*g.TheirsMicros != want.theirs || *g.DifferenceMicros != want.theirs-want.ours {
			t.Errorf("total %d: %+v, not %+v", i, g, want)
		}
	}
	if n := b.stored(); n != 0 {
		t.Errorf("a dry run stored %d rows", n)
	}
	table := b.run(b.env, exitFailed, "--dry-run").out
	for _, want := range []string{
		"18 lines of the file, 11 attempts matched", "ours_only", "Only ours: 1. Only theirs: 3.",
		"Nothing was changed.",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
}

// TestCreditsLowerTheTotal: whichever sign the file gives to charges. A credit says nothing about
// the attempt that its id belongs to.
func TestCreditsLowerTheTotal(t *testing.T) {
	t.Parallel()
	b := openBill(t,
		billed{id: "m1", digits: "001", references: "r1", segments: 1},
		billed{id: "m2", digits: "002", references: "r2", segments: 1, minute: 1},
		billed{id: "m3", digits: "003", segments: 1, minute: 2},
	)
	for charge, credit := range map[string]string{"0.028": "-0.028", "-0.028": "0.028"} {
		b.lines = nil
		b.addLine(0, "r1", "001", "1", credit, "GBP", "refunded")
		b.addLine(0, "r1", "001", "1", charge, "GBP", "sent")
		b.addLine(1, "r2", "002", "1", charge, "GBP", "sent")
		b.addLine(2, "", "003", "1", credit, "GBP", "refunded")
		b.addLine(2, "", "003", "1", charge, "GBP", "sent")
		got := b.reconcile(exitFailed, "--dry-run")
		want := []string{"theirs_only  |-0.028 GBP", "theirs_only r1 |-0.028 GBP"}
		if diff := cmp.Diff(want, got.differences()); diff != "" {
			t.Errorf("charges of %s: %s", charge, diff)
		}
		if total := got.Totals[0]; got.Matched != 3 || total.OursMicros != 84_000 ||
			*total.TheirsMicros != 28_000 {
			t.Errorf("charges of %s: %d matched, %+v", charge, got.Matched, total)
		}
	}
}

// TestAFileWithDaysFirstAndCommasMatches: it is written as in most of Europe.
func TestAFileWithDaysFirstAndCommasMatches(t *testing.T) {
	t.Parallel()
	b := openBill(t, billed{id: "m", digits: "001", references: "r1", segments: 1})
	b.lines = []string{b.at(0).Format("02/01/2006 15:04:05") + `,r1,447700900001,1,"0,028",GBP,sent`}
	got := b.reconcile(exitOK, "--dry-run", "--day-first", "--decimal-comma")
	if got.Matched != 1 || len(got.differences()) != 0 {
		t.Errorf("got %+v", got)
	}
	plain := b.reconcile(exitFailed, "--dry-run", "--day-first")
	if want := []string{"price m" + "r1 0.028|28 GBP"}; !slices.Equal(plain.differences(), want) {
		t.Errorf("with a decimal point: %v, want %v", plain.differences(), want)
	}
}

// TestTheSameFileIsSignedOffOnce: the second time nothing is stored.
func TestTheSameFileIsSignedOffOnce(t *testing.T) {
	t.Parallel()
	b := everyKind(t)
	first := b.reconcile(exitFailed, "--reason", "invoice 4711", "--author", "ann")
	if !first.Changed || first.Signed == nil || first.Signed.Author != "ann" {
		t.Errorf("got %+v", first)
	}
	n := b.stored()
	if want := 1 + len(first.Totals) + len(first.differences()); n != want {
		t.Errorf("%d rows are stored, not %d", n, want)
	}
	second := b.reconcile(exitFailed, "--reason", "again", "--author", "bob")
	if second.Changed || b.stored() != n {
		t.Errorf("the second time: %+v", second)
	}
	second.Changed = true
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	if got := b.run(b.env, exitFailed, "--reason", "x").out; !strings.Contains(got,
		"Nothing was changed: this file was signed off by ann") {
		t.Error(got)
	}
	b.lines = b.lines[1:] // another file
	if got := b.reconcile(exitFailed, "--reason", "corrected"); !got.Changed || b.stored() <= n {
		t.Errorf("another file: %+v", got)
	}
}

// unknowns is a bill with unknown attempts.
func unknowns(t *testing.T) *bill {
	t.Helper()
	messages := []billed{
		{id: "taken", digits: "101", segments: 2, outcome: "unknown", minute: 100},
		{id: "named", digits: "102", segments: 1, outcome: "unknown", minute: 110},
		{id: "failed", digits: "103", segments: 1, outcome: "unknown", minute: 120},
		{id: "gone", digits: "104", segments: 1, outcome: "unknown", minute: 130},
		{id: "one-of-two", digits: "105", segments: 1, outcome: "unknown", minute: 140},
		{id: "other-of-two", digits: "105", segments: 1, outcome: "unknown", minute: 141},
		{id: "late-clock", digits: "106", segments: 1, outcome: "unknown", minute: 150},
		{id: "half", digits: "107", references: "h1", segments: 2, outcome: "unknown", minute: 155},
		{id: "edge", digits: "108", segments: 1, outcome: "unknown", minute: 30},
	}
	for i := range 24 { // one every ten minutes
		messages = append(messages, billed{
			id: fmt.Sprintf("m%d", i), digits: fmt.Sprint(200 + i), references: fmt.Sprintf("r%d", i),
			segments: 1, minute: 10 * i,
		})
	}
	b := openBill(t, messages...)
	for i := range 24 {
		b.addLine(10*i, fmt.Sprintf("r%d", i), fmt.Sprint(200+i), "1", "0.028", "GBP", "delivered")
	}
	b.addLine(102, "new1", "101", "2", "0.056", "GBP", "delivered")
	b.addLine(111, "", "102", "1", "0.028", "GBP", "delivered")
	b.addLine(120, "", "103", "1", "0", "GBP", "rejected")
	b.addLine(142, "new5", "105", "1", "0.028", "GBP", "delivered")
	b.addLine(230, "new6", "106", "1", "0.028", "GBP", "delivered")
	b.addLine(155, "h1", "107", "1", "0.028", "GBP", "delivered")
	return b
}

// proven are the attempts whose outcome the file proves.
func (r *reconciled) proven() (all []string) {
	for _, p := range r.Resolvable {
		all = append(all, p.ID+" "+p.As)
	}
	return all
}

// TestTheFileSettlesWhatItProves: other attempts are not settled, the invariants hold, and a second
// run changes nothing.
func TestTheFileSettlesWhatItProves(t *testing.T) {
	t.Parallel()
	b := unknowns(t)
	period := []string{
		"--from", b.at(-1).Format(time.RFC3339), "--to", b.at(235).Format(time.RFC3339),
	}
	certain := []string{"taken taken", "named taken", "failed not_taken"}
	if diff := cmp.Diff(certain, new(b.reconcile(exitFailed, "--dry-run")).proven()); diff != "" {
		t.Error(diff)
	}
	dry := b.reconcile(exitFailed, append(period, "--complete", "--dry-run")...)
	if diff := cmp.Diff(append(certain, "gone not_taken"), dry.proven()); diff != "" {
		t.Error(diff)
	}
	if dry.Ambiguous != 9 || dry.Resolved != 0 {
		t.Errorf("got %+v, want Ambiguous %v and Resolved %v", dry, 9, 0)
	}
	signing := append(slices.Clone(period), "--complete", "--reason", "invoice 4711", "--author",
		"ann")
	asked := b.run(b.env, exitUsage, signing...)
	if !strings.Contains(asked.err, "what became of 4 ambiguous submissions, and nothing was changed") ||
		b.stored() != 0 {
		t.Errorf("without --yes: %+v", asked)
	}
	got := b.reconcile(exitFailed, append(signing, "--yes")...)
	if got.Resolved != 4 || len(got.Left) != 0 || got.Ambiguous != 5 || !got.Changed {
		t.Errorf("got %+v, want Resolved %v, %d in Left, Ambiguous %v and Changed", got, 4, 0, 5)
	}
	for id, want := range map[string]string{
		"taken": "accepted new1 accepted taken ann", "named": "accepted  accepted taken ann",
		"failed": "refused  retry not_taken ann", "gone": "refused  retry not_taken ann",
		"one-of-two": "unknown  unknown final ", "late-clock": "unknown  unknown final ",
		"half": "unknown h1 unknown final ", "edge": "unknown  unknown final ",
	} {
		state := names(t, b.sql, fmt.Sprintf(`
			select concat_ws(' ', a.outcome, coalesce(a.provider_reference, ''), m.state, d.verdict, d.author)
			from audit.attempts a join audit.messages m on m.id = a.message_id
			join audit.ambiguous d on d.message_id = m.id where m.id = '%s'`, id))
		if !slices.Equal(state, []string{want}) {
			t.Errorf("%s: got %q, want %q", id, state, want)
		}
	}
	for _, d := range got.differences() {
		if strings.Contains(d, "taken") && strings.HasPrefix(d, "outcome taken") {
			t.Errorf("settled attempts still differ: %s", d)
		}
	}
	note := names(t, b.sql, `select note from audit.ambiguous where message_id = 'taken'`)
	if len(note) != 1 || !strings.HasPrefix(note[0], "invoice 4711; reconciled with file ") ||
		!strings.Contains(note[0], ", line 26") {
		t.Errorf("got note %q", note)
	}
	n := b.stored()
	again := b.reconcile(exitFailed, append(period, "--complete", "--reason", "again")...)
	if again.Resolved != 0 || again.Changed || b.stored() != n || len(again.Resolvable) != 0 {
		t.Errorf("the second time: %+v", again)
	}
	if diff := cmp.Diff(got.differences(), again.differences()); diff != "" {
		t.Error(diff)
	}
	if got := dispatcher(t, "", b.env, "audit", "invariants"); got.code != exitOK {
		t.Errorf("got %+v, want exit code %d", got, exitOK)
	}
}

// TestNothingIsProvedByAFileWithAHole: the file lacks one of our messages within an hour.
func TestNothingIsProvedByAFileWithAHole(t *testing.T) {
	t.Parallel()
	b := unknowns(t)
	b.lines = slices.DeleteFunc(b.lines, func(l string) bool { return strings.Contains(l, ",r15,") })
	got := b.reconcile(exitFailed, "--from", b.at(-1).Format(time.RFC3339), "--to",
		b.at(235).Format(time.RFC3339), "--complete", "--dry-run")
	if slices.Contains(got.proven(), "gone not_taken") || got.OursOnly != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestFinanceReconciles: a login of finance compares and signs off, and cannot change what it
// signed. It may not settle.
func TestFinanceReconciles(t *testing.T) {
	t.Parallel()
	b := unknowns(t)
	as := login(t, b.sql, b.url, migrations.RoleFinance)
	env := []string{"DISPATCHER_POSTGRES_URL=" + as, b.env[1]}
	own := b.reconcile(exitFailed, "--dry-run")
	theirs := decoded[reconciled](t, b.run(env, exitFailed, "--dry-run", "--format", "json"))
	if diff := cmp.Diff(own, theirs); diff != "" {
		t.Error(diff)
	}
	got := b.run(env, exitUsage, "--reason", "invoice 4711", "--author", "fay")
	if !strings.Contains(got.err, "what became of 3 ambiguous submissions, and this login may settle none") {
		t.Errorf("got %+v, want %q in the error",
			got, "what became of 3 ambiguous submissions, and this login may settle none")
	}
	if b.stored() != 0 {
		t.Error("a refused reconciliation is stored")
	}
	b.run(env, exitFailed, "--reason", "invoice 4711", "--author", "fay", "--leave-ambiguous")
	conn := opened(t, as)
	signed := names(t, conn, `select author || ' ' || reason || ' ' || login from audit.reconciliations`)
	if len(signed) != 1 || !strings.HasPrefix(signed[0], "fay invoice 4711 dispatcher_finance_of_") {
		t.Errorf("signed off: %q", signed)
	}
	if n := len(names(t, conn, `select kind from audit.reconciliation_differences`)); n == 0 {
		t.Error("finance can read no difference")
	}
	// Then an operator settles, which is another revision.
	app := []string{"DISPATCHER_POSTGRES_URL=" + login(t, b.sql, b.url, migrations.RoleApp), b.env[1]}
	after := decoded[reconciled](t, b.run(app, exitFailed, "--reason", "invoice 4711", "--author",
		"ann", "--yes", "--format", "json"))
	if after.Resolved != 3 || after.Signed.Revision != 2 {
		t.Errorf("got %+v, want Resolved %v and Signed.Revision %v", after, 3, 2)
	}
	admin := b.sql
	for _, role := range []string{migrations.RoleFinance, migrations.RoleAuditor, migrations.RoleApp} {
		conn := opened(t, login(t, admin, b.url, role))
		for _, view := range []string{
			"reconciliations", "reconciliation_totals", "reconciliation_differences",
		} {
			for _, sql := range []string{
				`delete from audit.%s`, `update audit.%s set currency = 'EUR'`,
				`delete from dispatcher.%s`, `truncate dispatcher.%s`, `insert into dispatcher.%s
				default values`,
			} {
				if view == "reconciliations" {
					sql = strings.Replace(sql, "currency = 'EUR'", "author = 'x'", 1)
				}
				if sql = fmt.Sprintf(sql, view); !denied(t, conn, sql) {
					t.Errorf("%s is allowed to %s", role, sql)
				}
			}
		}
		if !denied(t, conn, `insert into audit.reconciliations (login) values ('ann')`) {
			t.Errorf("%s may sign as another login", role)
		}
		for _, sql := range []string{
			`insert into audit.reconciliation_totals select id, 'XXX', 0, 9
				from audit.reconciliations limit 1`,
			`insert into audit.reconciliation_differences (reconciliation, kind, ours, theirs, currency)
				select id, 'theirs_only', '', '9', 'XXX' from audit.reconciliations limit 1`,
		} {
			if !denied(t, conn, sql) {
				t.Errorf("%s may add to what another has signed: %s", role, sql)
			}
		}
	}
}

// TestWhatReconcileRefuses: the error names the flag or the place in the file.
func TestWhatReconcileRefuses(t *testing.T) {
	t.Parallel()
	b := openBill(t, billed{id: "m", digits: "001", references: "r1", segments: 1})
	b.addLine(0, "r1", "001", "1", "0.028", "GBP", "sent")
	for want, args := range map[string][]string{
		"--reason is missing":                 {},
		"--yes settles, which":                {"--dry-run", "--yes"},
		"--from and --to go together":         {"--dry-run", "--from", "2026-11-01"},
		"--complete needs --from and --to":    {"--dry-run", "--complete"},
		"--to must be after --from":           {"--dry-run", "--from", "2026-11-02", "--to", "2026-11-01"},
		"--from: write a day such as":         {"--dry-run", "--from", "November", "--to", "2026-11-01"},
		`there is no preset "acme"`:           {"--dry-run", "--preset", "acme"},
		`"prize=x" is not a field with its`:   {"--dry-run", "--columns", "prize=x"},
		"is not a time zone":                  {"--dry-run", "--timezone", "Mars"},
		"bill.csv has no column for":          {"--dry-run", "--columns", "reference=id,time=", "--columns", "number="},
		"--tolerance must be between":         {"--dry-run", "--tolerance", "48h"},
		`bill.csv, line 2, column "segments"`: {"--dry-run", "--columns", "segments=currency"},
	} {
		if want == `bill.csv, line 2, column "segments"` {
			want = `bill.csv, line 2, column "currency": this is not a number of segments`
		}
		if got := b.run(b.env, exitUsage, args...); !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, not %q", args, got, want)
		}
	}
	got := dispatcher(t, "", b.env, "reconcile", "z", "--file", "x", "--dry-run")
	if got.code != exitUsage || !strings.Contains(got.err, `there is no channel "z"`) {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitUsage, `there is no channel "z"`)
	}
	if got := b.run(b.env[:1], exitUsage, "--dry-run"); !strings.Contains(got.err, "--without-keys") {
		t.Errorf("got %+v, want %q in the error", got, "--without-keys")
	}
	if got := b.run(b.env[:1], exitOK, "--dry-run", "--without-keys"); !strings.Contains(got.out,
		"1 attempt matched") {
		t.Errorf("got %+v, want %q in the output", got, "1 attempt matched")
	}
}

// TestAnUnverifiedPresetSaysSo below the first line, and in JSON.
func TestAnUnverifiedPresetSaysSo(t *testing.T) {
	t.Parallel()
	b := openBill(t, billed{id: "m", digits: "001", references: "r1", segments: 1})
	file := write(t, "logs.csv", "Message Id,To,Sent At,SMS Count\nr1,447700900001,"+
		b.at(0).Format(time.RFC3339)+",1\n")
	run := func(args ...string) string {
		got := dispatcher(t, "", b.env, append([]string{"reconcile", "c", "--file", file, "--dry-run"},
			args...)...)
		return got.out + got.err
	}
	if got := run("--preset", "infobip"); !strings.Contains(got, "1 attempt matched.\nThe preset "+
		"infobip is unverified: no document of the vendor lists the columns") {
		t.Errorf("got %s", got)
	}
	if got := run("--preset", "infobip", "--format", "json"); !strings.Contains(got,
		`"unverified": "infobip"`) {
		t.Errorf("got %s", got)
	}
	if got := run("--preset", "infobip", "--columns",
		"time=Sent At"); strings.Contains(got, "unverified") || !strings.Contains(got, "1 attempt matched") {
		t.Errorf("got %s", got)
	}
}
