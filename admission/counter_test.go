package admission_test

import (
	"testing"
	"time"

	"dispatcher/admission"
)

func TestCounterNeverMovesBack(t *testing.T) {
	t.Parallel()
	c := admission.Counter{Limit: admission.Limit{Window: admission.Second, Max: 10}}
	if !c.Roll(noon, time.UTC) || c.Free() != 10 {
		t.Fatalf("a new counter has %d free", c.Free())
	}
	c.Granted = 10
	if c.Roll(noon.Add(-3*time.Second), time.UTC) || c.Free() != 0 || !c.Start.Equal(noon) {
		t.Error("slots were freed after the clock stepped back")
	}
	if !c.Roll(noon.Add(time.Second), time.UTC) || c.Free() != 10 {
		t.Error("the next second did not free the slots")
	}
}

func TestNextWindowForgetsWhatWasCountedApart(t *testing.T) {
	t.Parallel()
	next := noon.Add(300 * time.Millisecond)
	c := admission.Counter{
		Limit: admission.Limit{Window: admission.Second, Max: 10}, Start: noon, Granted: 3, Max: 10, Next: next,
		Taken: map[string]int64{"lane:otp": 3},
	}
	c.Roll(noon.Add(time.Second), time.UTC)
	if _, kept := c.Taken["lane:otp"]; kept || c.Granted != 0 || !c.Next.Equal(next) {
		t.Errorf("%+v", c)
	}
}

func TestLoweredLimitHoldsUntilItsWindowEnds(t *testing.T) {
	t.Parallel()
	lowered := admission.Counter{Limit: admission.Limit{Window: admission.Minute, Max: 5}, Start: noon.Truncate(time.Minute), Granted: 8, Max: 8}
	if lowered.Free() != 0 {
		t.Errorf("%d free below a lowered limit, want none", lowered.Free())
	}
	refunded := lowered
	refunded.Granted = 6
	if refunded.Free() != 0 {
		t.Errorf("%d free after slots were freed above the new limit, want none", refunded.Free())
	}
	refunded.Granted = 4
	if refunded.Free() != 1 {
		t.Errorf("%d free, want 1 below the new limit", refunded.Free())
	}
	lowered.Roll(noon.Add(time.Minute), time.UTC)
	if lowered.Free() != 5 || lowered.Max != 5 {
		t.Errorf("%d of %d free in the next window, want the new limit 5", lowered.Free(), lowered.Max)
	}
}

func TestCostFollowsTheUnit(t *testing.T) {
	t.Parallel()
	need := admission.Need{Segments: 3, Micros: 84_000}
	for unit, want := range map[admission.Unit]int64{admission.Messages: 1, admission.Segments: 3, admission.Money: 84_000} {
		c := admission.Counter{Limit: admission.Limit{Unit: unit}}
		if got := c.Cost(&need); got != want {
			t.Errorf("%s: %d, want %d", unit, got, want)
		}
	}
}

func TestNoBoundOfActiveSlotsIsZero(t *testing.T) {
	t.Parallel()
	for a, want := range map[admission.Active]bool{{}: true, {Max: 2, Count: 1}: true, {Max: 2, Count: 2}: false, {Count: 1000}: true} {
		if a.Free() != want {
			t.Errorf("%+v: %t", a, !want)
		}
	}
}
