package status

import (
	"slices"
	"testing"
	"time"
)

// TestASummaryHasTheFiguresOfEachChannelAndLane, leaves out what is not known, and warns where a
// finding says what is wrong.
func TestASummaryHasTheFiguresOfEachChannelAndLane(t *testing.T) {
	t.Parallel()
	opened := time.Date(2026, 11, 25, 11, 58, 0, 0, time.UTC)
	n := &Now{
		Channels: []Channel{
			{
				Name: "a", State: "enabled", Breaker: "closed", AgreedShare: new(0.5),
				CarriedShare: new(0.4825), Rate: 12.34, Limit: new(100.0), P50: new(20.0),
				P99: new(81.0), Throttled: 1,
			},
			{
				Name: "b", State: "enabled", Breaker: "open", BreakerSince: &opened,
				AgreedShare: new(0.5), Throttled: 0.5,
				NotReady: []ReasonCount{{Reason: "breaker_open", Instances: 2}},
			},
			{Name: "c", State: "draining", Throttled: 1},
		},
		Lanes: []Lane{
			{Lane: "otp", Lag: new(int64(3)), Waiting: 5},
			{Lane: "bulk", Paused: true},
		},
		Findings: []Finding{
			Warned("traffic of b", "its breaker is open", "ask the provider"),
			Warned("limit of c", "it is used up", "wait"),
		},
	}
	want := []Finding{
		{
			Check: "summary of channel a", Status: OK, Detail: "enabled; breaker closed; " +
				"carried 48.25 % of 50.00 %; rate/s 12.3 of 100; p50 20 ms, p99 81 ms",
		},
		{
			Check: "summary of channel b", Status: Warn, Detail: "enabled, breaker_open on 2, " +
				"throttled to 50.00 %; breaker open since 11:58:00 UTC; carried none of 50.00 %; " +
				"rate/s 0.0", Fix: `see "traffic of b" below`,
		},
		{Check: "summary of channel c", Status: OK, Detail: "draining; rate/s 0.0"},
		{Check: "summary of lane otp", Status: OK, Detail: "lag 3; not paused; waiting 5"},
		{Check: "summary of lane bulk", Status: OK, Detail: "lag unknown; paused; waiting 0"},
	}
	if got := n.Summaries(); !slices.Equal(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}
