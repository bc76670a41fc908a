package admission_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

// TestTheSecondBeforeIsUsedWhileItHasRoom: a message that is decided 30 ms before a second begins
// has a slot of that second.
func TestTheSecondBeforeIsUsedWhileItHasRoom(t *testing.T) {
	t.Parallel()
	now := noon.Add(970 * time.Millisecond)
	next := noon.Add(time.Second)
	for name, c := range map[string]struct {
		change func(*admission.Account)
		leaves time.Time
	}{
		"some are left":     {func(*admission.Account) {}, now},
		"one is left":       {func(a *admission.Account) { a.Granted = 9 }, now},
		"none is left":      {func(a *admission.Account) { a.Granted = 10 }, next},
		"idle for long":     {func(a *admission.Account) { a.Start = noon.Add(-time.Hour) }, now},
		"a new limit":       {func(a *admission.Account) { a.Start = time.Unix(0, 0) }, next},
		"a lowered limit":   {func(a *admission.Account) { a.Limit.Max, a.Granted = 5, 5 }, next},
		"a lowered rate":    {func(a *admission.Account) { a.Rate = 0.5 }, next},
		"divided by policy": {func(a *admission.Account) { a.Policy = admission.Even{} }, next},
		"in money":          {func(a *admission.Account) { a.Unit = admission.Money }, now},
	} {
		accounts := full(admission.Limit{Window: admission.Second, Max: 10}, noon)
		a := &accounts[0]
		a.Split = admission.Split{Free: 10, Region: 10, Anywhere: 10, PerWorker: 10}
		c.change(a)
		m := moment(now)
		moveOn(accounts, m)
		before, _ := a.Before()
		r, e := take(m, accounts, &admission.Need{Micros: 1})
		if e != nil || !leaves(m, r).Equal(c.leaves) {
			t.Errorf("%s: leaves at %s (%+v), want %s", name, leaves(m, r), e, c.leaves)
		}
		if a.Unit == admission.Money {
			continue // its slots are those of the second that is not over
		}
		after, _ := a.Before()
		if early := c.leaves.Before(next); early != (after == before+1) || early && !r.Opens.Equal(noon) ||
			!r.Counted.Equal(next) || a.Granted != 1 || !a.Start.Equal(next) {
			t.Errorf("%s: %+v counts %d, then %d before %+v", name, r, before, after, a.Counter)
		}
	}
}

// TestAMessageWaitsForTheSecondThatCountsIt: it expires by then, or another limit counts it in a
// window that ends then, or in another second.
func TestAMessageWaitsForTheSecondThatCountsIt(t *testing.T) {
	t.Parallel()
	second := admission.Limit{Window: admission.Second, Max: 10}
	begin := noon.Truncate(time.Minute)
	next := begin.Add(time.Minute)
	for name, c := range map[string]struct {
		beside  admission.Limit
		expires time.Time
		early   bool
	}{
		"alone":                    {second, time.Time{}, true},
		"it expires later":         {second, next.Add(1), true},
		"it expires by then":       {second, next, false},
		"beside segments":          {admission.Limit{Window: admission.Second, Max: 10, Unit: admission.Segments}, time.Time{}, true},
		"beside an hour":           {admission.Limit{Window: admission.Hour, Max: 10}, time.Time{}, true},
		"beside a minute":          {admission.Limit{Window: admission.Minute, Max: 10}, time.Time{}, false},
		"beside a sliding limit":   {admission.Limit{Window: admission.Second, Max: 10, Sliding: true, Burst: 5}, time.Time{}, false},
		"beside a limit in money":  {admission.Limit{Window: admission.Second, Max: 10, Unit: admission.Money}, time.Time{}, false},
		"beside a used up segment": {admission.Limit{Window: admission.Second, Unit: admission.Segments}, time.Time{}, false},
	} {
		accounts := append(full(second, begin.Add(59*time.Second)), full(c.beside, begin.Add(59*time.Second))...)
		m := moment(next.Add(-30 * time.Millisecond))
		moveOn(accounts, m)
		n := admission.Need{Segments: 1, Micros: 1, Expires: c.expires}
		r, e := take(m, accounts, &n)
		if early := e == nil && r.At.Before(next); early != c.early || early && !r.Counted.Equal(next) {
			t.Errorf("%s: %+v, %+v", name, r, e)
		}
	}
}

// TestNoMoreArriveInASecondThanTheLimit: each message arrives when it is worst for the second, at
// the earliest or at the latest moment.
func TestNoMoreArriveInASecondThanTheLimit(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(1, 40).Draw(t, "max")
		accounts := full(admission.Limit{Window: admission.Second, Max: most}, noon)
		first, last, now := map[time.Time]int64{}, map[time.Time]int64{}, noon
		for range 200 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(60*time.Millisecond)).Draw(t, "step")))
			latency := time.Duration(rapid.SampledFrom([]int64{0, 0, 0, 6e7, 4e8, 25e8}).Draw(t, "commit latency"))
			m := &admission.Moment{Now: now, Earliest: now.Add(latency), Zone: time.UTC}
			moveOn(accounts, m)
			for range rapid.IntRange(0, 5).Draw(t, "messages") {
				if r, e := take(m, accounts, &admission.Need{}); e == nil {
					first[leaves(m, r).Truncate(time.Second)]++
					last[r.Latest.Add(20*time.Millisecond-1).Truncate(time.Second)]++
				}
			}
		}
		for second := range first {
			if first[second] > most || last[second] > most {
				t.Fatalf("%d, %d of %d in the second from %s", first[second], last[second], most, second)
			}
		}
	})
}
