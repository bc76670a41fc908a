package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// TestWhatIsSettledCannotBeChanged: with the dispatcher's login, which may update these columns.
// All other tests of this package show that it can still do what the dispatcher does.
func TestWhatIsSettledCannotBeChanged(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"})
	sent := claimAll(t, r.l, batch("m", 4), "a").Messages
	expected := expecting(sent[0], "r")
	undecided := unknown(sent[2])
	undecided.Ambiguity = &ledger.Ambiguity{
		Key: "k", Step: ledger.NoStep, Until: time.Now().Add(time.Hour), NextAt: time.Now(),
	}
	denials := rejected(sent[1:2], nil)
	denials[0].PossibleDuplicate = true
	settleAll(t, r.l, append(append(expected, denials...), undecided))
	receive(t, r.l, receipt("r", provider.Delivered))
	execute(t, r.db, `update dispatcher.ambiguous set closed_at = now(), next_at = null,
		verdict = 'not_taken', author = 'ann'`)
	app := raw(t, asApp(r.url))
	const (
		taken, denied, unclear = `'m-00000'`, `'m-00001'`, `'m-00002'`
		attempts               = `update dispatcher.attempts set $ where message_seq =
			(select seq from dispatcher.messages where id = `
		messages  = `update dispatcher.messages set $ where (id = `
		ambiguous = `update dispatcher.ambiguous set $ where message_seq =
			(select seq from dispatcher.messages where id = `
	)
	for _, c := range []struct{ table, id, set string }{
		{attempts, taken, `channel = 'b'`},
		{attempts, taken, `outcome = 'rejected'`},
		{attempts, taken, `outcome = 'rejected', price_micros = 0, segments = 0`},
		{attempts, taken, `outcome = null, settled_at = null, answers = 0, held_until = null,
			delivered_at = null, receipt_state = null`},
		{attempts, taken, `price_micros = 27000`},
		{attempts, taken, `price_micros = 0, segments = 0`}, // no later attempt under its key
		{attempts, taken, `segments = 2`},
		{attempts, taken, `settled_at = settled_at - interval '1 hour'`},
		{attempts, taken, `answers = 2`},
		{attempts, taken, `provider_code = 'x'`},
		{attempts, taken, `provider_reference = 'x'`},
		{attempts, taken, `provider_reference = null`},
		{attempts, taken, `receipt_state = 'undelivered', delivered_at = null`},
		{attempts, taken, `receipt_state = null, delivered_at = null`},
		{attempts, taken, `delivered_at = delivered_at - interval '1 hour'`},
		{attempts, taken, `receipt_code = 'x'`},
		{attempts, denied, `outcome = 'accepted'`},
		{attempts, denied, `price_micros = 28000, segments = 1`},
		{attempts, denied, `provider_reference = 'x'`},
		{attempts, unclear, `price_micros = 0`},
		{attempts, unclear, `outcome = null, settled_at = null, answers = 0`},
		{messages, taken, `routing_version = 99`},
		{messages, taken, `first_choice = 'b'`},
		{messages, taken, `draw = 1, draw_size = 2`},
		{messages, taken, `route = 'other'`},
		{messages, taken, `segments = 2`},
		{messages, taken, `attempts = 2`},
		{messages, denied, `reason = 'other'`},
		{messages, denied, `finished_at = finished_at - interval '1 hour'`},
		{messages, denied, `possible_duplicate = false`},
		{ambiguous, unclear, `verdict = 'taken'`},
		{ambiguous, unclear, `author = 'joe'`},
		{ambiguous, unclear, `note = 'other'`},
		{ambiguous, unclear, `verdict = null, closed_at = null, next_at = now()`},
	} {
		sql := strings.ReplaceAll(c.table, "$", c.set) + c.id + `)`
		_, err := app.Exec(t.Context(), sql)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" {
			t.Errorf("%s: got error %v, want 42501", sql, err)
		}
	}
	// what has no outcome can be settled, and unknown is replaced
	for _, c := range []struct{ table, id, set string }{
		{attempts, `'m-00003'`, `price_micros = 27000`},
		{attempts, `'m-00003'`, `outcome = 'refused', settled_at = now(), answers = 1`},
		{attempts, unclear, `outcome = 'accepted', answers = 2, settled_at = now(), proved = true,
			provider_reference = 'r2'`},
		{attempts, unclear, `receipt_state = 'no_receipt'`},
		{attempts, unclear, `provider_reference = 'r2 r3'`},
		{attempts, unclear, `receipt_state = 'undelivered', receipt_at = now(), receipt_code = 'x'`},
		{messages, denied, `possible_duplicate = true`},
	} {
		execute(t, app, strings.ReplaceAll(c.table, "$", c.set)+c.id+`)`)
	}
	execute(t, r.db, `update dispatcher.attempts set price_micros = 1`) // by the owner
}

// TestTheUsualWalkCallsNoGuardOfFinalRows: the triggers' WHEN clauses are false for claims,
// settlements, fallbacks, waits and receipts, so the guards cost no call there. In this test their
// functions refuse whatever they are called for.
func TestTheUsualWalkCallsNoGuardOfFinalRows(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"})
	for _, function := range []string{"refuse_change", "refuse_resettling", "refuse_takeover"} {
		execute(t, r.db, `create or replace function dispatcher.`+function+`() returns trigger
			language plpgsql as $$ begin raise 'called by %', tg_name; end $$`)
	}
	sent := claimAll(t, r.l, batch("m", 5), "a").Messages
	settlements := append(expecting(sent[0], "r0"), expecting(sent[1], "r1")...)
	settlements = append(settlements, rejected(sent[2:3], nil)...)
	refusal := rejected(sent[3:4], nil)[0]
	refusal.Outcome, refusal.State, refusal.Tried = provider.Refused, ledger.Retry, true
	settlements = append(settlements, refusal, unknown(sent[4]))
	settleAll(t, r.l, settlements)
	if err := runClaim(t.Context(), r.l, ledger.Claim{Due: 5, Channels: []string{"b"}},
		give); err != nil {
		t.Fatal(err)
	}
	fallback := sent[3]
	fallback.Attempts++
	settleAll(t, r.l, append(expecting(fallback, "r3"), accepted(sent[4:5])...))
	elsewhere := receipt("r3", provider.Delivered)
	elsewhere.Channel = "b"
	for _, one := range []ledger.Receipt{
		receipt("r0", provider.Undelivered), receipt("r0", provider.Delivered),
		receipt("r1", provider.Undelivered), elsewhere,
	} {
		receive(t, r.l, one)
	}
	got := scalar[string](t, r.db, `select string_agg(state, ' ' order by id)
		from dispatcher.message_states`)
	if want := "delivered undelivered rejected delivered accepted"; got != want {
		t.Errorf("states %s, want %s", got, want)
	}
	if _, err := r.db.Exec(t.Context(), `update dispatcher.attempts set price_micros = 1`); err == nil {
		t.Error("the functions are not called at all")
	}
}
