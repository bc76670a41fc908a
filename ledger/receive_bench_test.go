package ledger_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// BenchmarkReceive measures receipts per second, 500 a batch, over a durable server. Each ends its
// message, frees a slot and causes a status event. Claims and settlements are not timed.
func BenchmarkReceive(b *testing.B) {
	for _, connections := range []int{1, 2} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			l := durable(b, connections)
			apply(b, l, ledger.ChannelSpec{Name: "a"})
			batches := make([][]ledger.Receipt, b.N)
			for n := range batches {
				s := accepted(claimAll(b, l, batch(fmt.Sprintf("b%06d", n*7919%1000000), 500),
					"a").Messages)
				for i := range s {
					s[i].Await, s[i].Hold = 72*time.Hour, time.Hour
					batches[n] = append(batches[n], receipt(s[i].Reference, provider.Delivered))
				}
				settleAll(b, l, s)
			}
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var workers sync.WaitGroup
			for range connections {
				workers.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						if got := receive(b, l, batches[n-1]...); got.Matched != 500 ||
							got.Freed != 500 {
							b.Errorf("%+v", got)
						}
					}
				})
			}
			workers.Wait()
			b.ReportMetric(float64(b.N)*500/b.Elapsed().Seconds(), "receipts/s")
		})
	}
}

// BenchmarkSettleExpecting compares settlements of 500 that expect no receipt with those that
// expect one each.
func BenchmarkSettleExpecting(b *testing.B) {
	for _, await := range []time.Duration{0, 72 * time.Hour} {
		b.Run(fmt.Sprintf("await=%s", await), func(b *testing.B) {
			l := durable(b, 1)
			apply(b, l, ledger.ChannelSpec{Name: "a"})
			var took time.Duration
			for n := range b.N {
				s := accepted(claimAll(b, l, batch(fmt.Sprintf("b%06d", n*7919%1000000), 500),
					"a").Messages)
				for i := range s {
					s[i].Await = await
				}
				began := time.Now()
				settleAll(b, l, s)
				took += time.Since(began)
			}
			b.ReportMetric(float64(b.N)*500/took.Seconds(), "messages/s")
		})
	}
}

// durable is a ledger over a server that loses nothing.
func durable(b *testing.B, connections int) *ledger.Ledger {
	b.Helper()
	s := ledgertest.Server(b, map[string]string{
		"fsync": "on", "synchronous_commit": "on",
		"full_page_writes": "on",
	})
	if err := ledger.Migrate(b.Context(), s.URL()); err != nil {
		b.Fatal(err)
	}
	return connect(b, ledger.Config{URL: s.URL(), MaxConns: connections})
}
