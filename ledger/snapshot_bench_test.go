package ledger_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// BenchmarkLongTransaction measures claims of 30 messages, their settlements and the publishing of
// their events while another session keeps a snapshot. PostgreSQL then cannot remove old versions
// of counters, and whoever reads a counter passes them all. The first tenth of the claims comes
// before the snapshot, the last one after it; while-* are the means of the last tenth within.
func BenchmarkLongTransaction(b *testing.B) {
	s := ledgertest.Server(b, map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "max_wal_size": "8GB",
	})
	if err := ledger.Migrate(b.Context(), s.URL()); err != nil {
		b.Fatal(err)
	}
	l := connect(b, ledger.Config{URL: s.URL(), MaxConns: 4})
	apply(b, l, manyLimits("a"), manyLimits("b"), manyLimits("c"))
	other := raw(b, s.URL())
	next := 0
	// tenth runs a tenth of the claims, and returns the means of their parts in milliseconds.
	tenth := func() map[string]float64 {
		sum := map[string]float64{}
		measure := func(part string, work func()) {
			began := time.Now()
			work()
			sum[part] += time.Since(began).Seconds() * 1000
		}
		n := max(b.N/10, 1)
		for range n {
			next++
			var settlements []ledger.Settlement
			messages := batch(fmt.Sprintf("b%06d", next*7919%1_000_000), 30)
			measure("claim", func() {
				settlements = accepted(claimAll(b, l, messages, "a", "b", "c").Messages)
			})
			measure("settle", func() { settleAll(b, l, settlements) })
			measure("publish", func() {
				_, err := l.Outbox.Publish(b.Context(), 10_000,
					func(context.Context, []ledger.Notice) error { return nil })
				if err != nil {
					b.Fatal(err)
				}
			})
		}
		for part := range sum {
			sum[part] /= float64(n)
		}
		return sum
	}
	report := func(when string, means map[string]float64) {
		for part, mean := range means {
			b.ReportMetric(mean, "ms/"+when+"-"+part)
		}
	}
	report("before", tenth())
	execute(b, other, `begin isolation level repeatable read`)
	execute(b, other, `select from dispatcher.channels`)
	var last map[string]float64
	for range 8 {
		last = tenth()
	}
	report("while", last)
	execute(b, other, `commit`)
	report("after", tenth())
}
