package admission_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

// fill takes every release time it can, as an endless queue would. It asks again each interval, for
// the given duration, and returns when the messages may leave.
func fill(m *admission.Moment, accounts []admission.Account, n *admission.Need, every, length time.Duration) []time.Time {
	var at []time.Time
	for _, r := range admit(m, accounts, n, every, length) {
		at = append(at, r.At)
	}
	return at
}

// admit is fill with all of each release.
func admit(m *admission.Moment, accounts []admission.Account, n *admission.Need, every, length time.Duration) []admission.Release {
	var releases []admission.Release
	latency, end := m.Earliest.Sub(m.Now), m.Now.Add(length)
	for ; m.Now.Before(end); m.Now, m.Earliest = m.Now.Add(every), m.Earliest.Add(every) {
		m.Earliest = m.Now.Add(latency)
		moveOn(accounts, m)
		for {
			r, e := take(m, accounts, n)
			if e != nil {
				break
			}
			r.At = leaves(m, r)
			releases = append(releases, r)
		}
	}
	return releases
}

// until drops the release times from end on: the slots of the next second are granted before that
// second begins.
func until(end time.Time, releases []time.Time) []time.Time {
	return slices.DeleteFunc(releases, func(at time.Time) bool { return !at.Before(end) })
}

func TestHundredPerSecondAreSpreadOverTheSecond(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{Window: admission.Second, Max: 100}, noon)
	releases := until(noon.Add(3*time.Second),
		fill(moment(noon), accounts, &admission.Need{}, 20*time.Millisecond, 3*time.Second))
	if len(releases) != 300 {
		t.Fatalf("%d release times in 3 s", len(releases))
	}
	for i, p := range releases {
		if want := noon.Add(time.Duration(i/100)*time.Second + time.Duration(i%100)*9500*time.Microsecond); !p.Equal(want) {
			t.Fatalf("release time %d is %s, want %s", i, p, want)
		}
	}
}

func TestReleaseTimesReachNoFurtherAheadThanTheHorizon(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{Window: admission.Second, Max: 100}, noon)
	m := moment(noon)
	taken, e := 0, (*admission.Exclusion)(nil)
	for ; e == nil; taken++ {
		_, e = take(m, accounts, &admission.Need{})
	}
	if taken-1 != 53 || e.Why != admission.NotYet || !e.When.Equal(accounts[0].Next.Add(-admission.Horizon)) {
		t.Errorf("%d release times at once (%v until %s), want those of 500 ms", taken-1, e.Why,
			e.When)
	}
}

// TestADecisionAtTheEndOfASecondIsOfTheNext: what is decided in the last 50 ms has a slot of the
// next second. While the second has room too, it does not wait for the next one.
func TestADecisionAtTheEndOfASecondIsOfTheNext(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{0, 60 * time.Millisecond, 300 * time.Millisecond} {
		accounts := full(admission.Limit{Window: admission.Second, Max: 1_000_000}, noon)
		for now := noon; now.Before(noon.Add(3 * time.Second)); now = now.Add(time.Millisecond) {
			m := &admission.Moment{Now: now, Earliest: now.Add(latency), Zone: time.UTC}
			moveOn(accounts, m)
			if r, e := take(m, accounts, &admission.Need{}); e != nil {
				t.Fatalf("commit latency %s, at %s: %+v", latency, now, e)
			} else if wait := leaves(m, r).Sub(m.Earliest); wait > 0 {
				t.Errorf("commit latency %s, at %s: it waits for %s", latency, now, wait)
			}
		}
	}
}

func TestLateDemandCatchesUpAtTwiceTheEvenPace(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{Window: admission.Second, Max: 100}, noon)
	half := moment(noon.Add(500 * time.Millisecond))
	releases := until(noon.Add(time.Second),
		fill(half, accounts, &admission.Need{}, 10*time.Millisecond, 500*time.Millisecond))
	if len(releases) != 100 { // 4.75 ms each
		t.Errorf("%d release times in the second half", len(releases))
	}
	for i := 1; i < len(releases); i++ {
		if gap := releases[i].Sub(releases[i-1]); gap < 4750*time.Microsecond {
			t.Fatalf("release times %d and %d are %s apart", i-1, i, gap)
		}
	}
}

func TestLoweredRateStretchesTheSteps(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{Window: admission.Second, Max: 100}, noon)
	accounts[0].Rate = 0.25
	releases := until(noon.Add(4*time.Second),
		fill(moment(noon), accounts, &admission.Need{}, 10*time.Millisecond, 4*time.Second))
	if len(releases) != 100 {
		t.Errorf("%d release times in 4 s at a quarter of 100/s", len(releases))
	}
	for i := 1; i < len(releases); i++ {
		if gap := releases[i].Sub(releases[i-1]); gap < 38*time.Millisecond {
			t.Fatalf("release times %d and %d are %s apart", i-1, i, gap)
		}
	}
}

// TestRateBelowOnePerWindowStretchesOverWindows: a lowered rate does not restart with each second.
func TestRateBelowOnePerWindowStretchesOverWindows(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{Window: admission.Second, Max: 1}, noon)
	accounts[0].Rate = 1.0 / 32
	if releases := fill(moment(noon), accounts, &admission.Need{}, 100*time.Millisecond,
		time.Minute); len(releases) != 2 {
		t.Errorf("%d release times in a minute at 1/32 of 1/s", len(releases))
	}
}

func TestSegmentsPushTheNextReleaseTimeByAsMany(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{Window: admission.Second, Max: 10, Unit: admission.Segments}, noon)
	m := moment(noon)
	after := []time.Duration{0, 285 * time.Millisecond, 380 * time.Millisecond}
	for i, segments := range []int{3, 1, 2} {
		r, e := take(m, accounts, &admission.Need{Segments: segments})
		want := noon.Add(after[i])
		if e != nil || !leaves(m, r).Equal(want) {
			t.Errorf("message %d leaves at %s (%v), want %s", i, leaves(m, r), e, want)
		}
	}
}

// TestClockThatSteppedBackGetsNoReleaseTimeBeforeTheWindow: release times lie inside the window
// that counts them.
func TestClockThatSteppedBackGetsNoReleaseTimeBeforeTheWindow(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{Window: admission.Second, Max: 10}, noon)
	m := moment(noon.Add(-time.Hour))
	moveOn(accounts, m)
	_, e := admission.Fit(m, accounts, &admission.Need{})
	if e == nil || e.Why != admission.NotYet || !e.When.Equal(noon.Add(-admission.MaxCommitLatency*3/2)) {
		t.Fatalf("%+v", e)
	}
	m = moment(noon.Add(-200 * time.Millisecond))
	if r, e := admission.Fit(m, accounts, &admission.Need{}); e != nil || !r.At.Equal(noon) {
		t.Errorf("%+v, %+v, want the window's start", r, e)
	}
}

// TestReleaseTimesAreEvenAndInsideTheirWindow admits random messages over many windows.
func TestReleaseTimesAreEvenAndInsideTheirWindow(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		most := rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(100, 2000)).Draw(t, "max")
		unit := rapid.SampledFrom([]admission.Unit{admission.Messages, admission.Segments}).Draw(t, "unit")
		accounts := full(admission.Limit{Window: admission.Second, Max: most, Unit: unit}, noon)
		latency := time.Duration(rapid.Int64Range(0, int64(300*time.Millisecond)).Draw(t,
			"commit latency"))
		half := 950 * time.Millisecond / time.Duration(most) / 2
		now, free := noon, time.Time{} // free is the earliest next release time
		perWindow := map[time.Time]int64{}
		for range 300 {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(300*time.Millisecond), int64(400*time.Millisecond)).Draw(t, "step")))
			m := &admission.Moment{Now: now, Earliest: now.Add(latency), Zone: time.UTC}
			moveOn(accounts, m)
			n := admission.Need{Segments: rapid.IntRange(1, 5).Draw(t, "segments")}
			r, e := take(m, accounts, &n)
			if e != nil {
				continue
			}
			start := accounts[0].Start
			if r.At.Before(free) || r.At.Before(m.Earliest) || r.At.Before(r.Opens) || r.Counted.Before(start) || !r.Counted.Before(start.Add(950*time.Millisecond)) || !r.Latest.Equal(start.Add(980*time.Millisecond)) {
				t.Fatalf("release time %s until %s of the window from %s, earliest %s, want at least %s",
					r.At, r.Latest, start, m.Earliest, free)
			}
			cost := accounts[0].Cost(&n)
			free = r.At.Add(time.Duration(cost) * half)
			perWindow[start] += cost
		}
		for start, units := range perWindow {
			if units > most {
				t.Fatalf("%d of %d in the second from %s", units, most, start)
			}
		}
	})
}

func TestAllSlotsOfASecondGetAReleaseTimeUnderDemand(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int64{1, 2, 3, 7, 10, 99, 100, 1000, 3333, 20_000}).Draw(t, "max")
		late := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "late"))
		latency := time.Duration(rapid.Int64Range(0, int64(admission.MaxCommitLatency)).Draw(t,
			"commit latency"))
		every := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(200*time.Millisecond)).Draw(t, "every"))
		accounts := full(admission.Limit{Window: admission.Second, Max: most}, noon)
		m := &admission.Moment{Now: noon.Add(late), Earliest: noon.Add(late + latency), Zone: time.UTC}
		first := m.Earliest.Add(latency / 2).Truncate(time.Second) // the first window that decisions use
		in := map[time.Time]int64{}
		for _, r := range admit(m, accounts, &admission.Need{}, every, 3*time.Second) {
			in[r.Counted.Truncate(time.Second)]++
		}
		if in[first.Add(time.Second)] != most || in[first.Add(2*time.Second)] > most {
			t.Fatalf("%v slots of %d", in, most)
		}
	})
}

// perSecond counts the release times in each second.
func perSecond(releases []time.Time) map[time.Time]int64 {
	in := map[time.Time]int64{}
	for _, at := range releases {
		in[at.Truncate(time.Second)]++
	}
	return in
}

// TestOneDecisionPerCommitLatencyUsesNearlyAllSlots: the counter stays locked until a decision is
// durable. A decision grants the release times of one window, so hardly any are lost up to a commit
// latency of about a second.
func TestOneDecisionPerCommitLatencyUsesNearlyAllSlots(t *testing.T) {
	t.Parallel()
	for latency, least := range map[time.Duration]int{
		50 * time.Millisecond: 98, 200 * time.Millisecond: 95, 450 * time.Millisecond: 95, 600 * time.Millisecond: 92, 950 * time.Millisecond: 88,
		2 * time.Second: 49, 5 * time.Second: 19,
	} {
		accounts := full(admission.Limit{Window: admission.Second, Max: 100}, noon)
		m := &admission.Moment{Now: noon, Earliest: noon.Add(latency), Zone: time.UTC}
		releases := fill(m, accounts, &admission.Need{}, latency+7*time.Millisecond, 100*time.Second)
		if len(releases) < least*100 {
			t.Errorf("commit latency %s: %d release times in 100 s, want %d", latency,
				len(releases), least*100)
		}
		for second, n := range perSecond(releases) {
			if n > 100 {
				t.Errorf("commit latency %s: %d in the second from %s", latency, n, second)
			}
		}
	}
}

// TestAProcessWithAQuickDatabaseIsNotStarvedByOneWithASlow moves the counter ahead for a process
// whose decisions take two seconds and need few slots. The other process gets all remaining slots.
func TestAProcessWithAQuickDatabaseIsNotStarvedByOneWithASlow(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{Window: admission.Second, Max: 100}, noon)
	total := 0
	for now := noon; now.Before(noon.Add(10 * time.Second)); now = now.Add(50 * time.Millisecond) {
		slow := &admission.Moment{Now: now, Earliest: now.Add(2 * time.Second), Zone: time.UTC}
		moveOn(accounts, slow)
		if _, e := take(slow, accounts, &admission.Need{}); e == nil {
			total++
		}
		m := &admission.Moment{Now: now, Earliest: now.Add(10 * time.Millisecond), Zone: time.UTC}
		total += len(fill(m, accounts, &admission.Need{}, time.Millisecond, time.Millisecond))
	}
	if total < 950 {
		t.Errorf("%d in 10 s", total)
	}
}

// TestTwoPacedLimitsOfDifferentUnitsBothHold and neither starves the other.
func TestTwoPacedLimitsOfDifferentUnitsBothHold(t *testing.T) {
	t.Parallel()
	accounts := append(
		full(admission.Limit{Window: admission.Second, Max: 100}, noon),
		full(admission.Limit{Window: admission.Second, Max: 150, Unit: admission.Segments}, noon)...,
	)
	for segments, want := range map[int]int{1: 100, 2: 75, 3: 50} {
		for i := range accounts {
			accounts[i].Counter = full(accounts[i].Limit, noon)[0].Counter
		}
		n := admission.Need{Segments: segments}
		releases := until(noon.Add(2*time.Second),
			fill(moment(noon), accounts, &n, 20*time.Millisecond, 2*time.Second))
		if len(releases) != 2*want {
			t.Errorf("%d messages of %d segments in 2 s, want %d", len(releases), segments, 2*want)
		}
	}
}
