package pipeline

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// start runs the background work of another instance until the end of the test.
func start(t *testing.T, d *Dispatcher) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
}

// TestTwoProcessesSubmitAtOnePace: both claim as much as they can for some seconds. At the carrier
// no calendar second has more submits than the limit, and none begins with a burst. A busy machine
// may leave some slots of a second unused.
func TestTwoProcessesSubmitAtOnePace(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const perSecond, seconds = 50, 4
	carrier := &timedChannel{takes: 5 * time.Millisecond}
	p := setup(t, func(r *decide.Routing) {
		r.Lanes["bulk"] = decide.Lane{Lane: config.Lane{
			Name: "bulk", TTL: time.Hour,
			MaxWaiting: 10_000,
		}}
		for i := range r.Channels {
			r.Channels[i].Concurrency = 20
			r.Channels[i].Limits = []admission.Limit{{Window: admission.Second, Max: perSecond}}
		}
	})
	other := p.second(t)
	start(t, other)
	for _, d := range []*Dispatcher{p.Dispatcher, other} {
		connected := map[string]provider.Channel{}
		for _, c := range p.routing.Channels {
			connected[c.Name] = carrier // all three are one carrier, with three times the limit
		}
		next := *p.routing
		next.Version = 2
		if err := d.Apply(&next, connected); err != nil {
			t.Fatal(err)
		}
	}
	p.applyRouting(t, p.routing.Channels[0].Limits)
	for i, d := range []*Dispatcher{p.Dispatcher, other} {
		if err := d.Handle(t.Context(),
			jobsNamed(string(rune('x'+i)), 3*perSecond*(seconds+2)/2), nil); err != nil {
			t.Fatal(err)
		}
	}
	p.eventually(t, `select 'enough', least(600, count(*)) from audit.attempts where outcome = `+
		`'accepted'`, map[string]int64{"enough": 3 * perSecond * seconds})
	at, _ := carrier.submits()
	in := map[time.Time]int{}
	for _, a := range at {
		in[a.Truncate(time.Second)]++
	}
	whole := slices.SortedFunc(maps.Keys(in), time.Time.Compare)
	whole = whole[1 : len(whole)-1]
	most := 0
	for _, second := range whole {
		if in[second] > 3*perSecond {
			t.Errorf("%d submits in the second from %s, the limit is %d", in[second],
				second.Format("05"), 3*perSecond)
		}
		most = max(most, in[second])
		begin, _ := slices.BinarySearchFunc(at, second, time.Time.Compare)
		end, _ := slices.BinarySearchFunc(at, second.Add(100*time.Millisecond), time.Time.Compare)
		if n := end - begin; n > 3*perSecond/4 {
			t.Errorf("%d submits in the first tenth of the second from %s", n, second.Format("05"))
		}
	}
	if len(whole) < 2 || most < 3*perSecond/2 {
		t.Errorf("%d whole seconds, with %d submits at most", len(whole), most)
	}
}

// TestASlowDatabasePutsReleaseTimesOff: if a claim takes long to commit, the next one has later
// release times.
func TestASlowDatabasePutsReleaseTimesOff(t *testing.T) {
	t.Parallel()
	carrier := &timedChannel{}
	p := setup(t, func(r *decide.Routing) {
		for i := range r.Channels {
			r.Channels[i].Limits = []admission.Limit{{Window: admission.Second, Max: 10}}
		}
	})
	next := *p.routing
	next.Version = p.applyRouting(t, p.routing.Channels[0].Limits)
	if err := p.Apply(&next, map[string]provider.Channel{
		"a": carrier, "b": carrier,
		"c": carrier,
	}); err != nil {
		t.Fatal(err)
	}
	p.handle(t, jobsNamed("one", 1))
	// it may wait for the next second
	p.eventually(t, byState, map[string]int64{"accepted": 1})
	lane := laneOf(jobsNamed("one", 1))
	p.commitLatencies.mu.Lock()
	if len(p.commitLatencies.of) == 0 {
		t.Error("no claim was timed")
	}
	for _, of := range p.commitLatencies.of {
		if took := of.writes[0].took; took <= 0 || took > admission.MaxCommitLatency {
			t.Errorf("a claim took %s to commit", took)
		}
	}
	p.commitLatencies.mu.Unlock()
	const slow = 250 * time.Millisecond
	for range 3 {
		p.commitLatencies.took(lane, slow, time.Now())
	}
	p.handle(t, jobsNamed("two", 1))
	p.eventually(t, byState, map[string]int64{"accepted": 2})
	var claimed time.Time
	if err := p.sql.QueryRow(t.Context(),
		`select max(claimed_at) from audit.attempts`).Scan(&claimed); err != nil {
		t.Fatal(err)
	}
	if at, _ := carrier.submits(); at[1].Sub(claimed) < slow/2 {
		t.Errorf("submitted %s after the claim", at[1].Sub(claimed))
	}
}

// TestAThrottledAnswerSlowsTheChannelForAllProcesses: the rate is reduced at once, and the other
// process sends nothing during the provider's pause.
func TestAThrottledAnswerSlowsTheChannelForAllProcesses(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		r.Routes[0].HoldThrottled = true
		for i := range r.Channels {
			r.Channels[i].Active.Hold = time.Minute
		}
	})
	for _, c := range p.channels {
		c.answer = func(provider.Submission) provider.Result {
			return provider.Result{
				Outcome: provider.Throttled, Code: "0x00000058",
				RetryAfter: time.Minute,
			}
		}
	}
	p.handle(t, jobsNamed("m", 60))
	p.eventually(t, `select channel, 1 from audit.attempts where outcome = 'throttled' group by 1`,
		map[string]int64{"a": 1, "b": 1, "c": 1})
	if err := p.present(t.Context()); err != nil {
		t.Fatal(err)
	}
	present, err := p.ledger.Limits.Present(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range present.Channels {
		if e := c.Gate.Ease; e.RateAt(e.Since) > 0.5 || e.Until.Sub(present.Now) < 50*time.Second {
			t.Errorf("%s has ease %+v", c.Name, e)
		}
	}
	other := p.second(t)
	if err := other.Handle(t.Context(), jobsNamed("n", 30), nil); err != nil {
		t.Fatal(err)
	}
	p.eventually(t, `select state, count(*) from audit.messages where id like 'n-%' group by 1`,
		map[string]int64{"waiting": 30})
	held := p.counts(t, `select 'held', sum(active)::bigint from audit.active`)
	if throttledOnes := p.counts(t,
		`select 'held', count(*) from audit.attempts where outcome = 'throttled'`); !cmp.Equal(held,
		throttledOnes) {
		t.Errorf("%v slots are held by %v throttled messages", held, throttledOnes)
	}
}

// TestEachProcessLearnsWhatTheOthersGranted: the policies use it.
func TestEachProcessLearnsWhatTheOthersGranted(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	other := p.second(t)
	last := admission.Minute.Start(other.now().Add(-time.Minute), time.UTC)
	other.minutes.add(last, "a", ledger.Grants{Messages: 7, Segments: 35, Micros: 196_000})
	for _, d := range []*Dispatcher{other, p.Dispatcher} {
		if err := d.gather(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	instances := p.instances.Load()
	if instances.Total != 2 || instances.Workers["test"] != 2 {
		t.Errorf("%d processes, by region %v", instances.Total, instances.Workers)
	}
	// later it would not be the last minute
	if got := instances.Granted["a"]["test"]; got != (ledger.Grants{
		Messages: 7, Segments: 35,
		Micros: 196_000,
	}) && time.Since(last) < 2*time.Minute {
		t.Errorf("%+v granted", got)
	}
}

// TestMetricsShowTheCurrentStateOfLimits: per limit and channel, with the names of the document.
func TestMetricsShowTheCurrentStateOfLimits(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	g := newLimitGauges("dispatcher", "dispatch")
	registry.MustRegister(g)
	shop := admission.Scope{Tenant: "shop"}
	r := testRouting(t)
	r.Zone = time.UTC
	r.Channels[0].Limits = []admission.Limit{
		{
			Window: admission.Second, Max: 100,
			Reserve: []admission.Reserve{{Lane: "otp", Percent: 20}},
		},
		{Scope: shop, Window: admission.Day, Max: 1000, Unit: admission.Money},
	}
	r.Channels[0].Policy = admission.Even{}
	instances := &decide.Instances{}
	for range 4 {
		instances.Join("test", nil)
	}
	g.latest.Store(gaugeStateOf(presentOf(shop), r, instances, "test"))
	got := gathered(t, registry)
	want := map[string]float64{
		"limit_max a channel 1s messages": 100, "limit_effective a channel 1s messages": 75,
		"limit_granted a channel 1s messages": 30,
		"limit_free a channel 1s messages":    70, "limit_reserved a channel 1s messages": 15,
		"limit_share a channel 1s messages": 25,
		"limit_max a tenant:shop 1d money":  1000, "limit_effective a tenant:shop 1d money": 1000,
		"limit_granted a tenant:shop 1d money": 1000,
		"limit_free a tenant:shop 1d money":    0, "limit_reserved a tenant:shop 1d money": 0,
		"limit_share a tenant:shop 1d money": 1000,
		"limit_max  tenant:shop 1m segments": 60, "limit_effective  tenant:shop 1m segments": 60,
		"limit_granted  tenant:shop 1m segments": 0,
		"limit_free  tenant:shop 1m segments":    60, "limit_reserved  tenant:shop 1m segments": 0,
		"limit_share  tenant:shop 1m segments":                      60,
		"limit_window_end_timestamp_seconds a channel 1s messages":  unix(noon.Add(time.Second)),
		"limit_window_end_timestamp_seconds a tenant:shop 1d money": unix(noon.Add(12 * time.Hour)),
		// that of noon: the window before has ended
		"limit_window_end_timestamp_seconds  tenant:shop 1m segments": unix(noon.Add(time.Minute)),
		"channel_active a": 3, "channel_rate_ratio a": 0.75, "channel_active gone": 0,
		"channel_rate_ratio gone":          0,
		"waiting_for_messages a no_active": 12,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestMetricsHaveNoLabelsOfTenantsThatTheDocumentDoesNotName: producers may send any names.
func TestMetricsHaveNoLabelsOfTenantsThatTheDocumentDoesNotName(t *testing.T) {
	t.Parallel()
	r := testRouting(t)
	r.Zone = time.UTC
	each := admission.Limit{
		Scope: admission.Scope{Tenant: admission.EachTenant}, Window: admission.Day, Max: 5,
	}
	r.Limits = []admission.Limit{each, each.Own("bank")}
	p := &ledger.Present{Now: noon}
	for _, tenant := range []string{admission.EachTenant, "bank", "news", "shop"} {
		own := each.Own(tenant)
		p.Scoped = append(p.Scoped, ledger.ScopeState{
			ScopeRef: ledger.ScopeRef{Scope: own.Scope},
			Counters: []admission.Counter{{Limit: own, Max: 5}},
		})
		p.Waiting = append(p.Waiting, ledger.Waiters{
			On: own.Key().On(""), Reason: decide.TenantLimit, Messages: 2,
		})
	}
	s := gaugeStateOf(p, r, nil, "test")
	var scopes []string
	for _, l := range s.limits {
		scopes = append(scopes, l.labels[1])
	}
	if diff := cmp.Diff([]string{"tenant:*", "tenant:bank"}, scopes); diff != "" {
		t.Error(diff)
	}
	want := []ledger.Waiters{
		{On: "tenant:* 1d messages", Reason: decide.TenantLimit, Messages: 6},
		{On: "tenant:bank 1d messages", Reason: decide.TenantLimit, Messages: 2},
	}
	if diff := cmp.Diff(want, s.waiting); diff != "" {
		t.Error(diff)
	}
}

// TestBudgetsAreCountedByLevel: under the limit that the document names.
func TestBudgetsAreCountedByLevel(t *testing.T) {
	t.Parallel()
	r := testRouting(t)
	r.Zone = time.UTC
	each := admission.Limit{
		Scope: admission.Scope{Tenant: admission.EachTenant}, Window: admission.Prepaid,
		Unit: admission.Money, Currency: "GBP",
	}
	r.Limits = []admission.Limit{each, each.Own("bank")}
	p := &ledger.Present{Now: noon}
	for tenant, granted := range map[string]int64{"bank": 100, "news": 79, "shop": 80, "toys": 99} {
		own := each.Own(tenant)
		own.Max = 100
		p.Scoped = append(p.Scoped, ledger.ScopeState{
			ScopeRef: ledger.ScopeRef{Scope: own.Scope},
			Counters: []admission.Counter{{Limit: own, Max: 100, Granted: granted}},
		})
	}
	want := map[budgetGauge]int{}
	for _, scope := range []string{"tenant:*", "tenant:bank"} {
		for _, level := range admission.Levels {
			want[budgetGauge{"", scope, string(level)}] = 0
		}
	}
	want[budgetGauge{"", "tenant:bank", "spent"}] = 1
	want[budgetGauge{"", "tenant:*", "enough"}] = 1
	want[budgetGauge{"", "tenant:*", "low"}] = 2
	if diff := cmp.Diff(want, gaugeStateOf(p, r, nil, "test").budgets); diff != "" {
		t.Error(diff)
	}
}

// TestMetricsClaimNoRateWhereNothingIsSlowedDown: a channel without a limit per second only pauses.
func TestMetricsClaimNoRateWhereNothingIsSlowedDown(t *testing.T) {
	t.Parallel()
	r := testRouting(t)
	r.Zone = time.UTC
	r.Channels[0].Limits = []admission.Limit{{Window: admission.Minute, Max: 100}}
	eased := admission.Ease{Rate: 0.5, Since: noon}
	present := &ledger.Present{
		Now:      noon.Add(time.Second),
		Channels: []ledger.ChannelState{{Name: "a", Gate: admission.Gate{Ease: eased}}},
	}
	if s := gaugeStateOf(present, r, nil, "test"); s.channels[0].rate != 1 {
		t.Errorf("rate %v", s.channels[0].rate)
	}
	present.Channels[0].Gate.Ease.Until = noon.Add(time.Minute)
	if s := gaugeStateOf(present, r, nil, "test"); s.channels[0].rate != 0 {
		t.Errorf("rate %v in a pause", s.channels[0].rate)
	}
}
