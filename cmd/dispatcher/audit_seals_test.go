package main

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/evidence"
	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// sealedAuditDB returns a database with n messages, dated some minutes ago and sealed. It also
// returns the key file and the flags that make "audit verify" check the seals. In its time zone all
// messages have the same date. before are statements that are run before it is sealed.
func sealedAuditDB(
	t *testing.T, n int, before ...string,
) (o *auditDB, keyFile string, compare []string) {
	t.Helper()
	o = emptyAuditDB(t)
	if london, err := time.LoadLocation(o.zone); err != nil {
		t.Fatal(err)
	} else if time.Now().In(london).Hour() < 3 {
		o.zone = "America/New_York" // where what tests move back by hours stays in the same day
	}
	o.sendBoth(n)
	for _, sql := range before {
		o.exec(sql)
	}
	text, _, err := seal.NewKey("sms.example.com")
	if err != nil {
		t.Fatal(err)
	}
	keyFile = write(t, "seal.key", text)
	addSeals(t, o, keyFile) // the first entries of the log
	o.exec(`update dispatcher.seals set
		from_at = from_at - case when closings then '0' else interval '20 minutes' end,
		to_at = case when closings then to_at - interval '1 hour'
		  else from_at - interval '15 minutes' end`)
	const back = `- interval '10 minutes'`
	o.exec(`update dispatcher.messages set received_at = received_at ` + back)
	o.exec(`update dispatcher.attempts set claimed_at = claimed_at ` + back + `,
		settled_at = settled_at ` + back + `,
		ranking = case when ranking ? 'latest' then jsonb_set(ranking, '{latest}',
		to_jsonb((ranking->>'latest')::bigint - 600000000)) else ranking end`)
	o.exec(`update dispatcher.routing_versions set created_at = created_at ` + back)
	addSeals(t, o, keyFile)
	var day string
	if err := o.sql.QueryRow(t.Context(), `select to_char(max(received_at) at time zone $1,
		'YYYY-MM-DD') from dispatcher.messages`, o.zone).Scan(&day); err != nil {
		t.Fatal(err)
	}
	return o, keyFile, []string{"--seal-keys", keyFile, "--day", day}
}

// asFinance makes the commands that follow use finance's login.
func (o *auditDB) asFinance() {
	url, _ := strings.CutPrefix(o.env[0], "DISPATCHER_POSTGRES_URL=")
	o.env[0] = "DISPATCHER_POSTGRES_URL=" + ledgertest.As(migrations.RoleFinance, url)
}

// addSeals seals everything that is due.
func addSeals(t *testing.T, o *auditDB, keyFile string) {
	t.Helper()
	lines, err := config.SealKeys(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := seal.ParseKeys(keyFile, lines)
	if err != nil {
		t.Fatal(err)
	}
	err = o.ledger.Seals.Add(t.Context(), 400*24*time.Hour, keys.Begin, func(*ledger.Seal) {})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsChangedAfterItWasSealedIsFound changes one message after another directly in the
// database, in more than seventy ways. "audit verify" finds each change and names what changed,
// with finance's login and without a draw key.
func TestWhatIsChangedAfterItWasSealedIsFound(t *testing.T) {
	t.Parallel()
	o, _, seals := sealedAuditDB(t, 200)
	o.asFinance()
	seals = append(seals, "--without-keys")
	before, code := o.verify(seals...)
	if code != exitOK || before.Sealed == nil || before.Sealed.Messages < 400 {
		t.Fatalf("before anything was changed: %d %+v", code, before)
	}
	const (
		any      = `true`
		drawn    = `m.attempts = 1 and a.ranking is null`
		fallback = `m.attempts = 1 and a.ranking is not null`
		refused  = `m.attempts = 2 and a.outcome = 'refused'`

		messages = `update dispatcher.messages set %s where seq = $1`
		attempts = `update dispatcher.attempts set %s where message_seq = $1 and attempt = 1`
		payloads = `update dispatcher.payloads set %s where seq = $1`

		attemptGone = `delete from dispatcher.attempts where message_seq = $1 and attempt = 1 %s`
		attemptMore = `insert into dispatcher.attempts (message_seq, attempt, instance, claimed_at,
			price_micros, segments, channel, reason, currency, settled_at, answers, outcome)
			select message_seq, 2, instance, claimed_at, price_micros, segments, channel, 'retry',
			currency, settled_at, 1, outcome from dispatcher.all_attempts where message_seq = $1 %s`
		rejectedFree = `with a as (update dispatcher.attempts set outcome = 'rejected',
			price_micros = 0 where message_seq = $1) update dispatcher.messages set
			state = 'rejected', finished_at = now() where seq = $1 %s`
		messageGone = `with a as (delete from dispatcher.attempts where message_seq = $1)
			delete from dispatcher.messages where seq = $1 %s`
	)
	used, want := map[string]bool{}, map[string]string{}
	for _, tamper := range []struct{ where, what, statement, set string }{
		{any, "intake", messages, `lane = 'bulk'`},
		{any, "intake", messages, `tenant = 'other'`},
		{any, "intake", messages, `topic = 'other'`},
		{any, "intake", messages, `kafka_partition = kafka_partition + 1`},
		{any, "intake", messages, `kafka_offset = kafka_offset + 1`},
		{any, "intake", messages, `received_at = received_at + interval '1 millisecond'`},
		{any, "intake", messages, `received_at = received_at - interval '1 microsecond'`},
		{any, "intake", messages, `sender = 'another'`},
		{any, "intake", messages, `calling_code = 49`},
		{any, "intake", messages, `calling_code = null`},
		{any, "intake", messages, `number_hmac = number_hmac # 1`},
		{any, "intake", messages, `envelope_hmac = envelope_hmac # 1`},
		{any, "intake", messages, `number_hmac = null, envelope_hmac = null`},
		{any, "plan", messages, `route = 'other'`},
		{any, "plan", messages, `routing_version = 1`},
		{drawn, "plan", messages, `draw = (draw + 1) % draw_size`},
		{drawn, "plan", messages, `draw_size = draw_size + 1`},
		{drawn, "plan", messages, `draw_key_id = '00000000'`},
		{drawn, "plan", messages, `first_choice = 'b'`},
		{drawn, "plan", messages, `draw = null, draw_size = null, draw_key_id = null`},
		{any, "plan", messages, `segments = segments + 1`},
		{any, "plan", messages, `alphabet = 'ucs2'`},
		{any, "attempts", attempts, `channel = 'other'`},
		{any, "attempts", attempts, `channel = 'a', price_micros = 31000`},
		{fallback, "attempts", attempts, `reason = 'first_choice'`},
		{drawn, "attempts", attempts, `reason = 'retry'`},
		{drawn, "attempts", attempts, `segments = segments + 1`},
		{drawn, "attempts", attempts, `segments = 0, price_micros = 0`},
		{drawn, "attempts", attempts, `price_micros = price_micros + 1`},
		{drawn, "attempts", attempts, `price_micros = price_micros - 1`},
		{drawn, "attempts", attempts, `price_micros = 2 * price_micros, segments = 2 * segments`},
		{drawn, "attempts", attempts, `currency = 'EUR'`},
		{fallback, "attempts", attempts, `ranking = null`},
		{fallback, "attempts", attempts, `ranking = jsonb_set(ranking, '{line}', '"c 1/100 -"')`},
		{fallback, "attempts", attempts, `ranking = jsonb_set(ranking, '{version}', '1')`},
		{drawn, "attempts", attempts, `ranking = '{}'`},
		{any, "attempts", attempts, `claimed_at = claimed_at + interval '1 microsecond'`},
		{any, "attempts", attempts, `claimed_at = claimed_at - interval '1 second',
			settled_at = settled_at - interval '1 second'`},
		{any, "attempts", attempts, `ticket_at = claimed_at - interval '1 second'`},
		{any, "attempts", attempts, `leaves_at = claimed_at + interval '1 second'`},
		{any, "attempts", attempts, `settled_at = settled_at + interval '1 microsecond'`},
		{refused, "attempts", attempts, `outcome = 'throttled'`},
		{refused, "attempts", attempts, `outcome = 'unknown'`},
		{refused, "attempts", attempts, `outcome = 'rejected'`},
		{refused, "attempts", attempts, `unfit = true`},
		{refused, "attempts", attempts, `provider_code = '0x00000000'`},
		{drawn, "attempts", attempts, `provider_reference = 'another'`},
		{drawn, "attempts", attempts, `provider_reference = null`},
		{drawn, "attempts", attempts, `provider_code = 'another'`},
		{refused, "attempts", attemptGone, ``},
		{drawn, "attempts", attemptMore, ``},
		{drawn, "later", attempts, `receipt_state = 'delivered', receipt_at = settled_at,
			delivered_at = settled_at`},
		{drawn, "later", attempts, `receipt_state = 'undelivered', receipt_at = settled_at`},
		{drawn, "later", attempts, `proved = true`},
		{any, "later", messages, `reason = 'another'`},
		{drawn, "later", messages, `possible_duplicate = true`},
		{drawn, "outcome", rejectedFree, ``},
		{drawn, "outcome", messages, `state = 'failed', finished_at = now()`},
		{drawn, "outcome", messages, `state = 'unknown', finished_at = now()`},
		{drawn, "outcome", messages, `state = 'retry', next_at = now() + interval '1 day'`},
		{drawn, "outcome", messages, `state = 'waiting', next_at = now() + interval '1 day'`},
		{any, "text", payloads, otherText},
		{any, "text", payloads, otherText + `, digest = digest + 1`},
		{any, "text", payloads, otherNumber},
		{any, "text", payloads, otherNumber + `, recipient = ` + ofOtherNumber},
		{any, "text", payloads, otherText + `, salt = substr(sha256(envelope), 1, 16)`},
		{any, "text", payloads, `salt = set_byte(salt, 0, get_byte(salt, 0) # 1)`},
		{any, "text", payloads, ofAnother},
		{any, "text", payloads, `envelope = envelope || ' '`},
		{any, "recipient", payloads, `recipient = ` + ofOtherNumber},
		{any, "recipient", payloads, `recipient = null`},
		{any, "no", payloads, `salt = null`},
		{any, "no", payloads, otherText + `, salt = null`},
		{drawn, "deleted", messageGone, ``},
		{drawn, "deleted", `delete from dispatcher.messages where seq = $1 %s`, ``},
		{drawn, "deleted", messages, `received_at = received_at - interval '2 days'`},
	} {
		id, seq := o.pick(used, tamper.where)
		name := id
		if tamper.what == "deleted" {
			name = fmt.Sprintf("message number %d", seq)
		}
		want[name] = tamper.what + " by " + tamper.set
		o.exec(fmt.Sprintf(tamper.statement, tamper.set), seq)
	}
	o.exec(`insert into dispatcher.messages (seq, id, lane, state, attempts, finished_at,
		received_at) select max(seq) + 1, 'inserted', 'otp', 'failed', 0, max(received_at),
		max(received_at) from dispatcher.messages`)
	want["inserted"] = "inserted"
	for what, set := range map[string]string{
		"intake": `login = 'somebody else'`, "plan": `document = document || ' '`,
	} {
		o.exec(`update dispatcher.routing_versions set ` + set + ` where version = 1`)
		want["routing version 1"] += what + " "
	}
	o.exec(`update dispatcher.routing_versions set author = 'somebody else', reason = 'another',
		created_at = created_at - interval '1 second' where version = 2`)
	want["routing version 2"] = "intake"

	after, code := o.verify(seals...)
	found := map[string]string{}
	for _, m := range after.Mismatches {
		if m.Attempt > 0 {
			continue // derived data
		}
		switch m.What {
		case seal.Changed:
			found[m.ID] += strings.TrimPrefix(m.Stored, "another ") + " "
		case seal.Outcome, seal.Deleted, seal.Inserted:
			found[m.ID] += m.What + " "
		}
	}
	if code != exitFailed || len(want) < 70 {
		t.Errorf("%d: %d kinds", code, len(want))
	}
	for id, what := range want {
		kind, _, _ := strings.Cut(what, " ")
		if !strings.Contains(found[id], kind) {
			t.Errorf("%s: got findings %q, want %s", id, found[id], what)
		}
		delete(found, id)
	}
	for id, what := range found {
		t.Errorf("%s was not changed, but was found: %s", id, what)
	}
}

// TestEachColumnOfAVersionIsSealed: a change of one column alone is found.
func TestEachColumnOfAVersionIsSealed(t *testing.T) {
	t.Parallel()
	o, _, seals := sealedAuditDB(t, 3)
	o.exec(`create table kept as select * from dispatcher.routing_versions`)
	for _, set := range tier.Sample([]string{
		`author = 'somebody else'`, `reason = 'another'`, `login = 'somebody'`,
		`created_at = created_at - interval '1 microsecond'`, `base = 1`,
		`document = document || ' '`, `effects = '{"weights": {"default": {"a": "1"}}}'`,
	}, 2) {
		o.exec(`update dispatcher.routing_versions set ` + set + ` where version = 2`)
		v, code := o.verify(seals...)
		if !slices.ContainsFunc(v.Mismatches, func(m audit.Mismatch) bool {
			return m.ID == "routing version 2" && m.What == seal.Changed
		}) || code != exitFailed {
			t.Errorf("%s: exit code %d, %+v", set, code, v.Mismatches)
		}
		o.exec(`update dispatcher.routing_versions v set author = k.author, reason = k.reason,
			login = k.login, created_at = k.created_at, base = k.base, document = k.document,
			effects = k.effects from kept k where k.version = v.version`)
	}
	if v, code := o.verify(seals...); code != exitOK {
		t.Errorf("afterwards: exit code %d, %+v", code, v)
	}
}

// TestAMessageWithoutAnAnswerIsFixedToo: what the log has of it changes only with a newer time.
func TestAMessageWithoutAnAnswerIsFixedToo(t *testing.T) {
	t.Parallel()
	o, _, seals := sealedAuditDB(t, 5, `create table unanswered as select seq, id,
			row_number() over (order by seq) as n
			from dispatcher.messages where attempts = 1 order by seq limit 3`,
		`update dispatcher.attempts set outcome = 'unknown', provider_reference = null
			where message_seq in (select seq from unanswered)`,
		`begin; set local session_replication_role = replica; -- no trigger
			update dispatcher.messages set state = 'unknown', finished_at = now() - interval '10 minutes'
			where seq in (select seq from unanswered); commit`)
	if v, code := o.verify(seals...); code != exitOK {
		t.Fatalf("before anything was changed: exit code %d, %+v", code, v)
	}
	for n, sql := range []string{
		`update dispatcher.attempts set price_micros = price_micros + 1 where message_seq = $1`,
		`update dispatcher.messages set alphabet = 'ucs2' where seq = $1`,
		`with late as (update dispatcher.attempts set outcome = 'accepted', settled_at = now(),
			provider_reference = 'late' where message_seq = $1)
			update dispatcher.messages set state = 'accepted', finished_at = null where seq = $1`,
	} {
		o.exec(strings.ReplaceAll(sql, "$1",
			fmt.Sprintf("(select seq from unanswered where n = %d)", n+1)))
	}
	ids := names(t, o.sql, `select id from unanswered order by n`)
	v, code := o.verify(seals...)
	found := map[string]string{}
	for _, m := range v.Mismatches {
		if m.What == seal.Changed {
			found[m.ID] += m.Stored
		}
	}
	want := map[string]string{ids[0]: "another attempts", ids[1]: "another plan"}
	if diff := cmp.Diff(want, found); diff != "" || code != exitFailed {
		t.Errorf("exit code %d, %s", code, diff)
	}
}

// TestAPriceThatWasChangedInDocumentAndAttemptsIsFound: the two fit each other, so that deriving
// the choices again finds nothing. The log does, in both.
func TestAPriceThatWasChangedInDocumentAndAttemptsIsFound(t *testing.T) {
	t.Parallel()
	o, _, seals := sealedAuditDB(t, 20)
	if v, code := o.verify(seals...); code != exitOK {
		t.Fatalf("before anything was changed: %d %+v", code, v)
	}
	o.exec(`update dispatcher.routing_versions set document = replace(document, '0.028', '0.029')`)
	o.exec(`update dispatcher.attempts set price_micros = 29000
		where channel = 'c' and price_micros = 28000`)
	if v, code := o.verify("--day", seals[3]); code != exitOK || v.Checked != 40 {
		t.Errorf("without the log: %d %+v", code, v.ByKind)
	}
	after, code := o.verify(seals...)
	found := map[string]int{}
	for _, m := range after.Mismatches {
		if m.What != seal.Changed {
			t.Errorf("%+v", m)
		}
		id, _, _ := strings.Cut(m.ID, "-")
		found[id+": "+m.Stored]++
	}
	var paid int
	if err := o.sql.QueryRow(t.Context(), `select count(distinct message_id) from audit.attempts
		where price_micros = 29000`).Scan(&paid); err != nil {
		t.Fatal(err)
	}
	if code != exitFailed || paid < 10 || found["routing version 1: another plan"] != 1 ||
		found["routing version 2: another plan"] != 1 ||
		found["v1: another attempts"]+found["v2: another attempts"] != paid || len(found) != 4 {
		t.Errorf("%d: %d messages have the price: %v", code, paid, found)
	}
}

// closed closes a day although it is not over.
func (o *auditDB) closed(day string) {
	o.t.Helper()
	zone, err := time.LoadLocation(o.zone)
	if err != nil {
		o.t.Fatal(err)
	}
	at, err := time.ParseInLocation(time.DateOnly, day, zone)
	if err != nil {
		o.t.Fatal(err)
	}
	c, ours, err := o.ledger.Reports.Close(o.t.Context(), ledger.NewBusinessDay(at, zone), nil)
	if err != nil || !ours || c.Changes == 0 {
		o.t.Fatalf("got %+v, closed here: %v, %v", c, ours, err)
	}
}

// TestFiguresThatWereChangedAfterTheyWereSealedAreFound, and their closings: reports of closed days
// are read from them. Finance's login is enough. A correction is not a fault.
func TestFiguresThatWereChangedAfterTheyWereSealedAreFound(t *testing.T) {
	t.Parallel()
	o, keyFile, seals := sealedAuditDB(t, 20)
	day := seals[len(seals)-1]
	o.asFinance()
	seals = append(seals, "--without-keys")
	compared := func(closings, unsealed int) {
		t.Helper()
		v, code := o.verify(seals...)
		if code != exitOK || v.Sealed == nil || v.Sealed.Closings != closings ||
			v.Sealed.Unsealed != unsealed {
			t.Fatalf("exit code %d, %+v, sealed: %+v", code, v, v.Sealed)
		}
	}
	o.closed(day)
	compared(0, 1)
	// It was closed forty minutes ago, and that was sealed five minutes later.
	o.exec(`update dispatcher.closings set at = at - interval '40 minutes'`)
	addSeals(t, o, keyFile)
	o.exec(`update dispatcher.seals set to_at = to_at - interval '30 minutes' where closings`)
	compared(1, 0)
	// A receipt comes late.
	o.exec(`with a as (update dispatcher.attempts set receipt_state = 'delivered', receipt_at = now(),
			delivered_at = now() where message_seq = (select max(message_seq) from dispatcher.all_attempts
			where outcome = 'accepted') and outcome = 'accepted' returning *)
		insert into dispatcher.receipts (channel, reference, message_seq, attempt, state, received_at)
		select channel, provider_reference, message_seq, attempt, 'delivered', now() from a`)
	o.closed(day)
	compared(1, 1)
	o.exec(`update dispatcher.closings set at = at - interval '10 minutes' where revision = 2`)
	addSeals(t, o, keyFile)
	compared(2, 0)
	if got := dispatcher(t, "", o.env, append([]string{"audit", "verify"}, seals...)...); !strings.
		Contains(got.out, "and 2 closings of the day compared with the log of hashes\n") {
		t.Errorf("%+v", got)
	}
	first, second := "revision 1 of "+day, "revision 2 of "+day
	// The sums come last: storing a closing stores its sums.
	tables := []string{
		"closings", "choice_figures", "attempt_figures", "carried_figures", "seals", "choice_sums",
		"attempt_sums", "carried_sums",
	}
	for _, table := range tables {
		o.exec(`create table kept_` + table + ` as select * from dispatcher.` + table)
	}
	const changed, those = "changed: other values in ", " instead of those that were sealed"
	const inserted = "inserted: figures instead of nothing: such a closing was not sealed in its time"
	const deleted = "deleted: nothing instead of what was sealed"
	for _, c := range tier.Sample([]struct{ sql, id, says string }{
		{
			`update dispatcher.attempt_figures set cost_micros = cost_micros - 1
			where ctid = (select ctid from dispatcher.attempt_figures where revision = 1 limit 1)`,
			first, changed + "attempt_figures" + those,
		},
		{
			`update dispatcher.attempt_figures set delivered = 2 where revision = 2`,
			second, changed + "attempt_figures" + those,
		},
		{
			`update dispatcher.choice_figures set channel = 'b' where channel = 'a'`,
			first, changed + "choice_figures" + those,
		},
		{
			`update dispatcher.carried_figures set hour = hour + interval '1 hour'`,
			first, changed + "carried_figures" + those,
		},
		{
			`insert into dispatcher.attempt_figures select (jsonb_populate_record(f, '{"revision": 7}')).*
			from dispatcher.attempt_figures f limit 1`,
			"revision 7 of " + day, inserted,
		},
		{
			`insert into dispatcher.choice_figures select * from dispatcher.choice_figures limit 1`,
			first, changed + "choice_figures" + those,
		},
		{
			`update dispatcher.attempt_sums set cost_micros = cost_micros - 1 where revision = 1
			and split = 'none'`,
			first, "sums: other values in attempt_sums, split none instead of the sums of attempt_figures",
		},
		{
			`delete from dispatcher.carried_sums where split = 'tenant'`,
			first, "sums: other values in carried_sums, split tenant instead of the sums of carried_figures",
		},
		{
			`insert into dispatcher.choice_sums select * from dispatcher.choice_sums
			where split = 'hour'`,
			first, "sums: other values in choice_sums, split hour instead of the sums of choice_figures",
		},
		{
			`delete from dispatcher.closings where revision = 2`,
			second, deleted,
		},
		{
			`with c as (delete from dispatcher.closings where revision = 2)
			delete from dispatcher.attempt_figures where revision = 2`,
			second, deleted,
		},
		{
			`delete from dispatcher.attempt_figures where revision = 2`,
			second, changed + "attempt_figures" + those,
		},
		{
			`delete from dispatcher.carried_figures where ctid = (select ctid
			from dispatcher.carried_figures limit 1)`,
			first, changed + "carried_figures" + those,
		},
		{
			`update dispatcher.closings set changes = changes + 1 where revision = 1`,
			first, changed + "closings" + those,
		},
		{
			`update dispatcher.closings set figures = figures + 1 where revision = 2`,
			second, changed + "closings" + those,
		},
		{
			`insert into dispatcher.closings select day, 3, zone, from_at, to_at, at, changes, figures
			from dispatcher.closings where revision = 2`,
			"revision 3 of " + day, inserted,
		},
		// Its seal is gone as well, and it is not the last one of the log.
		{
			`with l as (delete from dispatcher.seals where number = (select min(number)
			from dispatcher.seals where closings and definitions is null)), c as (delete from dispatcher.closings
			where revision = 1), a as (delete from dispatcher.attempt_figures where revision = 1),
			d as (delete from dispatcher.choice_figures where revision = 1)
			delete from dispatcher.carried_figures where revision = 1`,
			"", "checkpoint: a log that goes on after the day instead of 1 more seals",
		},
	}, 4) {
		o.exec(c.sql)
		v, code := o.verify(seals...)
		found := false
		for _, m := range v.Mismatches {
			found = found || m.ID == c.id && m.What+": "+m.Stored+" instead of "+m.Derived == c.says
			if m.ID != c.id && m.What != evidence.WhatCheckpoint && m.What != whatSums {
				t.Errorf("%s: also %+v", c.sql, m)
			}
		}
		if code != exitFailed || !found {
			t.Errorf("%s: got %+v, want %s, %s", c.sql, v.Mismatches, c.id, c.says)
		}
		for _, table := range tables {
			o.exec(`delete from dispatcher.` + table)
			o.exec(`insert into dispatcher.` + table + ` select * from kept_` + table)
		}
	}
	compared(2, 0)
	// Leaves of closings stay as long as the closings.
	o.exec(`update dispatcher.seals set from_at = from_at - interval '60 days',
		to_at = from_at - interval '50 days'`)
	if err := o.ledger.Seals.Forget(t.Context(), 40*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	var left, closings int
	if err := o.sql.QueryRow(t.Context(), `select count(*), count(*) filter (where closings)
		from dispatcher.seals where octet_length(leaves) > 0`).Scan(&left, &closings); err != nil ||
		left != 3 || closings != 3 {
		t.Errorf("%d seals still have leaves, %d of them of closings, %v", left, closings, err)
	}
}

// signedAndToppedUp stores two top-ups and a signed reconciliation, as of some minutes ago.
func (o *auditDB) signedAndToppedUp() {
	o.t.Helper()
	o.exec(`insert into dispatcher.top_ups (at, author, reason, channel, scope, currency, micros,
			before, granted, key)
		values (now() - interval '9 minutes', 'ann', 'March', '', 'tenant:shop', 'GBP', 5000000, 0, 0,
		  'march'),
		  (now() - interval '8 minutes', 'ann', 'a typo', '', 'tenant:shop', 'GBP', -1000000, 5000000,
		  40000, null)`)
	o.exec(`insert into dispatcher.reconciliations (channel, file_digest, from_at, to_at, revision,
			complete, at, author, reason, lines, matched, ours_only, theirs_only, differences, ambiguous,
			resolved)
		values ('b', repeat('a', 64), now() - interval '1 day', now(), 1, false,
		  now() - interval '7 minutes', 'fay', 'invoice 4711', 10, 9, 1, 0, 1, 0, 0)`)
	o.exec(`insert into dispatcher.reconciliation_totals
		select id, c, 280000, 290000 from dispatcher.reconciliations, unnest('{EUR,GBP}'::text[]) c`)
	o.exec(`insert into dispatcher.reconciliation_differences
		select id, 'price', 'v1-000003', 1, 4, 'r4', at, '0.028', '0.03', 'GBP'
		from dispatcher.reconciliations`)
}

// TestSignOffsAndTopUpsThatWereChangedAfterTheyWereSealedAreFound: each change is named. Finance's
// login is enough.
func TestSignOffsAndTopUpsThatWereChangedAfterTheyWereSealedAreFound(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	o, keyFile, seals := sealedAuditDB(t, 3)
	o.asFinance()
	seals = append(seals, "--without-keys")
	o.signedAndToppedUp()
	v, code := o.verify(seals...)
	if code != exitOK || v.Sealed == nil || v.Sealed.TopUps+v.Sealed.Reconciliations > 0 ||
		v.Sealed.Unsealed != 3 {
		t.Fatalf("before they are sealed: exit code %d, %+v, sealed: %+v", code, v, v.Sealed)
	}
	addSeals(t, o, keyFile)
	intact := func() {
		t.Helper()
		v, code := o.verify(seals...)
		if code != exitOK || v.Sealed == nil || v.Sealed.TopUps != 2 || v.Sealed.Reconciliations != 1 ||
			v.Sealed.Unsealed != 0 {
			t.Fatalf("exit code %d, %+v, sealed: %+v", code, v, v.Sealed)
		}
	}
	intact()
	if got := dispatcher(t, "", o.env, append([]string{"audit", "verify"}, seals...)...); !strings.
		Contains(got.out, ", 2 top-ups and 1 signed reconciliation compared with the log of hashes\n") {
		t.Errorf("%+v", got)
	}
	tables := []string{
		"top_ups", "reconciliation_differences", "reconciliation_totals", "reconciliations", "seals",
	}
	for _, table := range tables {
		o.exec(`create table kept_` + table + ` as select * from dispatcher.` + table)
	}
	const (
		topUps, signed = `update dispatcher.top_ups set `, `update dispatcher.reconciliations set `
		first, second  = "top-up 1", "top-up 2"
		sign, changed  = "reconciliation 1", "other values in "
		gone, inserted = "nothing", "a row"
		unsigned       = `with d as (delete from dispatcher.reconciliation_differences), t as (
			delete from dispatcher.reconciliation_totals) delete from dispatcher.reconciliations`
	)
	for _, c := range tier.Sample([]struct{ sql, id, stored string }{
		{topUps + `micros = micros + 1 where id = 1`, first, changed + "top_ups"},
		{topUps + `micros = 4000000 where id = 1`, first, changed + "top_ups"},
		{topUps + `author = 'bob' where id = 1`, first, changed + "top_ups"},
		{topUps + `login = 'bob' where id = 2`, second, changed + "top_ups"},
		{topUps + `at = at - interval '1 second' where id = 1`, first, changed + "top_ups"},
		{topUps + `at = at + interval '1 day' where id = 2`, second, changed + "top_ups"},
		{topUps + `scope = 'tenant:bank' where id = 1`, first, changed + "top_ups"},
		{topUps + `channel = 'b' where id = 1`, first, changed + "top_ups"},
		{topUps + `currency = 'EUR' where id = 1`, first, changed + "top_ups"},
		{topUps + `before = before + 1 where id = 2`, second, changed + "top_ups"},
		{topUps + `granted = granted - 1 where id = 2`, second, changed + "top_ups"},
		{topUps + `key = null where id = 1`, first, changed + "top_ups"},
		{`delete from dispatcher.top_ups where id = 2`, second, gone},
		{`insert into dispatcher.top_ups (id, at, author, reason, channel, scope, currency, micros,
			before, granted) overriding system value select 7, at, author, reason, channel, scope,
			currency, micros, before, granted from dispatcher.top_ups where id = 1`, "top-up 7", inserted},
		{signed + `author = 'bob'`, sign, changed + "reconciliations"},
		{signed + `login = 'bob'`, sign, changed + "reconciliations"},
		{signed + `reason = 'invoice 4712'`, sign, changed + "reconciliations"},
		{signed + `at = at + interval '1 second'`, sign, changed + "reconciliations"},
		{signed + `file_digest = repeat('b', 64)`, sign, changed + "reconciliations"},
		{signed + `channel = 'a'`, sign, changed + "reconciliations"},
		{signed + `from_at = from_at + interval '1 hour'`, sign, changed + "reconciliations"},
		{signed + `complete = true`, sign, changed + "reconciliations"},
		{signed + `matched = matched + 1`, sign, changed + "reconciliations"},
		{signed + `differences = 0`, sign, changed + "reconciliations"},
		{
			`update dispatcher.reconciliation_totals set theirs_micros = 280000 where currency = 'GBP'`,
			sign, changed + "reconciliation_totals",
		},
		{
			`update dispatcher.reconciliation_totals set theirs_micros = null where currency = 'EUR'`,
			sign, changed + "reconciliation_totals",
		},
		{
			`delete from dispatcher.reconciliation_totals where currency = 'EUR'`,
			sign, changed + "reconciliation_totals",
		},
		{
			`insert into dispatcher.reconciliation_totals select id, 'USD', 1, 1
			from dispatcher.reconciliations`, sign, changed + "reconciliation_totals",
		},
		{
			`update dispatcher.reconciliation_differences set theirs = ours`,
			sign, changed + "reconciliation_differences",
		},
		{
			`delete from dispatcher.reconciliation_differences`,
			sign, changed + "reconciliation_differences",
		},
		{
			`insert into dispatcher.reconciliation_differences
			select * from dispatcher.reconciliation_differences`,
			sign, changed + "reconciliation_differences",
		},
		{unsigned, sign, gone},
		{
			`insert into dispatcher.reconciliations (id, channel, file_digest, from_at, to_at, revision,
			complete, at, author, reason, lines, matched, ours_only, theirs_only, differences, ambiguous,
			resolved) overriding system value select 7, 'b', file_digest, from_at, to_at, 2, false, at,
			author, reason, 0, 0, 0, 0, 0, 0, 0 from dispatcher.reconciliations`,
			"reconciliation 7", inserted,
		},
	}, 4) {
		o.exec(c.sql)
		v, code := o.verify(seals...)
		found := false
		for _, m := range v.Mismatches {
			found = found || m.ID == c.id && m.Stored == c.stored
			if m.ID != c.id {
				t.Errorf("%s: also %+v", c.sql, m)
			}
		}
		if code != exitFailed || !found {
			t.Errorf("%s: got %+v, want %s, %s", c.sql, v.Mismatches, c.id, c.stored)
		}
		o.restore(tables)
	}
	intact()
	// The reason of a top-up may have a number, so it is not in the log.
	o.exec(topUps + `reason = 'April'`)
	intact()
}

// restore fills tables from their copies. Tables come after those that refer to them.
func (o *auditDB) restore(tables []string) {
	o.t.Helper()
	for _, table := range tables {
		o.exec(`delete from dispatcher.` + table)
	}
	for _, table := range slices.Backward(tables) {
		o.exec(`insert into dispatcher.` + table + ` overriding system value
			select * from kept_` + table)
	}
}

// TestALogOfAnEarlierBuildHasNoSignOffsAndTopUps: that they are missing is not a difference. The
// next seal has them all, and closings go on after those that were sealed.
func TestALogOfAnEarlierBuildHasNoSignOffsAndTopUps(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	o, keyFile, seals := sealedAuditDB(t, 3)
	o.closed(seals[len(seals)-1])
	o.exec(`update dispatcher.closings set at = at - interval '20 minutes'`)
	addSeals(t, o, keyFile)
	// That seal ended before the rows below were made, and an earlier build made it.
	o.exec(`update dispatcher.seals set to_at = to_at - interval '6 minutes', finance_from = null
		where closings`)
	o.signedAndToppedUp()
	o.exec(`update dispatcher.top_ups set at = at - interval '1 day' where id = 1`)
	verified := func(closings, topUps, unsealed int) {
		t.Helper()
		v, code := o.verify(seals...)
		if code != exitOK || v.Sealed == nil || v.Sealed.Closings != closings ||
			v.Sealed.TopUps != topUps || v.Sealed.Reconciliations != topUps/2 ||
			v.Sealed.Unsealed != unsealed {
			t.Fatalf("exit code %d, %+v, sealed: %+v", code, v, v.Sealed)
		}
	}
	verified(1, 0, 2) // the first top-up is of another day
	addSeals(t, o, keyFile)
	verified(1, 2, 0)
	o.exec(`delete from dispatcher.top_ups where id = 1`)
	if v, code := o.verify(seals...); code != exitFailed || len(v.Mismatches) != 1 ||
		v.Mismatches[0].ID != "top-up 1" || v.Mismatches[0].What != seal.Deleted {
		t.Errorf("exit code %d, %+v", code, v)
	}
}

// TestAVersionOfAnEarlierReleaseWasSealedWithoutItsLogin, and so it is compared.
func TestAVersionOfAnEarlierReleaseWasSealedWithoutItsLogin(t *testing.T) {
	t.Parallel()
	o := emptyAuditDB(t)
	o.sendBoth(1)
	hash := func() (h string) {
		err := o.sql.QueryRow(t.Context(), `select encode(intake, 'hex')
			from facts.version_evidence where version = 1`).Scan(&h)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	now := hash()
	o.exec(`update dispatcher.routing_versions set evidence = 1 where version = 1`)
	earlier := hash()
	var without string
	if err := o.sql.QueryRow(t.Context(), `select encode(dispatcher.half_hash(json_build_array(version,
		author, reason, dispatcher.micros(created_at), base)), 'hex')
		from dispatcher.routing_versions where version = 1`).Scan(&without); err != nil ||
		earlier != without || now == without {
		t.Errorf("got %s, and %s for an earlier version, want %s for it, %v", now, earlier, without, err)
	}
	o.exec(`update dispatcher.routing_versions set evidence = 2, login = null where version = 1`)
	if got := hash(); got != without {
		t.Errorf("without a login: got %s, want %s", got, without)
	}
}

// TestALogThatWasChangedIsFound: the log is signed, so a change of its rows in the database is
// found.
func TestALogThatWasChangedIsFound(t *testing.T) {
	t.Parallel()
	o, _, seals := sealedAuditDB(t, 10)
	v, code := o.verify(seals...)
	if code != exitOK || v.Sealed == nil || v.Sealed.Checkpoint == "" {
		t.Fatalf("%d: got %+v", code, v)
	}
	kept := write(t, "checkpoint", v.Sealed.Checkpoint)
	seals = append(seals, "--checkpoint", kept)
	if v, code := o.verify(seals...); code != exitOK {
		t.Fatalf("with a stored checkpoint: exit code %d, %+v", code, v)
	}
	other, _, err := seal.NewKey("sms.example.com")
	if err != nil {
		t.Fatal(err)
	}
	const last = ` where number = (select max(number) from dispatcher.seals
		where octet_length(leaves) > 0 and not closings)`
	// The login of finance has enough rights.
	url, _ := strings.CutPrefix(o.env[0], "DISPATCHER_POSTGRES_URL=")
	finance := []string{"DISPATCHER_POSTGRES_URL=" + ledgertest.As(migrations.RoleFinance, url)}
	got := dispatcher(t, "", finance, append([]string{"audit", "verify", "--without-keys"}, seals...)...)
	if got.code != exitOK || !strings.Contains(got.out, "22 messages compared with the log") {
		t.Errorf("got %+v, want exit code %d and %q in the output",
			got, exitOK, "22 messages compared with the log")
	}
	o.exec(`create table kept_seals as select * from dispatcher.seals`)
	for _, sql := range tier.Sample([]string{
		`update dispatcher.seals set leaves = set_byte(leaves, 20, get_byte(leaves, 20) # 1)` + last,
		`update dispatcher.seals set leaves = substring(leaves from 1 for length(leaves) - 74)` + last,
		`update dispatcher.seals set leaves = substring(leaves from 75)` + last,
		`update dispatcher.seals set nodes = set_byte(nodes, 3, get_byte(nodes, 3) # 1)
			where length(nodes) > 3`,
		`update dispatcher.seals set size = size + 1` + last,
		`update dispatcher.seals set checkpoint = replace(checkpoint, 'sms', 'smx')` + last,
		`update dispatcher.seals set checkpoint = ''` + last,
		`update dispatcher.seals set at = to_at - interval '1 second'` + last,
		`update dispatcher.seals set at = at - interval '2 minutes'` + last,
		`delete from dispatcher.seals where number = 1`,
		`delete from dispatcher.seals` + last,
		`delete from dispatcher.seals`,
	}, 2) {
		o.exec(sql)
		v, code := o.verify(seals...)
		if code != exitFailed || v.ByKind["checkpoint"] == 0 {
			t.Errorf("%s: %d %+v", sql, code, v.ByKind)
		}
		o.exec(`delete from dispatcher.seals`)
		o.exec(`insert into dispatcher.seals select * from kept_seals`)
	}
	// Without the key nobody can write another log.
	o.exec(`delete from dispatcher.seals`)
	otherFile := write(t, "other.key", other)
	addSeals(t, o, otherFile)
	if v, code := o.verify(seals...); code != exitFailed || v.ByKind["checkpoint"] == 0 {
		t.Errorf("with another key: exit code %d, %+v", code, v)
	}
	o.exec(`delete from dispatcher.seals`)
	o.exec(`insert into dispatcher.seals select * from kept_seals`)
	var g seal.Growth
	for _, env := range [][]string{o.env, finance} {
		var p seal.Proof
		got = dispatcher(t, "", env, "audit", "proof", "v1-000003", "--format", "json")
		if err := json.Unmarshal([]byte(got.out), &p); err != nil || len(p.Leaf) != seal.LeafSize ||
			p.Index >= p.Size || !strings.Contains(p.Checkpoint, "sms.example.com") {
			t.Errorf("%v in %+v", err, got)
		}
		got = dispatcher(t, "", env, "audit", "proof", "--since", kept, "--format", "json")
		if err := json.Unmarshal([]byte(got.out), &g); err != nil || g.From == 0 || g.Size < g.From ||
			!strings.Contains(g.Checkpoint, "sms.example.com") {
			t.Errorf("%v in %+v", err, got)
		}
	}
	if got := dispatcher(t, "", o.env, "audit", "proof", "nobody"); got.code != exitFailed ||
		!strings.Contains(got.err, "no message has the id nobody") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitFailed, "no message has the id nobody")
	}
	for want, args := range map[string][]string{
		"name a message, --day or --since":      {},
		"name a message or a flag, one of them": {"v1-000003", "--since", kept},
	} {
		got := dispatcher(t, "", o.env, append([]string{"audit", "proof"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: got %+v, want exit code %d and %q in the error", args, got, exitUsage, want)
		}
	}
	for _, args := range [][]string{
		{}, {"--format", "json"}, {"monthly"}, {"daily", "--from", seals[3], "--format", "html"},
	} {
		args = append([]string{"report"}, args...)
		text := html.UnescapeString(dispatcher(t, "", o.env, args...).out)
		if text = strings.ReplaceAll(text, `\n`, "\n"); !strings.Contains(text, g.Checkpoint) {
			t.Errorf("%v has no checkpoint:\n%s", args, text)
		}
	}
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	got = dispatcher(t, "", o.env, append([]string{"audit", "verify"}, seals...)...)
	if got.code != exitUsage {
		t.Errorf("without the key file: %+v", got)
	}
}

// TestStatesFollowAsTheLedgerLetsThem: "audit verify" accepts a changed final state only if the
// ledger's trigger allows the change, in one step or several.
func TestStatesFollowAsTheLedgerLetsThem(t *testing.T) {
	t.Parallel()
	o := emptyAuditDB(t)
	final := []ledger.State{
		ledger.Accepted, ledger.Delivered, ledger.Undelivered, ledger.NoReceipt, ledger.Rejected,
		ledger.Failed, ledger.Dead,
	}
	all := append(final, ledger.Waiting, ledger.Retry, ledger.Sending, ledger.Unknown)
	for _, was := range final {
		for _, becomes := range all {
			var legal bool
			if err := o.sql.QueryRow(t.Context(), `
				with recursive reached(state) as (
					select $1::text
					union
					select s from reached, unnest($3::text[]) s where dispatcher.legal(state, s)
						-- an accepted message that may go on is open, so it is not sealed
						and not (state = 'accepted' and s = 'sending'))
				select exists (select from reached where state = $2)`, was, becomes, all).
				Scan(&legal); err != nil {
				t.Fatal(err)
			}
			now := ledger.Evidence{State: becomes}
			if slices.Contains([]ledger.State{ledger.Waiting, ledger.Retry, ledger.Sending}, becomes) {
				now.State = ledger.NotSent
			}
			faults := seal.Verify([]seal.Leaf{{State: was}}, &now, time.Time{})
			if (len(faults) == 0) != legal {
				t.Errorf("%s may become %s: %v, but got %+v", was, becomes, legal, faults)
			}
		}
	}
}

// TestALaterRunSealsWhatHasChanged: a second run seals the changed messages and no others. A
// change by a receipt is not a fault.
func TestALaterRunSealsWhatHasChanged(t *testing.T) {
	t.Parallel()
	o, keyFile, _ := sealedAuditDB(t, 20)
	count := func(sql string) (n int64) {
		if err := o.sql.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const size = `select max(size) from dispatcher.seals`
	before := count(size)
	o.exec(`update dispatcher.attempts set receipt_state = 'delivered', receipt_at = now(),
		delivered_at = now() where message_seq in (select seq from dispatcher.messages
		where attempts = 1 order by seq limit 7) and outcome = 'accepted'`)
	// The hour has ended, and a second run seals it.
	o.exec(`update dispatcher.seals s set to_at = date_trunc('hour', from_at) + interval '1 hour',
		at = date_trunc('hour', from_at) + interval '61 minutes'`)
	o.exec(`update dispatcher.seals set from_at = from_at - interval '3 hours',
		to_at = to_at - interval '3 hours', at = at - interval '3 hours'`)
	o.exec(`update dispatcher.messages set received_at = received_at - interval '3 hours'`)
	o.exec(`update dispatcher.routing_versions set created_at = created_at - interval '3 hours'`)
	addSeals(t, o, keyFile)
	again := count(`select count(*) from dispatcher.seals where again`)
	if again == 0 {
		t.Fatal("no hour was sealed again")
	}
	// Everything was received three hours before the last sealed hour. All of it is new, and each
	// message is sealed once.
	if n := count(size) - before; n != 42 {
		t.Errorf("got %d leaves, want 42 for 40 messages and 2 versions", n)
	}
	o.exec(`update dispatcher.seals set at = to_at + interval '1 minute'`)
	o.exec(`update dispatcher.attempts set receipt_state = 'undelivered', receipt_at = now()
		where message_seq in (select seq from dispatcher.messages where attempts = 1
		order by seq desc limit 5) and outcome = 'accepted' and receipt_state is null`)
	before = count(size)
	addSeals(t, o, keyFile)
	if n := count(size) - before; n != 5 {
		t.Errorf("got %d new leaves for five receipts", n)
	}
}

// TestOldLeavesAreDroppedAndTheLogContinues: when messages are dropped, the checkpoints stay.
func TestOldLeavesAreDroppedAndTheLogContinues(t *testing.T) {
	t.Parallel()
	o, _, seals := sealedAuditDB(t, 10)
	o.exec(`update dispatcher.seals set from_at = from_at - interval '50 days',
		to_at = to_at - interval '50 days' where number < (select max(number) from dispatcher.seals
		where octet_length(leaves) > 0 and not closings)`)
	if err := o.ledger.Seals.Forget(t.Context(), 40*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	left := func() (n int) {
		err := o.sql.QueryRow(t.Context(), `select count(*) from dispatcher.seals
			where octet_length(leaves) > 0 and not closings`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := left(); n != 1 {
		t.Errorf("%d seals still have leaves", n)
	}
	if err := o.ledger.Seals.Forget(t.Context(), time.Second); err != nil || left() != 1 {
		t.Error("leaves were dropped that the owner keeps", err)
	}
	if v, code := o.verify(seals...); code != exitOK {
		t.Errorf("%d: got %+v", code, v)
	}
}

// TestAKeyForTheLogIsMadeOnce: the command shows it without its secret.
func TestAKeyForTheLogIsMadeOnce(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/seal.key"
	got := dispatcher(t, "", nil, "audit", "key", "sms.example.com", file, "--format", "json")
	var k sealKey
	if err := json.Unmarshal([]byte(got.out), &k); err != nil || k.File != file ||
		!strings.HasPrefix(k.Verifier, "sms.example.com+") {
		t.Fatalf("%v in %+v", err, got)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), k.Verifier) {
		t.Fatal(string(text), err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if got := dispatcher(t, "", nil, "audit", "key", "sms.example.com", file); got.code != exitFailed {
		t.Errorf("created a second time: %+v", got)
	}
	if got := dispatcher(t, "", nil, "audit", "key", "a b", file+"2"); got.code != exitUsage {
		t.Errorf("a name with a space: %+v", got)
	}
}

// TestWhatOperatorsDidIsSealed: a change of it is found and named. Rows of earlier builds are not
// sealed, and a row that pretends to be one is missing. Finance's login is enough.
func TestWhatOperatorsDidIsSealed(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	o, keyFile, seals := sealedAuditDB(t, 3)
	o.asFinance()
	seals = append(seals, "--without-keys")
	const at = `now() - interval '7 minutes'`
	o.exec(`insert into dispatcher.operator_actions (at, author, reason, action, subject)
		values (` + at + `, 'ann', 'withdrawn', 'cancel', 'm-1')`)
	o.exec(`insert into dispatcher.operator_actions (at, author, reason, action, subject, evidence)
		values (` + at + `, 'ann', 'of an earlier build', 'cancel', 'm-2', 0)`)
	o.exec(`with r as (insert into dispatcher.ramps (route, from_weights, to_weights, steps, every,
		author, changed_by, next_at) values ('default', '{}', '{}', 2, '1 hour', 'ann', 'ann', now())
		returning id)
		insert into dispatcher.ramp_moves (at, ramp, author, move, step, version, reason)
		select ` + at + `, id, 'ann', 'started', 0, 0, 'more' from r`)
	o.exec(`insert into dispatcher.limit_restarts (restarted_at, channel, scope, window_seconds, unit,
		version, author, reason, was_start, was_granted, window_start, granted)
		values (` + at + `, 'c', 'channel', 60, 'messages', 1, 'ann', 'clock', now(), 0,
		now() - interval '1 h', 0)`)
	o.exec(`insert into dispatcher.guard_trips (at, per, subject, action, hour, seen, usual, days,
		times, at_least) values (` + at + `, 'tenant', 'shop', 'warn', now(), 9, 1, 7, 5, 5)`)
	o.exec(`insert into dispatcher.erasures (at, author, reason, number_hmac)
		values (` + at + `, 'ann', 'a letter', 7)`)
	addSeals(t, o, keyFile)
	// What an erasure counts while it runs is not a change.
	o.exec(`update dispatcher.erasures set messages = 4, unended = 1`)
	if v, code := o.verify(seals...); code != exitOK || v.Sealed == nil || v.Sealed.Actions != 5 {
		t.Fatalf("exit code %d, %+v, sealed: %+v", code, v, v.Sealed)
	}
	for _, c := range []struct{ table, change, id, what string }{
		{"operator_actions", `author = 'bob'`, "operator action 1", "operator_actions"},
		{"operator_actions", `login = 'bob'`, "operator action 1", "operator_actions"},
		{"operator_actions", `via = 'api'`, "operator action 1", "operator_actions"},
		{"operator_actions", `subject = 'm-3'`, "operator action 1", "operator_actions"},
		{"operator_actions", `evidence = 0`, "operator action 1", "nothing"},
		{"ramp_moves", `reason = 'less'`, "ramp move 1", "ramp_moves"},
		{"ramp_moves", `at = at - interval '1 second'`, "ramp move 1", "ramp_moves"},
		{"limit_restarts", `was_granted = 9`, "restart of a limit 1", "limit_restarts"},
		{"guard_trips", `seen = 10`, "trip of a guard 1", "guard_trips"},
		{"erasures", `number_hmac = 8`, "erasure 1", "erasures"},
	} {
		o.exec(`create table kept as select * from dispatcher.` + c.table)
		o.exec(`update dispatcher.` + c.table + ` set ` + c.change + ` where evidence = 1`)
		v, code := o.verify(seals...)
		if !slices.ContainsFunc(v.Mismatches, func(m audit.Mismatch) bool {
			return m.ID == c.id && strings.HasSuffix(m.Stored, c.what)
		}) || code != exitFailed || len(v.Mismatches) != 1 {
			t.Errorf("%s of %s: exit code %d, %+v", c.change, c.table, code, v.Mismatches)
		}
		o.exec(`delete from dispatcher.` + c.table)
		o.exec(`insert into dispatcher.` + c.table + ` overriding system value select * from kept`)
		if c.table != "guard_trips" { // others have a trigger for the login
			o.exec(`update dispatcher.` + c.table + ` t set login = k.login from kept k
				where t.` + map[bool]string{true: "seq = k.seq", false: "id = k.id"}[c.table == "ramp_moves"])
		}
		o.exec(`drop table kept`)
	}
	if v, code := o.verify(seals...); code != exitOK {
		t.Errorf("afterwards: exit code %d, %+v", code, v)
	}
}

// TestAReplacedViewIsSeen: deploy/audit/definitions.sql, with finance's login, lists what a new
// database has, and shows a view or a function that the owner has replaced.
func TestAReplacedViewIsSeen(t *testing.T) {
	t.Parallel()
	address := ledgertest.Fresh(t) // which no other test gets
	owner := opened(t, address)
	finance := opened(t, login(t, owner, address, migrations.RoleFinance))
	list := func(conn *pgx.Conn) []string {
		set, query, _ := strings.Cut(read(t, "../../deploy/audit/definitions.sql"), ";")
		if _, err := conn.Exec(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		_, query, _ = strings.Cut(query, "\n") // the comment
		return names(t, conn, `select concat_ws(' ', d.name, d.definition) from (`+
			strings.TrimSuffix(strings.TrimSpace(query), ";")+`) d`)
	}
	want := list(opened(t, ledgertest.Fresh(t)))
	if diff := cmp.Diff(want, list(finance)); diff != "" || len(want) < 50 {
		t.Fatalf("%d definitions, before anything was changed: %s", len(want), diff)
	}
	for _, sql := range []string{
		`create or replace view audit.active as select channel, 1::bigint as max, active
			from dispatcher.channels`,
		`create or replace function dispatcher.micros(at timestamptz) returns bigint
			language sql immutable parallel safe return 0`,
	} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if now := list(finance); slices.Equal(now, want) {
			t.Errorf("not seen: %s", sql)
		} else {
			want = now
		}
	}
}

// mustFind runs a statement, which changes sealed rows, and expects that audit verify names nothing
// but id. It undoes the statement.
func (o *auditDB) mustFind(seals []string, sql, id, what string) {
	o.t.Helper()
	o.exec(`create table kept_tables as select 1`)
	var tables []string
	for _, table := range []string{"opt_outs", "receipts", "limit_history", "limits"} {
		tables = append(tables, table)
		o.exec(`create table kept_` + table + ` as select * from dispatcher.` + table)
	}
	o.exec(sql)
	v, code := o.verify(seals...)
	if code != exitFailed || len(v.Mismatches) == 0 {
		o.t.Errorf("%s: exit code %d, %+v", sql, code, v.Mismatches)
	}
	for _, m := range v.Mismatches {
		if m.ID != id || m.What != what {
			o.t.Errorf("%s: got %+v, want %s %s", sql, m, id, what)
		}
	}
	o.exec(`alter table dispatcher.opt_outs disable trigger note_login`)
	for _, table := range tables {
		o.exec(`delete from dispatcher.` + table)
		columns := names(o.t, o.sql, `select string_agg(quote_ident(attname), ', ') from pg_attribute
			where attrelid = 'dispatcher.`+table+`'::regclass and attnum > 0 and not attisdropped
			and attgenerated = ''`)[0]
		o.exec(`insert into dispatcher.` + table + ` (` + columns + `) overriding system value
			select ` + columns + ` from kept_` + table)
		o.exec(`drop table kept_` + table)
	}
	o.exec(`alter table dispatcher.opt_outs enable trigger note_login`)
	o.exec(`drop table kept_tables`)
}

// TestOptOutsAreSealed: a change of the beginning or of the end of an opt-out is found and named.
// An end that comes later is a row of its own. Finance's login is enough.
func TestOptOutsAreSealed(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	o, keyFile, seals := sealedAuditDB(t, 3)
	o.asFinance()
	seals = append(seals, "--without-keys")
	o.exec(`insert into dispatcher.opt_outs (tenant, recipient, since, source, author, evidence)
		values ('shop', 1, now() - interval '9 minutes', 'command', 'ann', 1),
		  ('shop', 2, now() - interval '8 minutes', 'keyword', '', 1),
		  ('shop', 3, now() - interval '8 minutes', 'command', 'of an earlier build', 0)`)
	addSeals(t, o, keyFile)
	o.exec(`update dispatcher.opt_outs set until = now() - interval '7 minutes',
		ended_by = 'command', ended_author = 'bob' where recipient <> 2`)
	o.exec(`update dispatcher.opt_outs set heard_at = now() where recipient = 2`)
	// As if the seal before had been made before these ends.
	o.exec(`update dispatcher.seals set to_at = to_at - interval '150 seconds'
		where number = (select max(number) from dispatcher.seals where closings)`)
	addSeals(t, o, keyFile)
	if v, code := o.verify(seals...); code != exitOK || v.Sealed.OptOuts != 4 {
		t.Fatalf("exit code %d, %+v, sealed: %+v", code, v, v.Sealed)
	}
	const update = `update dispatcher.opt_outs set `
	for _, c := range tier.Sample([]struct{ sql, id, what string }{
		{update + `tenant = 'bank' where seq = 1`, "opt-out 1", seal.Changed},
		{update + `since = since - interval '1 hour' where seq = 2`, "opt-out 2", seal.Changed},
		{update + `source = 'keyword' where seq = 1`, "opt-out 1", seal.Changed},
		{update + `channel = 'a' where seq = 1`, "opt-out 1", seal.Changed},
		{update + `author = 'eve' where seq = 1`, "opt-out 1", seal.Changed},
		{update + `evidence = 0 where seq = 2`, "opt-out 2", seal.Deleted},
		{`delete from dispatcher.opt_outs where seq = 2`, "opt-out 2", seal.Deleted},
		{
			`insert into dispatcher.opt_outs (tenant, recipient, since, source)
			values ('shop', 9, (select since from dispatcher.opt_outs where seq = 2), 'keyword')`, "opt-out 4", seal.Inserted,
		},
		{update + `until = until - interval '1 second' where seq = 1`, "end of opt-out 1", seal.Changed},
		{update + `ended_author = 'eve' where seq = 3`, "end of opt-out 3", seal.Changed},
		{update + `ended_by = 'api' where seq = 3`, "end of opt-out 3", seal.Changed},
		{update + `until = null, ended_by = null where seq = 3`, "end of opt-out 3", seal.Deleted},
		{
			update + `until = (select until from dispatcher.opt_outs where seq = 3),
				ended_by = 'keyword' where seq = 2`,
			"end of opt-out 2", seal.Inserted,
		},
	}, 3) {
		o.mustFind(seals, c.sql, c.id, c.what)
	}
	if v, code := o.verify(seals...); code != exitOK {
		t.Errorf("afterwards: exit code %d, %+v", code, v)
	}
}

// TestEndedWindowsOfLimitsAreSealed: a change of one is found, and its minute is named. A window
// that was dropped with time, and one that a limit still has, is not a difference.
func TestEndedWindowsOfLimitsAreSealed(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const minute = `date_trunc('minute', now()) - interval '12 minutes'`
	const history = `insert into dispatcher.limit_history (channel, scope, window_seconds, unit,
		window_start, max, granted, since) values `
	o, _, seals := sealedAuditDB(t, 3, `delete from dispatcher.limits`, `delete from
		dispatcher.limit_history`, history+`
		('a', 'channel', 1, 'segments', `+minute+`, 10, 9, now() - interval '1 day'),
		('b', 'channel', 1, 'segments', `+minute+` + interval '10 seconds', 10, 8, now()),
		('b', 'channel', 60, 'segments', `+minute+`, 100, 90, now()),
		('b', 'channel', 60, 'segments', now() - interval '3 days', 100, 90, now()),
		('a', 'channel', 1, 'segments', now() - interval '3 days', 10, 9, now())`,
		`insert into dispatcher.limits (channel, scope, window_seconds, unit, window_start,
		configured_max, max, granted) select 'c', 'channel', 60, 'segments', max(window_start), 5, 5, 5
		from dispatcher.limit_history`)
	if v, code := o.verify(seals...); code != exitOK || v.Sealed.Windows != 4 {
		t.Fatalf("exit code %d, %+v, sealed: %+v", code, v, v.Sealed)
	}
	var at string
	if err := o.sql.QueryRow(t.Context(), `select to_char(window_start at time zone 'UTC',
		'YYYY-MM-DD HH24:MI') from dispatcher.limits where channel = 'c'`).Scan(&at); err != nil {
		t.Fatal(err)
	}
	started, err := time.Parse("2006-01-02 15:04", at)
	if err != nil {
		t.Fatal(err)
	}
	ended := func(length string, after time.Duration) string {
		return "windows of a " + length + " that ended at " +
			started.Add(after).Format("2006-01-02 15:04Z07:00")
	}
	seconds, minutes := ended("second", 0), ended("minute", time.Minute)
	const update = `update dispatcher.limit_history set `
	for _, c := range tier.Sample([]struct{ sql, id, what string }{
		{update + `granted = 8 where window_seconds = 1 and channel = 'a'`, seconds, seal.Changed},
		{update + `max = 11 where window_seconds = 1 and channel = 'b'`, seconds, seal.Changed},
		{update + `channel = 'c' where window_seconds = 1 and channel = 'b'`, seconds, seal.Changed},
		{update + `granted = granted - 1 where window_seconds = 60`, minutes, seal.Changed},
		{
			`delete from dispatcher.limit_history where channel = 'b' and window_seconds = 1`, seconds,
			seal.Changed,
		},
		{
			`delete from dispatcher.limit_history where window_seconds = 1
			and window_start > now() - interval '1 day'`, seconds, seal.Deleted,
		},
		{update + `currency = 'EUR' where window_seconds = 60`, minutes, seal.Changed},
		{update + `since = now() where channel = 'b' and window_seconds = 60`, minutes, seal.Changed},
		{
			history + `('d', 'channel', 3600, 'segments', (select window_start - interval '1 hour'
			from dispatcher.limits where channel = 'c'), 5, 5, now())`,
			ended("hour", 0), seal.Inserted,
		},
	}, 3) {
		o.mustFind(seals, c.sql, c.id, c.what)
	}
	// A claim moves the window of c into the history, and windows of a second are dropped with time.
	for _, sql := range []string{
		`with h as (` + history + `('c', 'channel', 60, 'segments', (select window_start
			from dispatcher.limits), 5, 5, (select since from dispatcher.limits)))
			update dispatcher.limits set window_start = now(), granted = 1`,
		`update dispatcher.limit_history set reserved = 1, next_at = now()`,
		`delete from dispatcher.limit_history where window_seconds = 1`,
	} {
		o.exec(sql)
		if v, code := o.verify(seals...); code != exitOK {
			t.Errorf("%s: exit code %d, %+v", sql, code, v.Mismatches)
		}
	}
	if v, _ := o.verify(seals...); v.Sealed.Windows != 2 || v.Sealed.WindowsDropped != 2 {
		t.Errorf("sealed: %+v", v.Sealed)
	}
}

// TestReceiptsAndDeadRecordsAreSealed with their messages. Seals of an earlier build have neither,
// and stay valid. A reference that the provider used again is not a difference.
func TestReceiptsAndDeadRecordsAreSealed(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	received := `insert into dispatcher.receipts (channel, reference, message_seq, attempt, part, state,
		code, received_at) select a.channel, a.provider_reference, a.message_seq, a.attempt, 1,
		'delivered', '000', a.settled_at from dispatcher.all_attempts a where a.outcome = 'accepted' and
		a.provider_reference is not null on conflict (channel, reference) do update set
		state = 'delivered', code = '000', received_at = excluded.received_at, message_seq = excluded.message_seq,
		attempt = excluded.attempt, part = 1`
	delivered := `update dispatcher.attempts set receipt_state = 'delivered', receipt_code = '000',
		receipt_at = settled_at, delivered_at = settled_at where outcome = 'accepted'
		and provider_reference is not null`
	dead := `insert into dispatcher.messages (seq, id, lane, state, reason, detail, attempts,
		finished_at, received_at, topic, kafka_partition, kafka_offset) select max(seq) + 1, 'dead-1',
		'otp', 'dead', 'invalid', 'no body', 0, now(), now(), 'sms.otp', 0, 4711
		from dispatcher.messages`
	back := func(table, column string) string {
		return `update dispatcher.` + table + ` set ` + column + ` = ` + column +
			` - interval '10 minutes'`
	}
	o, _, seals := sealedAuditDB(t, 4, received, delivered, dead, back("receipts", "received_at"),
		back("attempts", "receipt_at"), back("attempts", "delivered_at"),
		`update dispatcher.messages set finished_at = finished_at - interval '10 minutes'
		where state = 'dead'`)
	if v, code := o.verify(seals...); code != exitOK {
		t.Fatalf("exit code %d, %+v", code, v)
	}
	var id string
	var seq int64
	if err := o.sql.QueryRow(t.Context(), `select m.id, m.seq from dispatcher.receipts r
		join dispatcher.messages m on m.seq = r.message_seq order by m.seq limit 1`).
		Scan(&id, &seq); err != nil {
		t.Fatal(err)
	}
	of := fmt.Sprintf(` where message_seq = %d`, seq)
	const update = `update dispatcher.receipts set `
	for _, sql := range tier.Sample([]string{
		update + `code = '001'` + of,
		update + `part = 2` + of,
		update + `state = 'pending'` + of,
		update + `received_at = received_at - interval '1 millisecond'` + of,
		update + `reference = 'another'` + of,
		`delete from dispatcher.receipts` + of,
		`insert into dispatcher.receipts (channel, reference, message_seq, attempt, part, state, code,
			received_at) select channel, reference || 'x', message_seq, attempt, 2, state, code,
			received_at from dispatcher.receipts` + of,
	}, 2) {
		o.exec(`create table kept as select * from dispatcher.receipts`)
		o.exec(sql)
		v, code := o.verify(seals...)
		found := false
		for _, m := range v.Mismatches {
			found = found || m.ID == id && m.What == seal.Changed && m.Stored == "another later"
			if m.ID != id {
				t.Errorf("%s: also %+v", sql, m)
			}
		}
		if code != exitFailed || !found {
			t.Errorf("%s: exit code %d, %+v", sql, code, v.Mismatches)
		}
		o.exec(`delete from dispatcher.receipts`)
		o.exec(`insert into dispatcher.receipts (channel, reference, message_seq, attempt, part, state,
			cause, code, received_at, due_at, look_at) select channel, reference, message_seq, attempt,
			part, state, cause, code, received_at, due_at, look_at from kept`)
		o.exec(`drop table kept`)
	}
	for _, set := range []string{`detail = 'no recipient'`, `reason = 'conflict'`} {
		o.exec(`create table kept as select seq, detail, reason from dispatcher.messages
			where state = 'dead'`)
		o.exec(`update dispatcher.messages set ` + set + ` where id = 'dead-1'`)
		v, code := o.verify(seals...)
		if code != exitFailed || len(v.Mismatches) != 1 || v.Mismatches[0].ID != "dead-1" ||
			v.Mismatches[0].What != seal.Changed {
			t.Errorf("%s: exit code %d, %+v", set, code, v.Mismatches)
		}
		o.exec(`update dispatcher.messages m set detail = k.detail, reason = k.reason from kept k
			where k.seq = m.seq`)
		o.exec(`drop table kept`)
	}
	if v, code := o.verify(seals...); code != exitOK {
		t.Errorf("afterwards: exit code %d, %+v", code, v)
	}
	// The provider used the reference again, for a later message.
	o.exec(`insert into dispatcher.messages (seq, id, lane, state, attempts, finished_at, received_at)
		select max(seq) + 1, 'later', 'otp', 'failed', 0, now(), now() from dispatcher.messages`)
	o.exec(update + `message_seq = (select max(seq) from dispatcher.messages), state = 'expected',
		code = null, received_at = null` + of)
	o.exec(`update dispatcher.attempts set receipt_state = null, receipt_code = null, receipt_at = null,
		delivered_at = null` + of)
	used := func(what string) {
		t.Helper()
		if v, _ := o.verify(seals...); slices.ContainsFunc(v.Mismatches, func(m audit.Mismatch) bool {
			return m.ID == id && m.Stored == "another later"
		}) {
			t.Errorf("with a reference that was used again for %s: %+v", what, v.Mismatches)
		}
	}
	used("a later message")
	// Or for one that came before, waited, and was sent later.
	o.exec(`insert into dispatcher.messages (seq, id, lane, state, attempts, finished_at, received_at)
		select min(seq) - 1, 'waited', 'otp', 'failed', 0, now(), now() from dispatcher.messages`)
	o.exec(update + `message_seq = (select min(seq) from dispatcher.messages)
		where message_seq = (select max(seq) from dispatcher.messages)`)
	used("a message that came before")
}

// TestAChangedDefinitionIsFound: the log has the definitions of views and functions, and a change
// that no migration made is named, with its time. Finance's login is enough.
func TestAChangedDefinitionIsFound(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	o, keyFile, seals := sealedAuditDB(t, 3)
	o.asFinance()
	seals = append(seals, "--without-keys")
	intact := func() {
		t.Helper()
		if v, code := o.verify(seals...); code != exitOK || v.Sealed.Definitions < 80 {
			t.Fatalf("exit code %d, %+v, sealed: %+v", code, v, v.Sealed)
		}
	}
	intact()
	var active string
	if err := o.sql.QueryRow(t.Context(), `select pg_get_viewdef('audit.active'::regclass)`).
		Scan(&active); err != nil {
		t.Fatal(err)
	}
	const micros = `create or replace function dispatcher.micros(at timestamptz) returns bigint
		language sql immutable parallel safe return `
	for _, c := range []struct{ change, undo, id, what string }{
		{
			`create or replace view audit.active as select channel, 1::bigint as max, active
			from dispatcher.channels`, `create or replace view audit.active as ` + active,
			"view audit.active", seal.Changed,
		},
		{
			`create function dispatcher.micros(at text) returns bigint language sql return 0`,
			`drop function dispatcher.micros(text)`, "dispatcher.micros(text)", seal.Inserted,
		},
		{
			`create view audit.another as select 1 as one`, `drop view audit.another`,
			"view audit.another", seal.Inserted,
		},
		{
			`alter view audit.draw_keys rename to draw_keys_2`,
			`alter view audit.draw_keys_2 rename to draw_keys`, "view audit.draw_keys", seal.Deleted,
		},
		{
			micros + `(extract(epoch from at) * 1000000)::bigint + 0`,
			micros + `(extract(epoch from at) * 1000000)::bigint`,
			"dispatcher.micros(timestamp with time zone)", seal.Changed,
		},
		{
			`insert into dispatcher.schema_migrations (version, name, checksum)
			values (999, '999_forged.sql', 'x')`,
			`delete from dispatcher.schema_migrations where version = 999`, "999_forged.sql",
			seal.Inserted,
		},
	} {
		o.exec(c.change)
		v, code := o.verify(seals...)
		if code != exitFailed || !slices.ContainsFunc(v.Mismatches, func(m audit.Mismatch) bool {
			return m.ID == c.id && m.What == c.what
		}) {
			t.Errorf("%s: exit code %d, %+v", c.change, code, v.Mismatches)
		}
		o.exec(c.undo)
	}
	intact()
	// The change is in the log, also when it was undone in time for the audit.
	earlier := func() {
		o.exec(`update dispatcher.seals set to_at = from_at + (to_at - from_at) / 2
			where number = (select max(number) from dispatcher.seals where closings)`)
	}
	earlier()
	o.exec(micros + `0`)
	addSeals(t, o, keyFile)
	v, code := o.verify(seals...)
	if code != exitFailed || !slices.ContainsFunc(v.Mismatches, func(m audit.Mismatch) bool {
		return strings.Contains(m.ID, "micros") && m.What == seal.Changed
	}) {
		t.Errorf("a sealed change: exit code %d, %+v", code, v.Mismatches)
	}
	o.exec(micros + `(extract(epoch from at) * 1000000)::bigint`)
	earlier()
	addSeals(t, o, keyFile)
	v, code = o.verify(seals...)
	if code != exitFailed || len(v.Mismatches) != 1 ||
		!strings.HasPrefix(v.Mismatches[0].Stored, "another definition from ") {
		t.Errorf("a change that was undone: exit code %d, %+v", code, v.Mismatches)
	}
	// A migration that names what it changes explains the change.
	o.exec(`update dispatcher.seals set definitions = null where definitions is not null`)
	o.exec(`create table kept_028 as select * from dispatcher.schema_migrations where name like '028%'`)
	o.exec(`delete from dispatcher.schema_migrations where name like '028%'`)
	o.exec(`alter view facts.reused_references rename to reused_references_2`)
	earlier()
	addSeals(t, o, keyFile)
	o.exec(`alter view facts.reused_references_2 rename to reused_references`)
	o.exec(`insert into dispatcher.schema_migrations select * from kept_028`)
	v, code = o.verify(seals...)
	if n := len(v.Sealed.DefinitionChanges); n != 1 || slices.ContainsFunc(v.Mismatches,
		func(m audit.Mismatch) bool { return m.ID == "view facts.reused_references" }) {
		t.Errorf("after a migration: exit code %d, %d changes, %+v", code, n, v.Mismatches)
	}
}
