package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// limit adds a limit to a channel, or to all channels if channel is empty, and its row with the
// granted amount. The returned counter is valid until the next limit of the same channel is added.
func (w *fixture) limit(channel string, l admission.Limit, granted int64) *admission.Counter {
	// the rest comes from the routing
	row := admission.Limit{Scope: l.Scope, Window: l.Window, Unit: l.Unit, Max: l.Max}
	counter := admission.Counter{
		Limit: row, Start: l.Window.Start(w.seen.Now, time.UTC),
		Granted: granted, Max: l.Max,
	}
	limits := &w.routing.Limits
	if channel != "" {
		limits = &w.routing.Channels[w.routing.Channel(channel)].Limits
	}
	*limits = append(*limits, l)
	if l.Scope == (admission.Scope{}) {
		gate := &w.seen.Channels[w.routing.Channel(channel)].Gate
		gate.Counters = append(gate.Counters, counter)
		return &gate.Counters[len(gate.Counters)-1]
	}
	w.seen.Scoped = append(w.seen.Scoped, ledger.ScopeState{
		ScopeRef: ledger.ScopeRef{Channel: channel, Scope: l.Scope},
		Counters: []admission.Counter{counter},
	})
	return &w.seen.Scoped[len(w.seen.Scoped)-1].Counters[0]
}

// shopTask returns a message of tenant shop.
func (w *fixture) shopTask() *Task {
	t := w.task("a")
	t.Row.Tenant = "shop"
	return t
}

var (
	shop    = admission.Scope{Tenant: "shop"}
	british = admission.Scope{Prefix: "+44"}
)

// onlyA excludes all channels except a.
func (w *fixture) onlyA() *fixture {
	w.routing.Channels[1].State, w.routing.Channels[2].State = Disabled, Disabled
	return w
}

func TestMessageIsCountedByEveryLimitThatCoversIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	daily := func(s admission.Scope, u admission.Unit) admission.Limit {
		return admission.Limit{
			Scope: s, Window: admission.Day, Unit: u, Max: 1_000_000,
			Currency: "GBP",
		}
	}
	counted := map[string]*admission.Counter{
		"the channel's messages":    w.limit("a", daily(admission.Scope{}, admission.Messages), 0),
		"the tenant on the channel": w.limit("a", daily(shop, admission.Segments), 0),
		"the prefix on the channel": w.limit("a", daily(british, admission.Messages), 0),
		"a longer prefix": w.limit("a",
			daily(admission.Scope{Prefix: "+447700"}, admission.Messages), 0),
		"the tenant over all channels": w.limit("", daily(shop, admission.Messages), 0),
		"the prefix over all channels": w.limit("", daily(british, admission.Segments), 0),
	}
	spent := w.limit("", daily(admission.Scope{Prefix: "+"}, admission.Money), 0)
	others := map[string]*admission.Counter{
		"another channel":       w.limit("b", daily(admission.Scope{}, admission.Messages), 0),
		"the tenant on another": w.limit("b", daily(shop, admission.Messages), 0),
		"another tenant": w.limit("a",
			daily(admission.Scope{Tenant: "bank"}, admission.Messages), 0),
		"another tenant over channels": w.limit("",
			daily(admission.Scope{Tenant: "bank"}, admission.Messages), 0),
		"another prefix": w.limit("", daily(admission.Scope{Prefix: "+49"}, admission.Messages), 0),
	}
	task := w.shopTask()
	task.common = 3
	a := w.assigner()
	d := a.decide(task)
	if d.Attempt.Channel != "a" {
		t.Fatalf("decision %+v", d)
	}
	for name, c := range counted {
		if want := c.Cost(&admission.Need{Segments: 3}); c.Granted != want {
			t.Errorf("%s: got %d granted, want %d", name, c.Granted, want)
		}
	}
	for name, c := range others {
		if c.Granted != 0 {
			t.Errorf("%s: got %d granted", name, c.Granted)
		}
	}
	if spent.Granted != 90_000 {
		t.Errorf("%d micros are spent", spent.Granted)
	}
	want := []ledger.Refund{{
		ScopeRef: ledger.ScopeRef{Scope: admission.Scope{Prefix: "+"}},
		Window:   admission.Day, Micros: 90_000,
	}}
	if diff := cmp.Diff(want, d.refunds); diff != "" {
		t.Errorf("refunds if nothing is spent: %s", diff)
	}
}

func TestRefundsNameTheLimitsInMoneyAlone(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, s := range []admission.Scope{{}, shop} {
		w.limit("a", admission.Limit{
			Scope: s, Window: admission.Hour, Unit: admission.Money,
			Max: 1_000_000, Currency: "GBP",
		}, 0)
	}
	w.limit("a", admission.Limit{Window: admission.Hour, Max: 10}, 0)
	a := w.assigner()
	d := a.decide(w.shopTask())
	want := []ledger.Refund{
		{ScopeRef: ledger.ScopeRef{Channel: "a"}, Window: admission.Hour, Micros: 30_000},
		{
			ScopeRef: ledger.ScopeRef{Channel: "a", Scope: shop}, Window: admission.Hour,
			Micros: 30_000,
		},
	}
	if diff := cmp.Diff(want, d.refunds); diff != "" {
		t.Error(diff)
	}
	if d := a.decide(w.task("b")); d.refunds != nil {
		t.Errorf("a channel without limits in money: got refunds %v", d.refunds)
	}
}

// TestMoneyThatIsLeftToOtherProcessesIsNotSpent: the reason says whether this process has used its
// share of the budget, or the budget is used up.
func TestMoneyThatIsLeftToOtherProcessesIsNotSpent(t *testing.T) {
	t.Parallel()
	instances := &Instances{}
	instances.Join("eu", nil)
	instances.Join("eu", nil)
	for granted, want := range map[int64]string{30_000: NoShare, 95_000: NoBudget} {
		w := newFixture(t).onlyA()
		w.routing.Channels[0].Policy = admission.Even{}
		counter := w.limit("a", admission.Limit{
			Window: admission.Hour, Unit: admission.Money,
			Max: 100_000, Currency: "GBP",
		}, granted)
		counter.Taken = map[string]int64{"worker:7": 30_000}
		a := newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{
			Unready: w.unready, Worker: admission.Worker{ID: 7, Region: "eu"}, Instances: instances,
		})
		if d := a.decide(w.task("a")); d.Reason != want || d.WaitsFor != "a 1h money" {
			t.Errorf("with %d of 100000 granted: %s for %q, want %s", granted, d.Reason,
				d.WaitsFor, want)
		}
	}
}

// TestRefundsNameTheTalliesThatWereCharged: the share of the process or of its region, and the
// reserve of the lane.
func TestRefundsNameTheTalliesThatWereCharged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy admission.Policy
		kept   bool
		before int64 // used of the region's own 947 000
		want   admission.Tallies
	}{
		"nothing apart": {},
		"exact":         {policy: admission.Exact{}},
		"a reserve":     {kept: true, want: admission.Tallies{Lane: "lane:bulk"}},
		"even":          {policy: admission.Even{}, want: admission.Tallies{Pool: "worker:7"}},
		"curve, and a reserve": {
			policy: admission.Curve{Factor: 1}, kept: true,
			want: admission.Tallies{Lane: "lane:bulk", Pool: "worker:7"},
		},
		"counter, of its region": {
			policy: admission.CounterPolicy{},
			want:   admission.Tallies{Pool: "region:eu"},
		},
		"counter, the last of it": {
			policy: admission.CounterPolicy{}, before: 910_000,
			want: admission.Tallies{Pool: "region:eu"},
		},
		"counter, of no region": {
			policy: admission.CounterPolicy{}, before: 940_000,
			want: admission.Tallies{Pool: "anywhere"},
		},
	} {
		w := newFixture(t).onlyA()
		budget := admission.Limit{
			Window: admission.Hour, Unit: admission.Money, Max: 1_000_000,
			Currency: "GBP",
		}
		if tc.kept {
			budget.Reserve = []admission.Reserve{{Lane: "bulk", Percent: 20}}
		}
		counter := w.limit("a", budget, tc.before)
		counter.Taken = map[string]int64{"region:eu": tc.before}
		w.routing.Channels[0].Policy = tc.policy
		instances := &Instances{}
		instances.Join("eu", map[string]ledger.Grants{"a": {Micros: 30_000}})
		a := newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{
			Unready: w.unready, Worker: admission.Worker{ID: 7, Region: "eu"}, Instances: instances,
		})
		d := a.decide(w.task("a"))
		want := []ledger.Refund{{
			ScopeRef: ledger.ScopeRef{Channel: "a"}, Window: admission.Hour,
			Micros: 30_000, Tallies: tc.want,
		}}
		if diff := cmp.Diff(want, d.refunds); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		apart := map[string]int64{"region:eu": tc.before}
		apart[tc.want.Lane] += 30_000
		apart[tc.want.Pool] += 30_000
		delete(apart, "")
		if diff := cmp.Diff(apart, counter.Taken); diff != "" {
			t.Errorf("%s: counted apart: %s", name, diff)
		}
	}
}

// TestLimitsAreNamedByWhatTheyLack: the reason, the limit that is waited for, and until when.
func TestLimitsAreNamedByWhatTheyLack(t *testing.T) {
	t.Parallel()
	minute := func(s admission.Scope, u admission.Unit) admission.Limit {
		return admission.Limit{
			Scope: s, Window: admission.Minute, Unit: u, Max: 10,
			Currency: "GBP",
		}
	}
	for name, tc := range map[string]struct {
		set  func(*fixture)
		word string
		on   string
		next time.Duration
	}{
		"its window": {func(w *fixture) {
			w.limit("a", minute(admission.Scope{}, admission.Messages), 10)
		}, NoSlot, "a 1m messages", time.Minute},
		"closed": {func(w *fixture) {
			l := minute(admission.Scope{}, admission.Messages)
			l.Max = 0
			w.limit("a", l, 0)
		}, NoSlot, "a 1m messages", lookForRoute},
		"tenant on it": {func(w *fixture) {
			w.limit("a", minute(shop, admission.Segments), 10)
		}, TenantLimit, "a tenant:shop 1m segments", time.Minute},
		"tenant over all": {func(w *fixture) {
			w.limit("", minute(shop, admission.Messages), 10)
		}, TenantLimit, "tenant:shop 1m messages", time.Minute},
		"prefix on it": {func(w *fixture) {
			w.limit("a", minute(british, admission.Messages), 10)
		}, PrefixLimit, "a prefix:+44 1m messages", time.Minute},
		"prefix over all": {func(w *fixture) {
			w.limit("", minute(british, admission.Messages), 10)
		}, PrefixLimit, "prefix:+44 1m messages", time.Minute},
		"tenant closed": {func(w *fixture) {
			l := minute(shop, admission.Messages)
			l.Max = 0
			w.limit("", l, 0)
		}, TenantLimit, "tenant:shop 1m messages", lookForRoute},
		"money": {func(w *fixture) {
			l := minute(admission.Scope{}, admission.Money)
			l.Max = 1000
			w.limit("a", l, 0)
		}, NoBudget, "a 1m money", lookForRoute},
		"money of a tenant": {func(w *fixture) {
			l := minute(shop, admission.Money)
			l.Max = 40_000
			w.limit("", l, 20_000)
		}, NoBudget, "tenant:shop 1m money", time.Minute},
		"a budget of a tenant": {func(w *fixture) {
			w.limit("", admission.Limit{
				Scope: shop, Window: admission.Prepaid, Unit: admission.Money, Max: 40_000,
				Currency: "GBP",
			}, 20_000)
		}, NoBudget, "tenant:shop prepaid money", lookForRoute},
		"a budget that no policy divides": {func(w *fixture) {
			w.routing.Channels[0].Policy = admission.Even{}
			w.limit("a", admission.Limit{
				Window: admission.Prepaid, Unit: admission.Money, Max: 40_000, Currency: "GBP",
			}, 20_000)
		}, NoBudget, "a prepaid money", lookForRoute},
		"reserved": {func(w *fixture) {
			l := minute(admission.Scope{}, admission.Messages)
			l.Reserve = []admission.Reserve{{Lane: "otp", Percent: 20}}
			w.limit("a", l, 8)
		}, Reserved, "a 1m messages", 0},
		"money kept for a lane": {func(w *fixture) {
			l := minute(admission.Scope{}, admission.Money)
			l.Max, l.Reserve = 100_000, []admission.Reserve{{Lane: "otp", Percent: 40}}
			w.limit("a", l, 60_000)
		}, Reserved, "a 1m money", 0},
		"money of a tenant, kept for a lane": {func(w *fixture) {
			l := minute(shop, admission.Money)
			l.Max, l.Reserve = 100_000, []admission.Reserve{{Lane: "otp", Percent: 40}}
			w.limit("", l, 60_000)
		}, Reserved, "tenant:shop 1m money", 0},
		"money kept for a lane, and spent": {func(w *fixture) {
			l := minute(admission.Scope{}, admission.Money)
			l.Max, l.Reserve = 100_000, []admission.Reserve{{Lane: "otp", Percent: 40}}
			w.limit("a", l, 80_000)
		}, NoBudget, "a 1m money", time.Minute},
		"slow down": {func(w *fixture) {
			w.seen.Channels[0].Gate.Ease.Until = noon.Add(7 * time.Second)
		}, Throttled, "a", 7 * time.Second},
		"all of its active": {func(w *fixture) {
			w.seen.Channels[0].Gate.Active = admission.Active{Max: 4, Count: 4}
		}, NoActive, "a", lookForActive},
		"not connected": {func(w *fixture) {
			w.unready[0] = "connecting"
		}, "connecting", "a", readyRetry},
		"a long queue here": {func(w *fixture) { w.unready[0] = Busy }, Busy, "a", lookForActive},
		"switched off": {func(w *fixture) {
			w.routing.Channels[0].State = Draining
		}, SwitchedOff, "", lookForRoute},
	} {
		w := newFixture(t).onlyA()
		tc.set(w)
		d := w.decide(w.shopTask())
		next := d.NextAt.Sub(noon)
		if d.State != ledger.Waiting || d.Reason != tc.word || d.WaitsFor != tc.on ||
			(tc.next > 0 && next != tc.next) || next <= 0 {
			t.Errorf("%s: %s for %q, looked at again after %s", name, d.Reason, d.WaitsFor, next)
		}
		if _, _, ofLimit := admission.ParseOn(tc.on); ofLimit {
			r, err := ReadRanking(d.Seen)
			if err != nil || r.Candidates[0].Limit.On("a") != tc.on {
				t.Errorf("%s: %v: the stored ranking %s does not name the limit", name, err, d.Seen)
			}
		}
		if d := w.decide(w.task("a")); tc.word == TenantLimit && d.State != ledger.Sending {
			t.Errorf("%s delays a message without tenant: %+v", name, d)
		}
	}
}

func TestReservedSlotsAreThereForTheirLane(t *testing.T) {
	t.Parallel()
	w := newFixture(t).onlyA()
	w.limit("a", admission.Limit{
		Window: admission.Minute, Max: 10,
		Reserve: []admission.Reserve{{Lane: "otp", Percent: 20}},
	}, 8)
	a := w.assigner()
	if d := a.decide(w.task("a")); d.Reason != Reserved {
		t.Errorf("bulk: %+v", d)
	}
	code := w.task("a")
	code.Row.Lane = "otp"
	if d := a.decide(code); d.State != ledger.Sending {
		t.Errorf("otp: %+v", d)
	}
}

// TestScopesHaveReservesAndSlideAsTheRoutingSays: their rows do not hold these settings.
func TestScopesHaveReservesAndSlideAsTheRoutingSays(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.limit("", admission.Limit{
		Scope: shop, Window: admission.Minute, Max: 10,
		Reserve: []admission.Reserve{{Lane: "otp", Percent: 20}},
	}, 8)
	if d := w.decide(w.shopTask()); d.Reason != Reserved ||
		d.WaitsFor != "tenant:shop 1m messages" {
		t.Errorf("bulk: %+v", d)
	}
	w = newFixture(t)
	w.limit("a", admission.Limit{
		Scope: shop, Window: admission.Minute, Max: 10, Sliding: true,
		Burst: 2,
	}, 0)
	a, got := w.onlyA().assigner(), 0
	for range 5 {
		if a.decide(w.shopTask()).State == ledger.Sending {
			got++
		}
	}
	if got != 2 {
		t.Errorf("got %d at once, want the burst of 2", got)
	}
}

// TestSlowChannelSlowsNoOther: the reduced rate spaces out the release times of the channel's own
// limits, not those of a tenant over all channels.
func TestSlowChannelSlowsNoOther(t *testing.T) {
	t.Parallel()
	next := func(ease admission.Ease, channel string) time.Duration {
		w := newFixture(t)
		counter := w.limit(channel, admission.Limit{
			Scope: shop, Window: admission.Second,
			Max: 19,
		}, 0)
		w.seen.Channels[0].Gate.Ease = ease
		w.decide(w.shopTask())
		return counter.Next.Sub(noon)
	}
	half := admission.Ease{Rate: 0.5, Since: noon}
	if full, slow := next(admission.Ease{}, "a"), next(half, "a"); slow != 2*full || full == 0 {
		t.Errorf("on the channel the next release time is after %s, at half its rate after %s",
			full, slow)
	}
	if full, slow := next(admission.Ease{}, ""), next(half, ""); slow != full || full == 0 {
		t.Errorf("over all channels the next release time is after %s, with one channel at half "+
			"its rate after %s", full, slow)
	}
}

func TestPolicyLeavesEachProcessItsShare(t *testing.T) {
	t.Parallel()
	instances := &Instances{}
	instances.Join("eu", map[string]ledger.Grants{"a": {Messages: 10}})
	instances.Join("eu", nil)
	for _, tc := range []struct {
		policy admission.Policy
		sent   int
		word   string
	}{{admission.Even{}, 10, NoShare}, {admission.Exact{}, 20, NoSlot}, {nil, 20, NoSlot}} {
		w := newFixture(t).onlyA()
		w.routing.Channels[0].Policy = tc.policy
		counter := w.limit("a", admission.Limit{Window: admission.Minute, Max: 20}, 0)
		a := newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{
			Unready: w.unready, Worker: admission.Worker{ID: 1, Region: "eu"}, Instances: instances,
		})
		sent := 0
		var last ledger.Decision
		for range 25 {
			if last = a.decide(w.task("a")).Decision; last.State == ledger.Sending {
				sent++
			}
		}
		if sent != tc.sent || last.Reason != tc.word ||
			(len(counter.Taken) > 0) != (tc.word == NoShare) {
			t.Errorf("policy %v: %d sent, then %s; counted apart %v", tc.policy, sent, last.Reason,
				counter.Taken)
		}
	}
}

func TestClosedLimitOfOneChannelLeavesTheOthers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.limit("a", admission.Limit{Scope: british, Window: admission.Day, Max: 0}, 0)
	if d := w.decide(w.shopTask()); d.State != ledger.Sending ||
		d.Attempt.Reason != ledger.ByFallback ||
		rankingOf(t, d.Attempt.Ranking)[0] != "a:prefix_limit" {
		t.Errorf("decision %+v", d)
	}
}

func TestReleaseTimesBeginWhenTheDecisionIsDurable(t *testing.T) {
	t.Parallel()
	w := newFixture(t).onlyA()
	w.limit("a", admission.Limit{Window: admission.Second, Max: 10}, 0)
	a := newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{
		Unready: w.unready, CommitLatency: 20 * time.Millisecond,
	})
	var at []time.Duration
	for range 3 {
		d := a.decide(w.task("a"))
		if d.State != ledger.Sending {
			t.Fatalf("decision %+v", d)
		}
		at = append(at, d.release.At.Sub(noon))
		if !d.release.Latest.Equal(noon.Add(980 * time.Millisecond)) {
			t.Errorf("got latest release time %s", d.release.Latest)
		}
	}
	if at[0] != 20*time.Millisecond || at[1] <= at[0] || at[2] <= at[1] ||
		at[2] > 250*time.Millisecond {
		t.Errorf("release times at %v", at)
	}
	b := newFixture(t)
	free := b.assigner()
	if d := free.decide(b.task("a")); d.release != (admission.Release{}) {
		t.Errorf("a channel without limits has the release time %+v", d.release)
	}
}

// TestAReleaseTimeIsStoredUnlessItIsAtOnce: that of a message which leaves in the second before is
// the beginning of its second. With the third message, the second that ends is used up.
func TestAReleaseTimeIsStoredUnlessItIsAtOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t).onlyA()
	w.limit("a", admission.Limit{Window: admission.Second, Max: 1000}, 0)
	end := noon.Add(time.Second)
	w.seen.Now = end.Add(-30 * time.Millisecond)
	counter := &w.seen.Channels[0].Gate.Counters[0]
	counter.Start, counter.Granted = noon, 998
	a := newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{Unready: w.unready})
	for i := range 3 {
		d := a.decide(w.task("a"))
		if early := d.release.At.Before(end); early != (i < 2) || !d.Attempt.LeavesAt.Equal(end) {
			t.Errorf("message %d leaves at %+v, stored is %s", i, d.release, d.Attempt.LeavesAt)
		}
	}
	w.seen.Now = noon.Add(200 * time.Millisecond)
	counter.Start, counter.Granted, counter.Next, counter.Taken = noon, 0, time.Time{}, nil
	a = newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{Unready: w.unready})
	for i, want := range []time.Time{{}, {}, noon.Add(201_500 * time.Microsecond)} {
		if d := a.decide(w.task("a")); !d.Attempt.LeavesAt.Equal(want) {
			t.Errorf("message %d leaves at %+v, stored is %s, want %s", i, d.release,
				d.Attempt.LeavesAt, want)
		}
	}
}

// TestRetryUnderAValidTicketTakesNoActiveSlot: it waits for no other, and counts in every window.
func TestRetryUnderAValidTicketTakesNoActiveSlot(t *testing.T) {
	t.Parallel()
	given := admission.NewTicket(noon.Add(-9 * time.Second))
	for name, tc := range map[string]struct {
		change func(*fixture, *Task)
		sent   bool
	}{
		"valid": {func(*fixture, *Task) {}, true},
		"over": {func(w *fixture, _ *Task) {
			w.routing.Channels[0].Active.Hold = 9 * time.Second
		}, false},
		"none":       {func(_ *fixture, t *Task) { t.Row.Ticket = nil }, false},
		"of another": {func(_ *fixture, t *Task) { t.Row.Pinned = "b" }, false},
		"nothing is held": {func(w *fixture, _ *Task) {
			w.routing.Channels[0].Active.Hold = 0
		}, false},
		"window is closed": {func(w *fixture, _ *Task) {
			w.limit("a", admission.Limit{Window: admission.Day, Max: 1}, 1)
		}, false},
	} {
		w := newFixture(t).onlyA()
		w.routing.Channels[0].Active.Hold = 10 * time.Second
		w.seen.Channels[0].Gate.Active = admission.Active{Max: 3, Count: 3}
		window := w.limit("a", admission.Limit{Window: admission.Minute, Max: 10}, 0)
		task := w.task("a")
		task.Row.Attempts, task.Row.Pinned, task.Row.Ticket = 1, "a", &given
		tc.change(w, task)
		d := w.decide(task)
		if (d.State == ledger.Sending) != tc.sent || w.seen.Channels[0].Gate.Active.Count != 3 {
			t.Errorf("%s: %+v, %d active", name, d, w.seen.Channels[0].Gate.Active.Count)
		}
		if !tc.sent {
			continue
		}
		want := admission.Ticket{
			Bucket: given.Bucket, AcceptedAt: given.AcceptedAt,
			LastCheckIn: noon,
		}
		if d.Attempt.Ticket == nil || *d.Attempt.Ticket != want || window.Granted != 1 {
			t.Errorf("%s: ticket %+v, %d granted", name, d.Attempt.Ticket, window.Granted)
		}
	}
}

// TestAWindowThatEndsBetweenPlanAndClaimIsTheClaims: messages were planned in a minute that was
// used up, and in one that was not. The claim happens in the next minute, and only that one counts.
func TestAWindowThatEndsBetweenPlanAndClaimIsTheClaims(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		start   time.Time // of the counter in the claim
		granted int64
		state   ledger.State
		left    int64
	}{
		"the minute of the plan was used up": {
			noon.Add(-time.Minute), 10,
			ledger.Sending, 1,
		},
		"others have used up the minute of the claim": {noon, 10, ledger.Waiting, 10},
		"others have moved on, and left some":         {noon, 9, ledger.Sending, 10},
		"the plan's had room, nobody has moved on yet": {
			noon.Add(-time.Minute), 3,
			ledger.Sending, 1,
		},
	} {
		w := newFixture(t).onlyA()
		counter := w.limit("a", admission.Limit{Window: admission.Minute, Max: 10}, tc.granted)
		counter.Start = tc.start
		task := w.task("a") // planned at 11:59:59.9
		if d := w.assigner().decide(task); d.State != tc.state || counter.Granted != tc.left ||
			!counter.Start.Equal(noon) {
			t.Errorf("%s: %s, %d granted in the minute from %s", name, d.State, counter.Granted,
				counter.Start)
		}
	}
}

// TestABudgetIsDividedByNoPolicy: a budget has no window whose use could be forecast.
func TestABudgetIsDividedByNoPolicy(t *testing.T) {
	t.Parallel()
	w := newFixture(t).onlyA()
	w.routing.Channels[0].Policy = admission.Even{}
	counter := w.limit("a", admission.Limit{
		Window: admission.Prepaid, Unit: admission.Money, Max: 100_000, Currency: "GBP",
	}, 0)
	instances := &Instances{}
	instances.Join("eu", nil)
	instances.Join("us", map[string]ledger.Grants{"a": {Micros: 30_000}})
	a := newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{
		Unready: w.unready, Worker: admission.Worker{ID: 7, Region: "eu"}, Instances: instances,
	})
	for n := int64(1); n <= 3; n++ {
		if d := a.decide(w.task("a")); d.State != ledger.Sending || counter.Granted != n*30_000 ||
			counter.Taken != nil {
			t.Fatalf("%d: %+v, %+v", n, d.Decision, counter)
		}
	}
}
