package ledger_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"dispatcher/admission"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// BenchmarkClaimSettle measures messages per second through claim and settle, 500 a
// batch, over a durable server (fsync on), three channels with four windows each.
func BenchmarkClaimSettle(b *testing.B) {
	for _, connections := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			s := ledgertest.Server(b, map[string]string{
				"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
			})
			if err := ledger.Migrate(b.Context(), s.URL()); err != nil {
				b.Fatal(err)
			}
			l := connect(b, ledger.Config{URL: s.SocketURL(), MaxConns: connections})
			apply(b, l, manyLimits("a"), manyLimits("b"), manyLimits("c"))
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var workers sync.WaitGroup
			for range connections {
				workers.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						seen := claimAll(b, l, batch(fmt.Sprintf("b%06d", n*7919%1000000), 500), "a", "b", "c")
						settleAll(b, l, accepted(seen.Messages))
					}
				})
			}
			workers.Wait()
			b.ReportMetric(float64(b.N)*500/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

func manyLimits(name string) ledger.ChannelSpec {
	return ledger.ChannelSpec{Name: name, ActiveMax: 1e6, Limits: []admission.Limit{
		limit(admission.Second, 1e9), limit(admission.Minute, 1e9), limit(admission.Hour, 1e9), limit(admission.Day, 1e9),
	}}
}
