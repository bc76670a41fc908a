package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// nextTimes returns the times at which n messages for a are planned again.
func nextTimes(t *testing.T, w *fixture, n int) (at []time.Duration) {
	t.Helper()
	a := w.assigner()
	for range n {
		d := a.decide(w.task("a"))
		if d.State != ledger.Waiting {
			t.Fatalf("decision %+v", d)
		}
		at = append(at, d.NextAt.Sub(noon))
	}
	return at
}

// TestThoseThatWaitAreSpreadByWhatTheirLimitGives: they are not all planned again when the window
// ends.
func TestThoseThatWaitAreSpreadByWhatTheirLimitGives(t *testing.T) {
	t.Parallel()
	// from then on release times of the next second are given away
	const next = 950 * time.Millisecond
	for name, tc := range map[string]struct {
		limit   admission.Limit
		granted int64
		ease    admission.Ease
		want    []time.Duration
	}{
		"a minute of 2": {
			admission.Limit{Window: admission.Minute, Max: 2},
			2,
			admission.Ease{},
			[]time.Duration{
				time.Minute, time.Minute, time.Minute, time.Minute, 2 * time.Minute,
				2 * time.Minute,
				2 * time.Minute, 2 * time.Minute, 3 * time.Minute,
			},
		},
		"a second of 4": {
			admission.Limit{Window: admission.Second, Max: 4},
			4,
			admission.Ease{},
			[]time.Duration{
				next, next, next + 250*time.Millisecond, next + 250*time.Millisecond,
				next + 500*time.Millisecond,
			},
		},
		"at half the rate": {
			admission.Limit{Window: admission.Second, Max: 4},
			4,
			admission.Ease{Rate: 0.5, Since: noon},
			[]time.Duration{
				next, next, next + 500*time.Millisecond, next + 500*time.Millisecond,
				next + time.Second,
			},
		},
		"sliding": {
			admission.Limit{Window: admission.Minute, Max: 2, Sliding: true, Burst: 1},
			2,
			admission.Ease{},
			[]time.Duration{
				time.Minute, time.Minute, time.Minute, time.Minute, 2 * time.Minute,
			},
		},
		"closed": {
			admission.Limit{Window: admission.Minute},
			0,
			admission.Ease{},
			[]time.Duration{lookForRoute, lookForRoute},
		},
	} {
		w := newFixture(t).onlyA()
		w.limit("a", tc.limit, tc.granted)
		w.seen.Channels[0].Gate.Ease = tc.ease
		if got := nextTimes(t, w, len(tc.want)); !cmp.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestThoseThatWaitAreCountedByWhatTheyTake(t *testing.T) {
	t.Parallel()
	w := newFixture(t).onlyA()
	w.limit("a", admission.Limit{Window: admission.Minute, Unit: admission.Segments, Max: 6}, 6)
	w.routing.Channels[0].Segments = func(string) int { return 3 }
	want := []time.Duration{time.Minute, time.Minute, time.Minute, time.Minute, 2 * time.Minute}
	if got := nextTimes(t, w, 5); !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestThoseWithoutAShareAreSpreadUpToTheEndOfTheWindow(t *testing.T) {
	t.Parallel()
	w := newFixture(t).onlyA()
	w.routing.Channels[0].Policy = admission.Even{}
	instances := &Instances{}
	for range 10 {
		instances.Join("eu", nil)
	}
	w.limit("a", admission.Limit{Window: admission.Minute, Max: 10},
		0).Taken = map[string]int64{"worker:1": 1}
	a := newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{
		Unready: w.unready, Worker: admission.Worker{ID: 1, Region: "eu"}, Instances: instances,
	})
	var got []time.Duration
	for range 24 {
		d := a.decide(w.task("a"))
		if d.Reason != NoShare || d.WaitsFor != "a 1m messages" {
			t.Fatalf("decision %+v", d)
		}
		got = append(got, d.NextAt.Sub(noon))
	}
	if got[0] != 2*time.Second || got[2] != 8*time.Second || got[23] != time.Minute {
		t.Errorf("got %v", got)
	}
}

func TestThoseThatWaitForActiveSlotsAreSpread(t *testing.T) {
	t.Parallel()
	w := newFixture(t).onlyA()
	w.seen.Channels[0].Gate.Active = admission.Active{Max: 2, Count: 2}
	want := []time.Duration{
		lookForActive, lookForActive, 2 * lookForActive, 2 * lookForActive,
		3 * lookForActive,
	}
	if got := nextTimes(t, w, 5); !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMessageWaitsForTheSoonestOfItsChannels(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.limit("a", admission.Limit{Window: admission.Day, Max: 1}, 1)
	w.limit("b", admission.Limit{Window: admission.Minute, Max: 1}, 1)
	w.limit("c", admission.Limit{Window: admission.Hour, Max: 1}, 1)
	a := w.assigner()
	for i, want := range []struct {
		on string
		at time.Duration
	}{
		{"b 1m messages", time.Minute},
		{"b 1m messages", time.Minute},
		{"b 1m messages", 2 * time.Minute},
	} {
		if d := a.decide(w.task("a")); d.WaitsFor != want.on || d.NextAt.Sub(noon) != want.at {
			t.Errorf("message %d waits for %s until %s", i, d.WaitsFor, d.NextAt)
		}
	}
}

func TestWaitsAddUpByReasonAndThing(t *testing.T) {
	t.Parallel()
	w := newFixture(t).onlyA()
	w.limit("", admission.Limit{Scope: shop, Window: admission.Minute, Max: 1}, 1)
	row := storedRow(ledger.Waiting, 0)
	row.Tenant, row.Reason, row.WaitsFor, row.WaitingSince = "shop", NoSlot, "a",
		noon.Add(-1500*time.Millisecond)
	row.Waits = []ledger.Wait{
		{Reason: NoActive, On: "a", For: time.Second},
		{Reason: NoSlot, On: "a", For: 2 * time.Second},
	}
	_, d := w.decideDue(row)
	want := []ledger.Wait{
		{Reason: NoActive, On: "a", For: time.Second},
		{Reason: NoSlot, On: "a", For: 3500 * time.Millisecond},
	}
	if diff := cmp.Diff(want, d.Waits); diff != "" || d.Reason != TenantLimit ||
		d.WaitsFor != "tenant:shop 1m messages" {
		t.Errorf("%s waits for %s: %s", d.Reason, d.WaitsFor, diff)
	}
	if row.Waits[1].For != 2*time.Second {
		t.Error("the row was changed")
	}
	row.Reason, row.WaitsFor, row.Tenant = TenantLimit, "tenant:shop", "" // its limit is gone
	_, d = w.decideDue(row)
	want[1].For = 2 * time.Second
	want = append(want, ledger.Wait{
		Reason: TenantLimit, On: "tenant:shop",
		For: 1500 * time.Millisecond,
	})
	if diff := cmp.Diff(want, d.Waits); diff != "" || d.State != ledger.Sending {
		t.Errorf("%s (-want +got):\n%s", d.State, diff)
	}
	row.State = ledger.Retry
	if _, d = w.decideDue(row); d.Waits != nil {
		t.Errorf("a retry has waited for %v", d.Waits)
	}
}

func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	var waits []ledger.Wait
	for i := range 2 * maxWaits {
		waits = addWait(waits, ledger.Wait{
			Reason: NoSlot, On: fmt.Sprint("c", i),
			For: time.Second,
		})
	}
	if len(waits) != maxWaits || waits[maxWaits-1].For != (maxWaits+1)*time.Second ||
		waits[0].For != time.Second {
		t.Errorf("got %v", waits)
	}
	if got := addWait(nil, ledger.Wait{For: -time.Hour}); got[0].For != 0 {
		t.Errorf("the clock was set back: %v", got)
	}
}
