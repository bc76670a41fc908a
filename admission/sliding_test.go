package admission_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

// departure is a number of units that leave at one time.
type departure struct {
	at    time.Time
	units int64
}

// busiest returns the most units within any half-open span. The departures may come in any order.
func busiest(all []departure, span time.Duration) (most int64) {
	for _, first := range all {
		var units int64
		for _, d := range all {
			if since := d.at.Sub(first.at); since >= 0 && since < span {
				units += d.units
			}
		}
		most = max(most, units)
	}
	return most
}

func drawSliding(t *rapid.T) admission.Limit {
	limit := admission.Limit{
		Window: rapid.SampledFrom([]admission.Window{admission.Second, admission.Minute}).Draw(t, "window"),
		Max:    rapid.OneOf(rapid.Int64Range(1, 40), rapid.SampledFrom([]int64{2000, 200_000})).Draw(t, "max"),
		Unit:   admission.Segments, Sliding: true,
	}
	limit.Burst = rapid.Int64Range(1, limit.Max).Draw(t, "burst")
	return limit
}

// TestNoSpanHoldsMoreThanMax lets each attempt leave late by up to the guard. The worst case is a
// span whose first attempts leave late and whose last ones leave on time.
func TestNoSpanHoldsMoreThanMax(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		limit := drawSliding(t)
		window := time.Duration(limit.Window)
		accounts := full(limit, noon)
		if rapid.Bool().Draw(t, "paced by another") {
			accounts = append(accounts, full(admission.Limit{Window: admission.Second, Max: rapid.Int64Range(1, limit.Max).Draw(t, "paced")}, noon)...)
		}
		now, left := noon, []departure{}
		unit := max(limit.Max/30, 1)
		for range 250 {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(window)/50, int64(window)/12).Draw(t, "step")))
			m := moment(now)
			m.Earliest = now.Add(time.Duration(rapid.Int64Range(0, int64(100*time.Millisecond)).Draw(t,
				"commit latency")))
			moveOn(accounts, m)
			accounts[0].Rate = rapid.SampledFrom([]float64{1, 1, 0.3}).Draw(t, "rate")
			own := accounts
			if rapid.Bool().Draw(t, "this scope alone") {
				own = accounts[:1]
			}
			n := admission.Need{Segments: int(rapid.Int64Range(1, 3*unit).Draw(t, "segments"))}
			r, e := take(m, own, &n)
			if e != nil {
				continue
			}
			if first := leaves(m, r); !first.Before(r.Latest) || r.Latest.After(first.Add(window/20-20*time.Millisecond)) {
				t.Fatalf("from %s, latest %s", first, r.Latest)
			}
			late := rapid.SampledFrom([]time.Duration{0, r.Latest.Sub(leaves(m, r)) - 1}).Draw(t, "late")
			left = append(left, departure{leaves(m, r).Add(late), int64(n.Segments)})
		}
		if most := busiest(left, window); most > limit.Max {
			t.Fatalf("%d of %d in a span of %s", most, limit.Max, window)
		}
	})
}

func TestBurstComesAtOnceAndTheRestAtItsPace(t *testing.T) {
	t.Parallel()
	limit := admission.Limit{Window: admission.Minute, Max: 60, Sliding: true, Burst: 10}
	accounts := full(limit, noon.Truncate(time.Minute))
	m := moment(noon.Truncate(time.Minute))
	releases := fill(m, accounts, &admission.Need{}, 100*time.Millisecond, time.Hour)
	for i := range 10 {
		if releases[i].Sub(releases[0]) > time.Microsecond {
			t.Errorf("unit %d of the burst leaves at %s", i, releases[i])
		}
	}
	if n := len(releases); n < 2900 || n > 10+60*51 { // 51 in each minute, less what the guard costs
		t.Errorf("%d in an hour", n)
	}
}

// greedy asks at each interval and takes whatever fits. It returns the earliest departures.
func greedy(limit *admission.Limit, from time.Time, every, length time.Duration) []departure {
	var left []departure
	for _, p := range fill(moment(from), full(*limit, from), &admission.Need{}, every, length) {
		left = append(left, departure{p, 1})
	}
	return left
}

// TestGreedyDemandFillsASlidingLimitAndNoMore: release times are counted in spans longer by the
// guard, because the first attempts may leave that much later.
func TestGreedyDemandFillsASlidingLimitAndNoMore(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		limit := admission.Limit{Window: admission.Second, Max: rapid.Int64Range(1, 80).Draw(t, "max"), Sliding: true}
		limit.Burst = rapid.Int64Range(1, limit.Max).Draw(t, "burst")
		from := noon.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)-1).Draw(t, "from")))
		left := greedy(&limit, from, 3*time.Millisecond, 4*time.Second)
		if most := slide(left, 1050*time.Millisecond); most > limit.Max || most < limit.Max-1 {
			t.Fatalf("%d of %d with release times within 1050 ms", most, limit.Max)
		}
	})
}

// TestFastSlidingLimitsAreExact: rounding an interval to nanoseconds adds up over many units.
func TestFastSlidingLimitsAreExact(t *testing.T) {
	t.Parallel()
	for _, most := range tier.Sample([]int64{200_000, 300_007, 70_000}, 2) {
		limit := admission.Limit{Window: admission.Second, Max: most, Sliding: true, Burst: most / 10}
		left := greedy(&limit, noon.Add(500*time.Millisecond), time.Millisecond, 1200*time.Millisecond)
		if got := slide(left, 1050*time.Millisecond); got > most || got < most-most/5000 { // each unit is rounded up by a nanosecond at most
			t.Errorf("%d of %d with release times within 1050 ms", got, most)
		}
	}
}

// slide is busiest for departures in ascending order.
func slide(all []departure, span time.Duration) (most int64) {
	units, first := int64(0), 0
	for _, d := range all {
		units += d.units
		for ; d.at.Sub(all[first].at) >= span; first++ {
			units -= all[first].units
		}
		most = max(most, units)
	}
	return most
}

// TestBurstOfWholeDaysDoesNotOverflow: after a full burst the next release time is far ahead but
// within the range of time.Time.
func TestBurstOfWholeDaysDoesNotOverflow(t *testing.T) {
	t.Parallel()
	for _, w := range []admission.Window{admission.Second, admission.Minute, admission.Hour, admission.Day} {
		for _, most := range []int64{1, 1000, 200_000, 1 << 40, math.MaxInt64} {
			t.Run(fmt.Sprint(w, most), func(t *testing.T) {
				t.Parallel()
				limit := admission.Limit{Window: w, Max: most, Unit: admission.Money, Sliding: true, Burst: most}
				start := w.Start(noon, time.UTC)
				accounts, m := full(limit, start), moment(start)
				accounts[0].Rate = 1.0 / 32
				part := max(most-most/1024, 1)
				if _, e := admission.Fit(m, accounts, &admission.Need{Micros: part + 1}); e == nil || !e.When.IsZero() {
					t.Errorf("more than %d at once: %+v", part, e)
				}
				if _, e := take(m, accounts, &admission.Need{Micros: part}); e != nil {
					t.Fatalf("%+v", e)
				}
				if next := accounts[0].Next; next.Before(start) || next.Year() > 2400 {
					t.Errorf("next at %s", next)
				}
				if r, e := take(m, accounts, &admission.Need{Micros: 1}); part > most/2 && e == nil && !r.At.After(m.Now) && most < 1<<40 {
					t.Error("one more message was admitted at once")
				}
			})
		}
	}
}

func TestSlidingLimitCountsItsCalendarWindowToo(t *testing.T) {
	t.Parallel()
	limit := admission.Limit{Window: admission.Day, Max: 3, Sliding: true, Burst: 3}
	accounts, m := full(limit, noon.Truncate(24*time.Hour)), moment(noon.Truncate(24*time.Hour))
	for range 3 {
		if _, e := take(m, accounts, &admission.Need{}); e != nil {
			t.Fatalf("%+v", e)
		}
	}
	_, e := take(m, accounts, &admission.Need{})
	if accounts[0].Granted != 3 || e == nil || e.Why != admission.Full || !e.When.Equal(noon.Truncate(24*time.Hour).Add(24*time.Hour)) {
		t.Errorf("%d granted, %+v", accounts[0].Granted, e)
	}
}

// TestASlidingLimitMovesOnFromTheReleaseTimeThatWasGiven: another limit may have postponed a
// message. It counts in the span in which it leaves.
func TestASlidingLimitMovesOnFromTheReleaseTimeThatWasGiven(t *testing.T) {
	t.Parallel()
	channel := full(sliding(admission.Second, 10, 1), noon)
	tenant := full(admission.Limit{Window: admission.Second, Max: 100, Unit: admission.Segments}, noon)
	both := append(channel, tenant...)
	one := &admission.Need{Segments: 1}
	var left []departure
	for since := time.Duration(0); since < 4*time.Second; since += 10 * time.Millisecond {
		m := moment(noon.Add(since))
		moveOn(both, m)
		for tenant[0].Next.Sub(m.Now) < 470*time.Millisecond { // the tenant's messages on other channels
			if _, e := take(m, tenant, one); e != nil {
				break
			}
		}
		accounts := both
		if since >= 2400*time.Millisecond {
			accounts = channel // the tenant's limit is removed
		}
		for {
			r, e := take(m, accounts, one)
			if e != nil {
				break
			}
			left = append(left, departure{leaves(m, r), 1})
		}
	}
	if most := busiest(left, time.Second); most > 10 || len(left) < 25 {
		t.Errorf("%d of 10 within a second, %d in all", most, len(left))
	}
}
