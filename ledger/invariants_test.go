package ledger_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// grace is the InvariantScope.Grace of these tests.
const grace = 10 * time.Minute

// everything is the scope of all that a test's database has.
func everything() ledger.InvariantScope {
	today := ledger.DayAt(time.Now())
	return ledger.ScopeOf(today-3, today+3, grace)
}

// violations are the sentences of violated invariants, by name, of the named ones or of all.
func violations(t testing.TB, db *pgx.Conn, names ...string) map[string][]string {
	t.Helper()
	scope, found := everything(), map[string][]string{}
	for i := range ledger.Invariants {
		one := &ledger.Invariants[i]
		if len(names) > 0 && !slices.Contains(names, one.Name) {
			continue
		}
		rows, err := db.Query(t.Context(), one.SQL(&scope))
		if err != nil {
			t.Errorf("%s: %v", one.Name, err)
			return found
		}
		details, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Errorf("%s: %v", one.Name, err)
			return found
		}
		if len(details) > 0 {
			found[one.Name] = details
		}
	}
	return found
}

// always are the invariants that hold whatever is decided about messages, so that they can be
// checked by tests with decisions of their own.
var always = []string{
	"waiting_is_due", "waiting_has_its_payload", "sending_is_under_way",
	"awaited_receipts_are_found", "attempts_are_numbered", "one_attempt_at_a_time", "ids_are_recognised", "ambiguities_have_attempts", "windows_hold",
	"windows_do_not_overlap", "active_is_what_is_held", "held_is_what_attempts_hold",
	"receipts_have_attempts", "versions_follow_each_other",
}

// amiss are the violations of some invariants as text; empty when there are none.
func amiss(t testing.TB, db *pgx.Conn, names ...string) string {
	t.Helper()
	found := violations(t, db, names...)
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprint(found)
}

// throughout checks the invariants in always repeatedly while others write, until the returned
// function is called, and at least twice.
func throughout(t *testing.T, url string) (over func()) {
	t.Helper()
	db, done := raw(t, url), make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for looked := 1; ; looked++ {
			if got := amiss(t, db, always...); got != "" {
				t.Error("while it is written: " + got)
				return
			}
			select {
			case <-done:
				if looked >= 2 {
					return
				}
			// This leaves the processors to the writers.
			case <-time.After(tier.Size(25*time.Millisecond, 5*time.Millisecond)):
			}
		}
	})
	return func() {
		close(done)
		watch.Wait()
	}
}

// TestGuaranteesOfInvariantsAreThoseOfTheDesign: the files and DESIGN.md use the same words.
func TestGuaranteesOfInvariantsAreThoseOfTheDesign(t *testing.T) {
	t.Parallel()
	design, err := os.ReadFile("../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range ledger.Invariants {
		one := &ledger.Invariants[i]
		row := fmt.Sprintf("\n| %d | **%s", one.Number, one.Guarantee)
		if !strings.Contains(string(design), row) {
			t.Errorf("%s: DESIGN.md has no guarantee %d %q", one.Name, one.Number, one.Guarantee)
		}
		if !strings.HasSuffix(one.Sentence, ".") {
			t.Errorf("%s: %q is not a sentence", one.Name, one.Sentence)
		}
	}
}

// everyKind fills a ledger with a message of every kind: m-00000 accepted, with a slot that is held
// until its receipt; 1 accepted; 2 unknown, with a search; 3 without answer; 4 about to be sent
// again; 5 rejected; 6 delivered; 7 sent twice, and flagged; 8 accepted by a, and without a receipt
// by b as well.
func everyKind(t testing.TB, r *rig) {
	t.Helper()
	apply(t, r.l, ledger.ChannelSpec{
		Name: "a", ActiveMax: 40,
		Limits: []admission.Limit{limit(admission.Minute, 100), limit(admission.Day, 1000)},
	}, ledger.ChannelSpec{Name: "b"})
	execute(t, r.db, `update dispatcher.limits set since = now() - interval '2 days'`)
	m := claimAll(t, r.l, batch("m", 9), "a").Messages
	held := accepted(m[:1])
	held[0].Await, held[0].Hold = time.Hour, time.Hour
	lost := unknown(m[2])
	lost.Ambiguity = &ledger.Ambiguity{
		Key: "k", Step: ledger.Lookup, Until: time.Now().Add(time.Hour),
		NextAt: time.Now().Add(time.Hour),
	}
	rejected := accepted(m[5:6])
	rejected[0].Outcome, rejected[0].State, rejected[0].Reference = provider.Rejected,
		ledger.Rejected, ""
	delivered := accepted(m[6:7])
	delivered[0].Await = time.Hour
	resent := unknown(m[7])
	resent.State, resent.Reason, resent.PossibleDuplicate = ledger.Retry, "unknown", true
	for _, s := range [][]ledger.Settlement{
		held, accepted(m[1:2]), {lost}, throttled(m[4:5], 0), rejected, delivered, {resent},
	} {
		settleAll(t, r.l, s)
	}
	receive(t, r.l, receipt("ref-m-00006", provider.Delivered))
	execute(t, r.db, `update dispatcher.messages set next_at = now() + interval '1 hour'
		where id = 'm-00004'`)
	if err := runClaim(t.Context(), r.l, ledger.Claim{Due: 10, Channels: []string{"a"}},
		give); err != nil {
		t.Fatal(err)
	}
	second := m[7]
	second.Attempts = 1
	execute(t, r.db, ledgertest.StoreOpen)
	settleAll(t, r.l, accepted([]ledger.Message{second}))
	goOnTo(t, r.l, "b", m[8])
}

// old moves everything two hours into the past. Its instance has run since then.
const old = `
	update dispatcher.instances set beating_since = now() - interval '3 hours',
	  last_seen = clock_timestamp(), oldest_open_at = now() - interval '2 hours';
	update dispatcher.routing_versions set created_at = created_at - interval '3 hours';
	update dispatcher.messages set received_at = received_at - interval '2 hours';
	update dispatcher.attempts set claimed_at = claimed_at - interval '2 hours';`

// TestInvariantsNameWhatIsBroken violates each invariant by hand: only that one reports it.
func TestInvariantsNameWhatIsBroken(t *testing.T) {
	t.Parallel()
	r := lend(t)
	everyKind(t, r)
	if found := violations(t, r.db); len(found) > 0 {
		t.Fatalf("nothing was broken: %v", found)
	}
	const of = ` (select seq from dispatcher.messages where id = '%s')`
	sabotages := []struct{ invariant, sql, detail string }{
		{
			"waiting_is_due", `delete from dispatcher.due where seq in` + fmt.Sprintf(of, "m-00004"),
			"message m-00004 is retry, but has no row in due",
		},
		{"waiting_is_due", `update dispatcher.due set lane = 'x'`, "the row of message m-00004 in due differs"},
		{
			"waiting_is_due", `insert into dispatcher.due select seq, now(), null, lane, tenant, 'retry'
				from dispatcher.messages where id = 'm-00001'`, "does not wait",
		},
		{
			"waiting_has_its_payload", `delete from dispatcher.payloads`,
			"message m-00004 is retry, and its number and text are gone",
		},
		{
			"sending_is_under_way", `update dispatcher.attempts set outcome = 'refused'
				where message_seq in` + fmt.Sprintf(of, "m-00001"),
			"message m-00001 is being sent, but its attempt 1 was refused",
		},
		{"lost_attempts_are_closed", old, "attempt 1 of message m-00003 on channel a was claimed at"},
		{
			"overdue_is_looked_at", old + `update dispatcher.ambiguous set next_at = now() - interval '2 hours';
				update dispatcher.attempts set claimed_at = now() where outcome is null`,
			"unanswered submissions have been due since",
		},
		{"awaited_receipts_are_found", `delete from dispatcher.awaited`, "no instance will check for a receipt"},
		{
			"unknown_is_searched", `update dispatcher.ambiguous set closed_at = now(), next_at = null,
				verdict = 'final'`, "message m-00002 is unknown, and the dispatcher does not",
		},
		{
			"states_follow_from_attempts", `update dispatcher.messages set state = 'failed', finished_at = now()
				where id = 'm-00001'`, "message m-00001 is failed, which follows from none",
		},
		{
			"states_follow_from_attempts", `update dispatcher.messages set state = 'delivered', finished_at = now()
				where id = 'm-00000'`, "message m-00000 is delivered, which follows from none",
		},
		{
			"attempts_are_numbered", `update dispatcher.messages set attempts = 2 where id = 'm-00005'`,
			"message m-00005 counts 2 attempts, and has 1, numbered from 1 to 1",
		},
		{
			"attempts_are_numbered", `delete from dispatcher.messages where id = 'm-00005';
				delete from dispatcher.ids_0 where id = 'm-00005'`,
			"which does not exist",
		},
		{
			"one_attempt_at_a_time", `update dispatcher.messages set state = 'retry', next_at = now()
				where id = 'm-00003'`, "message m-00003 is retry, though its attempt 1 has no outcome",
		},
		{
			"maybe_taken_once", `update dispatcher.messages set possible_duplicate = false`,
			"message m-00007 may have been taken 2 times, and is not flagged",
		},
		{
			"maybe_taken_once", `with n as (update dispatcher.messages set attempts = 3
				  where id = 'm-00007' returning seq)
				insert into dispatcher.attempts select message_seq, instance, now(), null, null, price_micros, 3,
				  segments, 'c', 'retry', currency, null, now(), null, null, 1, null, null, 'accepted', 'x'
				from dispatcher.all_attempts a, n where a.message_seq = n.seq and a.attempt = 1`,
			"message m-00007 may have been taken 3 times",
		},
		{
			"maybe_taken_once", `update dispatcher.messages set possible_duplicate = false where id = 'm-00008'`,
			"message m-00008 may have been taken 2 times, and is not flagged",
		},
		{
			"without_receipt_once_a_channel", `update dispatcher.attempts set outcome = 'refused'
				where attempt = 1 and message_seq in` + fmt.Sprintf(of, "m-00008"),
			"message m-00008 was sent on to channel b in attempt 2, and no earlier attempt was accepted",
		},
		{
			"without_receipt_once_a_channel", `update dispatcher.attempts set channel = 'b'
				where attempt = 1 and message_seq in` + fmt.Sprintf(of, "m-00008"),
			"message m-00008 was sent on to channel b in attempt 2, which may have taken it before",
		},
		{
			"nothing_after_its_deadline", `update dispatcher.messages m set expires_at = a.claimed_at
				from dispatcher.all_attempts a where a.message_seq = m.seq and m.id = 'm-00001'`,
			"attempt 1 of message m-00001 was claimed at",
		},
		{
			"nothing_after_its_deadline", `update dispatcher.attempts set leaves_at = now() + interval '1 day'
				where outcome = 'rejected'`, "attempt 1 of message m-00005 was to leave at",
		},
		{"ids_are_recognised", `delete from dispatcher.ids_0 where id = 'm-00001'`, "would not be recognised"},
		{
			"ids_are_recognised", `update dispatcher.ids_0 set seq = 7 where id = 'm-00001'`,
			"has an id that was given to number 7",
		},
		{"ambiguities_have_attempts", `update dispatcher.ambiguous set last = 2`, "1 of them exist"},
		{
			"windows_hold", `alter table dispatcher.limits drop constraint limits_granted;
				update dispatcher.limits set granted = max + 1 where window_seconds = 60`,
			"(channel a)",
		},
		{
			"windows_do_not_overlap", `insert into dispatcher.limit_history (channel, scope, window_seconds,
				  unit, window_start, max, granted)
				select channel, scope, window_seconds, unit, window_start, 1000, 1000 from dispatcher.limits
				where window_seconds = 60`, "which is over already",
		},
		{
			"budgets_hold", `insert into dispatcher.top_ups (channel, scope, currency, micros, before, granted,
				  author, reason) values ('', 'tenant:shop', 'GBP', 5, 7, 0, 'ann', 'none')`,
			"of the budget tenant:shop says that 7 micros of GBP came before it, and they are 0",
		},
		{ // how many depends on whether a minute, or a day, has just begun
			"windows_count_all", `update dispatcher.limits set granted = granted - 1 where window_seconds = 60`,
			"messages of channel a were claimed in the 60 s from",
		},
		{
			"windows_count_all", `update dispatcher.limits set granted = granted - 1 where window_seconds = 86400`,
			"messages of channel a were claimed in the 86400 s from",
		},
		{
			"active_is_what_is_held", `update dispatcher.channels set active = active - 1 where channel = 'a'`,
			"channel a counts 1 in flight, and 2 hold a slot",
		},
		{
			"active_is_what_is_held", `delete from dispatcher.channels where channel = 'a'`,
			"2 attempts hold a slot of channel a, which does not exist",
		},
		{
			"held_is_what_attempts_hold", `update dispatcher.held set held_until = held_until + interval '1 s'`,
			"the time of attempt 1",
		},
		{
			"choices_have_what_they_need", `update dispatcher.messages set routing_version = 99
				where id = 'm-00001'`, "message m-00001: its routing version 99 does not exist",
		},
		{
			"choices_have_what_they_need", `update dispatcher.messages set draw_key_id = null
				where id = 'm-00001'`, "message m-00001: its draw has no key",
		},
		{
			"choices_have_what_they_need", `update dispatcher.attempts set reason = 'fallback'
				where message_seq in` + fmt.Sprintf(of, "m-00001"), "message m-00001: attempt 1 is a fallback",
		},
		{"receipts_have_attempts", `update dispatcher.receipts set attempt = 7`, "which does not exist"},
		{
			"versions_follow_each_other", `insert into dispatcher.routing_versions (version, author, document)
				values (3, 'x', 'x')`, "routing version 3 follows version 1",
		},
		{
			"claims_follow_the_version", `update dispatcher.attempts set claimed_at = claimed_at - interval '1 hour'
				where message_seq in` + fmt.Sprintf(of, "m-00001"), "message m-00001 was claimed under version 1",
		},
		{ // a document was applied four seconds before the claims
			"claims_follow_the_version", `with first as (
				  update dispatcher.routing_versions set created_at = created_at - interval '10 seconds')
				insert into dispatcher.routing_versions (version, author, document, base, created_at)
				select 2, 'x', document, 2, created_at - interval '4 seconds'
				from dispatcher.routing_versions`, "m-00001 was claimed under version 1",
		},
	}
	broken := map[string]bool{}
	for _, s := range sabotages {
		broken[s.invariant] = true
		execute(t, r.db, `begin`)
		execute(t, r.db, s.sql)
		found := violations(t, r.db)
		execute(t, r.db, `rollback`)
		if len(found) != 1 || !strings.Contains(strings.Join(found[s.invariant], "\n"), s.detail) {
			t.Errorf("%s, after %s: %v", s.invariant, s.sql, found)
		}
	}
	for i := range ledger.Invariants {
		if name := ledger.Invariants[i].Name; !broken[name] {
			t.Errorf("nobody breaks %s", name)
		}
	}
}

// TestALimitDoesNotCountWhatWasClaimedBeforeItBegan, though it leaves in a second of the limit.
func TestALimitDoesNotCountWhatWasClaimedBeforeItBegan(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	claimAll(t, r.l, batch("m", 3), "a")
	execute(t, r.db, ledgertest.StoreOpen)
	execute(t, r.db, `
		update dispatcher.attempts set leaves_at = date_trunc('second', claimed_at) + interval '1 s';
		insert into dispatcher.limits (channel, scope, window_seconds, unit, configured_max, max,
		  window_start, granted, since)
		select 'a', 'channel', 1, 'messages', 9, 9, max(leaves_at), 1,
		  max(claimed_at) + interval '1 microsecond' from dispatcher.all_attempts`)
	if found := amiss(t, r.db, "windows_count_all"); found != "" {
		t.Errorf("claimed before the limit began: %s", found)
	}
	execute(t, r.db, `update dispatcher.limits set since = since - interval '1 microsecond'`)
	if found := amiss(t, r.db, "windows_count_all"); !strings.Contains(found, "3 messages") {
		t.Errorf("got %q, want that 3 messages were claimed", found)
	}
}

// TestALimitDoesNotCountWhatIsClaimedAfterItEnded: the second in which it was removed is in the
// history already, because a later one is open. That holds also when the limit comes back.
func TestALimitDoesNotCountWhatIsClaimedAfterItEnded(t *testing.T) {
	t.Parallel()
	r := lend(t)
	with, without := ledger.ChannelSpec{
		Name: "a", Limits: []admission.Limit{limit(admission.Second, 9)},
	}, ledger.ChannelSpec{Name: "a"}
	apply(t, r.l, with)
	claimAll(t, r.l, batch("m", 3), "a")
	execute(t, r.db, ledgertest.StoreOpen)
	// the seconds lie ahead, so that they do not end during the test
	execute(t, r.db, `
		update dispatcher.attempts set leaves_at = date_trunc('second', claimed_at) + interval '5 s';
		delete from dispatcher.limit_history;
		update dispatcher.limits set since = since - interval '1 minute', granted = 0,
		  window_start = (select max(leaves_at) + interval '1 s' from dispatcher.all_attempts);
		insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start, max,
		  granted, since)
		select channel, scope, window_seconds, unit, window_start - interval '1 s', 9, 1, since
		from dispatcher.limits`)
	if found := amiss(t, r.db, "windows_count_all"); !strings.Contains(found, "3 messages") {
		t.Errorf("got %q, want that 3 messages were claimed", found)
	}
	for i, spec := range []ledger.ChannelSpec{without, with} {
		apply(t, r.l, spec)
		if found := amiss(t, r.db, "windows_count_all"); found != "" {
			t.Errorf("change %d: %s", i+1, found)
		}
	}
}

// TestACheckInTheBackgroundLooksAtTheLastMessages only, however many the ledger holds.
func TestACheckInTheBackgroundLooksAtTheLastMessages(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	named := func(prefix string) ledger.Message {
		return claimAll(t, r.l, batch(prefix, 1), "a").Messages[0]
	}
	before := named("before")
	execute(t, r.db, `update dispatcher.messages set received_at = now() - interval '1 hour'`)
	now := named("now")
	scope, err := r.l.Audits.Recent(t.Context(), grace)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ledger.Invariants {
		one := &ledger.Invariants[i]
		s := scope(one)
		if all := one.Name == "lost_attempts_are_closed"; s.First > now.Seq || s.Next <= now.Seq ||
			(s.First <= before.Seq) != all || s.Grace != grace {
			t.Errorf("%s looks at %+v, of messages %d and %d", one.Name, s, before.Seq, now.Seq)
		}
	}
	execute(t, r.db, `delete from dispatcher.messages`)
	if _, err = r.l.Audits.Recent(t.Context(), grace); err != nil {
		t.Fatal(err)
	}
}
