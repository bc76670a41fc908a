package audit

import (
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/provider"
)

// afternoon sets quiet hours from one to two.
func afternoon(r *decide.Routing) {
	r.Routes[0].Quiet = &config.Quiet{
		Hours: config.Hours{{Days: 127, From: 13 * 60, To: 14 * 60}}, Zone: time.UTC,
	}
}

// TestNothingIsClaimedInQuietHours: an attempt within them is found. An attempt at their edges is
// not, nor one that completes a message.
func TestNothingIsClaimedInQuietHours(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    time.Duration
		found bool
	}{
		"before":            {0, false},
		"a moment too late": {time.Hour + 500*time.Millisecond, false},
		"within":            {time.Hour + time.Minute, true},
		"after":             {2 * time.Hour, false},
	} {
		for _, gone := range []bool{false, true} {
			l, _ := lifeOf(t, afternoon)
			l.claimed(t, jobOf("m-1", 1), nil)
			l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
			record := l.record
			record.Attempts[0].ClaimedAt = record.Attempts[0].ClaimedAt.Add(c.at)
			record.Attempts[0].SettledAt = time.Time{}
			record.Message.ExpiresAt = noon.Add(24 * time.Hour)
			if gone {
				record.Message.Envelope = nil
			}
			found := verified(t, l.editions, &record)
			if (len(found) == 1) != c.found || len(found) > 1 || c.found && found[0].What != whatTime {
				t.Errorf("%s, without payload %v: got %+v", name, gone, found)
			}
		}
	}
	l, _ := lifeOf(t, afternoon)
	l.claimed(t, jobOf("m-1", 2), nil)
	l.answer(provider.Result{Outcome: provider.Throttled, Parts: []provider.Part{
		{Index: 0, Outcome: provider.Accepted}, {Index: 1, Outcome: provider.Throttled},
	}})
	l.record.Message.ExpiresAt = noon.Add(24 * time.Hour)
	l.now = noon.Add(90 * time.Minute)
	l.claimed(t, nil, nil)
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	if found := l.verified(t); len(found) > 0 {
		t.Errorf("completing a message: got %+v", found)
	}
}

// TestTheRouteOfAnHourIsDerived: the time of receipt decides, not that of the claim.
func TestTheRouteOfAnHourIsDerived(t *testing.T) {
	t.Parallel()
	l, _ := lifeOf(t, func(r *decide.Routing) {
		office := r.Routes[0]
		office.Name, office.Match.Hours = "office", config.Hours{{Days: 127, From: 480, To: 1080}}
		r.Routes = []decide.Route{office, r.Routes[0]}
	})
	l.claimed(t, jobOf("m-1", 1), nil)
	l.answer(provider.Result{Outcome: provider.Accepted, Reference: "r"})
	if found := l.verified(t); len(found) > 0 || l.record.Message.Plan.Route != "office" {
		t.Fatalf("route %s: %+v", l.record.Message.Plan.Route, found)
	}
	l.record.Message.ReceivedAt = noon.Add(-8 * time.Hour) // before office hours
	if found := l.verified(t); len(found) != 1 || found[0].What != whatRoute ||
		found[0].Derived != "default" {
		t.Errorf("got %+v", found)
	}
}
