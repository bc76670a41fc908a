package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
	"dispatcher/provider"
)

func TestDailyCountsWhatReceiptsSay(t *testing.T) {
	t.Parallel()
	l, db, _ := holding(t, 0)
	m := claimAll(t, l, batch("m", 10), "a").Messages
	s := accepted(m)
	for i := range s[:9] { // the last expects none
		s[i].Await = time.Hour
	}
	settleAll(t, l, s)
	for i, state := range []provider.ReceiptState{
		provider.Delivered, provider.Delivered,
		provider.Delivered, provider.Undelivered, provider.Undelivered, provider.Pending,
	} {
		receive(t, l, receipt(s[i].Reference, state))
	}
	execute(t, db, `update dispatcher.receipts set due_at = now(), look_at = now()
		where reference = 'ref-m-00006'`)
	overdue(t, l)
	got := figuresOf(t, l, time.Now()).Rows
	want := []ledger.DailyRow{{
		Route: "default", Channel: "a", Attempts: 10, Submitted: 10, Accepted: 10,
		Delivered: 3, Undelivered: 2, NoReceipt: 1,
		Segments: 10, CostMicros: 280000, Currency: "GBP",
		DeliveredSegments: 3, DeliveredMicros: 84000,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARecordTellsWhatReceiptsSaid(t *testing.T) {
	t.Parallel()
	l, m, _ := one(t)
	settleAll(t, l, expecting(m, "r1 r2"))
	receive(t, l, receipt("r1", provider.Delivered), receipt("r2", provider.Undelivered))
	r, err := l.Messages.Record(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	a := r.Attempts[0]
	if a.Receipt != ledger.Undelivered || a.Cause != provider.Absent ||
		a.ReceiptCode != "undelivered" || a.ReceiptAt.IsZero() {
		t.Errorf("%+v", a)
	}
}
