package ledger_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// week is the retention of these tests.
var week = ledger.Retention{
	IDs: 7 * 24 * time.Hour, Payloads: 7 * 24 * time.Hour, Facts: 100 * 24 * time.Hour,
}

// keeping is a database with a ledger, and a second connection.
type keeping struct {
	url   string
	l     *ledger.Ledger
	db    *pgx.Conn
	today ledger.Day
}

func newKeeping(t testing.TB) *keeping {
	t.Helper()
	k := &keeping{url: ledgertest.Fresh(t)}
	k.l = connect(t, ledger.Config{URL: k.url})
	k.db = raw(t, k.url)
	k.today = scalar[ledger.Day](t, k.db, `select dispatcher.day_at(clock_timestamp())`)
	return k
}

func (k *keeping) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := k.db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// message stores a message of a day some days ago, with its payload, an attempt and a receipt. It
// ended so long ago; one that has not ended is accepted, and its receipt is awaited.
func (k *keeping) message(t testing.TB, id string, age int, ended time.Duration) (seq int64) {
	t.Helper()
	day := k.today - ledger.Day(age)
	k.exec(t, `select dispatcher.make_day($1)`, day)
	state, end, due := "accepted", any(nil), any(time.Now().Add(hour))
	if ended >= 0 {
		state, end, due = "delivered", time.Now().Add(-ended), nil
	}
	salt := [ledger.SaltSize]byte{1, byte(len(id))}
	envelope := []byte(`{"id":"` + id + `","to":"+447700900123","text":"hello"}`)
	hash := sha256.Sum256(append(salt[:], envelope...))
	seq = scalar[int64](t, k.db, `
		insert into dispatcher.messages (seq, id, lane, tenant, state, attempts,
		  received_at, finished_at, number_hmac, envelope_hmac)
		values (dispatcher.first_of($1) + nextval('dispatcher.message_numbers'), $2, 'otp', 'shop', $3, 1,
		  to_timestamp($1::bigint * 86400), $4, 1, $5) returning seq`, day, id, state, end,
		int64(binary.BigEndian.Uint64(hash[:])))
	k.exec(t, `insert into dispatcher.payloads (seq, digest, recipient, envelope, salt)
		values ($1, 7, dispatcher.recipient('shop', '+447700900123'), $2, $3)`, seq, envelope, salt[:])
	k.exec(t, `insert into dispatcher.attempts (message_seq, attempt, price_micros, instance,
		claimed_at, segments, channel, reason, currency, outcome, settled_at, answers)
		values ($1, 1, 0, 1, now(), 1, 'a', 'first_choice', 'GBP', 'accepted', now(), 1)`, seq)
	k.exec(t, `insert into dispatcher.receipts (channel, reference, message_seq, attempt, part, due_at)
		values ('a', 'ref-' || $1, $2, 1, 1, $3)`, id, seq, due)
	return seq
}

// ages are the days that the query finds, as how many days ago they are.
func (k *keeping) ages(t testing.TB, where string) string {
	t.Helper()
	return scalar[string](t, k.db, `select coalesce(string_agg(($1 - day)::text, ' '
		order by day desc), '') from dispatcher.days where `+where, k.today)
}

// payloads are the ids of messages that still have one.
func (k *keeping) payloads(t testing.TB) string {
	t.Helper()
	return scalar[string](t, k.db, `select coalesce(string_agg(m.id, ' ' order by m.id), '')
		from dispatcher.payloads p join dispatcher.messages m using (seq)`)
}

func (k *keeping) keep(t testing.TB, r ledger.Retention) ledger.Kept {
	t.Helper()
	kept, err := k.l.Days.Keep(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

const never, hour = -time.Second, time.Hour

func TestKeepMakesTheNextDays(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	// as when nothing ran for some days
	for day := k.today; day <= k.today+2; day++ {
		for _, table := range []string{"messages", "payloads", "attempts"} {
			k.exec(t, fmt.Sprintf(`drop table dispatcher.%s_%s`, table,
				strings.ReplaceAll(day.String(), "-", "")))
		}
	}
	k.exec(t, `delete from dispatcher.days`)
	kept := k.keep(t, week)
	if len(kept.Made) != 3 || kept.Made[0] < k.today || kept.Made[2] != kept.Made[0]+2 {
		t.Errorf("made %v", kept.Made)
	}
	if again := k.keep(t, week); again.Any() {
		t.Errorf("a second call did %+v", again)
	}
}

// TestKeepSummarisesTheTimesOfAttempts, also the last range of a day, which is not full. It skips a
// partition that is being vacuumed.
func TestKeepSummarisesTheTimesOfAttempts(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "of yesterday", 1, hour)
	k.message(t, "of today", 0, hour)
	partition := "attempts_" + strings.ReplaceAll(k.today.String(), "-", "")
	// The first range of an index has a summary from the beginning.
	forget := func() {
		k.exec(t, `select brin_desummarize_range(inhrelid, 0) from pg_inherits
			where inhparent = 'dispatcher.attempts_claimed_at'::regclass`)
	}
	forget()
	other := raw(t, k.url)
	if _, err := other.Exec(t.Context(),
		`begin; lock table dispatcher.`+partition+` in share update exclusive mode`); err != nil {
		t.Fatal(err)
	}
	k.keep(t, week)
	if _, err := other.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	missing := func() string {
		return scalar[string](t, k.db, `
			select coalesce(string_agg(c.relname, ' '), '') from pg_class c
			join pg_index x on x.indrelid = c.oid
			where indexrelid in (select inhrelid from pg_inherits
			    where inhparent = 'dispatcher.attempts_claimed_at'::regclass)
			  and brin_summarize_new_values(indexrelid) > 0`)
	}
	if got := missing(); got != partition {
		t.Errorf("not summarised beside a vacuum: %q", got)
	}
	forget()
	k.keep(t, week)
	if got := missing(); got != "" {
		t.Errorf("not summarised: %s", got)
	}
}

func TestAnIDIsRecognisedForItsRetentionAndForgottenAfterTwice(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	apply(t, k.l, ledger.ChannelSpec{Name: "a", ActiveMax: 1000})
	other := connect(t, ledger.Config{URL: k.url}) // it learns of a turn by its claims
	intakeOf := func(l *ledger.Ledger, id string) ledger.Intake {
		t.Helper()
		return claimAll(t, l, []ledger.Message{message(id)}, "a").Intakes[0]
	}
	intake := func() ledger.Intake { t.Helper(); return intakeOf(k.l, "m") }
	if got := intakeOf(other, "of another"); got != ledger.Fresh {
		t.Fatalf("at first %v", got)
	}
	turn := func(want bool) {
		t.Helper()
		if kept := k.keep(t, week); kept.Turned != want {
			t.Fatalf("%+v, want turned %v", kept, want)
		}
	}
	age := func(by time.Duration) {
		k.exec(t, `update dispatcher.id_turns set since = clock_timestamp() - $1::interval`, by)
	}
	if got := intake(); got != ledger.Fresh {
		t.Fatalf("at first %v", got)
	}
	age(week.IDs - hour)
	turn(false)
	age(week.IDs)
	turn(true)
	if got := intake(); got != ledger.Duplicate {
		t.Errorf("after one turn: %v", got)
	}
	for _, id := range []string{"m", "of another"} {
		if got := intakeOf(other, id); got != ledger.Duplicate {
			t.Errorf("%s after one turn, by another instance: %v", id, got)
		}
	}
	if got := intakeOf(other, "new"); got != ledger.Fresh {
		t.Errorf("after one turn, a new id: %v", got)
	}
	turn(false)
	age(week.IDs)
	turn(true)
	if got := intake(); got != ledger.Fresh {
		t.Errorf("after two turns: %v", got)
	}
	if got := intakeOf(other, "new"); got != ledger.Duplicate {
		t.Errorf("one turn after it came: %v", got)
	}
}

// The ids of a day must be in the index of past ids before they are forgotten.
func TestIDsAreNotForgottenBeforeTheirDayIsIndexed(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	seq := k.message(t, "old", 9, hour)
	k.message(t, "older", 30, hour)
	k.message(t, "young", 5, hour)
	k.exec(t, `update dispatcher.id_turns set since = clock_timestamp() - interval '8 days'`)
	suffix := strings.ReplaceAll((k.today - 9).String(), "-", "")
	kept := k.keep(t, week)
	if want := []ledger.Day{k.today - 30, k.today - 9}; !cmp.Equal(kept.Indexed, want) ||
		!kept.Turned {
		t.Errorf("%+v, want indexed %v", kept, want)
	}
	if got := scalar[int64](t, k.db, `select dispatcher.seq_of('old')`); got != seq {
		t.Errorf("found %d, want %d", got, seq)
	}
	k.exec(t, `set enable_seqscan = off`) // the table is small
	rows, err := k.db.Query(t.Context(), fmt.Sprintf(`explain select seq from dispatcher.past_ids
		where id = 'old' and seq >= %d and seq < %d`, int64(k.today-9)<<36, int64(k.today-8)<<36))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !strings.Contains(strings.Join(plan, ""), "past_ids_"+suffix+"_id_idx") {
		t.Errorf("not by the index: %s, %v", plan, err)
	}
}

func TestPayloadsAreDroppedWithTheirDay(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "alive", 9, never)
	k.message(t, "ended-lately", 9, 24*hour)
	k.message(t, "ended", 9, 8*24*hour)
	k.message(t, "younger", 7, 7*24*hour) // its day ended less than seven days ago
	kept := k.keep(t, week)
	if want := []ledger.Day{k.today - 9}; !cmp.Equal(kept.Payloads, want) {
		t.Errorf("dropped %v, want %v", kept.Payloads, want)
	}
	if got := k.payloads(t); got != "alive ended-lately younger" {
		t.Errorf("there are %s", got)
	}
	// What is kept is kept with its salt.
	if got := scalar[string](t, k.db, `select string_agg(id || ' ' || payload, ', ' order by id)
		from facts.payload_evidence`); got !=
		"alive intact, ended gone, ended-lately intact, younger intact" {
		t.Errorf("the payloads are %s", got)
	}
	if again := k.keep(t, week); again.Any() {
		t.Errorf("a second call did %+v", again)
	}
	// The message ends, and its payload goes a week later.
	k.exec(t, `update dispatcher.messages set state = 'delivered', finished_at = now()
		where id = 'alive'; update dispatcher.days set looked_at = null`)
	if kept := k.keep(t, week); kept.Late != 0 {
		t.Errorf("dropped %d at the end of the message", kept.Late)
	}
	k.exec(t, `update dispatcher.messages set finished_at = now() - interval '8 days'
		where id = 'alive'; update dispatcher.days set looked_at = null`)
	if kept := k.keep(t, week); kept.Late != 1 || k.payloads(t) != "ended-lately younger" {
		t.Errorf("dropped %d, there are %s", kept.Late, k.payloads(t))
	}
}

// TestAMessageThatWaitedLongerThanPayloadsAreKeptIsSent: its payload is kept when those of its day
// are dropped, whether it was scheduled, waits for a slot or is to be tried again.
func TestAMessageThatWaitedLongerThanPayloadsAreKeptIsSent(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	apply(t, k.l, ledger.ChannelSpec{Name: "a"})
	k.message(t, "ended", 9, 8*24*hour)
	want := map[string]string{}
	for _, state := range []ledger.State{ledger.Scheduled, ledger.Waiting, ledger.Retry} {
		id := string(state)
		seq := k.message(t, id, 9, 8*24*hour)
		want[id] = `{"id":"` + id + `","to":"+447700900123","text":"hello"}`
		// Such a message was stored in this state nine days ago.
		k.exec(t, `delete from dispatcher.messages where seq = $1`, seq)
		k.exec(t, `insert into dispatcher.messages (seq, id, lane, tenant, state, attempts, next_at,
			send_at, waiting_since) values ($1, $2, 'otp', 'shop', $3, $4, now() - interval '1 second',
			case when $3 = 'scheduled' then now() - interval '1 second' end,
			case when $3 = 'waiting' then now() - interval '9 days' end)`, seq, id, state,
			map[bool]int{true: 1, false: 0}[state == ledger.Retry])
	}
	k.keep(t, week)
	if got := k.payloads(t); got != "retry scheduled waiting" {
		t.Fatalf("there are the payloads of %s", got)
	}
	got := map[string]string{}
	err := runClaim(t.Context(), k.l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
			for i := range seen.Messages {
				got[seen.Messages[i].ID] = string(seen.Messages[i].Envelope)
			}
			return d, nil
		})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// An operator may still resolve an ambiguous submission so that it is sent again.
func TestAMessageThatMayBeSentAgainKeepsItsPayload(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	for id, closed := range map[string]string{
		"open": "null", "closed-lately": "now() - interval '1 day'",
		"closed": "now() - interval '8 days'",
	} {
		seq := k.message(t, id, 9, 8*24*hour)
		k.exec(t, `delete from dispatcher.messages where seq = $1`, seq)
		k.exec(t, `insert into dispatcher.messages (seq, id, lane, state, attempts,
			finished_at) values ($1, $2, 'otp', 'unknown', 1, now() - interval '8 days')`, seq, id)
		k.exec(t, `insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, until,
			next_at, closed_at, verdict) values ($1, 'k', 1, 1, 'none', now(),
			case when `+closed+` is null then now() end, `+closed+`,
			case when `+closed+` is not null then 'final' end)`, seq)
	}
	k.keep(t, week)
	if got := k.payloads(t); got != "closed-lately open" {
		t.Errorf("there are %s", got)
	}
}

// A message that is sent again while the payloads of its day are about to be dropped keeps its
// payload.
func TestAMessageThatComesToLifeMeanwhileKeepsItsPayload(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "ended", 9, 8*24*hour)
	seq := k.message(t, "revived", 9, 8*24*hour)
	k.exec(t, `delete from dispatcher.messages where seq = $1`, seq)
	k.exec(t, `insert into dispatcher.messages (seq, id, lane, state, attempts, finished_at)
		values ($1, 'revived', 'otp', 'unknown', 1, now() - interval '8 days')`, seq)
	reader := raw(t, k.url)
	if _, err := reader.Exec(t.Context(),
		`begin; select from dispatcher.payloads limit 1`); err != nil {
		t.Fatal(err)
	}
	first := make(chan error, 1)
	go func() {
		_, err := k.l.Days.Keep(t.Context(), week)
		first <- err
	}()
	for !scalar[bool](t, k.db, `select exists (select from pg_locks l join pg_class c
		on c.oid = l.relation where c.relname like 'payloads_%' and not l.granted)`) {
		time.Sleep(time.Millisecond)
	}
	k.exec(t, `update dispatcher.messages set state = 'retry', next_at = now(), finished_at = null
		where seq = $1`, seq)
	if _, err := reader.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		k.keep(t, week) // the machine was so slow that it gave up
	}
	if got := k.payloads(t); got != "revived" {
		t.Errorf("there are %s", got)
	}
}

// When many messages of a day have not ended, their payloads are not copied; those of the others
// are deleted.
func TestPayloadsOfADayThatMostlyLivesAreDeletedOneByOne(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	seq := k.message(t, "ended", 9, 8*24*hour)
	const living = 20_001
	k.exec(t, `set session_replication_role = replica`) // no row in due: they would take most of the time
	k.exec(t, `insert into dispatcher.messages (seq, id, lane, state, next_at)
		select $1::bigint + n, 'm' || n, 'bulk', 'scheduled', now() + interval '30 days'
		from generate_series(1, $2::integer) n`, seq, living)
	k.exec(t, `insert into dispatcher.payloads (seq, digest, envelope)
		select $1::bigint + n, 1, 'x' from generate_series(1, $2::integer) n`, seq, living)
	kept := k.keep(t, week)
	if kept.Late != 1 || len(kept.Payloads) != 1 || k.ages(t, "kept = 20001") != "9" {
		t.Errorf("%+v", kept)
	}
	if n := scalar[int](t, k.db, `select count(*) from dispatcher.payloads`); n != living {
		t.Errorf("%d are left", n)
	}
	// All of them end.
	k.exec(t, `update dispatcher.messages set state = 'failed', next_at = null,
		finished_at = now() - interval '8 days' where state = 'scheduled'`)
	k.exec(t, `update dispatcher.days set looked_at = null`)
	if kept := k.keep(t, week); kept.Late != living || k.ages(t, "kept > 0") != "" {
		t.Errorf("%+v", kept)
	}
}

// TestAnAcceptedMessageEndsWhenNoReceiptIsAwaited, both in state sending and in state accepted.
func TestAnAcceptedMessageEndsWhenNoReceiptIsAwaited(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	for _, id := range []string{"plain", "plain-awaits", "settled-late", "told", "under-way"} {
		seq := k.message(t, id, 20, never)
		if id != "told" {
			k.exec(t, `alter table dispatcher.messages disable trigger user`)
			k.exec(t, `update dispatcher.messages set state = 'sending' where seq = $1`, seq)
		}
		if id != "plain-awaits" {
			k.exec(t, `delete from dispatcher.receipts where message_seq = $1`, seq)
		}
		k.exec(t, `update dispatcher.attempts set settled_at = now() - interval '8 days'
			where message_seq = $1`, seq)
		switch id {
		case "settled-late":
			k.exec(t, `update dispatcher.attempts set settled_at = now() - interval '6 days'
				where message_seq = $1`, seq)
		case "under-way":
			k.exec(t, `update dispatcher.attempts set settled_at = null, outcome = null, answers = 0
				where message_seq = $1`, seq)
		}
	}
	k.keep(t, week)
	if got := k.payloads(t); got != "plain-awaits settled-late under-way" {
		t.Errorf("there are %s", got)
	}
}

func TestADayIsDroppedWithAllThatRefersToIt(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	dropped := k.message(t, "old", 120, 90*24*hour)
	k.exec(t, `insert into dispatcher.held values ($1, 1, now())`, dropped)
	k.exec(t, `insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, until,
		closed_at, verdict) values ($1, 'k', 1, 1, 'none', now(), now(), 'taken')`, dropped)
	k.message(t, "also-old", 101, 90*24*hour)
	seq := k.message(t, "alive", 110, never)
	k.message(t, "young", 99, hour)
	// It was scheduled far ahead. The day on which it was sent may be closed again.
	k.message(t, "late", 105, 49*24*hour)
	kept := k.keep(t, week)
	if want := []ledger.Day{k.today - 120, k.today - 101}; !cmp.Equal(kept.Facts, want) {
		t.Errorf("dropped %v, want %v", kept.Facts, want)
	}
	if want := []ledger.LivingDay{
		{Day: k.today - 110, Living: 1}, {Day: k.today - 105, Living: 1},
	}; !cmp.Equal(kept.Skipped, want) {
		t.Errorf("skipped %v, want %v", kept.Skipped, want)
	}
	const left = `select string_agg(m.id, ' ' order by id) from dispatcher.messages m
		join dispatcher.all_attempts a on a.message_seq = m.seq`
	if got := scalar[string](t, k.db, left); got != "alive late young" {
		t.Errorf("there are %s", got)
	}
	if got := scalar[string](t, k.db, `select string_agg(reference, ' ' order by reference)
		from dispatcher.receipts`); got != "ref-alive ref-young" {
		t.Errorf("there are receipts %s", got)
	}
	if n := scalar[int](t, k.db, `select (select count(*) from dispatcher.held)
		+ (select count(*) from dispatcher.ambiguous)`); n != 0 {
		t.Errorf("%d other rows refer to dropped messages", n)
	}
	if got := k.ages(t, "day < $1"); got != "99 105 110" {
		t.Errorf("there are days %s", got)
	}
	if n := scalar[int](t, k.db, `select count(*) from pg_class where relname ~ $1`,
		strings.ReplaceAll((k.today-120).String(), "-", "")); n != 0 {
		t.Errorf("%d relations of the day are left", n)
	}
	// The last message of the day has ended.
	k.exec(t, `update dispatcher.messages set state = 'no_receipt',
		finished_at = now() - interval '51 days' where seq = $1`, seq)
	if kept := k.keep(t, week); len(kept.Facts) != 0 || len(kept.Skipped) != 2 {
		t.Errorf("looked again at once: %+v", kept)
	}
	k.exec(t, `update dispatcher.days set looked_at = looked_at - interval '2 hours'`)
	if kept := k.keep(t, week); len(kept.Facts) != 1 {
		t.Errorf("not dropped after its end: %+v", kept)
	}
}

// TestADayThatIsKeptLongerLosesItsLatePayloads: it is older than the ledger's retention, and both
// the count of living messages and the search for late payloads look at it.
func TestADayThatIsKeptLongerLosesItsLatePayloads(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "alive", 110, never)
	ends := k.message(t, "ends", 110, never)
	k.keep(t, week)
	k.exec(t, `update dispatcher.messages set state = 'no_receipt',
		finished_at = now() - interval '8 days' where seq = $1`, ends)
	for range 3 { // hours
		k.exec(t, `update dispatcher.days set looked_at = looked_at - interval '61 minutes'`)
		k.keep(t, week)
	}
	if got := k.payloads(t); got != "alive" {
		t.Errorf("there are the payloads of %s", got)
	}
	if got := k.ages(t, "living > 0"); got != "110" {
		t.Errorf("kept are the days %s", got)
	}
	if got := k.cleaned(t); got != "110" {
		t.Errorf("the days whose pages are cleaned: %s", got)
	}
}

// TestWhoHasKeptTheDaysLeavesNoLock, so that a call right after it can take it.
func TestWhoHasKeptTheDaysLeavesNoLock(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	for range tier.Size(20, 100) {
		if k.keep(t, week).Elsewhere {
			t.Fatal("the lock is taken")
		}
	}
}

func TestOneInstanceKeepsTheDaysAtATime(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "old", 120, 90*24*hour)
	// A transaction that reads the messages holds up the first call.
	reader := raw(t, k.url)
	if _, err := reader.Exec(t.Context(),
		`begin; select from dispatcher.messages limit 1`); err != nil {
		t.Fatal(err)
	}
	first := waiting(t, k.db, func() error {
		_, err := k.l.Days.Keep(t.Context(), week)
		return err
	})
	other := connect(t, ledger.Config{URL: k.url})
	if kept, err := other.Days.Keep(t.Context(), week); err != nil || !kept.Elsewhere || kept.Any() {
		t.Errorf("the other did %+v, %v", kept, err)
	}
	if _, err := reader.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
	if got := k.ages(t, "day < $1"); got != "" {
		t.Errorf("there are days %s", got)
	}
}

// Many instances call Keep concurrently and repeatedly. The work is done once.
func TestInstancesKeepTheDaysTogether(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	for age := 98; age < 104; age++ {
		k.message(t, fmt.Sprint("m", age), age, 90*24*hour)
	}
	var dropped atomic.Int64
	var running sync.WaitGroup
	for range 4 {
		l := connect(t, ledger.Config{URL: k.url})
		running.Go(func() {
			for range 5 {
				kept, err := l.Days.Keep(t.Context(), week)
				if err != nil {
					t.Error(err)
				}
				dropped.Add(int64(len(kept.Facts)))
			}
		})
	}
	running.Wait()
	if got := k.ages(t, "day < $1"); dropped.Load() != 3 || got != "98 99 100" {
		t.Errorf("dropped %d days, there are %s", dropped.Load(), got)
	}
}

// cutter ends the session of Keep before its n-th statement.
type cutter struct {
	url   string
	n     int
	seen  int
	fired bool
}

func (c *cutter) TraceQueryStart(
	ctx context.Context, conn *pgx.Conn, query pgx.TraceQueryStartData,
) context.Context {
	if conn.Config().RuntimeParams["statement_timeout"] != "0" {
		return ctx // of a pool
	}
	if strings.Contains(query.SQL, "pg_advisory_unlock") {
		return ctx // all has been done by then
	}
	if c.seen++; c.seen != c.n {
		return ctx
	}
	killer, err := pgx.Connect(ctx, c.url)
	if err != nil {
		return ctx
	}
	defer killer.Close(ctx) //nolint:errcheck // Nothing depends on it.
	_, err = killer.Exec(ctx, `select pg_terminate_backend($1, 10000)`, conn.PgConn().PID())
	c.fired = err == nil
	return ctx
}

func (*cutter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestAKeeperThatIsCutOffAnywhereIsFollowedByAnother ends the session before each of its statements
// in turn. In every case the next call completes the work.
func TestAKeeperThatIsCutOffAnywhereIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	c := &cutter{url: k.url}
	l := connect(t, ledger.Config{URL: k.url, Tracer: c})
	suffix := strings.ReplaceAll((k.today - 9).String(), "-", "")
	for n := 1; ; n += tier.Size(11, 1) {
		k.message(t, fmt.Sprint("old", n), 120, 90*24*hour)
		k.message(t, fmt.Sprint("alive", n), 9, never)
		k.message(t, fmt.Sprint("ended", n), 9, 8*24*hour)
		k.exec(t, `update dispatcher.id_turns
			set turn = 0, since = clock_timestamp() - interval '8 days'`)
		c.n, c.seen, c.fired = n, 0, false
		_, err := l.Days.Keep(t.Context(), week)
		if c.fired != (err != nil) {
			t.Fatalf("cut %v before statement %d: %v", c.fired, n, err)
		}
		k.keep(t, week)
		got := fmt.Sprintf("%s, %s, turn %d, indexed %s, payloads of %s", k.ages(t, "day < $1"),
			k.payloads(t), scalar[int](t, k.db, `select turn from dispatcher.id_turns`),
			k.ages(t, "ids_indexed and day < $1"), k.ages(t, "payloads and day < $1"))
		want := fmt.Sprintf("9, alive%d, turn 1, indexed 9, payloads of ", n)
		if got != want {
			t.Fatalf("cut before statement %d: %s, want %s", n, got, want)
		}
		if !c.fired {
			if n < 30 {
				t.Errorf("only %d statements were seen", n-1)
			}
			return
		}
		k.exec(t, `drop table dispatcher.past_ids_`+suffix+`;
			update dispatcher.days set payloads = true, ids_indexed = false, looked_at = null;
			delete from dispatcher.receipts; delete from dispatcher.payloads;
			delete from dispatcher.attempts; delete from dispatcher.messages`)
	}
}

// While a long query reads the day, the day stays until the next call, and claims do not wait.
func TestADayThatSomebodyReadsIsDroppedByTheNextCall(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "old", 120, 90*24*hour)
	reader := raw(t, k.url)
	if _, err := reader.Exec(t.Context(),
		`begin; select from dispatcher.payloads limit 1`); err != nil {
		t.Fatal(err)
	}
	if _, err := k.l.Days.Keep(t.Context(), week); !ledger.Unavailable(err) {
		t.Errorf("while somebody reads: %v", err)
	}
	if got := k.ages(t, "dropping and day < $1"); got != "120" {
		t.Errorf("on their way out are days %s", got)
	}
	if _, err := reader.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	k.keep(t, week)
	if got := k.ages(t, "day < $1"); got != "" {
		t.Errorf("there are days %s", got)
	}
}

// The owner of the schema sets the minimum retention of days, whatever a dispatcher asks for.
func TestNoDayIsDroppedThatTheOwnerKeeps(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "old", 120, 90*24*hour)
	k.exec(t, `update dispatcher.least_kept set facts = '200 days'`)
	if kept := k.keep(t, week); kept.Facts != nil || k.ages(t, "dropping") != "" {
		t.Errorf("a day that is to be kept: %v", kept.Facts)
	}
	k.exec(t, `update dispatcher.days set dropping = true where day = $1`, k.today-120)
	_, err := k.l.Days.Keep(t.Context(), week) // as if it had been chosen in spite of that
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pg.Code != "42501" || !strings.Contains(pg.Message, "keeps it longer") {
		t.Errorf("a day that is to be kept: %v", err)
	}
	k.exec(t, `update dispatcher.least_kept set facts = '100 days'`)
	if kept := k.keep(t, week); !cmp.Equal(kept.Facts, []ledger.Day{k.today - 120}) {
		t.Errorf("dropped %v", kept.Facts)
	}
}

// Claims are not held up: Keep waits only briefly for a running claim, and tries again later.
func TestTheTurnOfIDsStepsBackForAClaim(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.exec(t, `update dispatcher.id_turns set since = clock_timestamp() - interval '8 days'`)
	claim := raw(t, k.url)
	if _, err := claim.Exec(t.Context(),
		`begin; insert into dispatcher.ids_0 values ('x', 1)`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		kept, err := k.l.Days.Keep(t.Context(), week)
		if err == nil && !kept.Turned {
			err = errors.New("not turned")
		}
		done <- err
	}()
	waits := `select exists (select from pg_locks where relation = 'dispatcher.ids_0'::regclass
		and not granted)`
	for _, want := range []bool{true, false, true} { // it waits, steps back, and waits again
		for scalar[bool](t, k.db, waits) != want {
			select {
			case err := <-done:
				t.Fatalf("it did not wait again: %v", err)
			case <-time.After(time.Millisecond):
			}
		}
	}
	if _, err := claim.Exec(t.Context(), `commit`); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRetentionMustFitTogether(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for r, want := range map[ledger.Retention]bool{
		{IDs: day, Payloads: day, Facts: day}:         true,
		{IDs: day, Payloads: day, Facts: 2 * day}:     true,
		{IDs: day - 1, Payloads: day, Facts: day}:     false,
		{IDs: day, Payloads: day - 1, Facts: day}:     false,
		{IDs: 2 * day, Payloads: day, Facts: day}:     false,
		{IDs: day, Payloads: 2 * day, Facts: day}:     false,
		{IDs: 2 * day, Payloads: day, Facts: 3 * day}: true,
	} {
		if got := r.Validate() == nil; got != want {
			t.Errorf("%+v: %v", r, got)
		}
	}
}
