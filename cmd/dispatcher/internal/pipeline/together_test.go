package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

// fallbackOnly is a route whose draws all pick a disabled channel, so that every message is a
// fallback. The other channels have different capacities.
func fallbackOnly(fallback decide.Ranker) func(*decide.Routing) {
	return func(r *decide.Routing) {
		// the first lane has few slots of its own
		r.Lanes["bulk"] = decide.Lane{Lane: config.Lane{
			Name: "bulk", TTL: time.Hour,
			MaxWaiting: 100,
		}, Order: 1}
		route := &r.Routes[0]
		entries := []selector.Entry{{Name: "off", Weight: selector.MustWeight("1")}}
		r.Channels = []decide.Channel{{
			Channel: config.Channel{
				Name: "off", Capacity: 100,
				State: decide.Disabled,
			}, Price: decide.NewPrice("GBP", decide.PriceList{Default: 1}),
			Concurrency: 500,
		}}
		route.Fallback, route.Members = fallback, []int{0}
		for i, capacity := range []int64{7, 10, 13, 10} {
			name := string(rune('a' + i))
			r.Channels = append(r.Channels,
				decide.Channel{
					Channel: config.Channel{Name: name, Capacity: capacity},
					Price:   decide.NewPrice("GBP", decide.PriceList{Default: 1}), Concurrency: 500,
				})
			route.Members = append(route.Members, i+1)
			entries = append(entries, selector.Entry{Name: name})
		}
		var err error
		if route.Table, err = selector.NewTable(entries); err != nil {
			panic(err) // the weights stand above
		}
	}
}

// second starts another instance on the pipeline's database, with channels that answer alike.
func (p *pipeline) second(t *testing.T) *Dispatcher {
	t.Helper()
	return p.secondIn(t, "test")
}

// secondIn is second in another region.
func (p *pipeline) secondIn(t *testing.T, region string) *Dispatcher {
	t.Helper()
	l, err := ledger.Connect(t.Context(),
		ledger.Config{URL: p.sql.Config().ConnString(), Region: region, Host: "other"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := New(Config{
		Ledger: l, Keys: testKeys, MaxUnsettled: 500, SendTimeout: 20 * time.Second,
		DeadAfter: time.Minute, Region: region,
		Metrics: NewMetrics(prometheus.NewRegistry()), Trouble: func(where string, err error) {
			t.Logf("%s: got error %v", where, err)
		},
		Reload: func(context.Context) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	connected := map[string]provider.Channel{}
	for name, c := range p.channels {
		connected[name] = &scriptedChannel{answer: c.answer}
	}
	routing := *p.routing
	if err := d.Apply(&routing, connected); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, end := context.WithTimeout(context.WithoutCancel(t.Context()), tier.LongestWait)
		defer end()
		if err := d.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return d
}

// choices returns the channels of all attempts in the order of the decisions: by claim, and within
// a claim by record.
func (p *pipeline) choices(t *testing.T) []string {
	t.Helper()
	rows, err := p.sql.Query(t.Context(), `
		select a.channel from audit.attempts a join audit.messages m on m.id = a.message_id
		where a.reason = 'fallback' order by a.claimed_at, m.kafka_offset`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// nextByLoad is the model of load_ratio: the least loaded channel that is not disabled, then the
// one that was assigned longer ago, then the one listed first.
func nextByLoad(r *decide.Routing, active, assigned []int) int {
	best := 1
	for c := 2; c < len(r.Channels); c++ {
		mine, its := int64(active[c])*r.Channels[best].Capacity,
			int64(active[best])*r.Channels[c].Capacity
		if mine < its || mine == its && assigned[c] < assigned[best] {
			best = c
		}
	}
	return best
}

// TestFallbacksOfSeveralInstancesAreThoseOfOne: two instances claim alternately and at the same
// time, in batches of different sizes, and nothing is answered. In the order of the claims, all
// choices are those that one process would have made: exact load ratios and strict turns.
func TestFallbacksOfSeveralInstancesAreThoseOfOne(t *testing.T) {
	t.Parallel()
	for _, fallback := range []decide.Ranker{decide.LoadRatio, decide.RoundRobin} {
		release := make(chan struct{})
		p := setup(t, fallbackOnly(fallback))
		for _, c := range p.channels {
			c.answer = func(s provider.Submission) provider.Result { <-release; return accepts(s) }
		}
		instances := []*Dispatcher{p.Dispatcher, p.second(t)}
		t.Cleanup(sync.OnceFunc(func() { close(release) })) // before the instances stop

		const rounds = 20
		total, sizes := 0, rand.New(rand.NewPCG(1, 2)) //nolint:gosec // Sizes, not secrets.
		for round := range rounds {
			var claims sync.WaitGroup
			for i, d := range instances {
				jobs := jobsNamed(fmt.Sprint(fallback, "-", round, "-", i), 1+sizes.IntN(12))
				total += len(jobs)
				handle := func() {
					if err := d.Handle(t.Context(), jobs, nil); err != nil {
						t.Error(err)
					}
				}
				if round%2 == 0 {
					handle()
				} else {
					claims.Go(handle)
				}
			}
			claims.Wait()
		}
		all := p.choices(t)
		if len(all) != total {
			t.Fatalf("%s: %d fallbacks of %d messages", fallback, len(all), total)
		}
		const claimers = `select 'n', count(distinct instance) from dispatcher.all_attempts`
		if n := p.counts(t, claimers)["n"]; n != 2 {
			t.Errorf("%s: %d instances made attempts", fallback, n)
		}
		active, assigned := make([]int, len(p.routing.Channels)),
			make([]int, len(p.routing.Channels))
		for i, got := range all {
			want := 1 + i%4
			if fallback == decide.LoadRatio {
				want = nextByLoad(p.routing, active, assigned)
			}
			if name := p.routing.Channels[want].Name; got != name {
				t.Fatalf("%s: choice %d of %d is %s, one process would have chosen %s: %v",
					fallback, i, total, got, name, all[:i+1])
			}
			active[want]++
			assigned[want] = i + 1
		}
	}
}
