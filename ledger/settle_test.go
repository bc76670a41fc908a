package ledger_test

import (
	"testing"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

func TestSettleTwiceHasTheEffectOfOnce(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := connect(t, ledger.Config{URL: url})
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 100})
	seen := claimAll(t, l, batch("m", 50), "a")
	db := raw(t, url)
	for range 2 {
		settleAll(t, l, accepted(seen.Messages))
		if n := scalar[int64](t, db, `select active from dispatcher.channels`); n != 0 {
			t.Fatalf("%d slots are taken", n)
		}
		if n := scalar[int64](t, db, `select sum(cardinality(keys)) from dispatcher.outbox`); n != 50 {
			t.Fatalf("%d notices", n)
		}
		if n := scalar[int64](t, db, `select count(*) from dispatcher.messages where state = 'accepted'`); n != 50 {
			t.Fatalf("%d accepted", n)
		}
	}
}
