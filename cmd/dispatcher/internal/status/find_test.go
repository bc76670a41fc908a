package status

import (
	"strings"
	"testing"
	"time"

	"dispatcher/admission"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// TestAPauseByAGuardIsShownWithItsFigures: other pauses have none. A trip that paused nothing is
// shown for some time.
func TestAPauseByAGuardIsShownWithItsFigures(t *testing.T) {
	t.Parallel()
	trip := func(per, subject, action string, ago time.Duration, version *int64) GuardTrip {
		return GuardTrip{
			At: noon.Add(-ago), Per: per, Subject: subject, Action: action,
			Hour: noon.Add(-ago).Truncate(time.Hour), Seen: 900, Usual: 7.25, Days: 4, Version: version,
		}
	}
	s := &Now{
		Now: noon, Instances: 1, Paused: []string{"lane bulk", "tenant shop", `prefix "+263"`},
		Trips: []GuardTrip{
			trip("calling_code", "263", "pause", 20*time.Minute, new(int64(7))),
			trip("tenant", "shop", "pause", time.Minute, nil), // an operator had paused it
			trip("tenant", "news", "warn", time.Minute, nil),
			trip("tenant", "bank", "warn", 3*time.Hour, nil),
			trip("calling_code", "44", "pause", time.Hour, new(int64(6))), // resumed since
		},
	}
	var got []string
	for _, f := range s.find() {
		got = append(got, f.Check+": "+f.Detail)
	}
	want := []string{
		"pause: lane bulk is paused", "pause: tenant shop is paused",
		`guard: prefix "+263" was paused by a guard: 900 messages from 11:00 to 11:40 (UTC), usual are ` +
			"7.2 in that hour (4 days)",
		"guard: tenant news has far more messages than usual: 900 messages from 11:00 to 11:59 (UTC), " +
			"usual are 7.2 in that hour (4 days)",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestBudgetsAreShownWhileThereAreFew: budgets without a top-up are shown only while messages wait
// for them.
func TestBudgetsAreShownWhileThereAreFew(t *testing.T) {
	t.Parallel()
	budget := func(tenant string, level admission.Level, used, of, waiting int64) Budget {
		b := Budget{
			Currency: "GBP", Used: Quantity{used, true}, ToppedUp: Quantity{of, true}, Level: level,
			Waiting: waiting, Key: admission.Key{
				Scope: admission.Scope{Tenant: tenant}, Window: admission.Prepaid, Unit: admission.Money,
			},
		}
		if of > 0 {
			share := float64(used) / float64(of)
			b.UsedShare = &share
		}
		return b
	}
	budgets := []Budget{
		budget("a", admission.Spent, 5e6, 5e6, 2), budget("b", admission.Low, 4e6, 5e6, 0),
		budget("c", admission.Enough, 1e6, 5e6, 0), budget("d", admission.Unpaid, 0, 0, 1),
		budget("e", admission.Unpaid, 0, 0, 0),
	}
	for range 4 {
		budgets = append(budgets, budget("f", admission.Low, 4e6, 5e6, 0))
	}
	found := findBudgets(budgets)
	want := []string{
		"5.00 of 5.00 GBP are used (100.00 %), and 2 messages wait for it",
		"4.00 of 5.00 GBP are used (80.00 %)", "nothing was topped up, and 1 message waits for it",
		"4.00 of 5.00 GBP are used (80.00 %)", "4.00 of 5.00 GBP are used (80.00 %)",
		"2 more are low or spent",
	}
	if len(found) != len(want) {
		t.Fatalf("got %+v", found)
	}
	for i := range want {
		if found[i].Detail != want[i] {
			t.Errorf("%q, want %q", found[i].Detail, want[i])
		}
	}
}
