package pipeline

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// onlyA disables all channels except a.
func onlyA(r *decide.Routing) {
	r.Lanes["bulk"] = decide.Lane{Lane: config.Lane{
		Name: "bulk", TTL: time.Hour,
		MaxWaiting: 10_000,
	}}
	for i := range r.Channels {
		r.Channels[i].Concurrency = 100
		if r.Channels[i].Name != "a" {
			r.Channels[i].State = decide.Disabled
		}
	}
}

// limitTo applies the routing with limits on every channel.
func (p *pipeline) limitTo(t *testing.T, limits []admission.Limit, channel provider.Channel) {
	t.Helper()
	next := *p.routing
	next.Channels = slices.Clone(p.routing.Channels)
	connected := map[string]provider.Channel{}
	for i := range next.Channels {
		next.Channels[i].Limits = limits
		if channel != nil {
			connected[next.Channels[i].Name] = channel
		}
	}
	next.Version = p.applyRouting(t, limits)
	if err := p.Apply(&next, connected); err != nil {
		t.Fatal(err)
	}
	p.routing = &next
}

// TestASlowDatabaseSlowsNoPacedChannel: two statements of each claim's commit take 450 ms, and the
// counters are locked that long. Still nearly all slots are used, no second has one too many, and
// nothing is late after the first claims have measured the database.
func TestASlowDatabaseSlowsNoPacedChannel(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const rate, seconds = 40, 6
	carrier := &timedChannel{takes: 5 * time.Millisecond}
	p := setup(t, onlyA)
	p.limitTo(t, []admission.Limit{{Window: admission.Second, Max: rate}}, carrier)
	for _, sql := range []string{
		`create function dispatcher.doze() returns trigger language plpgsql as 'begin perform ` +
			`pg_sleep(0.45); return null; end'`,
		`create trigger doze after insert on dispatcher.attempts for each statement execute ` +
			`function dispatcher.doze()`,
		`create trigger doze after update on dispatcher.limits for each statement execute ` +
			`function dispatcher.doze()`,
	} {
		if _, err := p.sql.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Handle(t.Context(), jobsNamed("slow", rate*(seconds+6)), nil); err != nil {
		t.Fatal(err)
	}
	p.eventually(t, `select 'enough', least(240, count(*)) from audit.attempts where outcome = `+
		`'accepted'`, map[string]int64{"enough": rate * seconds})
	at, _ := carrier.submits()
	in := map[time.Time]int{}
	for _, a := range at {
		in[p.clock.now().Add(-time.Since(a)).Truncate(time.Second)]++
	}
	whole := slices.SortedFunc(maps.Keys(in), time.Time.Compare)
	for _, second := range whole {
		if in[second] > rate {
			t.Errorf("%d submits in the second from %s, the limit is %d", in[second],
				second.Format("05"), rate)
		}
	}
	// From the second in which the claims have measured it, without the last one, which is not whole.
	best := 0
	for _, first := range whole[min(2, len(whole)-2) : len(whole)-1] {
		sum := 0
		for n := range 3 {
			sum += in[first.Add(time.Duration(n)*time.Second)]
		}
		best = max(best, sum)
	}
	// A busy machine loses seconds. If the commit latency were ignored, hardly anything would leave.
	if best < 3*rate/2 {
		t.Errorf("%d submits in the best 3 s, the limit is %d a second: %v", best, rate, in)
	}
	if late := p.counts(t, `select 'late', count(*) from dispatcher.all_attempts where provider_code `+
		`= 'late'`)["late"]; late > rate*seconds {
		t.Errorf("got %d late", late)
	}
}

// TestWhatAnAttemptDidNotSpendGoesToThoseWhoWaitForIt: at once, although the window is a day.
func TestWhatAnAttemptDidNotSpendGoesToThoseWhoWaitForIt(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	give := sync.OnceFunc(func() { close(answer) })
	p := setup(t, onlyA)
	t.Cleanup(give) // before the pipeline stops
	p.limitTo(t, []admission.Limit{{
		Window: admission.Day, Unit: admission.Money, Max: 30_000,
		Currency: "GBP",
	}}, nil)
	p.channels["a"].answer = func(s provider.Submission) provider.Result {
		if s.ID != "first-0" {
			return accepts(s)
		}
		<-answer
		return provider.Result{Outcome: provider.Rejected, Code: "number"}
	}
	p.handle(t, jobsNamed("first", 1))
	p.handle(t, jobsNamed("second", 1))
	p.eventually(t, `select coalesce(reason, ''), count(*) from dispatcher.message_states where state `+
		`= 'waiting' group by 1`, map[string]int64{decide.NoBudget: 1})
	give()
	p.eventually(t, byState, map[string]int64{"accepted": 1, "rejected": 1})
}

// TestASlotThatIsHeldNoLongerGoesToThoseWhoWaitForIt: at once. By itself the row would be claimed
// again in an hour.
func TestASlotThatIsHeldNoLongerGoesToThoseWhoWaitForIt(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		onlyA(r)
		r.Channels[0].Active.Until, r.Channels[0].Active.Hold = "receipt", 6*time.Second
	})
	if _, err := p.sql.Exec(t.Context(), `update dispatcher.channels
		set configured_max = 1, active_max = 1 where channel = 'a'`); err != nil {
		t.Fatal(err)
	}
	p.handle(t, jobsNamed("first", 1))
	p.handle(t, jobsNamed("second", 1))
	tag, err := p.sql.Exec(t.Context(), `update dispatcher.messages
		set next_at = now() + interval '1 hour' where state = 'waiting'`)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	p.eventually(t, byState, map[string]int64{"accepted": 2})
}

// TestWaitingCodesAreNotOvertakenByNewOnes: a small batch of the first lane also takes some older
// waiting messages.
func TestWaitingCodesAreNotOvertakenByNewOnes(t *testing.T) {
	t.Parallel()
	p := setup(t, onlyA)
	p.limitTo(t, []admission.Limit{{Window: admission.Day, Max: 0}}, nil)
	p.stop()
	other := p.second(t) // its due loop does not run
	if err := other.Handle(t.Context(), jobsNamed("old", 1), nil); err != nil {
		t.Fatal(err)
	}
	if n := other.dueShare(jobsNamed("new", 2)); n < 2 || n+2 > other.firstLaneSlots.size() {
		t.Errorf("got %d older messages claimed with two otp messages", n)
	}
	if _, err := p.sql.Exec(t.Context(),
		`update dispatcher.messages set next_at = now()`); err != nil {
		t.Fatal(err)
	}
	next := *p.routing
	next.Channels = slices.Clone(p.routing.Channels)
	for i := range next.Channels {
		next.Channels[i].Limits = []admission.Limit{{Window: admission.Day, Max: 1}}
	}
	next.Version = p.applyRouting(t, next.Channels[0].Limits)
	if err := other.Apply(&next, nil); err != nil {
		t.Fatal(err)
	}
	if err := other.Handle(t.Context(), jobsNamed("new", 1), nil); err != nil {
		t.Fatal(err)
	}
	p.eventually(t, `select id, count(*) from audit.messages where state <> 'waiting' group by 1`,
		map[string]int64{"old-0": 1})
	other.firstLaneWaits.Store(false)
	if n := other.dueShare(jobsNamed("new", 2)); n != 0 {
		t.Errorf("got %d older messages claimed, although no otp message waits", n)
	}
}

// TestPoliciesDivideByWhatTheFleetGranted: what one process granted affects the share of another,
// through the database. With a history in its region one process gets its share, the other one
// queues early, and the limit is not exceeded.
func TestPoliciesDivideByWhatTheFleetGranted(t *testing.T) {
	t.Parallel()
	for _, policy := range []admission.Policy{
		admission.Even{},
		admission.Curve{Factor: 1},
		admission.CounterPolicy{},
	} {
		tier.OneWindow(t, time.Minute) // the history is that of the running minute
		p := setup(t, func(r *decide.Routing) {
			onlyA(r)
			r.Channels[0].Policy = policy
		})
		const most = 60
		p.limitTo(t, []admission.Limit{{Window: admission.Day, Max: most}}, nil)
		one, two := p.secondIn(t, "eu"), p.secondIn(t, "us")
		handle := func(d *Dispatcher, name string, n int) {
			t.Helper()
			if err := d.Handle(t.Context(), jobsNamed(name, n), nil); err != nil {
				t.Fatal(err)
			}
		}
		handle(one, "history", 10)
		here := time.Now()
		one.clock.read(one.now().Add(time.Minute), here, here) // the minute has ended
		for _, d := range []*Dispatcher{one, two} {
			if err := d.gather(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		want := ledger.Grants{Messages: 10, Segments: 10, Micros: 300_000}
		if got := two.instances.Load().Granted["a"]["eu"]; got != want {
			t.Errorf("%s: the other process got %+v", policy, got)
		}
		handle(two, "quiet", 20)
		if n := p.counts(t, `select 'no_share', count(*) from dispatcher.messages where reason = `+
			`'no_share'`)["no_share"]; n == 0 {
			t.Errorf("%s: nothing queues in a region without history", policy)
		}
		handle(one, "busy", 100)
		if n := p.counts(t, `select 'all', count(*) from audit.attempts`)["all"]; n <= 10 ||
			n > most {
			t.Errorf("%s: %d attempts, the limit is %d", policy, n, most)
		}
	}
}

// TestASlidingLimitSendsThoughCommitsTakeLongerThanAnAttemptHas: under a sliding limit of a second
// an attempt must leave within 30 ms of its release time, and here a commit takes longer.
func TestASlidingLimitSendsThoughCommitsTakeLongerThanAnAttemptHas(t *testing.T) {
	t.Parallel()
	p := setup(t, onlyA)
	p.limitTo(t, []admission.Limit{
		{Window: admission.Second, Max: 100, Sliding: true, Burst: 10},
	}, &timedChannel{})
	for _, sql := range []string{
		`create function dispatcher.doze() returns trigger language plpgsql as 'begin perform ` +
			`pg_sleep(0.035); return null; end'`,
		`create trigger doze after update on dispatcher.limits for each statement execute ` +
			`function dispatcher.doze()`,
	} {
		if _, err := p.sql.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		if err := p.Handle(t.Context(), jobsNamed(string(rune('a'+i)), 2), nil); err != nil {
			t.Fatal(err)
		}
		p.eventually(t, `select 'accepted', count(*) from audit.attempts where outcome = 'accepted'`,
			map[string]int64{"accepted": int64(2 * (i + 1))})
	}
}
