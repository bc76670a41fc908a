package admission_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

// change replaces a counter's limit, as applying a routing does.
func change(c *admission.Counter, limit admission.Limit) {
	c.Limit, c.Max = limit, max(limit.Max, c.Granted)
}

// sliding is a limit in segments, so that one message can take any number.
func sliding(w admission.Window, most, burst int64) admission.Limit {
	return admission.Limit{Window: w, Max: most, Unit: admission.Segments, Sliding: true, Burst: burst}
}

func TestAChangedLimitActsAtOnce(t *testing.T) {
	t.Parallel()
	calendar := admission.Limit{Window: admission.Second, Max: 100, Unit: admission.Segments}
	for name, tc := range map[string]struct {
		was, is admission.Limit
		within  time.Duration // until the next release time
	}{
		"hour raised":                  {sliding(admission.Hour, 100, 50), sliding(admission.Hour, 10_000, 50), 1500 * time.Millisecond},
		"day raised":                   {sliding(admission.Day, 101, 100), sliding(admission.Day, 10_000, 100), 10 * time.Second},
		"burst and maximum raised":     {sliding(admission.Day, 101, 100), sliding(admission.Day, 10_000, 5000), 0},
		"pace instead of burst":        {sliding(admission.Minute, 100, 100), sliding(admission.Minute, 100, 1), 64 * time.Second},
		"no longer sliding":            {sliding(admission.Second, 100, 100), calendar, time.Second},
		"raised and no longer sliding": {sliding(admission.Second, 100, 100), admission.Limit{Window: admission.Second, Max: 1000}, 10 * time.Millisecond},
		"sliding from now on":          {calendar, sliding(admission.Second, 100, 100), 3 * time.Second},
		"lowered to one a second":      {sliding(admission.Second, 1000, 990), admission.Limit{Window: admission.Second, Max: 1}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := admission.Day.Start(noon, time.UTC)
			accounts, m := full(tc.was, start), moment(start)
			for e := (*admission.Exclusion)(nil); e == nil; {
				_, e = take(m, accounts, &admission.Need{Segments: 1})
			}
			change(accounts[0].Counter, tc.is)
			for waited := time.Duration(0); ; waited += 10 * time.Millisecond {
				m = moment(start.Add(waited))
				roll(accounts, m.Now, time.UTC)
				r, e := take(m, accounts, &admission.Need{Segments: 1})
				if e == nil && leaves(m, r).Sub(start) <= tc.within {
					return
				}
				if waited > tc.within {
					t.Fatalf("no room in %s: %+v", tc.within, accounts[0].Counter)
				}
			}
		})
	}
}

// use admits random messages for a while and records when they leave.
func use(t *rapid.T, accounts []admission.Account, from time.Time) (now time.Time, left []departure) {
	limit := &accounts[0].Limit
	window, unit := time.Duration(limit.Window), max(limit.Max/30, 1)
	now = from
	for range rapid.IntRange(1, 120).Draw(t, "looks") {
		now = now.Add(time.Duration(rapid.Int64Range(0, int64(window)/12).Draw(t, "step")))
		m := moment(now)
		roll(accounts, now, time.UTC)
		n := admission.Need{Segments: int(rapid.Int64Range(1, 3*unit).Draw(t, "segments"))}
		r, e := take(m, accounts, &n)
		if e != nil {
			continue
		}
		late := rapid.SampledFrom([]time.Duration{0, r.Latest.Sub(leaves(m, r)) - 1}).Draw(t, "late")
		left = append(left, departure{leaves(m, r).Add(late), int64(n.Segments)})
	}
	return now, left
}

func TestNoSpanHoldsMoreThanTheLargerOfBothLimits(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		was, is := drawSliding(t), drawSliding(t)
		is.Window = was.Window
		accounts := full(was, noon)
		now, left := use(t, accounts, noon)
		change(accounts[0].Counter, is)
		_, then := use(t, accounts, now)
		if most := busiest(append(left, then...), time.Duration(was.Window)); most > max(was.Max, is.Max) {
			t.Fatalf("%d in a span, want at most %d before the change and %d after it", most, was.Max, is.Max)
		}
		if most := busiest(then, time.Duration(is.Window)); most > is.Max {
			t.Fatalf("%d of %d in a span under the new limit", most, is.Max)
		}
	})
}

// TestARaisedLimitHoldsNoMoreThanItDid: units that the limit still counts against the next message
// count at the new pace once the release times ahead have passed.
func TestARaisedLimitHoldsNoMoreThanItDid(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		was := drawSliding(t)
		if was.Max > 2000 {
			was.Max, was.Burst = 2000, min(was.Burst, 2000)
		}
		accounts := full(was, noon)
		now, _ := use(t, accounts, noon)
		is := was
		more := rapid.Int64Range(1, 5000).Draw(t, "more")
		is.Max, is.Burst = is.Max+more, is.Burst+rapid.Int64Range(0, more).Draw(t, "burst")
		change(accounts[0].Counter, is)
		held, ahead := int64(0), time.Duration(0)
		if c := accounts[0].Counter; c.Next.After(now) {
			held = int64((c.Next.Sub(now) + c.Pace - 1) / c.Pace)
			ahead = max(min(c.Next.Sub(now)-c.Pace, admission.Horizon), 0)
		}
		fresh, m := full(is, now), moment(now)
		sustained := is.Max - min(is.Burst, is.Max-is.Max/1024) + 1
		fresh[0].Next = now.Add(ahead + time.Duration((held*int64(is.Window)*21/20+sustained-1)/sustained))
		n := admission.Need{Segments: 1}
		r, e := admission.Fit(m, accounts, &n)
		want, late := admission.Fit(m, fresh, &n)
		switch {
		case e != nil && e.Why == admission.Full:
		case late == nil && (e != nil || r.At.After(want.At)):
			t.Fatalf("%d held: release time %s %+v, a fresh counter has %s", held, r.At, e, want.At)
		case late != nil && e != nil && e.When.After(late.When) && e.When.After(accounts[0].End(time.UTC)):
			t.Fatalf("%d held: at %s, a fresh counter at %s", held, e.When, late.When)
		}
	})
}

// TestALimitThatBecomesSlidingBeginsWithWhatItGranted: what was granted before counts against the
// burst.
func TestALimitThatBecomesSlidingBeginsWithWhatItGranted(t *testing.T) {
	t.Parallel()
	for granted, want := range map[int64]int{0: 10, 4: 6, 10: 0, 90: 0} {
		accounts, m := full(sliding(admission.Minute, 100, 10), noon), moment(noon)
		accounts[0].Granted = granted
		at := 0
		for e := (*admission.Exclusion)(nil); e == nil; {
			var r admission.Release
			if r, e = take(m, accounts, &admission.Need{Segments: 1}); e == nil && leaves(m, r).Sub(noon) <= time.Microsecond {
				at++
			}
		}
		if at != want {
			t.Errorf("%d at once after %d, want %d", at, granted, want)
		}
	}
}

// TestLongWindowsKeepTheirPaceWhenAProviderSlowsDown: the slow-down ends within seconds, but a
// release time that was postponed within a day would stay postponed.
func TestLongWindowsKeepTheirPaceWhenAProviderSlowsDown(t *testing.T) {
	t.Parallel()
	for _, w := range []admission.Window{admission.Minute, admission.Hour, admission.Day} {
		start := w.Start(noon, time.UTC)
		slow, quick := full(sliding(w, 1000, 100), start), full(sliding(w, 1000, 100), start)
		slow[0].Rate = 1.0 / 32
		for range 100 {
			take(moment(start), slow, &admission.Need{Segments: 1})
			take(moment(start), quick, &admission.Need{Segments: 1})
		}
		if !slow[0].Next.Equal(quick[0].Next) {
			t.Errorf("%s: next at %s instead of %s", w, slow[0].Next, quick[0].Next)
		}
	}
}

// TestARaisedSlidingLimitWaitsForThoseThatStillLeaveAtItsFormerPace: their release times are ahead,
// and the faster ones follow them.
func TestARaisedSlidingLimitWaitsForThoseThatStillLeaveAtItsFormerPace(t *testing.T) {
	t.Parallel()
	for was, is := range map[int64]int64{10: 40, 20: 60} {
		accounts := full(sliding(admission.Second, was, 1), noon)
		var left []departure
		for since := time.Duration(0); since < 4*time.Second; since += 10 * time.Millisecond {
			m := moment(noon.Add(since))
			moveOn(accounts, m)
			if since == 1300*time.Millisecond {
				change(accounts[0].Counter, sliding(admission.Second, is, 1))
			}
			for {
				r, e := take(m, accounts, &admission.Need{Segments: 1})
				if e != nil {
					break
				}
				left = append(left, departure{leaves(m, r), 1})
			}
		}
		if most := busiest(left, time.Second); most > is || most < is*9/10 {
			t.Errorf("%d of %d within a second", most, is)
		}
	}
}

// TestALoweredPaceGivesNoReleaseTimeTwice: release times already granted stay, and the next one
// follows them.
func TestALoweredPaceGivesNoReleaseTimeTwice(t *testing.T) {
	t.Parallel()
	accounts, m := full(admission.Limit{Window: admission.Second, Max: 100}, noon), moment(noon)
	var last time.Time
	for r, e := take(m, accounts, &admission.Need{}); e == nil; r, e = take(m, accounts, &admission.Need{}) {
		last = leaves(m, r)
	}
	change(accounts[0].Counter, admission.Limit{Window: admission.Second, Max: 60})
	m = moment(noon.Add(20 * time.Millisecond))
	r, e := take(m, accounts, &admission.Need{})
	if e != nil || !r.At.After(last) {
		t.Errorf("it leaves at %s (%+v), want after the others, which leave until %s", r.At, e, last)
	}
}

// TestALimitThatBecomesSlidingHoldsNoMoreThanABurst: whatever its window has granted, the next
// message waits one interval of the pace.
func TestALimitThatBecomesSlidingHoldsNoMoreThanABurst(t *testing.T) {
	t.Parallel()
	accounts := full(sliding(admission.Minute, 100, 10), noon)
	accounts[0].Granted = 90
	pace := 63 * time.Second / 91
	m := moment(noon)
	if _, e := admission.Fit(m, accounts, &admission.Need{Segments: 1}); e == nil || e.Why != admission.NotYet || e.When.After(noon.Add(pace)) {
		t.Errorf("%+v, want it within %s", e, pace)
	}
}

// TestALargerBurstComesOnTopOfNothingThatAFasterPaceLetGo, not even on top of the oldest unit of a
// span when a new one is not yet due.
func TestALargerBurstComesOnTopOfNothingThatAFasterPaceLetGo(t *testing.T) {
	t.Parallel()
	const most, span = 63, 63 * time.Second // one a second
	for late := 50 * time.Millisecond; late < time.Second; late += 100 * time.Millisecond {
		start := noon.Truncate(time.Minute)
		accounts := full(sliding(admission.Minute, most, 1), start)
		var left []departure
		for _, p := range fill(moment(start), accounts, &admission.Need{Segments: 1}, 10*time.Millisecond, 2*span) {
			left = append(left, departure{p, 1})
		}
		change(accounts[0].Counter, sliding(admission.Minute, most, 30))
		for _, p := range fill(moment(start.Add(2*span+late)), accounts, &admission.Need{Segments: 1}, 10*time.Millisecond, span) {
			left = append(left, departure{p, 1})
		}
		if got := slide(left, span); got > most {
			t.Errorf("changed %s late: %d of %d with release times within %s", late, got, most, span)
		}
	}
}
