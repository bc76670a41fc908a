package admission_test

import (
	"testing"
	"time"

	"dispatcher/admission"
)

// noon is a moment in the middle of every kind of window but the second, which it begins.
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

// moment is one whose decisions take no time to become durable.
func moment(now time.Time) *admission.Moment {
	return &admission.Moment{Now: now, Earliest: now, Zone: time.UTC}
}

// full is an account at its full rate, rolled to now.
func full(limit admission.Limit, now time.Time) []admission.Account {
	c := &admission.Counter{Limit: limit}
	c.Roll(now, time.UTC)
	return []admission.Account{{Counter: c, Rate: 1}}
}

// roll moves every account to now.
func roll(accounts []admission.Account, now time.Time, z *time.Location) {
	moveOn(accounts, &admission.Moment{Now: now, Earliest: now, Zone: z})
}

// moveOn moves every account on to where a decision at a moment takes slots.
func moveOn(accounts []admission.Account, m *admission.Moment) {
	for i := range accounts {
		m.Roll(accounts[i].Counter)
	}
}

// take admits a message where it fits, and reports where that is.
func take(m *admission.Moment, accounts []admission.Account, n *admission.Need) (admission.Release, *admission.Exclusion) {
	p, o := admission.Fit(m, accounts, n)
	if o == nil {
		admission.Take(m, accounts, n, p)
	}
	return p, o
}

// leaves is when an attempt may leave at the earliest.
func leaves(m *admission.Moment, p admission.Release) time.Time {
	if p.At.After(m.Earliest) {
		return p.At
	}
	return m.Earliest
}
