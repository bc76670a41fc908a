package receive_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// contraryStore reports all its receipts as contradictory, and one more, under another id, in the
// first call.
type contraryStore struct{ once sync.Once }

func (*contraryStore) Receive(
	_ context.Context, receipts []ledger.Receipt, _ ledger.Tell,
) (ledger.Received, error) {
	got := ledger.Received{ReceiptCounts: ledger.ReceiptCounts{Contradictory: len(receipts)}}
	for i := range receipts {
		got.Discrepancies = append(got.Discrepancies, ledger.Discrepancy{
			Kind:    ledger.DeliveredThoughDenied,
			Channel: receipts[i].Channel, Reference: receipts[i].Reference,
		})
	}
	return got, nil
}

func (b *contraryStore) Overdue(context.Context, int, ledger.Tell) (swept ledger.Swept, err error) {
	b.once.Do(func() {
		swept.Contradictory, swept.OtherID = 1, 1
		swept.Discrepancies = []ledger.Discrepancy{
			{Kind: ledger.DeliveredThoughDenied, Channel: "b", Answered: "8"},
			{Kind: ledger.UnderAnotherID, Channel: "b", Reference: "0x1F", Answered: "31"},
		}
	})
	return swept, nil
}

func (*contraryStore) Drop(context.Context, time.Duration) (int64, error) { return 0, nil }

func TestWhatContradictsTheLedgerIsCountedAndLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var logged []string
		registry := prometheus.NewRegistry()
		d, err := receive.New(receive.Config{
			Store: &contraryStore{}, Freed: func(int) { t.Error("slots were reported as freed") },
			Registry: registry,
			Trouble: func(where string, err error) {
				mu.Lock()
				defer mu.Unlock()
				logged = append(logged, where+": "+err.Error())
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { d.Run(ctx) })
		if err := d.Record(t.Context(), "a", []provider.Receipt{
			delivered("r1"), delivered("r\x1b2"),
			delivered("r3"), delivered("r4"), delivered("r5"), delivered("r6"),
		}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		cancel()
		running.Wait()
		if n := count(t, registry, "dispatcher_receive_booked_total", "contradictory"); n != 7 {
			t.Errorf("%v were counted", n)
		}
		if n := count(t, registry, "dispatcher_receive_booked_total", "other_id"); n != 1 {
			t.Errorf("got %v receipts under another id", n)
		}
		slices.Sort(logged)
		for i, want := range []string{
			"1 more receipts", `channel a says that its id "r1"`,
			`its id "r3"`, `its id "r4"`, `its id "r5"`, `its id "r\x1b2"`,
			`channel b names a message "31" in its answer and "0x1F"`,
			`channel b says that its id "8"`,
		} {
			if i >= len(logged) || !strings.Contains(logged[i], want) {
				t.Fatalf("line %d of %q is not about %s", i, logged, want)
			}
		}
	})
}
