package main

import (
	"math"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// TestLimitsShowClaimsNoRateWhereNothingIsSlowedDown: without a limit of a second a provider that
// asks to slow down is answered by a pause alone.
func TestLimitsShowClaimsNoRateWhereNothingIsSlowedDown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	gate := admission.Gate{Ease: admission.Ease{Rate: 0.5, Since: now.Add(-time.Second)}}
	for window, want := range map[admission.Window]float64{
		admission.Second: 0.55, admission.Minute: 1,
	} {
		doc := &config.Routing{
			Timezone: time.UTC,
			Channels: []config.Channel{
				{Name: "a", Limits: []admission.Limit{{Window: window, Max: 100}}},
			},
		}
		present := &ledger.Present{
			Now: now, Channels: []ledger.ChannelState{{Name: "a", Gate: gate}},
		}
		got := newLimitsNow(1, doc, present, nil).Channels[0]
		if math.Abs(got.Rate-want) > 1e-9 || got.Limits[0].Effective.units != int64(100*want) {
			t.Errorf("%s: rate %v, %d of 100 in a window", window, got.Rate,
				got.Limits[0].Effective.units)
		}
	}
}
