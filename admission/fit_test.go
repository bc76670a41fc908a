package admission_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

func drawLimit(t *rapid.T) admission.Limit {
	limit := admission.Limit{
		Window: rapid.SampledFrom([]admission.Window{
			admission.Second, admission.Minute, admission.Hour, admission.Day,
		}).Draw(t, "window"),
		Max: rapid.OneOf(rapid.Int64Range(0, 30), rapid.Just[int64](1<<40)).Draw(t, "max"),
		Unit: rapid.SampledFrom([]admission.Unit{
			admission.Messages, admission.Segments,
			admission.Money,
		}).Draw(t, "unit"),
	}
	if rapid.Bool().Draw(t, "sliding") && limit.Max > 0 {
		limit.Sliding, limit.Burst = true, rapid.Int64Range(1, limit.Max).Draw(t, "burst")
	}
	if rapid.Bool().Draw(t, "reserve") {
		limit.Reserve = []admission.Reserve{
			{Lane: "otp", Percent: rapid.Int64Range(1, 50).Draw(t, "percent")},
		}
	}
	return limit
}

func drawAccounts(t *rapid.T, z *time.Location) []admission.Account {
	var accounts []admission.Account
	for range rapid.IntRange(1, 4).Draw(t, "accounts") {
		c := &admission.Counter{Limit: drawLimit(t)}
		c.Roll(noon, z)
		accounts = append(accounts,
			admission.Account{Counter: c, Rate: rapid.SampledFrom([]float64{1, 1, 0.5}).Draw(t, "rate")})
	}
	return accounts
}

func drawNeed(t *rapid.T) admission.Need {
	return admission.Need{
		Lane:     rapid.SampledFrom([]string{"otp", "bulk"}).Draw(t, "lane"),
		Segments: rapid.IntRange(1, 5).Draw(t, "segments"),
		Micros:   rapid.Int64Range(0, 12).Draw(t, "micros"),
	}
}

// copied returns a copy of the accounts, so that a test can take slots without changing them.
func copied(accounts []admission.Account) []admission.Account {
	out := make([]admission.Account, len(accounts))
	for i, a := range accounts {
		c := *a.Counter
		c.Taken = maps.Clone(c.Taken)
		a.Counter = &c
		out[i] = a
	}
	return out
}

func states(accounts []admission.Account) []admission.Counter {
	var out []admission.Counter
	for _, a := range copied(accounts) {
		out = append(out, *a.Counter)
	}
	return out
}

// TestGrantedNeverExceedsAnyLimit admits random messages under several limits. Its clock also steps
// back.
func TestGrantedNeverExceedsAnyLimit(t *testing.T) {
	t.Parallel()
	zones := []*time.Location{time.UTC, zone(t, "Europe/London"), zone(t, "America/Santiago")}
	tier.Check(t, func(t *rapid.T) {
		z := rapid.SampledFrom(zones).Draw(t, "zone")
		accounts := drawAccounts(t, z)
		granted, arrive := make([]map[time.Time]int64, len(accounts)), make([]map[time.Time]int64, len(accounts))
		for i := range granted {
			granted[i], arrive[i] = map[time.Time]int64{}, map[time.Time]int64{}
		}
		now := noon
		for range 150 {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(700*time.Millisecond),
				int64(time.Second)).Draw(t, "step")))
			m := &admission.Moment{
				Now: now, Zone: z,
				Earliest: now.Add(time.Duration(rapid.Int64Range(0, 3e8).Draw(t, "commit latency"))),
			}
			moveOn(accounts, m)
			n := drawNeed(t)
			before := states(accounts)
			r, e := admission.Fit(m, accounts, &n)
			if diff := cmp.Diff(before, states(accounts)); diff != "" {
				t.Fatalf("Fit changed a counter: %s", diff)
			}
			if e != nil {
				checkExclusion(t, m, accounts, &n, e)
				continue
			}
			admission.Take(m, accounts, &n, r)
			for i := range accounts {
				granted[i][accounts[i].Start] += accounts[i].Cost(&n)
				checkRelease(t, m, accounts, &accounts[i], r)
				first, last := leaves(m, r), r.Closes.Add(20*time.Millisecond-1)
				for at := first.Truncate(time.Second); accounts[i].Window == admission.Second && !at.After(last); at = at.Add(time.Second) {
					arrive[i][at] += accounts[i].Cost(&n)
				}
			}
		}
		for i := range accounts {
			for start, units := range granted[i] {
				if units > accounts[i].Limit.Max {
					t.Fatalf("%d of %+v in the window from %s", units, accounts[i].Limit, start)
				}
			}
			for second, units := range arrive[i] {
				if units > accounts[i].Limit.Max {
					t.Fatalf("%d of %+v may arrive in the second from %s", units, accounts[i].Limit, second)
				}
			}
		}
	})
}

func checkRelease(
	t *rapid.T, m *admission.Moment, accounts []admission.Account, a *admission.Account,
	r admission.Release,
) {
	first, soonest := leaves(m, r), m.Earliest
	for i := range accounts {
		if start := accounts[i].Start; accounts[i].Window == admission.Second &&
			start.After(soonest.Add(admission.Horizon)) {
			// Another process has moved the counter ahead: its whole window is close.
			soonest = start.Add(admission.Horizon)
		}
	}
	if arrived := r.Closes.Add(20 * time.Millisecond); !first.Before(r.Latest) ||
		r.Latest.After(r.Closes) || arrived.After(a.End(m.Zone)) {
		t.Fatalf("release from %s until %s, latest %s, in a window that ends at %s", first, r.Latest,
			r.Closes, a.End(m.Zone))
	}
	counted := m.Earliest
	if r.Counted.After(counted) {
		counted = r.Counted
	}
	if a.Window == admission.Second && (r.Opens.Before(a.Start.Add(-time.Second)) || r.Opens.After(first) || counted.Before(a.Start) || !counted.Before(a.End(m.Zone))) {
		t.Fatalf("release from %s, earliest %s, counted at %s, in a window that begins at %s", first,
			r.Opens, r.Counted, a.Start)
	}
	if first.After(soonest.Add(admission.Horizon)) {
		t.Fatalf("release time %s is too far ahead of %s", first, soonest)
	}
}

func never(a *admission.Account, n *admission.Need) bool {
	cost := a.Cost(n)
	return a.Limit.Max == 0 || cost > a.Limit.Max || a.Sliding &&
		cost > min(a.Burst, a.Limit.Max-a.Limit.Max/1024)
}

// checkExclusion checks that Never is set exactly when it holds, and else that there is no room
// before When.
func checkExclusion(
	t *rapid.T, m *admission.Moment, accounts []admission.Account, n *admission.Need,
	e *admission.Exclusion,
) {
	var way *admission.Account
	for i := range accounts {
		if accounts[i].Counter == e.Counter {
			way = &accounts[i]
		}
	}
	if never(way, n) != e.When.IsZero() {
		t.Fatalf("%+v excludes %+v until %s", way.Limit, n, e.When)
	}
	if e.When.IsZero() {
		return
	}
	if !e.When.After(m.Now) {
		t.Fatalf("room is announced for %s, before now %s", e.When, m.Now)
	}
	sooner := *m
	sooner.Now = m.Now.Add(time.Duration(rapid.Int64Range(0, int64(e.When.Sub(m.Now))-1).Draw(t,
		"sooner")))
	sooner.Earliest = sooner.Now.Add(m.Earliest.Sub(m.Now))
	then := copied(accounts)
	moveOn(then, &sooner)
	if _, still := admission.Fit(&sooner, then, n); still == nil {
		t.Fatalf("there is room at %s already, want from %s on (%v)", sooner.Now, e.When, e.Why)
	}
}

// TestWaitingMessageGetsItsReleaseTime: a message that waits until the time it was given is
// admitted if no other message came meanwhile.
func TestWaitingMessageGetsItsReleaseTime(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		accounts := drawAccounts(t, time.UTC)
		n, latency := drawNeed(t), time.Duration(rapid.Int64Range(0, 3e8).Draw(t, "commit latency"))
		for i := range accounts {
			cost := accounts[i].Cost(&n)
			if never(&accounts[i], &n) || len(accounts[i].Reserve) > 0 && 2*cost > accounts[i].Limit.Max {
				return // it never fits, or must meet the last moment of several decays at once
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "others") {
			m := &admission.Moment{Now: noon, Earliest: noon.Add(latency), Zone: time.UTC}
			other := drawNeed(t)
			_, _ = take(m, accounts, &other)
		}
		now := noon
		for range 40 {
			m := &admission.Moment{Now: now, Earliest: now.Add(latency), Zone: time.UTC}
			moveOn(accounts, m)
			_, e := admission.Fit(m, accounts, &n)
			if e == nil {
				return
			}
			now = e.When
		}
		t.Fatalf("%+v has no release time until %s", n, now)
	})
}

func TestMessageIsTakenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	accounts := append(
		full(admission.Limit{Window: admission.Minute, Max: 100}, noon),
		full(admission.Limit{Window: admission.Minute, Max: 5, Unit: admission.Segments}, noon)...,
	)
	m, three := moment(noon), admission.Need{Segments: 3}
	if _, e := take(m, accounts, &three); e != nil {
		t.Fatal(e)
	}
	_, e := take(m, accounts, &three)
	if e == nil || e.Counter != accounts[1].Counter || e.Why != admission.Full ||
		!e.When.Equal(noon.Truncate(time.Minute).Add(time.Minute)) {
		t.Errorf("%+v", e)
	}
	if accounts[0].Granted != 1 || accounts[1].Granted != 3 {
		t.Errorf("%d messages of %d segments", accounts[0].Granted, accounts[1].Granted)
	}
}

func TestLimitOfZeroClosesEvenToWhatCostsNothing(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{Window: admission.Day, Unit: admission.Money}, noon)
	if _, e := admission.Fit(moment(noon), accounts, &admission.Need{Segments: 1}); e == nil ||
		e.Why != admission.Full || !e.When.IsZero() {
		t.Errorf("%+v", e)
	}
}

// TestReleaseTimeOfOneLimitIsGoodForTheOthers: a channel may have both a pace and a sliding limit.
func TestReleaseTimeOfOneLimitIsGoodForTheOthers(t *testing.T) {
	t.Parallel()
	accounts := append(
		full(admission.Limit{Window: admission.Second, Max: 100}, noon),
		full(admission.Limit{Window: admission.Hour, Max: 100_000, Sliding: true, Burst: 1000}, noon)...,
	)
	if releases := fill(moment(noon), accounts, &admission.Need{}, 100*time.Millisecond,
		time.Second); len(releases) != 100 {
		t.Errorf("%d of 100 in a second", len(releases))
	}
}

func TestTakeWithoutASlotPanics(t *testing.T) {
	t.Parallel()
	accounts := full(admission.Limit{Window: admission.Minute, Max: 1}, noon)
	m := moment(noon)
	admission.Take(m, accounts, &admission.Need{}, admission.Release{})
	defer func() {
		if recover() == nil {
			t.Error("the second of one was counted")
		}
	}()
	admission.Take(m, accounts, &admission.Need{}, admission.Release{})
}
