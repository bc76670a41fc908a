package ledger_test

import (
	"testing"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// What the release before migration 005 says to the database about messages and attempts, word for
// word, for one row each. It may go on saying it until its last instance is replaced.
const (
	oldSettleMessage = `
	update dispatcher.messages m
	set state = 'accepted', reason = null, next_at = null, finished_at = null, pinned = null,
	  parts_left = null
	where m.seq = $1 and m.state in ('sending', 'unknown')`
	oldAttempts = `
	select message_id, attempt, channel, reason, outcome, provider_reference, provider_code,
	  segments, price_micros, currency, claimed_at,
	  settled_at, delivered_at from audit.attempts`
	oldDelivered = `select count(*) filter (where a.delivered_at is not null)
		from dispatcher.attempts a`
)

// TestThePreviousReleaseWorksBesideReceipts: what it sends stays accepted, and what it reads is
// what it was.
func TestThePreviousReleaseWorksBesideReceipts(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, l, batch("m", 2), "a").Messages
	execute(t, db, oldSettle, m[0].Seq)
	execute(t, db, oldSettleMessage, m[0].Seq)
	settleAll(t, l, expecting(m[1], "r1"))
	if got := receive(t, l, receipt("ref", provider.Delivered),
		receipt("r1", provider.Delivered)); got != (ledger.ReceiptCounts{Matched: 1, Early: 1}) {
		t.Errorf("%+v", got)
	}
	if got := scalar[string](t, db, states); got != "m-00000 accepted, m-00001 delivered" {
		t.Error(got)
	}
	execute(t, db, oldAttempts)
	if n := scalar[int](t, db, oldDelivered); n != 1 {
		t.Errorf("%d delivered", n)
	}
}
