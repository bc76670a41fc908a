package ledger_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// BenchmarkCursors compares claim and settle of 500 with no cursor, one and three, locked
// and moved by each claim. The three take turns over one durable server, so that a machine
// whose speed drifts treats them alike, and medians are compared: ratio/1 is the speed with one cursor
// by that without.
func BenchmarkCursors(b *testing.B) {
	s := ledgertest.Server(b, map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"})
	if err := ledger.Migrate(b.Context(), s.URL()); err != nil {
		b.Fatal(err)
	}
	l := connect(b, ledger.Config{URL: s.SocketURL(), MaxConns: 1})
	routes := []string{"r0", "r1", "r2"}
	n := ledger.NewRouting{Channels: []ledger.ChannelSpec{manyLimits("a"), manyLimits("b"), manyLimits("c")}, Routes: circles([]string{"a", "b", "c"}, routes...)}
	if _, err := l.ApplyRouting(b.Context(), n); err != nil {
		b.Fatal(err)
	}
	counts := []int{0, 1, 3}
	took := make([][]time.Duration, len(counts))
	for i := range b.N {
		for j, cursors := range counts {
			messages := batch(fmt.Sprintf("b%06d-%d", i*7919%1000000, cursors), 500)
			began := time.Now()
			claimMoving(b, l, ledger.Claim{Messages: messages, Channels: []string{"a", "b", "c"}, Cursors: routes[:cursors]})
			took[j] = append(took[j], time.Since(began))
		}
	}
	for j := range took {
		slices.Sort(took[j])
	}
	for j := 1; j < len(counts); j++ {
		b.ReportMetric(float64(took[0][b.N/2])/float64(took[j][b.N/2]), fmt.Sprintf("ratio/%d", counts[j]))
	}
}

// claimMoving claims, moves every cursor and settles. The routes take turns among the
// messages, so that each has an attempt for its cursor to move to.
func claimMoving(b *testing.B, l *ledger.Ledger, c ledger.Claim) {
	for i := range c.Messages {
		if len(c.Cursors) > 0 {
			c.Messages[i].Plan.Route = c.Cursors[i%len(c.Cursors)]
		}
	}
	var claimed []ledger.Message
	err := l.Claim(b.Context(), c, func(seen *ledger.Seen) (ledger.Decisions, error) {
		d, err := give(seen)
		for i := range seen.Cursors {
			seen.Cursors[i].Channel, seen.Cursors[i].Position = "a", seen.Cursors[i].Position+1
		}
		claimed = seen.Messages
		return d, err
	})
	if err != nil {
		b.Fatal(err)
	}
	settleAll(b, l, accepted(claimed))
}

// BenchmarkEachChoice measures how fast a day is read, in messages with an attempt each.
func BenchmarkEachChoice(b *testing.B) {
	url := ledgertest.URL(b)
	db, l := raw(b, url), connect(b, ledger.Config{URL: url})
	fillHours(b, db, 50000)
	now := time.Now()
	visited := 0
	b.ReportAllocs()
	for b.Loop() {
		f := ledger.ChoiceFilter{From: now.Add(-100 * time.Hour), To: now.Add(time.Hour)}
		if err := l.EachChoice(b.Context(), f, func(*ledger.Record) error { visited++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(visited)/b.Elapsed().Seconds(), "messages/s")
}

func manyLimits(name string) ledger.ChannelSpec {
	return ledger.ChannelSpec{Name: name, ActiveMax: 1e6, Limits: []admission.Limit{
		limit(admission.Second, 1e9), limit(admission.Minute, 1e9), limit(admission.Hour, 1e9), limit(admission.Day, 1e9),
	}}
}
