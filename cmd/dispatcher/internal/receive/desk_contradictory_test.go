package receive_test

import (
	"context"
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

// doubtfulBooks find the receipts that they are given contradictory, and one more at the first look.
type doubtfulBooks struct{ once sync.Once }

func (*doubtfulBooks) Receive(_ context.Context, receipts []ledger.Receipt, _ ledger.Tell) (ledger.Received, error) {
	return ledger.Received{Contradictory: len(receipts)}, nil
}

func (b *doubtfulBooks) Overdue(context.Context, int, ledger.Tell) (swept ledger.Swept, err error) {
	b.once.Do(func() { swept.Contradictory = 1 })
	return swept, nil
}

func (*doubtfulBooks) DropReceipts(context.Context, time.Duration) (int64, error) { return 0, nil }

func TestWhatContradictsTheBooksIsCountedAndTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		registry := prometheus.NewRegistry()
		d, err := receive.New(receive.Config{
			Books: &doubtfulBooks{}, Freed: func(int) { t.Error("slots came free") }, Registry: registry,
			Trouble: func(where string, err error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, where+": "+err.Error())
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { d.Run(ctx) })
		if err := d.Book(t.Context(), "a", []provider.Receipt{delivered("r1"), delivered("r2")}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		cancel()
		running.Wait()
		if n := count(t, registry, "dispatcher_receive_booked_total", "contradictory"); n != 3 {
			t.Errorf("%v were counted", n)
		}
		if all := strings.Join(told, "; "); len(told) != 2 || !strings.HasPrefix(all, "receipts: 2 receipts contradict") || !strings.Contains(all, "receipts: 1 receipts contradict") {
			t.Error(all)
		}
	})
}
