package status

import (
	"strings"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
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
		Now: noon, Instances: 1, Paused: []string{"lane bulk", "tenant shop", `prefix "+263"`, `prefix "+1876"`},
		Trips: []GuardTrip{
			trip("calling_code", "263", "pause", 20*time.Minute, new(int64(7))),
			trip("tenant", "shop", "pause", time.Minute, nil), // an operator had paused it
			trip("tenant", "news", "warn", time.Minute, nil),
			trip("tenant", "bank", "warn", 3*time.Hour, nil),
			trip("prefix", "+1876", "pause", 20*time.Minute, new(int64(8))),
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
		`guard: prefix "+1876" was paused by a guard: 900 messages from 11:00 to 11:40 (UTC), usual are ` +
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

// TestASickChannelIsNamedWithItsCause: a share that is missed stands beside the cause, and a
// channel that carries what others do not is not a finding.
func TestASickChannelIsNamedWithItsCause(t *testing.T) {
	t.Parallel()
	channel := func(name string, carried float64) Channel {
		return Channel{
			Name: name, State: "enabled", Throttled: 1, answered: map[string]int64{},
			share: report.ShareNow{Agreed: 0.5, Carried: carried, Messages: 1000},
		}
	}
	for name, tc := range map[string]struct {
		change func(a *Channel)
		want   []string
	}{
		"no answers": {
			func(a *Channel) {
				a.Silent, a.answered["unknown"], a.answered["accepted"] = true, 50, 50
			},
			[]string{"a: 50 of 100 submits have no answer; it carries 10.00 %, agreed is 50.00 % of 1000 messages"},
		},
		"silent since a moment": {
			func(a *Channel) { a.Silent = true },
			[]string{
				"a: submissions have no answer in time; it carries 10.00 %, agreed is 50.00 % of 1000 messages",
			},
		},
		"no receipts": {
			func(a *Channel) { a.receipts, a.awaited = true, 20 },
			[]string{"a: none of 20 messages that it accepted more than a minute ago has a receipt; it " +
				"carries 10.00 %, agreed is 50.00 % of 1000 messages"},
		},
		"few accepted": {
			func(a *Channel) { a.receipts, a.awaited = true, 19 },
			[]string{
				"a: carries 10.00 %, agreed is 50.00 % of 1000 messages",
				"b: carries 90.00 %, agreed is 50.00 % of 1000 messages",
			},
		},
		"some receipts": {
			func(a *Channel) { a.receipts, a.awaited, a.receipted = true, 500, 1 },
			[]string{
				"a: carries 10.00 %, agreed is 50.00 % of 1000 messages",
				"b: carries 90.00 %, agreed is 50.00 % of 1000 messages",
			},
		},
		"no receipts are expected": {
			func(a *Channel) { a.awaited, a.share.Carried = 500, 0.5 },
			[]string{"b: carries 90.00 %, agreed is 50.00 % of 1000 messages"},
		},
	} {
		n := &Now{Channels: []Channel{channel("a", 0.1), channel("b", 0.9)}}
		tc.change(&n.Channels[0])
		var got []string
		for _, f := range n.findChannels() {
			got = append(got, strings.TrimPrefix(f.Check, "traffic of ")+": "+f.Detail)
		}
		if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		}
	}
}

// TestAnOldRoutingIsAFindingAfterTheNextReport: right after a change the last reports name the
// version before.
func TestAnOldRoutingIsAFindingAfterTheNextReport(t *testing.T) {
	t.Parallel()
	for ago, want := range map[time.Duration]int{time.Second: 0, 7 * time.Second: 1} {
		n := &Now{
			Now: noon, applied: noon.Add(-ago), deadAfter: 6 * time.Second, Instances: 2,
			RoutingVersion: 3,
			Processes:      []Process{{Instance: 1, RoutingVersion: 2}, {Instance: 2, RoutingVersion: 3}},
		}
		if found := n.find(); len(found) != want {
			t.Errorf("%s after the change: got %+v", ago, found)
		}
	}
}
