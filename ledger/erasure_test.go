package ledger_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// erasure is a request for the number of the messages of these tests.
func erasure(tenant ...string) *ledger.Erasure {
	e := &ledger.Erasure{
		Number: "+447700900123", Written: []string{"07700900123", "4407700900123"},
		NumberHMAC: 4711, Author: "ann", Reason: "asked by letter",
	}
	if len(tenant) > 0 {
		e.Tenant = &tenant[0]
	}
	return e
}

func (k *keeping) erase(t testing.TB, e *ledger.Erasure) ledger.Erased {
	t.Helper()
	erased, err := k.l.Days.Erase(t.Context(), e, func(ledger.Day, int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return erased
}

// unusable stores a record that could not be used.
func (k *keeping) unusable(t testing.TB, id, envelope string) {
	t.Helper()
	seq := k.message(t, id, 3, hour)
	k.exec(t, `delete from dispatcher.messages where seq = $1`, seq)
	k.exec(t, `insert into dispatcher.messages (seq, id, lane, state, finished_at)
		values ($1, $2, 'otp', 'dead', now())`, seq, id)
	k.exec(t, `update dispatcher.payloads set recipient = null, envelope = $2 where seq = $1`,
		seq, []byte(envelope))
}

// audience fills a database with messages of two tenants to the number, and with others.
func audience(t testing.TB) *keeping {
	t.Helper()
	k := newKeeping(t)
	k.message(t, "today", 0, 0)
	k.message(t, "old", 9, 8*24*hour)
	k.message(t, "late", 9, never)
	k.message(t, "unended", 3, never)
	seq := k.message(t, "of-a-bank", 3, hour)
	k.exec(t, `update dispatcher.messages set tenant = 'bank' where seq = $1`, seq)
	k.exec(t, `update dispatcher.payloads set recipient = dispatcher.recipient('bank',
		'+447700900123') where seq = $1`, seq)
	seq = k.message(t, "to-another", 3, hour)
	k.exec(t, `update dispatcher.payloads set recipient = dispatcher.recipient('shop',
		'+447700900124'), envelope = '{"to":"+447700900124"}' where seq = $1`, seq)
	k.unusable(t, "dead", `{"to":"+447700900123"`)
	k.unusable(t, "dead-other", `{"to":"+447700900124"`)
	for _, sender := range []string{"447700900123", "+447700900123", "+447700900124"} {
		k.exec(t, `insert into dispatcher.inbound_parts (id, channel, sender, recipient, grp, parts,
			part, body, received_at) values ('i', 'a', $1, '80800', 1, 2, 0, 'hello', now())`, sender)
	}
	k.keep(t, week)
	return k
}

const records = `select coalesce(string_agg(concat_ws(' ', author, coalesce(tenant, 'all'),
	number_hmac, messages, parts, unended), ', ' order by at), '') from audit.erasures`

func TestANumberIsErasedFromAllMessagesThatHaveEnded(t *testing.T) {
	t.Parallel()
	k := audience(t)
	want := ledger.Erased{Parts: 2, Tenants: []ledger.ErasedTenant{
		{Tenant: "", Messages: 1},
		{Tenant: "bank", Messages: 1},
		{Tenant: "shop", Messages: 1, Unended: 2},
	}}
	const before = "dead dead-other late of-a-bank to-another today unended"
	dry := erasure()
	dry.DryRun = true
	if diff := cmp.Diff(want, k.erase(t, dry)); diff != "" {
		t.Errorf("a dry run: %s", diff)
	}
	if got := k.payloads(t) + scalar[string](t, k.db, records); got != before {
		t.Errorf("after a dry run there are %s", got)
	}
	if diff := cmp.Diff(want, k.erase(t, erasure())); diff != "" {
		t.Error(diff)
	}
	if got := k.payloads(t); got != "dead-other late to-another unended" {
		t.Errorf("there are %s", got)
	}
	if n := scalar[int](t, k.db, `select count(*) from dispatcher.inbound_parts`); n != 1 {
		t.Errorf("there are %d parts", n)
	}
	k.exec(t, `update dispatcher.messages set state = 'delivered', finished_at = now()
		where finished_at is null`)
	want = ledger.Erased{Tenants: []ledger.ErasedTenant{{Tenant: "shop", Messages: 2}}}
	if diff := cmp.Diff(want, k.erase(t, erasure())); diff != "" {
		t.Errorf("after their end: %s", diff)
	}
	if got := k.payloads(t); got != "dead-other to-another" {
		t.Errorf("there are %s", got)
	}
	if got := scalar[string](t, k.db, records); got != "ann all 4711 3 2 2, ann all 4711 2 0 0" {
		t.Errorf("recorded: %s", got)
	}
	if got := k.cleaned(t); got != "0 3 9" { // where payloads were erased, or dropped late
		t.Errorf("the days whose pages are cleaned: %s", got)
	}
	// Everything else about the messages is there.
	if n := scalar[int](t, k.db, `select count(*) from audit.attempts`); n != 8 {
		t.Errorf("there are %d attempts", n)
	}
}

// cleaned are the ages of days whose payloads autovacuum cleans at its next visit.
func (k *keeping) cleaned(t testing.TB) string {
	t.Helper()
	return k.ages(t, `exists (select from pg_class where reloptions @>
		'{autovacuum_vacuum_threshold=0,autovacuum_vacuum_scale_factor=0}' and relname =
		'payloads_' || to_char(date '1970-01-01' + day, 'YYYYMMDD'))`)
}

// TestAutovacuumRemovesAnErasedNumberFromThePages, because the dispatcher's login may not.
func TestAutovacuumRemovesAnErasedNumberFromThePages(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "m", 3, hour)
	k.erase(t, erasure())
	tier.Eventually(t, "the day is vacuumed", func() bool {
		return scalar[bool](t, k.db, `select bool_or(autovacuum_count > 0)
			from pg_stat_user_tables where relname like 'payloads_%'`)
	})
}

// TestAnErasureWhilePayloadsAreDroppedStays: Keep has copied the payloads that it will keep, and
// waits for the lock under which it puts them back.
func TestAnErasureWhilePayloadsAreDroppedStays(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "ended-lately", 9, 24*hour)
	reader := raw(t, k.url)
	execute(t, reader, `begin; select from dispatcher.payloads`)
	keeping := waiting(t, k.db, func() error {
		_, err := k.l.Days.Keep(t.Context(), week)
		return err
	})
	k.erase(t, erasure())
	execute(t, reader, `commit`)
	if err := <-keeping; err != nil {
		k.keep(t, week) // it had waited too often
	}
	if got := k.payloads(t); got != "" {
		t.Errorf("there are %s", got)
	}
}

func TestANumberIsFoundHoweverARecordWritesIt(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	found := []string{
		`{"to":"07700 900123"}`, `{"to":"+44 (0)7700 900123"}`, `{"to":"0044.7700-900123"}`,
		`447700900123`, "{\"to\":\"+44\u00a07700\u00a0900123\"}", `{"text":"Zoë:","to":07700900123`,
		"\xff07700900123", `447700900123 483920 is your code`, `2026-11-29 07700 900123`,
		"07700900123\x0080800", `%22447700900123%22`, `{"to":"07700\u00a0900123"}`,
	}
	for i, envelope := range found {
		k.unusable(t, fmt.Sprint("found-", i), envelope)
	}
	for i, envelope := range []string{
		`{"to":"+44 7700 900124"}`, `{"to":"+107700900123"}`, `{"to":"077009001230"}`,
		`{"id":"07700","to":"900123"}`,
	} {
		k.unusable(t, fmt.Sprint("other-", i), envelope)
	}
	if got := k.erase(t, erasure()); got.Messages() != int64(len(found)) {
		t.Errorf("%+v", got)
	}
	if got := k.payloads(t); got != "other-0 other-1 other-2 other-3" {
		t.Errorf("there are %s", got)
	}
}

func TestANumberIsErasedFromTheMessagesOfOneTenant(t *testing.T) {
	t.Parallel()
	k := audience(t)
	want := ledger.Erased{Parts: 2, Tenants: []ledger.ErasedTenant{
		{Tenant: "", Messages: 1}, {Tenant: "bank", Messages: 1},
	}}
	if diff := cmp.Diff(want, k.erase(t, erasure("bank"))); diff != "" {
		t.Error(diff)
	}
	if got := k.payloads(t); got != "dead-other late to-another today unended" {
		t.Errorf("there are %s", got)
	}
	if got := k.erase(t, erasure("nobody")); len(got.Tenants) != 0 || got.Parts != 0 {
		t.Errorf("%+v", got)
	}
	if got := scalar[string](t, k.db, records); got != "ann bank 4711 2 2 0, ann nobody 4711 0 0 0" {
		t.Errorf("recorded: %s", got)
	}
}

// Without its opt-out the subscriber would get messages again after the erasure.
func TestAnErasureKeepsOptOuts(t *testing.T) {
	t.Parallel()
	k := audience(t)
	by := ledger.Listing{Tenant: "shop", Source: ledger.ByCommand, Author: "ann", Reason: "r"}
	if _, err := k.l.OptOuts.Add(t.Context(), by, []string{"+447700900123"}); err != nil {
		t.Fatal(err)
	}
	k.erase(t, erasure())
	entries, err := k.l.OptOuts.Of(t.Context(), "shop", "+447700900123")
	if err != nil || len(entries) != 1 || !entries[0].Until.IsZero() {
		t.Errorf("%+v, %v", entries, err)
	}
}
