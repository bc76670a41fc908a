package admission_test

import (
	"testing"
	"time"

	"dispatcher/admission"
)

// noon lies inside every kind of window except the second, which it begins.
var noon = time.Date(2026, 11, 21, 12, 30, 30, 0, time.UTC)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// moment is a Moment with a commit latency of zero.
func moment(now time.Time) *admission.Moment {
	return &admission.Moment{Now: now, Earliest: now, Zone: time.UTC}
}

// full returns an account at its full rate, rolled to now.
func full(limit admission.Limit, now time.Time) []admission.Account {
	c := &admission.Counter{Limit: limit}
	c.Roll(now, time.UTC)
	return []admission.Account{{Counter: c, Rate: 1}}
}

// roll moves every account to now.
func roll(accounts []admission.Account, now time.Time, z *time.Location) {
	moveOn(accounts, &admission.Moment{Now: now, Earliest: now, Zone: z})
}

// moveOn moves every account to where a decision at that moment takes slots.
func moveOn(accounts []admission.Account, m *admission.Moment) {
	for i := range accounts {
		m.Roll(accounts[i].Counter)
	}
}

// take admits a message where it fits and returns that place.
func take(m *admission.Moment, accounts []admission.Account, n *admission.Need) (admission.Release, *admission.Exclusion) {
	r, e := admission.Fit(m, accounts, n)
	if e == nil {
		admission.Take(m, accounts, n, r)
	}
	return r, e
}

// leaves returns the earliest time at which an attempt may leave.
func leaves(m *admission.Moment, r admission.Release) time.Time {
	if r.At.After(m.Earliest) {
		return r.At
	}
	return m.Earliest
}
