package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// receiptRow is a row of receipts with what decides whether it may become another one. Zero values
// stand for null.
type receiptRow struct {
	seq, attempt, part int
	state, cause, code string
	at, due            int
}

func (r *receiptRow) json(t testing.TB) string {
	t.Helper()
	null := func(set bool, v any) any {
		if !set {
			return nil
		}
		return v
	}
	text, err := json.Marshal(map[string]any{
		"channel": "a", "reference": "r", "state": r.state,
		"message_seq": null(r.seq > 0, r.seq), "attempt": null(r.seq > 0, r.attempt),
		"part": null(r.part > 0, r.part), "cause": null(r.cause != "", r.cause),
		"code":        null(r.code != "", r.code),
		"received_at": null(r.at > 0, fmt.Sprintf("2026-11-%02dT10:00:00Z", r.at)),
		"due_at":      null(r.due > 0, "2026-12-01T10:00:00Z"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// receiptRows are all rows of up to two messages, attempts and parts, with two receipts of each
// state.
func receiptRows() (all []receiptRow) {
	var received []receiptRow
	for _, state := range []string{"pending", "undelivered", "delivered"} {
		first := receiptRow{state: state, code: "c1", at: 1}
		for _, change := range []func(*receiptRow){
			func(*receiptRow) {}, func(r *receiptRow) { r.code = "c2" }, func(r *receiptRow) { r.at = 2 },
			func(r *receiptRow) { r.code = "" },
			func(r *receiptRow) {
				if state == "undelivered" {
					r.cause = "absent"
				}
			},
		} {
			one := first
			change(&one)
			received = append(received, one)
		}
	}
	all = append(all, received...) // without a message
	received = append(received, receiptRow{state: "expected"})
	for seq := 1; seq <= 2; seq++ {
		for attempt := 1; attempt <= 2; attempt++ {
			for part := 0; part <= 2; part++ {
				for due := 0; due <= 1; due++ {
					for _, one := range received {
						one.seq, one.attempt, one.part, one.due = seq, attempt, part, due
						all = append(all, one)
					}
				}
			}
		}
	}
	return all
}

// replaces are the states that may follow a state while a row belongs to its message.
var replaces = map[string]string{
	"expected": "pending undelivered delivered", "pending": "undelivered delivered",
	"undelivered": "delivered", "delivered": "",
}

// mayBecome is dispatcher.legal_receipt in words.
func (r *receiptRow) mayBecome(n *receiptRow) bool {
	over := r.due == 0
	unconfirmed := r.part == 0 && (r.state == "expected" || r.state == "pending")
	passes := n.part > 0 && (over || unconfirmed)
	if r.seq > 0 && n.seq != r.seq { // the reference is used again
		return n.seq > 0 && n.state == "expected" && n.code == "" && passes
	}
	if r.seq > 0 && n.attempt < r.attempt && !passes || r.part > 0 && n.part == 0 {
		return false
	}
	same := r.state == n.state && r.cause == n.cause && r.code == n.code && r.at == n.at
	return same || strings.Contains(" "+replaces[r.state]+" ", " "+n.state+" ")
}

// TestWhatCameIsReplacedOnlyByMore tries every change of a row of receipts.
func TestWhatCameIsReplacedOnlyByMore(t *testing.T) {
	t.Parallel()
	db := lend(t).db
	all := receiptRows()
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = all[i].json(t)
	}
	rows, err := db.Query(t.Context(), `
		with r as materialized (
		  select nr, jsonb_populate_record(null::dispatcher.receipts, j::jsonb) as row
		  from unnest($1::text[]) with ordinality as u(j, nr))
		select a.nr - 1, b.nr - 1, dispatcher.legal_receipt(a.row, b.row) from r a cross join r b`,
		texts)
	if err != nil {
		t.Fatal(err)
	}
	var from, to, pairs, wrong int
	var legal *bool
	if _, err := pgx.ForEachRow(rows, []any{&from, &to, &legal}, func() error {
		pairs++
		if legal == nil || *legal != all[from].mayBecome(&all[to]) {
			if wrong++; wrong < 10 {
				t.Errorf("%+v to %+v: not %v", all[from], all[to], all[from].mayBecome(&all[to]))
			}
		}
		return nil
	}); err != nil || pairs != len(all)*len(all) || pairs < 100_000 {
		t.Errorf("%d pairs of %d rows, %v", pairs, len(all), err)
	}
}

// TestAVerdictIsReplacedOnlyWhileNobodyWasCertain tries every verdict after every other, with and
// without what else an update must and must not do.
func TestAVerdictIsReplacedOnlyWhileNobodyWasCertain(t *testing.T) {
	t.Parallel()
	db := lend(t).db
	row := func(verdict, change string) string {
		closed := verdict != ""
		return fmt.Sprintf(`jsonb_populate_record(null::dispatcher.ambiguous, '{"message_seq": 1,
			"key": "k", "attempt": 1, "last": 1, "step": "none", "asked": 1, "author": "ann",
			"note": "by phone", "part_taken": false, "closed_at": %s, "next_at": %s,
			"verdict": %s}'::jsonb || '%s')`,
			quoted(closed, "2026-11-01T10:00:00Z"), quoted(!closed, "2026-11-01T10:00:00Z"),
			quoted(closed, verdict), change)
	}
	for _, was := range []string{"", "taken", "not_taken", "final", "resent"} {
		for _, becomes := range []string{"", "taken", "not_taken", "final", "resent"} {
			told := `"author": "joe", "closed_at": "2026-11-02T10:00:00Z",
				"note": "called (before: ` + was + ` by ann: by phone)"`
			open := was == ""
			again := (was == "final" || was == "resent") && becomes != ""
			for change, want := range map[string]bool{
				`{}`:                               was == becomes || open,
				`{` + told + `}`:                   open || again,
				`{"author": "joe"}`:                open,
				`{"note": "other"}`:                open,
				`{"next_at": "now"}`:               open,
				`{"asked": 2}`:                     open,
				`{"part_taken": true}`:             open,
				`{"last": 0}`:                      false,
				`{"last": 2}`:                      open,
				`{` + told + `, "asked": 2}`:       open,
				`{` + told + `, "last": 2}`:        open,
				`{` + told + `, "note": "called"}`: open,
				`{` + told + `, "closed_at": "2026-11-01T10:00:00Z"}`:              open,
				`{` + told + `, "note": "called (before: ` + was + `: by phone)"}`: open,
			} {
				got := scalar[*bool](t, db, `select dispatcher.legal_ambiguity(`+row(was, `{}`)+`, `+
					row(becomes, change)+`)`)
				if got == nil || *got != want {
					t.Errorf("%q to %q with %s: not %v", was, becomes, change, want)
				}
			}
		}
	}
}

func quoted(set bool, text string) string {
	if !set {
		return "null"
	}
	return `"` + text + `"`
}

// TestWhatHappenedCannotBeDeletedOrChanged: with the dispatcher's login, whatever rows there are.
func TestWhatHappenedCannotBeDeletedOrChanged(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"})
	sent := claimAll(t, r.l, batch("m", 4), "a").Messages
	settleAll(t, r.l, append(append(expecting(sent[0], "r0"), expecting(sent[1], "r1")...),
		accepted(sent[2:3])...))
	receive(t, r.l, receipt("r0", provider.Delivered), receipt("r1", provider.Undelivered),
		receipt("stray", provider.Delivered))
	for _, sql := range []string{
		`insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, until, closed_at,
			verdict, author, note) select seq, 'final', 1, 1, 'none', now(), now(), 'final', 'ann',
			'no answer' from dispatcher.messages where id = 'm-00003'`,
		`insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start,
			max, granted) select 'a', 'channel', n, 'messages', now() - interval '1 second' * (n + w),
			9, 9 from unnest(array[1, 60, 3600, 86400]) n, unnest(array[200, 3500]) w`,
		`insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start,
			max, granted) values ('day', 'channel', 86400, 'messages', now() - interval '26 hours', 9,
			9), ('hour', 'channel', 3600, 'messages', now() - interval '399 days', 9, 9)`,
		`insert into dispatcher.guard_counts values (now() - interval '30 days', 4, '+447', 5)`,
		`insert into dispatcher.api_requests values ('p', 'k', '', now() - interval '23 hours', 200)`,
		`insert into dispatcher.opt_outs (tenant, recipient, source, since, until, ended_by)
			values ('shop', 1, 'command', now() - interval '1 hour', now(), 'command')`,
		`insert into dispatcher.erasures (author, reason, number_hmac, messages, unended)
			values ('ann', 'asked', 1, 5, 2)`,
	} {
		execute(t, r.db, sql)
	}
	app := raw(t, asApp(r.url))
	const (
		receipts  = `update dispatcher.receipts set $ where reference = `
		ambiguous = `update dispatcher.ambiguous set $`
		toAnother = `message_seq = (select seq from dispatcher.messages where id = 'm-00002'),
			attempt = 1, part = 1, state = 'expected', cause = null, code = null, received_at = null,
			due_at = now()`
	)
	for _, sql := range []string{
		`delete from dispatcher.receipts`,
		`delete from dispatcher.receipts where reference = 'stray'`,
		`truncate dispatcher.receipts`,
		set(receipts+`'r0'`, `state = 'undelivered'`),
		set(receipts+`'r0'`, `state = 'expected', received_at = null`),
		set(receipts+`'r0'`, `code = 'x'`),
		set(receipts+`'r0'`, `code = null`),
		set(receipts+`'r0'`, `received_at = received_at - interval '1 hour'`),
		set(receipts+`'r0'`, `part = null`),
		set(receipts+`'r0'`, `attempt = 0`),
		set(receipts+`'r0'`, `message_seq = null, attempt = null, part = null, due_at = null`),
		set(receipts+`'r0'`, toAnother), // whose answer does not name it
		set(receipts+`'r0'`, strings.Replace(toAnother, "attempt = 1", "attempt = 2", 1)),
		set(receipts+`'r0'`, strings.Replace(toAnother, "m-00002", "m-00001", 1)),
		set(receipts+`'r1'`, `state = 'pending', cause = null`),
		set(receipts+`'r1'`, `cause = 'expired'`),
		set(receipts+`'stray'`, `code = 'x'`),
		set(receipts+`'stray'`, `received_at = received_at - interval '3 days'`),
		`insert into dispatcher.receipts as r (channel, reference, state, received_at)
			values ('a', 'r0', 'delivered', now()) on conflict (channel, reference)
			do update set received_at = excluded.received_at`,
		`delete from dispatcher.ambiguous`,
		`truncate dispatcher.ambiguous`,
		set(ambiguous, `verdict = null, closed_at = null, next_at = now()`),
		set(ambiguous, `verdict = 'taken'`),
		set(ambiguous, `verdict = 'taken', closed_at = clock_timestamp(), note = 'other'`),
		set(ambiguous, `author = 'joe'`),
		set(ambiguous, `note = 'other'`),
		set(ambiguous, `last = 2`),
		`delete from dispatcher.limit_history`,
		`delete from dispatcher.limit_history where window_seconds = 1 and max = 9`,
		`delete from dispatcher.limit_history where window_seconds = 60`,
		`delete from dispatcher.limit_history where channel = 'hour'`,
		`delete from dispatcher.limit_history where channel = 'day'`,
		`update dispatcher.limit_history set granted = 0`,
		`delete from dispatcher.guard_counts`,
		`update dispatcher.guard_counts set messages = 4`,
		`delete from dispatcher.api_requests`,
		`update dispatcher.api_requests set status = 500`,
		`update dispatcher.opt_outs set until = null, ended_by = null`,
		`update dispatcher.opt_outs set until = until + interval '1 hour'`,
		`update dispatcher.opt_outs set ended_author = 'joe'`,
		`update dispatcher.erasures set messages = 4`,
		`update dispatcher.erasures set unended = 0`,
	} {
		refused(t, app, sql)
	}
	execute(t, r.db, ledgertest.StoreOpen)
	// what the dispatcher does
	for _, sql := range []string{
		set(receipts+`'r1'`, `state = 'delivered', cause = null, code = 'y', received_at = now()`),
		set(receipts+`'r1'`, `due_at = now(), look_at = now()`),
		set(receipts+`'stray'`, `message_seq = (select seq from dispatcher.messages
			where id = 'm-00003'), attempt = 1`),
		set(receipts+`'r0'`, strings.Replace(toAnother, "m-00002", "m-00003", 1)), // no answer yet
		set(ambiguous, `verdict = 'taken', closed_at = clock_timestamp(), author = 'joe',
			note = 'found (before: final by ann: no answer)'`),
		`delete from dispatcher.limit_history where channel = 'a' and window_seconds > 3600
			and window_start > now() - interval '24.9 hours'`, // they run still
		`update dispatcher.guard_counts set messages = 6`,
	} {
		execute(t, app, sql)
	}
	refused(t, app, set(ambiguous, `verdict = 'not_taken', closed_at = clock_timestamp(),
		note = 'no (before: taken by joe: found (before: final by ann: no answer))'`))
	execute(t, r.db, `delete from dispatcher.limit_history`) // by the owner
	execute(t, r.db, `delete from dispatcher.receipts`)
}

// set puts assignments into an update.
func set(update, assignments string) string { return strings.Replace(update, "$", assignments, 1) }

func refused(t *testing.T, app *pgx.Conn, sql string) {
	t.Helper()
	_, err := app.Exec(t.Context(), sql)
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" {
		t.Errorf("%s: got error %v, want 42501", sql, err)
	}
}

// TestExpiryDeletesNothingThatIsKept: whoever calls the functions, with whatever arguments.
func TestExpiryDeletesNothingThatIsKept(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "old", 120, hour)
	k.message(t, "young", 3, hour)
	k.exec(t, `insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, until,
		closed_at, verdict) select seq, 'k', 1, 1, 'none', now(), now(), 'taken'
		from dispatcher.messages`)
	k.exec(t, `insert into dispatcher.receipts (channel, reference, state, received_at)
		values ('a', 'stray', 'delivered', now() - interval '23 hours'),
		('a', 'lost', 'delivered', now() - interval '25 hours')`)
	k.exec(t, `update dispatcher.least_kept set facts = '100 days'`)
	app := raw(t, asApp(k.url))
	const left = `select (select string_agg(reference, ' ' order by reference)
		from dispatcher.receipts) || ' ' || (select count(*) from dispatcher.ambiguous)`
	want := func(want string) {
		t.Helper()
		if got := scalar[string](t, k.db, left); got != want {
			t.Errorf("left are %s, want %s", got, want)
		}
	}
	for _, kind := range []string{"receipts", "ambiguous", "reused_references"} {
		sql := fmt.Sprintf(`select dispatcher.drop_references('%s', dispatcher.day_at(now()) - `, kind)
		refused(t, app, sql+`3)`)   // kept by the owner
		refused(t, app, sql+`120)`) // old, but not on its way out
		refused(t, app, sql+`9000)`)
		execute(t, app, `update dispatcher.days set dropping = true`)
		refused(t, app, sql+`3)`)
		execute(t, app, `update dispatcher.days set dropping = false`)
		refused(t, app, sql+`null)`)
	}
	if _, err := app.Exec(t.Context(), `select dispatcher.drop_references('messages', 1)`); err == nil {
		t.Error("another table can be emptied")
	}
	// a receipt with our key, of an attempt that was accepted
	k.exec(t, `insert into dispatcher.receipts (channel, reference, message_seq, attempt, due_at)
		select 'a', 'a0', message_seq, 1, now() from dispatcher.all_attempts limit 1`)
	execute(t, app, `select dispatcher.drop_denied_receipts(array_agg(message_seq),
		array_agg(channel), array_agg(reference)) from dispatcher.receipts`)
	want("a0 lost ref-old ref-young stray 2")
	// a denied id whose time is over is deleted, but not a delivered one, and not the row of a part
	k.exec(t, `update dispatcher.attempts set outcome = 'refused'`)
	k.exec(t, `insert into dispatcher.receipts (channel, reference, message_seq, attempt, state,
		received_at, due_at) select 'a', n, message_seq, 1, s, case when s <> 'expected' then now() end, d
		from dispatcher.all_attempts, lateral (values ('a1', 'expected', now() + interval '1 hour'),
		  ('a2', 'delivered', now()), ('a3', 'expected', now()), ('a4', 'undelivered', now()),
		  ('a5', 'expected', null)) as v(n, s, d)
		where message_seq = (select max(seq) from dispatcher.messages)`)
	k.exec(t, `update dispatcher.receipts set due_at = now() where reference = 'ref-old'`)
	execute(t, app, `select dispatcher.drop_denied_receipts(array_agg(message_seq),
		array_agg(channel), array_agg(reference)) from dispatcher.receipts`)
	want("a1 a2 a5 lost ref-old ref-young stray 2")
	for _, older := range []string{`null`, `'0'`, `'-1 year'`, `'2 days'`} {
		if older == `'2 days'` {
			k.exec(t, `insert into dispatcher.receipts (channel, reference, state, received_at)
				values ('a', 'lost', 'delivered', now() - interval '25 hours')`)
		}
		execute(t, app, `select dispatcher.drop_early_receipts(`+older+`)`)
	}
	want("a1 a2 a5 lost ref-old ref-young stray 2")
	execute(t, app, `update dispatcher.days set dropping = true`)
	for _, kind := range []string{"receipts", "ambiguous"} {
		if n := scalar[int64](t, app, `select dispatcher.drop_references($1,
			dispatcher.day_at(now()) - 120)`, kind); n != 1 {
			t.Errorf("%d of %s were dropped", n, kind)
		}
	}
	want("a1 a2 a5 lost ref-young stray 1")
	for _, role := range []string{"dispatcher_finance", "dispatcher_auditor"} {
		if scalar[bool](t, k.db, `select bool_or(has_function_privilege($1, p.oid, 'execute'))
			from pg_proc p where p.proname in ('drop_references', 'drop_early_receipts',
			'drop_denied_receipts', 'move_receipts')`, role) {
			t.Errorf("%s may call one of the functions", role)
		}
	}
}

// TestAReferenceUsedAgainStaysWhereTheAnswerDoesNotNameIt: an answer that lost against another one
// does not take over the row of an older message. The settlement succeeds.
func TestAReferenceUsedAgainStaysWhereTheAnswerDoesNotNameIt(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	sent := claimAll(t, r.l, batch("m", 3), "a").Messages
	settleAll(t, r.l, expecting(sent[0], "r"))
	receive(t, r.l, receipt("r", provider.Delivered))
	settleAll(t, r.l, expecting(sent[1], "other"))
	settleAll(t, r.l, expecting(sent[1], "r")) // another process had another answer
	const whose = `select string_agg(m.id || ' ' || split_part(r.reference, ' ', 1) || ' ' || r.state,
		', ' order by r.reference) from dispatcher.receipts r
		join dispatcher.messages m on m.seq = r.message_seq`
	if got, want := scalar[string](t, r.db, whose), "m-00001 other expected, m-00000 r delivered, "+
		"m-00001 r expected"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	settleAll(t, r.l, expecting(sent[2], "r")) // the provider uses it again
	if got, want := scalar[string](t, r.db, whose), "m-00001 other expected, m-00002 r expected, "+
		"m-00001 r expected"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := scalar[string](t, r.db, `select receipt_state from dispatcher.all_attempts
		where message_seq = $1`, sent[0].Seq); got != "delivered" {
		t.Errorf("the first message is %s", got)
	}
}
