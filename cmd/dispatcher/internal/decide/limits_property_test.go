package decide

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// drawnLimit draws a limit of a scope.
func drawnLimit(t *rapid.T, scope admission.Scope) admission.Limit {
	l := admission.Limit{
		Scope: scope,
		Window: rapid.SampledFrom([]admission.Window{
			admission.Second, admission.Minute,
			admission.Hour, admission.Day,
		}).Draw(t, "window"),
		Unit: rapid.SampledFrom([]admission.Unit{
			admission.Messages, admission.Segments,
			admission.Money,
		}).Draw(t, "unit"),
		Max: rapid.Int64Range(0, 12).Draw(t, "max"),
	}
	if l.Unit == admission.Money {
		l.Max, l.Currency = l.Max*10_000, "GBP"
	}
	if l.Max > 0 && rapid.IntRange(0, 2).Draw(t, "slides") == 0 {
		l.Sliding, l.Burst = true, rapid.Int64Range(1, l.Max).Draw(t, "burst")
	}
	if rapid.IntRange(0, 2).Draw(t, "reserves") == 0 {
		l.Reserve = []admission.Reserve{{
			Lane:    "otp",
			Percent: rapid.Int64Range(1, 100).Draw(t, "percent"),
		}}
	}
	return l
}

// drawnTerms draws limits, policies, holds, prices and parts for the fixture.
func drawnTerms(t *rapid.T, w *fixture) {
	limits := func(scopes *rapid.Generator[admission.Scope]) []admission.Limit {
		one := rapid.Custom(func(t *rapid.T) admission.Limit {
			return drawnLimit(t, scopes.Draw(t, "scope"))
		})
		return rapid.SliceOfNDistinct(one, 0, 4, func(l admission.Limit) admission.Key {
			return l.Key()
		}).Draw(t, "limits")
	}
	narrow := rapid.Custom(drawnScope)
	w.routing.Limits = limits(narrow)
	for c := range w.routing.Channels {
		ch := &w.routing.Channels[c]
		ch.Limits = limits(rapid.OneOf(rapid.Just(admission.Scope{}), narrow))
		ch.Policy = rapid.SampledFrom([]admission.Policy{
			nil,
			admission.Exact{},
			admission.Even{},
			admission.Curve{Factor: 1},
			admission.CounterPolicy{},
		}).Draw(t, "policy")
		holds := []time.Duration{0, time.Second, time.Minute}
		ch.Active.Hold = rapid.SampledFrom(holds).Draw(t, "hold")
		price := rapid.SampledFrom([]int64{0, 7_000, 30_000}).Draw(t, "price")
		ch.Price = NewPrice("GBP", PriceList{Default: price})
		if rapid.IntRange(0, 3).Draw(t, "cuts") == 0 {
			ch.Segments = func(string) int { return 2 }
		}
		w.seen.Channels[c].Gate.Active.Max = rapid.Int64Range(0, 9).Draw(t, "active max")
	}
	w.routing.Routes[0].Wait = rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "wait")
	if rapid.Bool().Draw(t, "prepared") {
		w.routing.Prepare()
	}
}

// stored reduces all limits to what their database rows hold.
func (w *fixture) stored() {
	bare := func(l admission.Limit) admission.Counter {
		return admission.Counter{Limit: admission.Limit{
			Scope: l.Scope, Window: l.Window,
			Unit: l.Unit, Max: l.Max,
		}, Max: l.Max}
	}
	for _, n := range w.routing.scopeIndex().narrower {
		s := ledger.ScopeState{ScopeRef: n.ScopeRef}
		for _, l := range n.limits {
			s.Counters = append(s.Counters, bare(l))
		}
		w.seen.Scoped = append(w.seen.Scoped, s)
	}
	for c := range w.routing.Channels {
		for _, l := range w.routing.scopeIndex().own[c] {
			w.seen.Channels[c].Gate.Counters = append(w.seen.Channels[c].Gate.Counters, bare(l))
		}
	}
}

// book is one counter of the state, with its channel and scope.
type book struct {
	channel string // empty for limits over all channels
	*admission.Counter
}

func booksOf(seen *ledger.Seen) (all []book) {
	for c := range seen.Channels {
		for i := range seen.Channels[c].Gate.Counters {
			all = append(all, book{seen.Channels[c].Name, &seen.Channels[c].Gate.Counters[i]})
		}
	}
	for s := range seen.Scoped {
		for i := range seen.Scoped[s].Counters {
			all = append(all, book{seen.Scoped[s].Channel, &seen.Scoped[s].Counters[i]})
		}
	}
	return all
}

// copied returns a copy of the state that another claim may change.
func copied(seen *ledger.Seen) *ledger.Seen {
	counters := func(of []admission.Counter) []admission.Counter {
		of = slices.Clone(of)
		for i := range of {
			of[i].Taken = maps.Clone(of[i].Taken)
		}
		return of
	}
	out := *seen
	out.Channels, out.Scoped, out.Cursors = slices.Clone(seen.Channels), slices.Clone(seen.Scoped),
		slices.Clone(seen.Cursors)
	for i := range out.Channels {
		out.Channels[i].Gate.Counters = counters(out.Channels[i].Gate.Counters)
	}
	for i := range out.Scoped {
		out.Scoped[i].Counters = counters(out.Scoped[i].Counters)
	}
	return &out
}

// drawnTask draws a message of any tenant, lane, number and length, as a first attempt or a retry.
func drawnTask(t *rapid.T, w *fixture, now time.Time) *Task {
	one := w.task(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "first"))
	one.Row.ReceivedAt, one.Row.ExpiresAt = now, now.Add(time.Hour)
	one.Row.Tenant = rapid.SampledFrom([]string{"", "shop", "bank", "news"}).Draw(t, "tenant")
	one.Row.Lane = rapid.SampledFrom([]string{"bulk", "otp"}).Draw(t, "lane")
	one.msg.To = rapid.SampledFrom([]string{
		"+447700900123", "+15550100",
		"+33612345678",
	}).Draw(t, "to")
	one.common = rapid.IntRange(1, 4).Draw(t, "segments")
	if rapid.IntRange(0, 3).Draw(t, "retry") == 0 {
		one.Row.Attempts, one.Row.Pinned = 1,
			rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pinned")
		held := time.Duration(rapid.IntRange(0, 90).Draw(t, "held for")) * time.Second
		ticket := admission.NewTicket(now.Add(-held))
		one.Row.Ticket = &ticket
	}
	return one
}

// TestNoLimitIsEverExceededAndMessagesAreTakenWhole decides on drawn messages under drawn limits,
// scopes, policies and tickets, in claims at any times. After each decision every counter that
// covers the message has grown by its cost, and no other counter has. No counter is above its
// limit, and the same claim decides the same again.
func TestNoLimitIsEverExceededAndMessagesAreTakenWhole(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		w := newFixture(t)
		drawnTerms(rt, w)
		w.stored()
		instances := &Instances{}
		for range rapid.IntRange(0, 3).Draw(rt, "others") {
			n := rapid.Int64Range(0, 9).Draw(rt, "granted")
			instances.Join(rapid.SampledFrom([]string{"eu", "us"}).Draw(rt, "region"),
				map[string]ledger.Grants{"a": {Messages: n, Segments: 2 * n, Micros: 3 * n}})
		}
		now := noon
		for range rapid.IntRange(1, 6).Draw(rt, "claims") {
			now = now.Add(time.Duration(rapid.IntRange(-500, 2500).Draw(rt,
				"step")) * time.Millisecond)
			w.seen.Now = now
			for c := range w.seen.Channels {
				gate := &w.seen.Channels[c].Gate
				gate.Active.Count -= min(gate.Active.Count,
					rapid.Int64Range(0, 3).Draw(rt, "answered"))
				if rapid.IntRange(0, 5).Draw(rt, "slow") == 0 {
					gate.Ease = gate.Ease.SlowDown(now,
						time.Duration(rapid.IntRange(0, 2).Draw(rt, "pause"))*time.Second)
				}
			}
			snapshot := Snapshot{
				Unready: w.unready,
				CommitLatency: time.Duration(rapid.IntRange(0, 300).Draw(rt,
					"commit latency")) * time.Millisecond,
				Worker: admission.Worker{
					ID:     rapid.Int64Range(1, 3).Draw(rt, "worker"),
					Region: rapid.SampledFrom([]string{"eu", "us"}).Draw(rt, "of region"),
				},
				Instances: instances,
			}
			again := copied(w.seen)
			keys := newDrawers(testKeys)
			a := newAssigner(w.routing, keys, w.seen, snapshot)
			b := newAssigner(w.routing, keys, again, snapshot)
			for range rapid.IntRange(1, 12).Draw(rt, "messages") {
				task := drawnTask(rt, w, now)
				before := copied(w.seen)
				d := a.decide(task)
				checkBooks(rt, before, w.seen, task, &d, a)
				checkRefunds(rt, before, w.seen, &d)
				if diff := cmp.Diff(d, b.decide(task), decided); diff != "" {
					rt.Fatalf("the same claim decided differently: %s", diff)
				}
			}
			if diff := cmp.Diff(w.seen, again); diff != "" {
				rt.Fatalf("the same claim left another state: %s", diff)
			}
		}
	})
}

// decided compares decisions. Their channels have the names of their attempts' channels.
var decided = cmp.Options{
	cmp.AllowUnexported(decision{}),
	cmpopts.IgnoreFields(decision{}, "channel"),
}

// asTaken compares what counters have granted, without release times.
var asTaken = []cmp.Option{
	cmpopts.IgnoreFields(admission.Counter{}, "Next", "Pace"),
	cmpopts.EquateEmpty(),
}

// checkRefunds refunds the message as if nothing of it were spent. The limits in money are then as
// before, with their counts of lanes and shares.
func checkRefunds(t *rapid.T, before, after *ledger.Seen, d *decision) {
	undone := copied(after)
	is, was := booksOf(undone), booksOf(before)
	if d.State == ledger.Sending {
		for _, r := range d.refunds {
			at := slices.IndexFunc(is, func(b book) bool {
				return b.channel == r.Channel &&
					b.Key() == admission.Key{
						Scope: r.Scope, Window: r.Window,
						Unit: admission.Money,
					}
			})
			is[at].Granted -= r.Micros
			for _, tally := range []string{r.Tallies.Lane, r.Tallies.Pool} {
				if tally == "" {
					continue
				}
				if is[at].Taken[tally] -= r.Micros; is[at].Taken[tally] == 0 {
					delete(is[at].Taken, tally)
				}
			}
		}
	}
	for i := range is {
		if is[i].Unit != admission.Money {
			continue
		}
		if diff := cmp.Diff(*was[i].Counter, *is[i].Counter, asTaken...); diff != "" {
			t.Fatalf("%s: the refund differs from what was taken of %s of %q: %s", d.State,
				is[i].Key().On(is[i].channel), is[i].channel, diff)
		}
	}
}

// checkBooks compares the state before and after one decision.
func checkBooks(t *rapid.T, before, after *ledger.Seen, task *Task, d *decision, a *assigner) {
	was, is := booksOf(before), booksOf(after)
	sent := d.State == ledger.Sending
	need := admission.Need{
		Lane: task.Row.Lane, Segments: d.Attempt.Segments,
		Micros: d.Attempt.PriceMicros,
	}
	for i, b := range is {
		want := int64(0)
		if sent && (b.channel == "" || b.channel == d.Attempt.Channel) &&
			b.Scope.Covers(task.Row.Tenant, task.msg.To) {
			want = b.Cost(&need)
			if !d.release.Latest.IsZero() && d.release.Latest.After(b.End(time.UTC)) {
				t.Fatalf("got latest release time %s, when the window from %s is over",
					d.release.Latest, b.Start)
			}
		}
		if b.Granted-was[i].Granted != want || b.Granted < 0 || b.Granted > b.Max ||
			b.Max > b.Limit.Max {
			t.Fatalf("%s sent to %q costs %d, and %s of %q went from %d to %d of %d", d.State,
				d.Attempt.Channel, want, b.Scope, b.channel, was[i].Granted, b.Granted, b.Max)
		}
	}
	for i := range after.Channels {
		gate, want := &after.Channels[i].Gate, int64(0)
		if sent && after.Channels[i].Name == d.Attempt.Channel && d.Attempt.Ticket == nil {
			want = 1
		}
		if gate.Active.Count-before.Channels[i].Gate.Active.Count != want ||
			(gate.Active.Max > 0 && gate.Active.Count > gate.Active.Max) {
			t.Fatalf("%s to %q: active of %s is %+v, was %+v", d.State, d.Attempt.Channel,
				after.Channels[i].Name, gate.Active, before.Channels[i].Gate.Active)
		}
	}
	if !sent && (d.Reason == "" || (d.State == ledger.Waiting && !d.NextAt.After(after.Now))) {
		t.Fatalf("decision %+v", d)
	}
	if sent && !d.release.At.IsZero() && d.release.At.Before(a.moment.Earliest) {
		t.Fatalf("release time %+v before %s", d.release, a.moment.Earliest)
	}
}
