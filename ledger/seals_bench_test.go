package ledger_test

import (
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// BenchmarkEvidence reads the hashes of messages, as Seals.Add does.
func BenchmarkEvidence(b *testing.B) {
	url := ledgertest.Fresh(b)
	db, l := raw(b, url), connect(b, ledger.Config{URL: url})
	const n = 100000
	fillHours(b, db, n)
	execute(b, db, `vacuum analyze`)
	now := time.Now()
	for b.Loop() {
		seen := 0
		err := l.Seals.Evidence(b.Context(), now.Add(-4*time.Hour), now.Add(time.Hour),
			func(*ledger.Evidence) error {
				seen++
				return nil
			})
		if err != nil || seen != n {
			b.Fatal(seen, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/message")
}
