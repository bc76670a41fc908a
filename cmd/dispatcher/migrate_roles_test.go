package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/parquet-go/parquet-go"
	"github.com/xuri/excelize/v2"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// login creates a login that is a member of a role, and returns its URL.
func login(t *testing.T, admin *pgx.Conn, address, role string) string {
	t.Helper()
	var name string // unique, because logins belong to the server, which other tests share
	if err := admin.QueryRow(t.Context(), `select $1 || '_of_' || current_database()`, role).
		Scan(&name); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), fmt.Sprintf(
		`drop role if exists %s; create role %[1]s login password 'secret' in role %s`, name,
		role)); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "secret")
	return u.String()
}

// opened returns a connection that is closed at the end of the test.
func opened(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// denied reports whether PostgreSQL refuses a statement for lack of a privilege, or because the
// view cannot be written.
func denied(t *testing.T, conn *pgx.Conn, sql string) bool {
	t.Helper()
	_, err := conn.Exec(t.Context(), `begin; `+sql+`; rollback`)
	if _, rolled := conn.Exec(t.Context(), `rollback`); rolled != nil {
		t.Fatal(rolled)
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if err != nil && (!ok || pg.Code != "42501" && pg.Code != "55000") {
		t.Errorf("%s: got error %v", sql, err)
	}
	return err != nil
}

// names returns one column of a query.
func names(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// privateWords occur in the numbers and texts of the database.
var privateWords = []string{"7700900", "Your code", "123456", "STOP please"}

// privateIn returns the first private word that occurs in a text.
func privateIn(text string) string {
	for _, word := range privateWords {
		if strings.Contains(text, word) {
			return word
		}
	}
	return ""
}

// fillRest puts numbers and texts into all other places where the ledger can have any, and a row
// into every other table, so that no view is empty.
func (o *auditDB) fillRest() {
	// the ids of a past day, that of a message with a number
	o.exec(`select dispatcher.make_day(dispatcher.day_at(now()) - 9)`)
	o.exec(`insert into dispatcher.messages (seq, id, lane, state, reason, detail, finished_at)
		values (dispatcher.first_of(dispatcher.day_at(now()) - 9) + 1, 'old', 'otp', 'dead',
		'bad_number', 'to is not a number', now())`)
	o.exec(`select dispatcher.index_ids(dispatcher.day_at(now()) - 9)`)
	o.exec(`insert into dispatcher.due (seq, next_at, lane, tenant, state)
		values (1, now() + interval '1 hour', 'otp', 'shop', 'scheduled')`)
	o.exec(`insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, until, closed_at,
		verdict, author, note) select message_seq, 'k', 1, 1, 'none', now(), now(), 'taken', 'ann',
		'+447700900123 has it' from dispatcher.all_attempts limit 1`)
	o.exec(`insert into dispatcher.receipts (channel, reference, message_seq, attempt, state,
		received_at) select channel, 'r', message_seq, attempt, 'delivered', now()
		from dispatcher.all_attempts where outcome = 'accepted' limit 1`)
	o.exec(`insert into dispatcher.limits (channel, scope, window_seconds, unit, configured_max, max,
		window_start) values ('c', 'channel', 60, 'messages', 9, 9, now())`)
	o.exec(`insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start,
		max, granted) values ('c', 'channel', 60, 'messages', now() - interval '1 hour', 9, 9)`)
	// A reference that the provider used again, for a later message.
	o.exec(`with r as (update dispatcher.attempts set provider_reference = 'again' where message_seq =
		(select min(message_seq) from dispatcher.all_attempts) returning channel)
		insert into dispatcher.receipts (channel, reference, message_seq, attempt)
		select channel, 'again', (select min(seq) from dispatcher.messages), 1 from r limit 1`)
	o.exec(`update dispatcher.receipts set message_seq = (select max(seq) from dispatcher.messages)
		where reference = 'again'`)
	o.exec(`insert into dispatcher.limit_restarts (channel, scope, window_seconds, unit, version,
		author, reason, was_start, was_granted, window_start, granted)
		values ('c', 'channel', 60, 'messages', 1, 'ann', 'clock', now(), 0, now() - interval '1 h', 0)`)
	o.exec(`insert into dispatcher.guard_trips (per, subject, action, hour, seen, usual, days, times,
		at_least) values ('tenant', 'shop', 'warn', now(), 9, 1, 7, 5, 5)`)
	o.exec(`insert into dispatcher.guard_counts (hour, digits, prefix, messages)
		values (now(), 4, '+4477', 1)`)
	o.exec(`insert into dispatcher.top_ups (channel, scope, currency, micros, before, granted, author,
		reason) values ('', 'tenant:shop', 'GBP', 5, 0, 0, 'ann', 'call +447700900123')`)
	o.exec(`with r as (insert into dispatcher.ramps (route, from_weights, to_weights, steps, every,
		author, changed_by, next_at) values ('default', '{}', '{}', 2, '1 hour', 'ann', 'ann', now())
		returning id)
		insert into dispatcher.ramp_moves (ramp, author, move, step, version, reason)
		select id, 'ann', 'started', 0, 0, 'more' from r`)
	o.exec(`with r as (insert into dispatcher.reconciliations (channel, file_digest, from_at, to_at,
		revision, complete, author, reason, lines, matched, ours_only, theirs_only, differences,
		ambiguous, resolved) values ('c', repeat('0', 64), now(), now(), 1, false, 'ann', 'November',
		0, 0, 0, 0, 0, 0, 0) returning id), t as (
		insert into dispatcher.reconciliation_totals select id, 'EUR', 0, 0 from r)
		insert into dispatcher.reconciliation_differences (reconciliation, kind, ours, theirs, currency)
		select id, 'theirs_only', '', '1', 'EUR' from r`)
	o.exec(`insert into dispatcher.open_claims (first_seq, instance, claimed_at, seqs, channels,
		  reasons, segments, prices, currencies)
		select n, 1, now(), array[n], '{c}', '{first_choice}', '{1}', '{1}', '{EUR}'
		from (select max(seq) + 1000 as n from dispatcher.messages) m`)
	o.exec(`insert into dispatcher.operator_actions (author, reason, action, subject)
		values ('ann', 'asked by +447700900123', 'cancel', 'old')`)
	o.exec(`insert into dispatcher.pending_cancellations (id, author, reason, via)
		values ('to-come', 'ann', 'asked by +447700900123', 'command')`)
	for _, figures := range []string{"choice", "attempt", "carried"} {
		o.exec(`insert into dispatcher.` + figures + `_figures
			select (jsonb_populate_record(null::dispatcher.` + figures + `_figures,
			  jsonb_object_agg(attname, case when atttypid = 'text'::regtype then '"x"'::jsonb
			    when atttypid in ('date'::regtype, 'timestamptz'::regtype) then '"2020-01-01"'::jsonb
			    else '1'::jsonb end))).*
			from pg_attribute
			where attrelid = 'dispatcher.` + figures + `_figures'::regclass and attnum > 0`)
	}
	o.exec(`insert into dispatcher.closings (day, revision, zone, from_at, to_at, changes, at)
		values ('2020-01-01', 1, 'UTC', '2020-01-01', '2020-01-02', 3, now() - interval '2 hours')`)
	o.exec(`update dispatcher.choice_sums set messages = 2`) // for facts.wrong_sums
	o.exec(`insert into dispatcher.opt_outs (tenant, recipient, source, reason)
		values ('shop', dispatcher.recipient('shop', '+447700900123'), 'command',
		  'wrote from +447700900123: STOP please')`)
	o.exec(`insert into dispatcher.inbound_parts (id, channel, sender, recipient, grp, parts, part,
		body, received_at) values ('p', 'c', '+447700900123', '12345', 1, 2, 1, 'STOP please', now())`)
	o.exec(`insert into dispatcher.inbound_outbox (keys, "values") values
		('{+447700900123}', array[convert_to('STOP please', 'UTF8')])`)
	o.exec(`insert into dispatcher.erasures (author, reason, number_hmac)
		values ('ann', 'letter from +447700900123', 1)`)
	o.exec(`insert into dispatcher.outbox (kind, keys, "values") values
		('dead', '{x}', array[convert_to('{"to":"+447700900123","text":"Your code"}', 'UTF8')])`)
	o.exec(`insert into dispatcher.seals (number, from_at, to_at, at, again, size, leaves, nodes,
		checkpoint) values (1, now() - interval '1 hour', now(), now(), false, 0, '', '', '')`)
}

// financeCommands are the commands that finance and auditors use.
func financeCommands(invoice string) [][]string {
	return [][]string{
		{"report", "daily"},
		{"report", "daily", "--format", "json"},
		{"report", "contracts"},
		{"report", "weekly"},
		{"report", tier.Size("weekly", "monthly"), "--by", "country,sender", "--wide"},
		{"report", "daily", "--from", "2020-01-01", "--to", "2020-01-02"},
		{"report", "daily", "--by", "hour,tenant,reason,route,channel", "--waterfall"},
		{"report", "daily", "--by", "tenant", "--format", "json"},
		{"report", "daily", "--by", "tenant", "--format", "csv"},
		{"report", "daily", "--by", "tenant", "--format", "xlsx"},
		{"report", "daily", "--by", "tenant", "--format", "parquet"},
		{"report", "daily", "--by", "tenant", "--format", "html"},
		{"reconcile", "c", "--file", invoice, "--dry-run"},
		{"reconcile", "c", "--file", invoice, "--dry-run", "--format", "json"},
		{"explain", "v1-000001"},
		{"explain", "old"},
		{"dead", "list"},
		{"dead", "show", "old"},
		{"explain", "v2-000007", "--format", "json"},
		{"audit", "verify"},
		{"audit", "verify", "--sample", "10", "--format", "json"},
		{"audit", "verify", "--without-keys"},
	}
}

// TestFinanceSeesNoNumberAndNoText: with the login of finance or of an auditor, no readable
// relation and no command shows a number or a text, and every command of finance works.
func TestFinanceSeesNoNumberAndNoText(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 50)
	address := strings.TrimPrefix(o.env[0], "DISPATCHER_POSTGRES_URL=")
	own := dispatcher(t, "", o.env, "report", "daily", "--format", "json").out
	o.fillRest()
	invoice := write(t, "invoice.csv", strings.Join(append(
		[]string{"time,reference,number,segments,price,currency,status"},
		names(t, o.sql, `select concat_ws(',', to_char(claimed_at at time zone 'UTC',
		  'YYYY-MM-DD HH24:MI:SS'), provider_reference, '447700900123', segments, '0.01', currency,
		  'sent') from audit.attempts where channel = 'c' and outcome = 'accepted'`)...), "\n"))
	var finance []string
	saltIn := regexp.MustCompile(strings.Join(names(t, o.sql,
		`select encode(salt, 'hex') from dispatcher.payloads where salt is not null`), "|"))
	if len(saltIn.String()) < 100*32 {
		t.Fatalf("there are few salts: %s", saltIn)
	}
	for _, role := range []string{migrations.RoleFinance, migrations.RoleAuditor} {
		folder := t.TempDir()
		as := login(t, o.sql, address, role)
		conn := opened(t, as)
		views := readable(t, conn)
		want := 52
		if role == migrations.RoleAuditor {
			want++ // audit.draw_keys
		}
		if len(views) != want {
			t.Errorf("%s can read %d relations, want %d: %v", role, len(views), want, views)
		}
		rows := 0
		for _, view := range views {
			shown := names(t, conn, `select v::text from `+view+` v`)
			if len(shown) == 0 {
				t.Errorf("%s is empty: the test proves nothing about it", view)
			}
			rows += len(shown)
			for _, row := range shown {
				if word := privateIn(row); word != "" {
					t.Errorf("%s shows %q to %s", view, word, role)
				}
				if hex := saltIn.FindString(row); hex != "" {
					t.Errorf("%s shows the salt %s to %s", view, hex, role)
				}
			}
		}
		if rows < 300 {
			t.Errorf("only %d rows were read", rows)
		}
		env := slices.Concat(o.env[1:], []string{"DISPATCHER_POSTGRES_URL=" + as})
		commands := financeCommands(invoice)
		if role == migrations.RoleAuditor { // who reads the same views
			commands = tier.Sample(commands, 5)
		}
		for _, args := range append(commands, []string{
			"report", "publish", "--url", folder, "--files", strings.Join(fileFormats, ","),
		}) {
			got := dispatcher(t, "", env, args...)
			// A report and a reconciliation exit with 1 when they found something.
			finds := got.code == exitFailed && (args[0] == "report" || args[0] == "reconcile")
			if got.code != exitOK && !finds || got.err != "" || got.out == "" ||
				privateIn(plain(t, got.out)) != "" {
				t.Errorf("%s of %s: %+v", args, role, got)
			}
		}
		if got := dispatcher(t, "", env, "audit", "invariants"); got.code != exitUsage ||
			!strings.Contains(got.err, "with a login of dispatcher_app") {
			t.Errorf("invariants of %s: %+v", role, got)
		}
		if got := dispatcher(t, "", env, "report", "close", "--day", "2020-01-01"); got.code != exitUsage ||
			got.out != "" || !strings.Contains(got.err, "lacks a right") || privateIn(got.err) != "" {
			t.Errorf("a day is closed by %s: %+v", role, got)
		}
		for _, as := range fileFormats {
			name := filepath.Join(folder, "own."+as)
			got := dispatcher(t, "", env, "report", tier.Size("daily", "weekly"), "--by", "tenant,sender",
				"--output", name)
			text, err := os.ReadFile(name)
			if err != nil || got.code == exitUsage || got.err != "" || len(text) == 0 ||
				privateIn(plain(t, string(text))) != "" {
				t.Errorf("written by %s as %s: %+v, %v", role, as, got, err)
			}
		}
		for _, as := range fileFormats {
			file, err := os.ReadFile(filepath.Join(folder, "daily", "2020-01-01."+as))
			if err != nil || len(file) == 0 || privateIn(plain(t, string(file))) != "" {
				t.Errorf("published by %s as %s: %v, %d bytes", role, as, err, len(file))
			}
		}
		sameReport(t, own, env)
		hidden := decoded[verification](t, dispatcher(t, "", env, "audit", "verify", "--format",
			"json"))
		if hidden.Checked != 100 || hidden.Mismatched != 0 ||
			hidden.WithoutPayload.Hidden != 100 {
			t.Errorf("verified by %s: %+v", role, hidden)
		}
		text := dispatcher(t, "", env, "explain", "v1-000001").out
		if !strings.Contains(text, "This login may not read its number (one of +44) and its text.") {
			t.Errorf("explain says to %s: %s", role, text)
		}
		finance = env
	}
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.ledger.Reports.Close(t.Context(), ledger.NewBusinessDay(time.Now(), zone), nil); err != nil {
		t.Fatal(err)
	}
	sameReport(t, dispatcher(t, "", o.env, "report", "daily", "--format", "json").out, finance)
}

// TestFinanceProvesWithoutNumbersAndTexts: what a proof prints shows neither.
func TestFinanceProvesWithoutNumbersAndTexts(t *testing.T) {
	t.Parallel()
	o, keyFile, seals := sealedAuditDB(t, 10)
	day := seals[len(seals)-1]
	o.closed(day)
	o.exec(`update dispatcher.closings set at = at - interval '40 minutes'`)
	addSeals(t, o, keyFile)
	address := strings.TrimPrefix(o.env[0], "DISPATCHER_POSTGRES_URL=")
	for _, role := range []string{migrations.RoleFinance, migrations.RoleAuditor} {
		env := []string{"DISPATCHER_POSTGRES_URL=" + login(t, o.sql, address, role)}
		for _, of := range [][]string{{"v1-000003"}, {"--day", day}} {
			for _, as := range []string{"table", "json", "csv"} {
				args := append([]string{"audit", "proof", "--format", as}, of...)
				got := dispatcher(t, "", env, args...)
				if got.code != exitOK || got.err != "" || got.out == "" || privateIn(got.out) != "" {
					t.Errorf("%v of %s: %+v", args, role, got)
				}
			}
		}
	}
}

// plain is what can be read in a file: the cells of a workbook and the rows of Parquet, which are
// compressed, and anything else as it is.
func plain(t *testing.T, file string) string {
	t.Helper()
	switch {
	case strings.HasPrefix(file, "PK"):
		book, err := excelize.OpenReader(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		var all [][][]string
		for _, sheet := range book.GetSheetList() {
			rows, err := book.GetRows(sheet)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, rows)
		}
		return fmt.Sprint(all)
	case strings.HasPrefix(file, "PAR1"):
		rows, err := parquet.Read[rangeRecord](strings.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v", rows)
	}
	return file
}

// TestOperatorsSeeTheirNotes, which finance and auditors do not: their columns are empty for them.
func TestOperatorsSeeTheirNotes(t *testing.T) {
	t.Parallel()
	o := filledAuditDB(t, 1)
	address := strings.TrimPrefix(o.env[0], "DISPATCHER_POSTGRES_URL=")
	o.fillRest()
	for role, want := range map[string]string{
		migrations.RoleApp: "+447700900123 has it", migrations.RoleFinance: "",
		migrations.RoleAuditor: "",
	} {
		conn := opened(t, login(t, o.sql, address, role))
		for _, view := range []string{"audit.ambiguous", "facts.ambiguous"} {
			got := names(t, conn, `select note from `+view+` where author = 'ann'`)
			if len(got) != 1 || got[0] != want {
				t.Errorf("%s shows the notes %q to %s, want %q", view, got, role, want)
			}
		}
	}
}

// sameReport compares the daily report of a login with the owner's.
func sameReport(t *testing.T, own string, env []string) {
	t.Helper()
	want := decoded[report.Daily](t, result{out: own})
	got := decoded[report.Daily](t, dispatcher(t, "", env, "report", "daily", "--format", "json"))
	// Versions are in force for longer with each report of a day that is not over.
	inForce := cmp.Options{
		cmpopts.IgnoreFields(report.VersionShare{}, "InForceSeconds"),
		cmpopts.IgnoreFields(report.TimeShare{}, "Share"),
		cmpopts.IgnoreFields(report.DailyRow{}, "AgreedShareByTime"),
		cmpopts.IgnoreSliceElements(func(sentence string) bool {
			return strings.Contains(sentence, " in force")
		}),
	}
	if diff := cmp.Diff(want, got, inForce); diff != "" || len(got.Rows) == 0 {
		t.Errorf("the report differs, or is empty: %s", diff)
	}
}

// readable returns the relations that a login can read, without the catalogs.
func readable(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	return names(t, conn, `
		select format('%I.%I', n.nspname, c.relname) from pg_class c
		join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname <> 'information_schema'
		  and not starts_with(n.nspname, 'pg_') and has_schema_privilege(n.oid, 'usage')
		  and (has_table_privilege(c.oid, 'select') or has_any_column_privilege(c.oid, 'select'))
		order by 1`)
}

// TestFinanceTouchesNoTable: for a login of finance or of an auditor everything except reading the
// views is refused.
func TestFinanceTouchesNoTable(t *testing.T) {
	t.Parallel()
	address := ledgertest.Fresh(t)
	admin := opened(t, address)
	for _, role := range []string{migrations.RoleFinance, migrations.RoleAuditor} {
		conn := opened(t, login(t, admin, address, role))
		for _, one := range names(t, admin, `
			select format('%I.%I', schemaname, tablename) from pg_tables
			where schemaname = 'dispatcher'
			union all select 'dispatcher.message_states'`) {
			for _, sql := range []string{
				`select 1 from %s`, `delete from %s`, `truncate %s`, `drop table %s`,
				`lock table %s in access share mode`,
			} {
				if sql = fmt.Sprintf(sql, one); !denied(t, conn, sql) {
					t.Errorf("%s is allowed to %s", role, sql)
				}
			}
		}
		for _, view := range readable(t, conn) {
			for _, sql := range []string{
				`delete from %s`, `insert into %s default values`, `drop view %s`,
				`create or replace view %s as select 1`,
			} {
				if strings.HasPrefix(sql, "insert") && strings.HasPrefix(view, "audit.reconciliation") {
					continue // see TestFinanceReconciles
				}
				if sql = fmt.Sprintf(sql, view); !denied(t, conn, sql) {
					t.Errorf("%s is allowed to %s", role, sql)
				}
			}
		}
		for _, sql := range []string{
			`select dispatcher.make_days(3)`, `select dispatcher.seq_of('x')`,
			`select dispatcher.drop_day('messages', 1)`, `select dispatcher.number_of('')`,
			`select nextval('dispatcher.message_numbers')`,
			`create table public.mine ()`, `create table audit.mine ()`, `create schema mine`,
			`set role dispatcher_owner`, `set role dispatcher_app`,
		} {
			if !denied(t, conn, sql) {
				t.Errorf("%s is allowed to %s", role, sql)
			}
		}
	}
	if conn := opened(t, login(t, admin, address, migrations.RoleFinance)); !denied(t, conn,
		`select from audit.draw_keys`) {
		t.Error("finance sees the ids of draw keys with their times")
	}
}

// changesOfHistory are statements that would change what happened, or the tables that hold it. $day
// is a day.
var changesOfHistory = []string{
	`update dispatcher.routing_versions set document = 'x'`,
	`update dispatcher.routing_versions set author = 'x'`,
	`update dispatcher.routing_versions set reason = 'x'`,
	`update dispatcher.routing_versions set created_at = now()`,
	`update dispatcher.routing_versions set effects = null`,
	`delete from dispatcher.routing_versions`,
	`truncate dispatcher.routing_versions`,
	`update dispatcher.limit_history set granted = 0`,
	`update dispatcher.limit_history set max = 1`,
	`update dispatcher.limit_history set window_start = now()`,
	`update dispatcher.closings set changes = 0`,
	`delete from dispatcher.closings`,
	`update dispatcher.attempt_figures set cost_micros = 0`,
	`delete from dispatcher.attempt_figures`,
	`update dispatcher.choice_figures set messages = 0`,
	`delete from dispatcher.carried_figures`,
	`insert into dispatcher.attempt_sums select * from dispatcher.attempt_sums`,
	`update dispatcher.choice_sums set messages = 0`,
	`delete from dispatcher.carried_sums`,
	`create temp table t (day date, revision int); create trigger x after insert on t
		for each row execute function dispatcher.store_sums(); insert into t values (current_date, 1)`,
	`update dispatcher.reconciliations set author = 'x'`,
	`delete from dispatcher.reconciliations`,
	`update dispatcher.reconciliation_totals set theirs_micros = 0`,
	`delete from dispatcher.reconciliation_differences`,
	`update dispatcher.limit_restarts set author = 'x'`,
	`delete from dispatcher.limit_restarts`,
	`update dispatcher.guard_trips set version = null`,
	`delete from dispatcher.guard_trips`,
	`update dispatcher.top_ups set micros = 1`,
	`delete from dispatcher.top_ups`,
	`update dispatcher.ramp_moves set author = 'x'`,
	`delete from dispatcher.ramp_moves`,
	`update dispatcher.ramps set author = 'x'`,
	`delete from dispatcher.ramps`,
	`update dispatcher.operator_actions set author = 'x'`,
	`delete from dispatcher.operator_actions`,
	// rows that would not be in the log of hashes
	`insert into dispatcher.operator_actions (author, reason, action, subject, evidence)
		values ('ann', 'asked', 'cancel', 'm', 0)`,
	`insert into dispatcher.operator_actions (author, reason, action, subject, at)
		values ('ann', 'asked', 'cancel', 'm', '2020-01-01')`,
	`insert into dispatcher.opt_outs (tenant, recipient, source, since)
		values ('shop', 2, 'command', '2020-01-01')`,
	`insert into dispatcher.top_ups (channel, scope, currency, micros, before, granted, author, reason,
		at) values ('', 'tenant:shop', 'GBP', 5, 0, 0, 'ann', 'paid', '2020-01-01')`,
	`update dispatcher.api_requests set principal = 'x'`,
	`update dispatcher.routing_versions set login = 'x'`,
	`update dispatcher.erasures set number_hmac = 0`,
	`update dispatcher.erasures set author = 'x'`,
	`update dispatcher.erasures set at = now()`,
	`delete from dispatcher.erasures`,
	`update dispatcher.opt_outs set since = since - interval '1 hour'`,
	`update dispatcher.opt_outs set recipient = 0`,
	`delete from dispatcher.opt_outs`,
	`update dispatcher.opt_outs set until = null, ended_by = null`,
	`update dispatcher.erasures set messages = 0`,
	`delete from dispatcher.receipts`,
	`truncate dispatcher.receipts`,
	`update dispatcher.receipts set code = 'x'`,
	`update dispatcher.receipts set state = 'undelivered'`,
	`update dispatcher.receipts set received_at = now()`,
	`update dispatcher.receipts set message_seq = 2, state = 'expected', received_at = null,
		due_at = now()`,
	`select dispatcher.drop_references('receipts', 0)`,
	`insert into dispatcher.past_receipts select from dispatcher.past_receipts`,
	`update dispatcher.past_receipts set state = 'delivered'`,
	`delete from dispatcher.past_receipts`,
	`select dispatcher.move_receipts(dispatcher.day_at(now()), 0)`,
	`update dispatcher.days set receipts_move = false`,
	`insert into dispatcher.reused_references values (1, 2)`,
	`delete from dispatcher.reused_references`,
	`delete from dispatcher.ambiguous`,
	`truncate dispatcher.ambiguous`,
	`update dispatcher.ambiguous set verdict = 'not_taken', closed_at = now()`,
	`update dispatcher.ambiguous set verdict = null, closed_at = null, next_at = now()`,
	`select dispatcher.drop_references('ambiguous', 0)`,
	`delete from dispatcher.limit_history`,
	`truncate dispatcher.limit_history`,
	`delete from dispatcher.guard_counts`,
	`update dispatcher.guard_counts set messages = 0`,
	`delete from dispatcher.api_requests`,
	`update dispatcher.api_requests set status = 500`,
	`update dispatcher.messages set id = 'x'`,
	`update dispatcher.messages set received_at = now()`,
	`update dispatcher.messages set tenant = 'x'`,
	`update dispatcher.messages set number_hmac = 0`,
	`update dispatcher.messages set kafka_offset = 0`,
	`delete from dispatcher.messages`,
	`delete from dispatcher.messages_$day`,
	`update dispatcher.messages_$day set lane = 'x'`,
	`truncate dispatcher.messages_$day`,
	`update dispatcher.attempts set channel = 'x'`,
	`update dispatcher.open_claims set channels = '{x}'`,
	`update dispatcher.attempts set claimed_at = now()`,
	`update dispatcher.attempts set reason = 'retry'`,
	`update dispatcher.attempts set currency = 'EUR'`,
	`update dispatcher.attempts set ranking = null`,
	`update dispatcher.attempts set instance = 0`,
	`delete from dispatcher.attempts`,
	`update dispatcher.attempts_$day set channel = 'x'`,
	`delete from dispatcher.attempts_$day`,
	`update dispatcher.payloads set envelope = ''`,
	`update dispatcher.payloads_$day set envelope = ''`,
	`update dispatcher.ids_0 set seq = 0`,
	`delete from dispatcher.past_ids`,
	`delete from dispatcher.days`,
	`update dispatcher.days set day = day + 1000`,
	`update dispatcher.least_kept set facts = '1 day'`,
	`delete from dispatcher.schema_migrations`,
	`update dispatcher.schema_version set version = 99`,

	`create table dispatcher.mine ()`, `create table audit.mine ()`, `create table public.mine ()`,
	`create view audit.mine as select 1`, `create schema mine`,
	`create function dispatcher.mine() returns int language sql return 1`,
	`alter table dispatcher.messages add mine text`,
	`alter table dispatcher.messages disable trigger all`,
	`alter table dispatcher.limits drop constraint limits_granted`,
	`drop table dispatcher.messages_$day`, `drop table dispatcher.limit_history cascade`,
	`drop view audit.messages`, `drop schema audit cascade`,
	`alter table dispatcher.messages detach partition dispatcher.messages_$day`,
	`create index on dispatcher.messages (id)`, `create trigger mine after insert on
		dispatcher.messages execute function dispatcher.refuse_transition()`,
	`select dispatcher.make_day(1)`,
	`select dispatcher.copy_grants('dispatcher.messages', 'dispatcher.messages_$day')`,
	`select dispatcher.sample_less('dispatcher.messages_$day')`,
	`update dispatcher.days set dropping = true;
		select dispatcher.drop_day('messages', dispatcher.day_at(now()))`,
	`select dispatcher.drop_day('messages', dispatcher.day_at(now()) - 1)`,
	`set role dispatcher_owner`, `set session_replication_role = replica`,
}

// someHistory are rows that triggers keep: without rows nothing is refused.
const someHistory = `
	insert into dispatcher.receipts (channel, reference, message_seq, attempt, part, state,
	  received_at) values ('a', 'r', 1, 1, 1, 'delivered', now() - interval '1 hour');
	insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, until, closed_at,
	  verdict) values (1, 'k', 1, 1, 'none', now(), now() - interval '1 hour', 'taken');
	insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start, max,
	  granted) values ('a', 'channel', 60, 'messages', now() - interval '1 hour', 1, 1);
	insert into dispatcher.guard_counts values (now(), 4, '+447', 5);
	insert into dispatcher.api_requests (principal, key, digest, status) values ('p', 'k', '', 200);
	insert into dispatcher.opt_outs (tenant, recipient, source, since, until, ended_by)
	  values ('shop', 1, 'command', now() - interval '1 hour', now(), 'command');
	insert into dispatcher.erasures (author, reason, number_hmac, messages)
	  values ('ann', 'asked', 1, 5)`

// TestTheDispatchersLoginCannotChangeHistory: nor can it change the schema. The tests of package
// ledger show that it can do all that the dispatcher does.
func TestTheDispatchersLoginCannotChangeHistory(t *testing.T) {
	t.Parallel()
	address := ledgertest.Fresh(t)
	admin := opened(t, address)
	conn := opened(t, login(t, admin, address, migrations.RoleApp))
	day := names(t, admin, `select to_char(current_date at time zone 'UTC', 'YYYYMMDD')`)[0]
	if _, err := admin.Exec(t.Context(), someHistory); err != nil {
		t.Fatal(err)
	}
	for _, sql := range changesOfHistory {
		sql = strings.ReplaceAll(sql, "$day", day)
		if !denied(t, conn, sql) {
			t.Errorf("the login is allowed to %s", sql)
		}
		if _, err := admin.Exec(t.Context(), `begin; `+sql+`; rollback`); err != nil {
			if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" {
				t.Errorf("no login is allowed to %s: %v", sql, err)
			}
		}
		if _, err := admin.Exec(t.Context(), `rollback`); err != nil {
			t.Fatal(err)
		}
	}
	// A row without evidence, or from a time that is sealed, is not in the log of hashes.
	if chosen := names(t, admin, `
		select c.oid::regclass || ' ' || a.attname
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
		where c.relnamespace = 'dispatcher'::regnamespace and c.relkind = 'r'
		  and exists (select from pg_attribute e where e.attrelid = c.oid and e.attname = 'evidence')
		  and a.attname in ('evidence', 'ended_evidence', 'at', 'since', 'restarted_at', 'login')
		  and has_column_privilege('dispatcher_app', c.oid, a.attnum, 'insert, update')`); len(chosen) > 0 {
		t.Errorf("the login chooses %v", chosen)
	}
	if open := names(t, admin, `select oid::regprocedure::text from pg_proc
		where pronamespace = 'dispatcher'::regnamespace and prosecdef
		  and has_function_privilege('public', oid, 'execute')`); len(open) > 0 {
		t.Errorf("every login may run with the owner's rights: %v", open)
	}
	for _, sql := range []string{
		`select dispatcher.make_days(2)`, `select from dispatcher.payloads`,
		`insert into dispatcher.due (seq, next_at, lane, tenant, state)
			values (1, now(), 'otp', '', 'waiting')`,
	} {
		if denied(t, conn, sql) {
			t.Errorf("the login is not allowed to %s", sql)
		}
	}
}

// TestRolesAreGrantedOnce: also on objects of later migrations. The printed statements are those
// that are executed.
func TestRolesAreGrantedOnce(t *testing.T) {
	t.Parallel()
	address := ledgertest.Empty(t)
	env := []string{"DISPATCHER_POSTGRES_URL=" + address}
	grant := func() rolesGranted {
		return decoded[rolesGranted](t, dispatcher(t, "", env, "migrate", "--roles", "--format",
			"json"))
	}
	// Another session uses a table whose owner is to change.
	if err := migrations.Migrate(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	busy := opened(t, address)
	if _, err := busy.Exec(t.Context(), `begin; select from dispatcher.limits`); err != nil {
		t.Fatal(err)
	}
	if got := dispatcher(t, "", env, "migrate", "--roles"); got.code != exitUsage ||
		!strings.Contains(got.err, "nothing was changed, so try again") {
		t.Errorf("while a table is in use: %+v", got)
	}
	if _, err := busy.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if got := grant(); !got.Changed || !got.Schema.UpTo || len(got.Roles) != 4 ||
		got.LeastKeptDays != 400 {
		t.Errorf("the first time: %+v", got)
	}
	if got := grant(); got.Changed {
		t.Errorf("the second time: %+v", got)
	}
	admin := opened(t, address)
	if _, err := admin.Exec(t.Context(), `create view audit.later as select 1 as one;
		grant delete on dispatcher.messages to dispatcher_app`); err != nil {
		t.Fatal(err)
	}
	finance := opened(t, login(t, admin, address, migrations.RoleFinance))
	app := opened(t, login(t, admin, address, migrations.RoleApp))
	if !denied(t, finance, `select from audit.later`) {
		t.Error("finance can read a view that was not granted")
	}
	if got := grant(); !got.Changed {
		t.Errorf("with a new view: %+v", got)
	}
	if denied(t, finance, `select from audit.later`) {
		t.Error("finance may not read the new view")
	}
	if !denied(t, app, `delete from dispatcher.messages`) {
		t.Error("a privilege that was granted by hand is left")
	}
	printed := dispatcher(t, "", nil, "migrate", "--roles", "--print")
	if _, err := admin.Exec(t.Context(), printed.out); err != nil {
		t.Errorf("%v in %s", err, printed.out)
	}
	if got := grant(); got.Changed {
		t.Errorf("after the printed statements: %+v", got)
	}
	table := dispatcher(t, "", env, "migrate", "--roles")
	if table.code != exitOK || !strings.HasPrefix(table.out, "Everything was granted already. ") {
		t.Errorf("got %+v, want exit code %d and output that begins with %q",
			table, exitOK, "Everything was granted already. ")
	}
	got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" +
		login(t, admin, address, migrations.RoleFinance)}, "migrate", "--roles")
	if got.code != exitUsage || !strings.Contains(got.err, "lacks a right") {
		t.Errorf("by finance: %+v", got)
	}
	got = dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" +
		login(t, admin, address, migrations.RoleApp)}, "migrate", "--roles")
	if got.code != exitUsage || !strings.Contains(got.err, "--print | psql") {
		t.Errorf("by the dispatcher: %+v", got)
	}
}

// TestRolesAreGrantedByAnAdministratorWhoIsNoSuperuser: the administrator owns the database and may
// create roles. Objects of a later migration belong to the owner role, whichever member runs the
// migration, and a dispatcher runs with a login of its own.
func TestRolesAreGrantedByAnAdministratorWhoIsNoSuperuser(t *testing.T) {
	t.Parallel()
	server := ledgertest.Server(t, nil)
	super := opened(t, server.URL())
	// The administrator creates the roles, and may grant no others: those of the template go first.
	templates := names(t, super, `select datname::text from pg_database
		where starts_with(datname, 'ledger_template_')`)
	for _, sql := range []string{
		`drop database ` + strings.Join(templates, ""),
		`drop role dispatcher_owner, dispatcher_app, dispatcher_finance, dispatcher_auditor`,
		`create role admin login createrole password 'secret'`,
		`create database sms owner admin`,
	} {
		if _, err := super.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(server.URLOf("sms"))
	if err != nil {
		t.Fatal(err)
	}
	as := func(user string) []string {
		u.User = url.UserPassword(user, "secret")
		return []string{"DISPATCHER_POSTGRES_URL=" + u.String()}
	}
	for _, want := range []bool{true, false} {
		got := dispatcher(t, "", as("admin"), "migrate", "--roles", "--format", "json")
		if got.code != exitOK || decoded[rolesGranted](t, got).Changed != want {
			t.Fatalf("changed, not %v: %+v", want, got)
		}
	}
	u.User = url.UserPassword("admin", "secret")
	admin := opened(t, u.String())
	for _, sql := range []string{
		`create role deploy login password 'secret' in role dispatcher_owner`,
		`create role app login password 'secret' in role dispatcher_app`,
		// as if the migrations from 12 on had not been applied
		`drop table dispatcher.seals, dispatcher.guard_counts, dispatcher.freed_slots,
			dispatcher.pending_cancellations, dispatcher.choice_sums, dispatcher.attempt_sums,
			dispatcher.carried_sums, dispatcher.past_receipts, dispatcher.reused_references,
			dispatcher.open_claims cascade`,
		`drop function dispatcher.micros, dispatcher.half_hash, dispatcher.count_freed,
			dispatcher.refuse_change, dispatcher.refuse_resettling,
			dispatcher.refuse_addition, dispatcher.store_sums, dispatcher.legal_receipt,
			dispatcher.legal_ambiguity, dispatcher.refuse_takeover, dispatcher.window_kept,
			dispatcher.drop_references, dispatcher.drop_early_receipts,
			dispatcher.drop_denied_receipts, dispatcher.move_receipts, dispatcher.note_reuse,
			dispatcher.clean_payloads, dispatcher.sample_less, dispatcher.keep_instance,
			dispatcher.store_for_old_instance, dispatcher.store_open_claims cascade`,
		`drop index dispatcher.operator_actions_cancelled`,
		`alter table dispatcher.instances drop column key_id, drop column reads_open_claims`,
		`alter table dispatcher.days drop column counts_from`,
		`alter table dispatcher.channels drop column freed cascade`,
		`drop index dispatcher.ambiguous_by_people`,
		`alter table dispatcher.messages drop column send_at`,
		`alter table dispatcher.due drop column send_at`,
		`alter table dispatcher.routing_versions drop column via cascade`,
		`alter table dispatcher.ramp_moves drop column via cascade`,
		`alter table dispatcher.limit_restarts drop column via cascade`,
		`alter table dispatcher.top_ups drop column via cascade`,
		`alter table dispatcher.operator_actions drop column via cascade`,
		`alter table dispatcher.ambiguous drop column via cascade`,
		`alter table dispatcher.operator_actions drop column evidence cascade`,
		`alter table dispatcher.ramp_moves drop column evidence cascade`,
		`alter table dispatcher.limit_restarts drop column evidence cascade`,
		`alter table dispatcher.guard_trips drop column evidence cascade`,
		`alter table dispatcher.erasures drop column evidence cascade`,
		`alter table dispatcher.opt_outs drop column evidence cascade`,
		`alter table dispatcher.opt_outs drop column ended_evidence cascade`,
		`drop view dispatcher.sums_of_choice_figures, dispatcher.sums_of_attempt_figures,
			dispatcher.sums_of_carried_figures`,
		`drop view if exists facts.pending_cancellations, facts.migrations, facts.window_evidence,
			facts.reused_references, facts.payload_evidence, facts.stored_attempts`,
		`alter table dispatcher.payloads drop column salt`,
		`alter table dispatcher.days drop column receipts_move, drop column receipts_looked_at`,
		`grant delete on dispatcher.receipts, dispatcher.ambiguous to dispatcher_app`,
		`delete from dispatcher.schema_migrations where version >= 12`,
		`update dispatcher.schema_version set version = 11`,
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if got := dispatcher(t, "", as("app"), "migrate"); got.code != exitUsage ||
		!strings.Contains(got.err, "lacks a right") {
		t.Errorf("the dispatcher migrates: %+v", got)
	}
	if got := dispatcher(t, "", as("deploy"), "migrate"); got.code != exitOK {
		t.Errorf("got %+v, want exit code %d", got, exitOK)
	}
	if owners := names(t, admin, `select distinct relowner::regrole::text from pg_class
		where relnamespace in ('dispatcher'::regnamespace, 'audit'::regnamespace)`); !slices.Equal(
		owners, []string{"dispatcher_owner"}) {
		t.Errorf("the tables belong to %v", owners)
	}
	u.User = url.UserPassword("app", "secret")
	app := opened(t, u.String())
	for _, sql := range []string{
		`select dispatcher.drop_early_receipts('2 days')`, // called by the instances of this release
		`delete from dispatcher.receipts`,                 // sent by those of the release before
	} {
		if denied(t, app, sql) {
			t.Errorf("before the roles are granted again the login is not allowed to %s", sql)
		}
	}
	if got := dispatcher(t, "", as("admin"), "migrate", "--roles", "--format",
		"json"); got.code != exitOK || !decoded[rolesGranted](t, got).Changed {
		t.Errorf("after a migration: %+v", got)
	}
	if denied(t, app, `select dispatcher.make_days(2)`) ||
		!denied(t, app, `delete from dispatcher.closings`) {
		t.Error("the privileges have changed")
	}
}
