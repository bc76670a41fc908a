package ledger_test

import (
	"path/filepath"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/past"
	"dispatcher/ledger/pgserver"
)

// BenchmarkADayLeaves measures what is done with a day of 100 000 messages with receipts, or with
// LONG_TESTS=1 ten million (12 GB), as it gets old: its ids are indexed, its receipts move, the
// rows that this leaves are vacuumed, and it is dropped. The server is durable.
func BenchmarkADayLeaves(b *testing.B) {
	s, err := pgserver.Start(b.Context(), pgserver.Config{
		Dir: filepath.Join(b.TempDir(), "pg"), Settings: map[string]string{"max_wal_size": "8GB"},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Stop(b.Context()) })
	url := s.URL()
	if err := ledger.Migrate(b.Context(), url); err != nil {
		b.Fatal(err)
	}
	l, db := connect(b, ledger.Config{URL: url}), raw(b, url)
	messages := tier.Size(100_000, 10_000_000)
	const back = 20
	day := ledger.DayAt(time.Now()) - back
	execute(b, db, `select dispatcher.make_day($1)`, day+1) // the newest past day
	keep := func(r ledger.Retention) func() {
		return func() {
			if _, err := l.Days.Keep(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
	}
	old := week
	old.Facts = (back - 2) * 24 * time.Hour
	took := map[string]time.Duration{}
	for b.Loop() {
		b.StopTimer()
		if err := past.FillDay(b.Context(), db, back, messages, false); err != nil {
			b.Fatal(err)
		}
		execute(b, db, `vacuum (freeze, analyze)`)
		b.StartTimer()
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"index", func() { execute(b, db, `select dispatcher.index_ids($1)`, day) }},
			{"move", keep(week)},
			{"vacuum", func() { execute(b, db, `vacuum dispatcher.receipts`) }},
			{"drop", keep(old)},
		} {
			begun := time.Now()
			step.do()
			took[step.name] += time.Since(begun)
		}
		if n := scalar[int](b, db, `select count(*) from dispatcher.all_receipts`); n != 0 {
			b.Fatalf("%d receipts are left", n)
		}
	}
	for step, d := range took {
		b.ReportMetric(d.Seconds()/float64(b.N), "s/"+step)
	}
}
