package admission_test

import (
	"testing"
	"time"

	"dispatcher/admission"
)

// TestNarrowLimitPutsOffItsOwnMessagesAlone: a tenant with 10 a second on a channel of 100 a second
// waits for its own release times. The messages of others meanwhile leave at the channel's pace.
func TestNarrowLimitPutsOffItsOwnMessagesAlone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 5, 0, time.UTC)
	m := &admission.Moment{Now: now, Earliest: now, Zone: time.UTC}
	channel := admission.Counter{Limit: admission.Limit{Window: admission.Second, Max: 100}}
	tenant := admission.Counter{Limit: admission.Limit{Scope: admission.Scope{Tenant: "shop"}, Window: admission.Second, Max: 10}}
	channel.Roll(now, time.UTC)
	tenant.Roll(now, time.UTC)
	whole := []admission.Account{{Counter: &channel, Rate: 1}}
	both := []admission.Account{{Counter: &channel, Rate: 1}, {Counter: &tenant, Rate: 1}}
	need := &admission.Need{Segments: 1}
	take := func(accounts []admission.Account) time.Duration {
		r, e := admission.Fit(m, accounts, need)
		if e != nil {
			t.Fatalf("no release time: %+v", e)
		}
		admission.Take(m, accounts, need, r)
		return r.At.Sub(now)
	}
	var last time.Duration
	for range 5 {
		last = take(both)
	}
	if want := 4 * 95 * time.Millisecond; last != want {
		t.Fatalf("the fifth message of the tenant has its release time after %s, want %s", last,
			want)
	}
	if got := take(whole); got > 50*time.Millisecond {
		t.Errorf("the next message of another tenant waits %s", got)
	}
}
