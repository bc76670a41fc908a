package admission_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestDaysAreCutInTheBusinessTimeZone(t *testing.T) {
	t.Parallel()
	london := zone(t, "Europe/London")
	for name, tc := range map[string]struct {
		now, start, end string
		hours           float64
	}{
		"winter":                {"2026-01-10T23:59:59Z", "2026-01-10T00:00:00Z", "2026-01-11T00:00:00Z", 24},
		"summer":                {"2026-07-10T23:30:00Z", "2026-07-10T23:00:00Z", "2026-07-11T23:00:00Z", 24},
		"clocks go forward: 23": {"2026-03-29T12:00:00Z", "2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z", 23},
		"clocks go back: 25":    {"2026-10-25T12:00:00Z", "2026-10-24T23:00:00Z", "2026-10-26T00:00:00Z", 25},
	} {
		now := at(t, tc.now)
		start, end := admission.Day.Start(now, london), admission.Day.End(now, london)
		if !start.Equal(at(t, tc.start)) || !end.Equal(at(t, tc.end)) || end.Sub(start).Hours() != tc.hours {
			t.Errorf("%s: [%s, %s), want [%s, %s)", name, start, end, tc.start, tc.end)
		}
	}
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWindowsTileTheTime(t *testing.T) {
	t.Parallel()
	zones := []*time.Location{time.UTC, zone(t, "Europe/London"), zone(t, "Asia/Kathmandu"), zone(t, "America/New_York")}
	rapid.Check(t, func(t *rapid.T) {
		z := rapid.SampledFrom(zones).Draw(t, "zone")
		w := rapid.SampledFrom([]admission.Window{admission.Second, admission.Minute, admission.Hour, admission.Day}).Draw(t, "window")
		now := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "now"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos"))
		start, end := w.Start(now, z), w.End(now, z)
		if start.After(now) || !end.After(now) {
			t.Fatalf("%s is not in [%s, %s)", now, start, end)
		}
		if !w.Start(end, z).Equal(end) || !w.Start(end.Add(-1), z).Equal(start) {
			t.Fatalf("window [%s, %s) does not meet its neighbours", start, end)
		}
	})
}

func TestCounterNeverMovesBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 5, 0, time.UTC)
	c := admission.Counter{Limit: admission.Limit{Window: admission.Second, Max: 10}}
	if !c.Roll(now, time.UTC) || c.Free() != 10 {
		t.Fatalf("a new counter has %d free", c.Free())
	}
	c.Granted = 10
	if c.Roll(now.Add(-3*time.Second), time.UTC) || c.Free() != 0 {
		t.Error("a clock that stepped back freed slots")
	}
	if !c.Roll(now.Add(time.Second), time.UTC) || c.Free() != 10 {
		t.Error("the next second did not free the slots")
	}
}

func TestLoweredLimitHoldsUntilItsWindowEnds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 5, 0, time.UTC)
	c := admission.Counter{Limit: admission.Limit{Window: admission.Minute, Max: 5}, Start: now.Truncate(time.Minute), Granted: 8, Max: 8}
	if c.Free() != 0 {
		t.Errorf("%d free above what was granted before the limit was lowered", c.Free())
	}
	c.Roll(now.Add(time.Minute), time.UTC)
	if c.Free() != 5 {
		t.Errorf("%d free in the next window, want the new limit 5", c.Free())
	}
}

// TestGateNeverExceedsALimit takes messages at random over random limits and moving,
// sometimes backward, clocks.
func TestGateNeverExceedsALimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := admission.Gate{Active: admission.Active{Max: rapid.Int64Range(0, 20).Draw(t, "active")}}
		for range rapid.IntRange(0, 3).Draw(t, "limits") {
			limit := admission.Limit{
				Window: rapid.SampledFrom([]admission.Window{admission.Second, admission.Minute, admission.Hour}).Draw(t, "window"),
				Max:    rapid.Int64Range(0, 30).Draw(t, "max"),
				Unit:   rapid.SampledFrom([]admission.Unit{admission.Messages, admission.Segments}).Draw(t, "unit"),
			}
			g.Counters = append(g.Counters, admission.Counter{Limit: limit})
		}
		now := time.Unix(1_800_000_000, 0)
		granted := make([]map[time.Time]int64, len(g.Counters))
		for i := range granted {
			granted[i] = map[time.Time]int64{}
		}
		for range 200 {
			now = now.Add(time.Duration(rapid.IntRange(-500, 900).Draw(t, "step")) * time.Millisecond)
			g.Roll(now, time.UTC)
			if g.Active.Count > 0 && rapid.Bool().Draw(t, "settle") {
				g.Active.Count--
			}
			need := admission.Need{Segments: rapid.IntRange(1, 4).Draw(t, "segments")}
			if !g.Admit(&admission.Moment{Now: now, Earliest: now, Zone: time.UTC}, &need) {
				continue
			}
			for i := range g.Counters {
				granted[i][g.Counters[i].Start] += g.Counters[i].Cost(&need)
			}
			if g.Active.Max > 0 && g.Active.Count > g.Active.Max {
				t.Fatalf("%d active of %d", g.Active.Count, g.Active.Max)
			}
		}
		for i := range g.Counters {
			for start, n := range granted[i] {
				if n > g.Counters[i].Limit.Max {
					t.Fatalf("window %s of %s: %d of %d", start, g.Counters[i].Window, n, g.Counters[i].Limit.Max)
				}
			}
		}
	})
}

func TestWordsOfLimits(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"1s", "1m", "1h", "1d"} {
		if w, err := admission.ParseWindow(s); err != nil || w.String() != s {
			t.Errorf("window %s: %v, %v", s, w, err)
		}
	}
	for _, s := range []string{"messages", "segments"} {
		if u, err := admission.ParseUnit(s); err != nil || u.String() != s {
			t.Errorf("unit %s: %v, %v", s, u, err)
		}
	}
	if _, err := admission.ParseWindow("2s"); err == nil {
		t.Error("window 2s was accepted")
	}
	if _, err := admission.ParseUnit("sms"); err == nil {
		t.Error("unit sms was accepted")
	}
}
