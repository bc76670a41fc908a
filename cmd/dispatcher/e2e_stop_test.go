package main

import (
	"testing"

	"dispatcher/config/tier"
)

// TestStopInMidStreamLeavesNothingUnknown: a process that is stopped finishes its attempts in
// flight and hands over the rest, also when all processes are stopped one after the other.
func TestStopInMidStreamLeavesNothingUnknown(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	n := tier.Size(240, 9_000)
	rate := n / tier.Size(4, 5)
	s := newStage(t, stageConfig{
		channels: threeChannels(limitPerSecond(rate/4), limitPerSecond(rate*15/100),
			limitPerSecond(rate*60/100)),
		settings: map[string]string{"MAX_UNSETTLED": "100"},
	})
	first, second := s.run("first"), s.run("second")
	s.joined(2)
	ids := s.publish("bulk", messages("stop", n))
	tier.Within(t, stepTimeout, "a third of the messages are submitted", func() bool {
		return s.submitted() > n/3
	})
	first.stop(t)
	tier.Within(t, stepTimeout, "half of the messages are submitted", func() bool {
		return s.submitted() > n/2
	})
	second.stop(t)
	if open := s.count(`select count(*) from audit.attempts where outcome is null`); open > 0 {
		t.Errorf("%d attempts were left without outcome", open)
	}
	before := s.submitted()
	s.run("third")
	s.settled(n)

	t.Logf("%d of %d were submitted by the first two", before, n)
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkLimits()
	s.checkStatuses()
	if tally := s.tally(); tally["accepted"] != n {
		t.Errorf("of %d messages not all are accepted: %v", n, tally)
	}
}
