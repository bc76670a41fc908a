package admission_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

func TestRateHalvesAtOnceAndComesBackByTime(t *testing.T) {
	t.Parallel()
	var e admission.Ease
	if e.RateAt(noon) != 1 {
		t.Errorf("initial rate %v", e.RateAt(noon))
	}
	e = e.SlowDown(noon, 0)
	for after, want := range map[time.Duration]float64{
		0: 0.5, time.Second: 0.55, 4 * time.Second: 0.7, 10 * time.Second: 1, time.Hour: 1,
	} {
		if got := e.RateAt(noon.Add(after)); math.Abs(got-want) > 1e-9 {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
	}
	e = e.SlowDown(noon.Add(4*time.Second), 0)
	if got := e.RateAt(noon.Add(4 * time.Second)); math.Abs(got-0.35) > 1e-9 {
		t.Errorf("rate %v, want half of the recovered rate", got)
	}
}

func TestAnswersToOneBurstCountOnce(t *testing.T) {
	t.Parallel()
	var e admission.Ease
	for i := range 100 {
		e = e.SlowDown(noon.Add(time.Duration(i)*9*time.Millisecond), 0)
	}
	if e.Rate != 0.5 {
		t.Errorf("rate %v after 100 answers within 0.9 s", e.Rate)
	}
	if e = e.SlowDown(noon.Add(time.Second), 0); math.Abs(e.Rate-0.275) > 1e-9 {
		t.Errorf("rate %v a second later", e.Rate)
	}
}

// TestRateNeverFallsBelowATwentieth: a provider may keep asking to slow down. At a twentieth of the
// rate, recovery gains per second what the requests take away.
func TestRateNeverFallsBelowATwentieth(t *testing.T) {
	t.Parallel()
	var e admission.Ease
	for i := range 100 {
		e = e.SlowDown(noon.Add(time.Duration(i)*time.Second), 0)
	}
	if math.Abs(e.Rate-0.05) > 1e-9 {
		t.Errorf("rate %v after 100 s of throttling", e.Rate)
	}
}

func TestRetryAfterIsObeyedAndNeverShortened(t *testing.T) {
	t.Parallel()
	e := admission.Ease{}.SlowDown(noon, time.Minute)
	if !e.Until.Equal(noon.Add(time.Minute)) {
		t.Errorf("until %s", e.Until)
	}
	if e = e.SlowDown(noon.Add(time.Second), time.Second); !e.Until.Equal(noon.Add(time.Minute)) {
		t.Errorf("until %s after a shorter pause", e.Until)
	}
	if e = e.SlowDown(noon.Add(2*time.Second),
		2*time.Minute); !e.Until.Equal(noon.Add(122 * time.Second)) {
		t.Errorf("until %s after a longer pause", e.Until)
	}
}

func TestRateStaysBetweenATwentiethAndOne(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		var e admission.Ease
		now := noon
		for range rapid.IntRange(1, 50).Draw(t, "answers") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(3*time.Second),
				int64(20*time.Second)).Draw(t, "step")))
			before := e.RateAt(now)
			e = e.SlowDown(now, 0)
			if r := e.RateAt(now); r < 0.05-1e-9 || r > before {
				t.Fatalf("rate %v after %v", r, before)
			}
		}
	})
}

// TestEffectiveIsWhatAWindowTakesAtTheRateThatIsLeft: a lower rate affects windows of a second
// alone; a pause stops every window.
func TestEffectiveIsWhatAWindowTakesAtTheRateThatIsLeft(t *testing.T) {
	t.Parallel()
	slowed := admission.Ease{Rate: 0.5, Since: noon, Until: noon.Add(time.Second)}
	for name, c := range map[string]struct {
		limit        admission.Limit
		later, whole int64
	}{
		"paced": {admission.Limit{Window: admission.Second, Max: 100}, 60, 100},
		"sliding": {
			admission.Limit{Window: admission.Second, Max: 7, Sliding: true, Burst: 1}, 4, 7,
		},
		"of a sliding hour": {
			admission.Limit{Window: admission.Hour, Max: 7, Sliding: true, Burst: 1}, 7, 7,
		},
		"of a minute": {admission.Limit{Window: admission.Minute, Max: 100}, 100, 100},
		"money of a second": {
			admission.Limit{Window: admission.Second, Max: 100, Unit: admission.Money}, 100, 100,
		},
	} {
		if got := c.limit.Effective(slowed, noon.Add(999*time.Millisecond)); got != 0 {
			t.Errorf("%s: %d during a pause", name, got)
		}
		if got := c.limit.Effective(slowed, noon.Add(2*time.Second)); got != c.later {
			t.Errorf("%s: %d at 0.6 of the rate, want %d", name, got, c.later)
		}
		if got := c.limit.Effective(admission.Ease{}, noon); got != c.whole {
			t.Errorf("%s: %d at the full rate", name, got)
		}
	}
}

// TestRateOfAChannelIsThatOfItsPace: a limit without release times is not slowed down, and the pace
// of one tenant is not the channel's.
func TestRateOfAChannelIsThatOfItsPace(t *testing.T) {
	t.Parallel()
	slowed, now := admission.Ease{Rate: 0.5, Since: noon}, noon.Add(2*time.Second)
	perMinute := admission.Limit{Window: admission.Minute, Max: 100}
	for name, c := range map[string]struct {
		limits []admission.Limit
		want   float64
	}{
		"paced": {
			[]admission.Limit{perMinute, {Window: admission.Second, Max: 100}}, 0.6,
		},
		"sliding over a second": {
			[]admission.Limit{{Window: admission.Second, Max: 9, Sliding: true, Burst: 1}}, 0.6,
		},
		"sliding over a minute": {
			[]admission.Limit{{Window: admission.Minute, Max: 9, Sliding: true, Burst: 1}}, 1,
		},
		"a minute": {[]admission.Limit{perMinute}, 1},
		"money of a second": {
			[]admission.Limit{{Window: admission.Second, Max: 100, Unit: admission.Money}}, 1,
		},
		"a tenant's second": {
			[]admission.Limit{{Scope: admission.Scope{Tenant: "shop"}, Window: admission.Second, Max: 100}},
			1,
		},
		"none": {nil, 1},
	} {
		if got := slowed.RateOf(c.limits, now); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for _, limit := range c.limits { // the reported rate is the rate in effect
			if limit.Scope != (admission.Scope{}) {
				continue
			}
			slow, quick := full(limit, noon), full(limit, noon)
			slow[0].Rate = 0.6
			for range 5 {
				take(moment(noon), slow, &admission.Need{Segments: 1, Micros: 1})
				take(moment(noon), quick, &admission.Need{Segments: 1, Micros: 1})
			}
			if slow[0].Next.After(quick[0].Next) && c.want == 1 {
				t.Errorf("%s: slowed down, want no change", name)
			}
		}
	}
}
