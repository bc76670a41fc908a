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

// BenchmarkClaimSettle measures messages per second through claim and settlement, 500 a batch, on a
// durable server (fsync on), with three channels of four windows each.
func BenchmarkClaimSettle(b *testing.B) {
	for _, connections := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			s := ledgertest.Server(b, map[string]string{
				"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
			})
			if err := ledger.Migrate(b.Context(), s.URL()); err != nil {
				b.Fatal(err)
			}
			l := connect(b, ledger.Config{URL: s.URL(), MaxConns: connections})
			apply(b, l, manyLimits("a"), manyLimits("b"), manyLimits("c"))
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var workers sync.WaitGroup
			for range connections {
				workers.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						seen := claimAll(b, l, batch(fmt.Sprintf("b%06d", n*7919%1000000), 500),
							"a", "b", "c")
						settleAll(b, l, accepted(seen.Messages))
					}
				})
			}
			workers.Wait()
			b.ReportMetric(float64(b.N)*500/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// BenchmarkCursors compares claim and settlement of 500 messages with no cursor, one and three,
// each locked and moved by each claim. The three cases alternate on one durable server, so that a
// change in the machine's speed affects them alike, and medians are compared: ratio/1 is the speed
// with one cursor divided by the speed without.
func BenchmarkCursors(b *testing.B) {
	s := ledgertest.Server(b, map[string]string{
		"fsync": "on", "synchronous_commit": "on",
		"full_page_writes": "on",
	})
	if err := ledger.Migrate(b.Context(), s.URL()); err != nil {
		b.Fatal(err)
	}
	l := connect(b, ledger.Config{URL: s.URL(), MaxConns: 1})
	routes := []string{"r0", "r1", "r2"}
	n := ledger.NewRouting{Channels: []ledger.ChannelSpec{
		manyLimits("a"), manyLimits("b"),
		manyLimits("c"),
	}, Routes: rotatingRoutes([]string{"a", "b", "c"}, routes...)}
	if _, err := l.Routing.Apply(b.Context(), n); err != nil {
		b.Fatal(err)
	}
	counts := []int{0, 1, 3}
	took := make([][]time.Duration, len(counts))
	for i := range b.N {
		for j, cursors := range counts {
			messages := batch(fmt.Sprintf("b%06d-%d", i*7919%1000000, cursors), 500)
			began := time.Now()
			claimMoving(b, l, ledger.Claim{
				Messages: messages, Channels: []string{"a", "b", "c"},
				Cursors: routes[:cursors],
			})
			took[j] = append(took[j], time.Since(began))
		}
	}
	for j := range took {
		slices.Sort(took[j])
	}
	for j := 1; j < len(counts); j++ {
		b.ReportMetric(float64(took[0][b.N/2])/float64(took[j][b.N/2]),
			fmt.Sprintf("ratio/%d", counts[j]))
	}
}

// claimMoving claims, moves every cursor and settles. The routes take turns among the messages, so
// that each has an attempt for its cursor to move to.
func claimMoving(b *testing.B, l *ledger.Ledger, c ledger.Claim) {
	for i := range c.Messages {
		if len(c.Cursors) > 0 {
			c.Messages[i].Plan.Route = c.Cursors[i%len(c.Cursors)]
		}
	}
	var claimed []ledger.Message
	err := runClaim(b.Context(), l, c, func(seen *ledger.Seen) (ledger.Decisions, error) {
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

// BenchmarkClaimers measures 1, 2, 4 and 8 claimers, each with its own connection, that take 500
// messages at a time from the four windows of one channel, on a durable server. lock is the median
// of how long a claim waited for the others, by the database's clock.
func BenchmarkClaimers(b *testing.B) {
	for _, claimers := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("claimers=%d", claimers), func(b *testing.B) {
			s := ledgertest.Server(b, map[string]string{
				"fsync": "on", "synchronous_commit": "on",
				"full_page_writes": "on",
			})
			if err := ledger.Migrate(b.Context(), s.URL()); err != nil {
				b.Fatal(err)
			}
			l := connect(b, ledger.Config{URL: s.URL(), MaxConns: claimers})
			apply(b, l, manyLimits("a"))
			var next atomic.Int64
			took, waited := make([][]time.Duration, claimers), make([][]time.Duration, claimers)
			b.ResetTimer()
			var workers sync.WaitGroup
			for i := range claimers {
				workers.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						messages := batch(fmt.Sprintf("b%06d", n*7919%1000000), 500)
						began := time.Now()
						seen := claimAll(b, l, messages, "a")
						took[i], waited[i] = append(took[i], time.Since(began)),
							append(waited[i], seen.LockWait)
						settleAll(b, l, accepted(seen.Messages))
					}
				})
			}
			workers.Wait()
			b.ReportMetric(float64(b.N)*500/b.Elapsed().Seconds(), "messages/s")
			reportPercentiles(b, "claim", slices.Concat(took...))
			reportPercentiles(b, "lock", slices.Concat(waited...))
		})
	}
}

// reportPercentiles reports the median and the 99th percentile in milliseconds.
func reportPercentiles(b *testing.B, name string, took []time.Duration) {
	slices.Sort(took)
	for _, percent := range []int{50, 99} {
		b.ReportMetric(took[(len(took)-1)*percent/100].Seconds()*1000,
			fmt.Sprintf("ms-%s-p%d", name, percent))
	}
}

// BenchmarkScopes measures a claim of 500 messages, without its settlement, that uses 0, 1, 10 and
// 500 limits of tenants, where 10 and where 1 000 tenants have one. The cases alternate on one
// server, and medians are reported. The cost depends on the scopes used, not on those that exist.
func BenchmarkScopes(b *testing.B) {
	cases := []struct{ exist, touched int }{{10, 0}, {10, 1}, {10, 10}, {1000, 0}, {1000, 1}, {
		1000, 10,
	}, {1000, 100}, {1000, 500}}
	servers := map[int]*ledger.Ledger{}
	for _, exist := range []int{10, 1000} {
		s := ledgertest.Server(b, map[string]string{
			"fsync": "on", "synchronous_commit": "on",
			"full_page_writes": "on",
		})
		if err := ledger.Migrate(b.Context(), s.URL()); err != nil {
			b.Fatal(err)
		}
		servers[exist] = connect(b, ledger.Config{URL: s.URL(), MaxConns: 1})
		limits := make([]admission.Limit, exist)
		for i := range limits {
			limits[i] = scoped(tenant(fmt.Sprintf("t%04d", i)), admission.Day, 1e9)
		}
		applyLimits(b, servers[exist], nil, limits...)
	}
	took := make([][]time.Duration, len(cases))
	for i := range b.N {
		for j, c := range cases {
			messages := batch(fmt.Sprintf("b%06d-%d", i*7919%1000000, j), 500)
			scopes := make([]ledger.ScopeRef, c.touched)
			for k := range scopes {
				scopes[k].Scope = tenant(fmt.Sprintf("t%04d", k*c.exist/c.touched))
			}
			for k := range messages {
				if c.touched > 0 {
					messages[k].Tenant = scopes[k%c.touched].Scope.Tenant
				}
			}
			took[j] = append(took[j], timeClaim(b, servers[c.exist], messages, scopes))
		}
	}
	for j, c := range cases {
		slices.Sort(took[j])
		b.ReportMetric(took[j][b.N/2].Seconds()*1000, fmt.Sprintf("ms-%d-of-%d", c.touched,
			c.exist))
	}
}

// timeClaim is how long it takes to claim messages that all fit, each under its tenant's limit,
// with the cheapest decision.
func timeClaim(
	b *testing.B, l *ledger.Ledger, messages []ledger.Message, scopes []ledger.ScopeRef,
) time.Duration {
	b.Helper()
	began := time.Now()
	err := runClaim(b.Context(), l, ledger.Claim{
		Messages: messages, Channels: []string{"a"},
		Scopes: scopes,
	}, func(seen *ledger.Seen) (ledger.Decisions, error) {
		d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
		for i := range seen.Scoped {
			seen.Scoped[i].Counters[0].Roll(seen.Now, time.UTC)
		}
		for i := range seen.Messages {
			m := &seen.Messages[i]
			if len(scopes) > 0 {
				seen.Scoped[i%len(scopes)].Counters[0].Granted++
			}
			seen.Channels[0].Gate.Active.Count++
			d.Each[i] = ledger.Decision{
				State: ledger.Sending, Plan: m.Plan,
				Attempt: ledger.Attempt{
					Number: 1, Channel: "a", Reason: ledger.ByFirstChoice, Segments: 1,
					PriceMicros: 28000, Currency: "GBP",
				},
			}
		}
		return d, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkDue measures a claim that picks up 500 of 20 000 due rows, of one tenant, of two and of
// 100, and a claim for which all due rows fit.
func BenchmarkDue(b *testing.B) {
	for _, tenants := range []int{0, 1, 2, 100} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			url := ledgertest.URL(b)
			l, db := connect(b, ledger.Config{URL: url}), raw(b, url)
			apply(b, l, ledger.ChannelSpec{Name: "a"})
			for i := range tenants {
				queue(b, db, "bulk", fmt.Sprintf("t%03d", i), 20000/tenants)
			}
			if tenants == 0 {
				queue(b, db, "bulk", "t", 500)
			}
			for b.Loop() {
				if _, picked := pick(b, l, 500, false); len(picked) != 500 {
					b.Fatalf("%d picked", len(picked))
				}
			}
		})
	}
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
		if err := l.Messages.EachChoice(b.Context(), f, func(*ledger.Record) error {
			visited++
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(visited)/b.Elapsed().Seconds(), "messages/s")
}

func manyLimits(name string) ledger.ChannelSpec {
	return ledger.ChannelSpec{Name: name, ActiveMax: 1e6, Limits: []admission.Limit{
		limit(admission.Second, 1e9), limit(admission.Minute, 1e9), limit(admission.Hour, 1e9),
		limit(admission.Day, 1e9),
	}}
}

// BenchmarkAddedLimit measures how long a document with new limits of a day holds claims up, on a
// day with many attempts: how long Apply took, and the longest claim meanwhile. With a tenant and a
// prefix, the messages are read as well.
func BenchmarkAddedLimit(b *testing.B) {
	const attempts = 1_000_000
	countries := make([]admission.Scope, 250)
	for i := range countries {
		countries[i] = prefix(fmt.Sprintf("+%d", 30+i))
	}
	for _, scopes := range [][]admission.Scope{{{}}, {tenant("shop")}, {prefix("+44")}, countries} {
		limits := make([]admission.Limit, len(scopes))
		for i := range scopes {
			limits[i] = scoped(scopes[i], admission.Day, 1e9)
		}
		b.Run(fmt.Sprintf("%s/%d", scopes[0], len(scopes)), func(b *testing.B) {
			url := ledgertest.URL(b)
			l, other, db := connect(b, ledger.Config{URL: url}),
				connect(b, ledger.Config{URL: url}), raw(b, url)
			applyToday(b, l, time.UTC, nil)
			store(b, db, "id, lane, tenant, digest, envelope, state, expires_at, attempts", `
				select 'old-' || n, 'bulk', 'shop', n,
				  convert_to(format('{"id":"old-%s","to":"+4477009%s","text":"Your code is 123456"}', n, n), 'UTF8'), 'accepted', now(), 1 from generate_series(1, $1::int) n`, attempts)
			execute(b, db, `
				insert into dispatcher.attempts (message_seq, attempt, channel, reason, outcome,
				  segments, price_micros, currency, claimed_at, settled_at, instance, answers)
				select seq, 1, 'a', 'first_choice', 'accepted', 1, 28000, 'GBP',
				  now() - interval '70 seconds' * (seq % $1::bigint) / $1::float8, now(), 1, 1
				  from dispatcher.messages`, attempts)
			execute(b, db, `analyze`)
			var applied, longest time.Duration
			for i := range b.N {
				applyToday(b, l, time.UTC, nil)
				done := make(chan struct{})
				var claims sync.WaitGroup
				claims.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-done:
							return
						default:
						}
						messages := batch(fmt.Sprintf("c%d-%d-%d", b.N, i, n), 20)
						began := time.Now()
						claimAll(b, other, messages, "a")
						longest = max(longest, time.Since(began))
					}
				})
				began := time.Now()
				applyToday(b, l, time.UTC, limits)
				applied = max(applied, time.Since(began))
				close(done)
				claims.Wait()
			}
			b.ReportMetric(applied.Seconds()*1000, "ms-applied")
			b.ReportMetric(longest.Seconds()*1000, "ms-longest-claim")
		})
	}
}

// BenchmarkClaimWithOptOuts claims new messages with an empty opt-out list and with a million
// entries, none of which is for them.
func BenchmarkClaimWithOptOuts(b *testing.B) {
	for _, entries := range []int{0, 1_000_000} {
		b.Run(fmt.Sprint(entries), func(b *testing.B) {
			url := ledgertest.URL(b)
			l, db := connect(b, ledger.Config{URL: url}), raw(b, url)
			apply(b, l, ledger.ChannelSpec{Name: "a"})
			if entries > 0 {
				if _, err := db.Exec(b.Context(), `
					insert into dispatcher.opt_outs (tenant, recipient, source) select 'shop',
					  dispatcher.recipient('shop', '44' || n), 'import'
					from generate_series(1, $1::bigint) n`, entries); err != nil {
					b.Fatal(err)
				}
				if _, err := db.Exec(b.Context(),
					`vacuum analyze dispatcher.opt_outs`); err != nil {
					b.Fatal(err)
				}
			}
			round := 0
			for b.Loop() {
				round++
				messages := batch(fmt.Sprint("m", round), 500)
				for i := range messages {
					messages[i].Recipient = ledger.Recipient("shop", fmt.Sprintf("+447%d%d", round,
						i))
				}
				claimAll(b, l, messages, "a")
			}
			b.ReportMetric(float64(500*b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
