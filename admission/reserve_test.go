package admission_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

// reserved is a limit of 100 a minute: a fifth is reserved for otp, a tenth for alarms.
func reserved() admission.Limit {
	return admission.Limit{Window: admission.Minute, Max: 100, Reserve: []admission.Reserve{{Lane: "otp", Percent: 20}, {Lane: "alarm", Percent: 10}}}
}

func TestOtherLanesLeaveWhatIsKept(t *testing.T) {
	t.Parallel()
	accounts := full(reserved(), noon)
	bulk, otp := admission.Need{Lane: "bulk"}, admission.Need{Lane: "otp"}
	if taken, e := admitAll(accounts, admission.Worker{}, bulk); taken != 70 || e.Why != admission.Reserved {
		t.Errorf("bulk took %d (%v), want 70", taken, e.Why)
	}
	if r := accounts[0].Reserved(); r != 30 {
		t.Errorf("%d are reported as reserved", r)
	}
	if taken, e := admitAll(accounts, admission.Worker{}, otp); taken != 20 || e.Why != admission.Reserved {
		t.Errorf("otp took %d (%v), want its 20", taken, e.Why)
	}
	if r := accounts[0].Reserved(); r != 10 {
		t.Errorf("%d are reported as reserved when otp has taken its part", r)
	}
}

func TestWhatALaneTakesBeyondItsReserveIsEverybodys(t *testing.T) {
	t.Parallel()
	accounts := full(reserved(), noon)
	if taken, _ := admitAll(accounts, admission.Worker{}, admission.Need{Lane: "otp"}); taken != 90 {
		t.Errorf("otp took %d, want all but the 10 of alarms", taken)
	}
	if taken, e := admitAll(accounts, admission.Worker{}, admission.Need{Lane: "alarm"}); taken != 10 || e.Why != admission.Full {
		t.Errorf("alarm took %d (%v)", taken, e.Why)
	}
}

func TestReserveDecaysToNothingInTheLastTenth(t *testing.T) {
	t.Parallel()
	start := noon.Truncate(time.Minute)
	for name, tc := range map[string]struct {
		limit  admission.Limit
		points map[time.Duration]int64 // from the start of the window
	}{
		"minute": {
			admission.Limit{Window: admission.Minute, Max: 100},
			map[time.Duration]int64{0: 20, 54 * time.Second: 20, 57 * time.Second: 10, 59 * time.Second: 3, 60*time.Second - 1: 0},
		},
		"second, whose last release times are 50 ms before its end": {
			admission.Limit{Window: admission.Second, Max: 100},
			map[time.Duration]int64{0: 20, 850 * time.Millisecond: 20, 900 * time.Millisecond: 10, 950*time.Millisecond - 1: 0, 999 * time.Millisecond: 0},
		},
		"sliding second": {
			admission.Limit{Window: admission.Second, Max: 100, Sliding: true, Burst: 10},
			map[time.Duration]int64{0: 20, 900 * time.Millisecond: 20, 950 * time.Millisecond: 10, time.Second - 1: 0},
		},
	} {
		tc.limit.Reserve = []admission.Reserve{{Lane: "otp", Percent: 20}}
		c := full(tc.limit, start)[0]
		for after, want := range tc.points {
			if got := c.Kept("bulk", moment(start.Add(after))); got != want {
				t.Errorf("%s: %d kept after %s, want %d", name, got, after, want)
			}
			if got := c.Kept("otp", moment(start.Add(after))); got != 0 {
				t.Errorf("%s: %d kept from otp itself", name, got)
			}
		}
	}
}

func TestReserveOfADayThatLosesAnHourDecaysInItsLastTenth(t *testing.T) {
	t.Parallel()
	london := zone(t, "Europe/London")
	now := at(t, "2026-03-29T12:00:00Z")
	c := admission.Counter{Limit: admission.Limit{Window: admission.Day, Max: 1000, Reserve: []admission.Reserve{{Lane: "otp", Percent: 10}}}}
	c.Roll(now, london)
	for s, want := range map[string]int64{"2026-03-29T20:42:00Z": 100, "2026-03-29T21:51:00Z": 50, "2026-03-29T22:59:59Z": 0} {
		m := moment(at(t, s))
		m.Zone = london
		if got := c.Kept("bulk", m); got != want {
			t.Errorf("%d kept at %s, want %d", got, s, want)
		}
	}
}

func TestReserveOfMuchMoneyOverADayDoesNotOverflow(t *testing.T) {
	t.Parallel()
	start := noon.Truncate(24 * time.Hour)
	c := admission.Counter{Limit: admission.Limit{
		Window: admission.Day, Max: 1 << 50, Unit: admission.Money, Reserve: []admission.Reserve{{Lane: "otp", Percent: 100}},
	}}
	c.Roll(start, time.UTC)
	if got := c.Kept("bulk", moment(start.Add(24*time.Hour-72*time.Minute))); got != 1<<49 {
		t.Errorf("%d kept, want half", got)
	}
}

// TestReservesHoldWhateverIsTaken: other lanes never take a reserve, its lane always finds it, and
// at the end of the window all of it is free.
func TestReservesHoldWhateverIsTaken(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		limit := admission.Limit{Window: admission.Minute, Max: rapid.Int64Range(1, 300).Draw(t, "max"), Unit: admission.Segments}
		lanes := []string{"otp", "alarm", "bulk"}
		own := map[string]int64{}
		for _, lane := range lanes[:2] {
			percent := rapid.Int64Range(1, 50).Draw(t, lane)
			limit.Reserve = append(limit.Reserve, admission.Reserve{Lane: lane, Percent: percent})
			own[lane] = limit.Max * percent / 100
		}
		start := noon.Truncate(time.Minute)
		accounts, m := full(limit, start), moment(start)
		for range 60 {
			m.Now = m.Now.Add(time.Duration(rapid.IntRange(-100, 800).Draw(t, "step")) * time.Millisecond)
			m.Earliest = m.Now
			n := admission.Need{Lane: rapid.SampledFrom(lanes).Draw(t, "lane"), Segments: rapid.IntRange(1, 9).Draw(t, "segments")}
			cost := int64(n.Segments)
			_, e := take(m, accounts, &n)
			if e == nil {
				own[n.Lane] -= cost
			} else if own[n.Lane] >= cost && m.Now.Before(start.Add(54*time.Second)) {
				t.Fatalf("lane %s did not find %d of its %d: %v", n.Lane, cost, own[n.Lane], e.Why)
			}
			if kept := max(own["otp"], 0) + max(own["alarm"], 0); m.Now.Before(start.Add(54*time.Second)) && accounts[0].Free() < kept {
				t.Fatalf("%d free, %d kept", accounts[0].Free(), kept)
			}
		}
		m.Now = start.Add(time.Minute - 20*time.Millisecond - 1)
		m.Earliest = m.Now
		if all := (admission.Need{Lane: "bulk", Segments: int(accounts[0].Free())}); all.Segments > 0 {
			if _, e := take(m, accounts, &all); e != nil {
				t.Fatalf("%d are not free at the end of the window: %v", all.Segments, e.Why)
			}
		}
	})
}

// TestReservedMessageFindsRoomWhenItWasTold, to the nanosecond, if nothing else is taken meanwhile.
func TestReservedMessageFindsRoomWhenItWasTold(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		limit := admission.Limit{
			Window: rapid.SampledFrom([]admission.Window{admission.Second, admission.Minute, admission.Day}).Draw(t, "window"),
			Max:    rapid.Int64Range(1, 500).Draw(t, "max"), Unit: admission.Segments,
			Reserve: []admission.Reserve{{Lane: "otp", Percent: rapid.Int64Range(1, 100).Draw(t, "percent")}},
		}
		start := limit.Window.Start(noon, time.UTC)
		accounts, m := full(limit, start), moment(start)
		m.Earliest = m.Now.Add(time.Duration(rapid.Int64Range(0, int64(300*time.Millisecond)).Draw(t,
			"commit latency")))
		latency := m.Earliest.Sub(m.Now)
		n := admission.Need{Lane: "bulk", Segments: rapid.IntRange(1, int(limit.Max)).Draw(t, "segments")}
		_, e := admission.Fit(m, accounts, &n)
		if e == nil {
			return
		}
		if e.Why != admission.Reserved {
			t.Fatalf("%v", e.Why)
		}
		if _, before := admission.Fit(&admission.Moment{Now: e.When.Add(-1), Earliest: e.When.Add(latency - 1), Zone: time.UTC}, accounts, &n); before == nil {
			t.Fatalf("there is room before %s", e.When)
		}
		then := &admission.Moment{Now: e.When, Earliest: e.When.Add(latency), Zone: time.UTC}
		moveOn(accounts, then)
		if _, then := admission.Fit(then, accounts, &n); then != nil {
			t.Fatalf("no room at %s: %v", e.When, then.Why)
		}
	})
}

// TestAReserveDecaysToNothingWhileMessagesCanStillArrive: a message that takes the whole window is
// admitted before the window ends.
func TestAReserveDecaysToNothingWhileMessagesCanStillArrive(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{
		Window: admission.Minute, Max: 417, Unit: admission.Segments, Reserve: []admission.Reserve{{Lane: "otp", Percent: 72}},
	}, noon)
	whole := admission.Need{Lane: "bulk", Segments: 417}
	_, e := admission.Fit(moment(noon), accounts, &whole)
	if e == nil || e.Why != admission.Reserved {
		t.Fatalf("%+v", e)
	}
	if _, again := take(moment(e.When), accounts, &whole); again != nil {
		t.Errorf("no room at the announced time %s, but at %s", e.When, again.When)
	}
}

// TestAReserveIsRoundedDown: any lane may use the fraction of a unit.
func TestAReserveIsRoundedDown(t *testing.T) {
	t.Parallel()
	for percent, want := range map[int64]int{1: 99, 20: 80, 33: 67, 50: 50, 99: 1} { // of 99
		accounts := full(admission.Limit{Window: admission.Minute, Max: 99, Reserve: []admission.Reserve{{Lane: "otp", Percent: percent}}}, noon)
		if taken, _ := admitAll(accounts, admission.Worker{}, admission.Need{Lane: "bulk"}); taken != want {
			t.Errorf("%d %% kept: bulk took %d of 99, want %d", percent, taken, want)
		}
	}
}

// TestNoMoreIsReservedThanIsFree: a lane that took from a reserve while it decayed may leave less
// in the window than is reserved.
func TestNoMoreIsReservedThanIsFree(t *testing.T) {
	t.Parallel()
	for granted, want := range map[int64]int64{0: 30, 70: 30, 71: 29, 95: 5, 100: 0} {
		c := full(reserved(), noon)[0]
		c.Granted = granted
		if got := c.Reserved(); got != want {
			t.Errorf("%d are reported as reserved with %d of 100 granted, want %d", got, granted, want)
		}
	}
}

// TestAReserveDecaysByTheTimeAtWhichAMessageCouldLeave: with a slow database that time is later
// than now. A decision less than a commit latency before the end of a window is too late for that
// window.
func TestAReserveDecaysByTheTimeAtWhichAMessageCouldLeave(t *testing.T) {
	t.Parallel()
	start := noon.Truncate(time.Minute)
	for name, tc := range map[string]struct {
		window  admission.Window
		latency time.Duration
		points  map[time.Duration]int64 // from the start of the window
	}{
		"minute": {admission.Minute, 3 * time.Second, map[time.Duration]int64{50 * time.Second: 20, 51 * time.Second: 20, 54 * time.Second: 10, 57 * time.Second: 0}},
		"second": {admission.Second, 100 * time.Millisecond, map[time.Duration]int64{700 * time.Millisecond: 20, 800 * time.Millisecond: 10, 849 * time.Millisecond: 0}},
	} {
		c := full(admission.Limit{Window: tc.window, Max: 100, Reserve: []admission.Reserve{{Lane: "otp", Percent: 20}}}, start)[0]
		for after, want := range tc.points {
			m := moment(start.Add(after))
			m.Earliest = m.Now.Add(tc.latency)
			if got := c.Kept("bulk", m); got != want {
				t.Errorf("%s: %d kept after %s, want %d", name, got, after, want)
			}
		}
	}
}
