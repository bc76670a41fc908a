package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestAChangeIsRefusedWhenAnotherIsAppliedMeanwhile: another version is applied after the
// command has read the routing and before it applies its own. The change is refused without
// --expect-version, too.
func TestAChangeIsRefusedWhenAnotherIsAppliedMeanwhile(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	ch, err := control.Begin(t.Context(), l, nil, control.By{Reason: "mine", Author: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	ownEdit := strings.Replace(testRouting, "b: 15", "b: 5", 1)
	_, err = ch.Make(t.Context(), func() (*config.Document, error) {
		otherEdit := strings.Replace(testRouting, "a: 25", "a: 40", 1)
		doc, err := config.ParseDocument("hers.yaml", []byte(otherEdit))
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Routing.Apply(t.Context(), app.NewRouting(doc, nil, "ann", "quicker", nil))
		if err != nil {
			t.Fatal(err)
		}
		return config.ParseDocument("mine.yaml", []byte(ownEdit))
	})
	err = inCommands(err)
	var coded *codedError
	if !errors.As(err, &coded) || coded.code != exitFailed ||
		!strings.Contains(err.Error(), `ann applied version 2`) {
		t.Errorf("got error %v", err)
	}
	if v := current(t, l); v.Version != 2 || strings.Contains(v.Document, "b: 5") {
		t.Errorf("got %+v", v)
	}
}

// TestAWindowThatIsOverLeavesAllOfItsLimit: the stored counters are those of the last window that
// was used.
func TestAWindowThatIsOverLeavesAllOfItsLimit(t *testing.T) {
	t.Parallel()
	doc, err := config.ParseRouting("r.yaml",
		[]byte(strings.Replace(testRouting, "a: {provider: sandbox,",
			"a: {provider: sandbox, limits: [{window: 1m, max: 5}],", 1)))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 10, 0, 30, 0, time.UTC)
	state := func(start time.Time) ledger.Present {
		return ledger.Present{
			Now: at,
			Channels: []ledger.ChannelState{{
				Name: "a",
				Gate: admission.Gate{Counters: []admission.Counter{{
					Limit: doc.Channels[0].Limits[0], Max: 5, Start: start, Granted: 5,
				}}},
			}},
		}
	}
	now := &status.Now{Channels: []status.Channel{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	for free, start := range map[int64]time.Time{
		5: at.Add(-time.Hour).Truncate(time.Minute), 0: at.Truncate(time.Minute),
	} {
		present := state(start)
		shown := now.Details(doc, &present)[0]
		if shown.Limits[0].Free.Units != free {
			t.Errorf("since %s: %+v", start, shown.Limits)
		}
	}
	shown := now.Details(doc, &ledger.Present{Now: at})[1]
	if shown.Name != "b" || shown.LastAssigned != nil {
		t.Errorf("got %+v, want Channel %v and no LastAssigned", shown, "b")
	}
}

// TestNoReasonHasAPhoneNumber: finance can read the reasons of versions, ramps and restarts.
func TestNoReasonHasAPhoneNumber(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	for _, args := range [][]string{
		{"weights", "set", "default", "a=40"},
		{"weights", "ramp", "default", "a=40", "--over", "1h", "--steps", "2"},
		{"weights", "ramp", "default", "--cancel"},
		{"channel", "drain", "a"},
		{"limits", "set", "a", "--window", "1s", "--restart"},
		{"pause", "--lane", "bulk"},
		{"cancel", "none"},
		{"ambiguous", "settle", "none", "--as", "final"},
		{"optouts", "add", "+447700900124"},
		{"erase", "--number", "+447700900124"},
		{"reconcile", "a", "--file", "none.csv"},
	} {
		got := dispatcher(t, "", env, append(args, "--author", "ann", "--reason",
			"asked by +44 7700 900-123")...)
		if got.code != exitUsage || !strings.Contains(got.err, "the reason has a phone number") ||
			strings.Contains(got.err, "7700") {
			t.Errorf("%v: got %+v, want exit code %d and why", args, got, exitUsage)
		}
	}
	if v := current(t, l); v.Version != 1 {
		t.Errorf("version %d is in force, want 1", v.Version)
	}
}
