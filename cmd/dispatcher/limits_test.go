package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// limitedRouting has limits of every kind.
var limitedRouting = strings.NewReplacer(
	`a: {provider: sandbox, capacity: 100, price: {currency: GBP, default: "0.031"}}`, `a:
    provider: sandbox
    admission: {policy: curve, curve_factor: 0.5}
    active: {max: 5, until: receipt}
    limits: [{window: 1s, max: 100, sliding: true, burst: 20}, `+
		`{window: 1h, max: 1000, reserve: {otp: 20%}}, {window: 1d, max: "2.50", unit: money}, `+
		`{window: 1d, max: 50, tenant: shop}]
    capacity: 100
    price: {currency: GBP, default: "0.031"}`,
	"routes:",
	"limits: # over all\n  - {window: 1d, max: \"250.00\", unit: money, currency: GBP, tenant: "+
		"shop} # their budget\nroutes:",
).Replace(testRouting)

// limitedBy returns a database with limitedRouting as version 2.
func limitedBy(t *testing.T) (l *ledger.Ledger, env []string) {
	t.Helper()
	tier.OneWindow(t, time.Hour)
	l, env = seeded(t)
	applyRouting(t, env, write(t, "limits.yaml", limitedRouting))
	return l, env
}

func TestLimitsShowHasTheSettingsOfEachLimit(t *testing.T) {
	t.Parallel()
	_, env := limitedBy(t)
	now := decoded[status.Limits](t, dispatcher(t, "", env, "limits", "show", "--format", "json"))
	if now.Version != 2 || len(now.Channels) != 3 || len(now.Limits) != 1 ||
		now.Timezone != "Europe/London" {
		t.Fatalf("got %+v, want Version %v, %d in Channels, %d in Limits and Timezone %v",
			now, 2, 3, 1, "Europe/London")
	}
	a := now.Channels[0]
	if a.Policy != "curve" || *a.CurveFactor != 0.5 || *a.ActiveMax != 5 ||
		a.ActiveUntil != "receipt" || a.HoldSeconds != 600 || a.Rate != 1 || len(a.Limits) != 4 {
		t.Errorf("got %+v", a)
	}
	l := a.Limits[0]
	if !l.Sliding || *l.Burst != 20 || *l.Sustained != 81 || l.Effective.Units != 100 ||
		l.Free.Units != 20 || !l.NextPlace.Equal(now.Now) {
		t.Errorf("got %+v", l)
	}
	l = a.Limits[1]
	if l.Reserved.Units != 200 || l.Reserve["otp"] != 20 || l.Effective.Units != 1000 ||
		l.Burst != nil || l.NextPlace != nil {
		t.Errorf("got %+v", l)
	}
	if b := now.Channels[1]; b.ActiveMax != nil {
		t.Errorf("got %+v, want no ActiveMax", b)
	}
	l = now.Limits[0]
	if l.Scope != "tenant:shop" || l.Max != (status.Quantity{Units: 250_000_000, Money: true}) || l.Currency != "GBP" ||
		l.Unit != "money" {
		t.Errorf("got %+v", l)
	}
	one := dispatcher(t, "", env, "limits", "show", "a", "--format", "csv")
	lines := strings.Split(strings.TrimSpace(one.out), "\n")
	if len(lines) != 5 ||
		!strings.HasPrefix(lines[3], "a,channel,1d,money,GBP,2.50,2.50,2.50,0.00,2.50,0.00,0,,") {
		t.Errorf("got %+v", one)
	}
	for column, want := range map[string]string{
		"curve_factor": "0.5", "active_until": "receipt", "hold_seconds": "600",
		"reserve": "otp 20%", "burst": "", "active_max": "5", "rate": "1",
	} {
		lines := strings.Split(one.out, "\n")
		at := slices.Index(strings.Split(lines[0], ","), column)
		if at < 0 || strings.Split(lines[2], ",")[at] != want {
			t.Errorf("%s is not %s in %s", column, want, one.out)
		}
	}
	table := dispatcher(t, "", env, "limits", "show").out
	for _, want := range []string{
		"curve 0.5", "0 of 5 until receipt", "1d GBP tenant:shop", "burst 20, then 81",
		"messages, 20 %", "(all)", "Europe/London", "Nobody waits.",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
	got := dispatcher(t, "", env, "limits", "show", "x")
	if got.code != exitUsage ||
		!strings.Contains(got.err, `there is no channel "x"; choose one of a, b, c`) {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitUsage, `there is no channel "x"; choose one of a, b, c`)
	}
}

// TestLimitsNowAreThoseOfTheRunningWindow: with the rate and the pause after throttling, and the
// number of messages that wait for each limit.
func TestLimitsNowAreThoseOfTheRunningWindow(t *testing.T) {
	t.Parallel()
	doc, err := config.ParseRouting("r.yaml", []byte(limitedRouting))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 7, 21, 10, 30, 0, 0, time.UTC) // summer time
	soon := now.Add(7 * time.Second)
	today := time.Date(2026, 7, 20, 23, 0, 0, 0, time.UTC)
	limits := doc.Channels[0].Limits
	bare := func(l admission.Limit) admission.Limit { // as it is in the row
		l.Sliding, l.Burst, l.Reserve = false, 0, nil
		return l
	}
	present := &ledger.Present{
		Now: now,
		Channels: []ledger.ChannelState{{Name: "a", Gate: admission.Gate{
			Active: admission.Active{Max: 5, Count: 5},
			Ease: admission.Ease{
				Rate: 0.25, Since: now.Add(-time.Second), Until: now.Add(time.Minute),
			},
			Counters: []admission.Counter{
				// The first window ended long ago. The max of the third was lowered since.
				{Limit: bare(limits[0]), Max: 100, Start: now.Add(-time.Minute), Granted: 90},
				{
					Limit: bare(limits[1]), Max: 1000, Start: now.Truncate(time.Hour), Granted: 400,
					Taken: map[string]int64{"lane:otp": 50},
				},
				{Limit: bare(limits[2]), Max: 3_000_000, Start: today, Granted: 3_000_000},
			},
		}}},
		Scoped: []ledger.ScopeState{
			{
				ScopeRef: ledger.ScopeRef{Scope: admission.Scope{Tenant: "shop"}},
				Counters: []admission.Counter{
					{Limit: doc.Limits[0], Max: doc.Limits[0].Max, Start: today, Granted: 31_000},
				},
			},
			{
				ScopeRef: ledger.ScopeRef{Channel: "a", Scope: admission.Scope{Tenant: "shop"}},
				Counters: []admission.Counter{
					{Limit: limits[3], Max: 50, Start: today, Granted: 7},
				},
			},
		},
		Waiting: []ledger.Waiters{
			{On: "a", Reason: "no_active", Messages: 4, Next: soon},
			{
				On: "a tenant:shop 1d messages", Reason: "tenant_limit", Messages: 2,
				Next: soon.Add(24 * time.Hour),
			},
			{On: "tenant:shop 1d money", Reason: "no_budget", Messages: 9, Next: soon},
			{Reason: "no_route", Messages: 1, Next: soon},
			{On: "b 1s messages", Reason: "no_slot", Messages: 3, Next: soon},
		},
	}
	shown := status.NewLimits(2, doc, present, nil)
	a := shown.Channels[0]
	if a.Rate < 0.299 || a.Rate > 0.301 || !a.PausedUntil.Equal(now.Add(time.Minute)) ||
		a.Active != 5 || a.Waiting != 6 || shown.WaitingForOthers != 1 {
		t.Errorf("got %+v", a)
	}
	type figures struct{ Max, Configured, Granted, Free, Reserved, Waiting int64 }
	of := func(l status.Limit) figures {
		return figures{
			l.Max.Units, l.ConfiguredMax.Units, l.Granted.Units, l.Free.Units, l.Reserved.Units,
			l.Waiting,
		}
	}
	for i, want := range []figures{
		{100, 100, 0, 0, 0, 0}, // nothing is sent during the pause
		{1000, 1000, 400, 0, 150, 0},
		{3_000_000, 2_500_000, 3_000_000, 0, 0, 0},
		{50, 50, 7, 0, 0, 2},
	} {
		if diff := cmp.Diff(want, of(a.Limits[i])); diff != "" {
			t.Errorf("limit %d: %s", i, diff)
		}
	}
	diff := cmp.Diff(figures{250_000_000, 250_000_000, 31_000, 249_969_000, 0, 9},
		of(shown.Limits[0]))
	if diff != "" {
		t.Error(diff)
	}
	if a.Limits[0].Effective.Units != 0 || a.Limits[1].Effective.Units != 0 ||
		!a.Limits[0].NextPlace.Equal(now.Add(time.Minute)) {
		t.Errorf("got %+v", a.Limits)
	}
	ends := a.Limits[2]
	if !ends.NextWindow.Equal(today.Add(24*time.Hour)) || ends.Ends != "22 Jul 00:00" ||
		a.Limits[1].Ends != "12:00:00" {
		t.Errorf("got %+v", ends)
	}
	var table strings.Builder
	channelLimitSheet(shown).draw(&table)
	limitSheet(shown, formatTable).draw(&table)
	waiterSheet(shown).draw(&table)
	for _, want := range []string{
		"at 2026-07-21 11:30:00, times in Europe/London", "30.00 %", "5 of 5 until receipt, full",
		"11:31:00", "100, now 0", "3.00, then",
		"9  tenant:shop 1d money", "budget of the running window spent", "none in particular",
		"its route is no longer part of", "11:30:07", "22 Jul 11:30:07",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is missing in\n%s", want, table.String())
		}
	}
}

// TestLimitsShowTheTenantsOfALimitOfEach: each tenant that has sent something has a line below the
// limit.
func TestLimitsShowTheTenantsOfALimitOfEach(t *testing.T) {
	t.Parallel()
	doc, err := config.ParseRouting("r.yaml", []byte(`channels: {a: {provider: sandbox}}
routes: [{name: r, weights: {a: 1}}]
limits:
  - {window: 1d, max: 5, tenant: "*"}
  - {window: 1d, max: 50, tenant: bank}
`))
	if err != nil {
		t.Fatal(err)
	}
	present := &ledger.Present{Now: time.Date(2026, 7, 21, 10, 30, 0, 0, time.UTC)}
	for tenant, granted := range map[string]int64{"*": 0, "bank": 7, "shop": 4} {
		c := admission.Counter{
			Limit: doc.Limits[0].Own(tenant), Max: 5, Granted: granted,
			Start: time.Date(2026, 7, 21, 0, 0, 0, 0, time.UTC),
		}
		present.Scoped = append(present.Scoped, ledger.ScopeState{
			ScopeRef: ledger.ScopeRef{Scope: c.Scope}, Counters: []admission.Counter{c},
		})
	}
	var got []string
	for _, l := range status.NewLimits(2, doc, present, nil).Limits {
		got = append(got, fmt.Sprintf("%s %d of %d", l.Scope, l.Granted.Units, l.ConfiguredMax.Units))
	}
	want := []string{"tenant:* 0 of 5", "tenant:shop 4 of 5", "tenant:bank 7 of 50"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAWaitingMessageIsCountedOnceAtTheLimitThatStopsIt: with the reason and the time until which
// it waits. With a channel argument, only messages for that channel are counted.
func TestAWaitingMessageIsCountedOnceAtTheLimitThatStopsIt(t *testing.T) {
	t.Parallel()
	soon := time.Date(2026, 7, 21, 10, 30, 7, 0, time.UTC)
	n := &status.Counters{Zone: time.UTC, Present: &ledger.Present{Waiting: []ledger.Waiters{
		{On: "", Reason: "no_route", Messages: 1, Next: soon},
		{On: "a", Reason: "no_active", Messages: 4, Next: soon},
		{On: "a 1s messages", Reason: "no_slot", Messages: 5, Next: soon},
		{On: "a 1s messages", Reason: "no_share", Messages: 2, Next: soon},
		{On: "ab 1s messages", Reason: "no_slot", Messages: 7, Next: soon},
	}}}
	if n.WaitingFor("a 1s messages") != 7 || n.WaitingFor("a 1m messages") != 0 || n.WaitingFor("a") != 4 ||
		n.WaitingOn("a") != 11 {
		t.Error("counted at another limit than the one that it waits for")
	}
	want := []status.Waiters{
		{On: "a 1s messages", Reason: "no_slot", Messages: 5, Next: soon},
		{On: "a", Reason: "no_active", Messages: 4, Next: soon},
		{On: "a 1s messages", Reason: "no_share", Messages: 2, Next: soon},
	}
	if diff := cmp.Diff(want, n.Waiters([]string{"a"})); diff != "" {
		t.Error(diff)
	}
	all := n.Waiters(nil)
	if len(all) != 5 || all[0].On != "ab 1s messages" || all[4].Reason != "no_route" {
		t.Errorf("got %+v", all)
	}
}

// TestWaitersForALimitOfZeroAreShown: the limit was never used, so it has no row.
func TestWaitersForALimitOfZeroAreShown(t *testing.T) {
	t.Parallel()
	doc, err := config.ParseRouting("r.yaml",
		[]byte(strings.Replace(limitedRouting, "{window: 1h, max: 1000,", "{window: 1h, max: 0,",
			1)))
	if err != nil {
		t.Fatal(err)
	}
	present := &ledger.Present{
		Now: time.Now(),
		Waiting: []ledger.Waiters{
			{On: "a 1h messages", Reason: "no_slot", Messages: 2},
			{On: "a 1s messages", Reason: "no_slot", Messages: 1},
		},
	}
	var table strings.Builder
	waiterSheet(status.NewLimits(2, doc, present, nil)).draw(&table)
	if strings.Count(table.String(), "this limit is 0, so nothing passes it") != 1 ||
		!strings.Contains(table.String(), "sending limit of the running window used up") {
		t.Error(table.String())
	}
}

// TestFreeOfASlidingLimitIsWhatCouldBeTakenNow: exactly as many slots as are shown free can be
// taken at once; one more gets the next release time.
func TestFreeOfASlidingLimitIsWhatCouldBeTakenNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 21, 10, 30, 10, 0, time.UTC)
	l := admission.Limit{Window: admission.Minute, Max: 60, Sliding: true, Burst: 10}
	fits := func(c *admission.Counter, at time.Time) bool {
		m := &admission.Moment{Now: at, Earliest: at, Zone: time.UTC}
		account := []admission.Account{{Counter: c, Rate: 1}}
		release, exclusion := admission.Fit(m, account, &admission.Need{})
		if exclusion != nil || release.At.Sub(at) > time.Millisecond {
			return false
		}
		admission.Take(m, account, &admission.Need{}, release)
		return true
	}
	for taken := range 11 {
		c := admission.Counter{Limit: l}
		c.Roll(now, time.UTC)
		for range taken {
			fits(&c, now)
		}
		stored := c
		stored.Limit = admission.Limit{Window: l.Window, Max: l.Max}
		n := &status.Counters{
			Present: &ledger.Present{
				Now: now,
				Channels: []ledger.ChannelState{
					{Name: "a", Gate: admission.Gate{Counters: []admission.Counter{stored}}},
				},
			},
			Zone: time.UTC,
		}
		shown := n.Limit("a", &l, admission.Ease{})
		more := 0
		for fits(&c, now) {
			more++
		}
		if int(shown.Free.Units) != more || more != 10-taken || *shown.Sustained != 51 {
			t.Errorf("%d taken: %s shown free, but %d can be taken", taken, shown.Free, more)
		}
		if taken < 10 {
			if !shown.NextPlace.Equal(now) {
				t.Errorf("%d taken: next at %s", taken, shown.NextPlace)
			}
			continue
		}
		if !shown.NextPlace.After(now) || fits(&c, shown.NextPlace.Add(-2*time.Millisecond)) ||
			!fits(&c, *shown.NextPlace) {
			t.Errorf("unexpected next release time, not %s", shown.NextPlace)
		}
	}
	closed := l
	closed.Max, closed.Burst = 0, 0
	n := &status.Counters{Present: &ledger.Present{Now: now}, Zone: time.UTC}
	shown := n.Limit("a", &closed, admission.Ease{})
	if shown.NextPlace != nil || shown.Free.Units != 0 || shown.Burst != nil {
		t.Errorf("got %+v, want no NextPlace, Free.Units %v and no Burst", shown, 0)
	}
}

// TestAnUntouchedSlidingLimitShowsItsBurstAtAnyTime: also when its window is about to end.
func TestAnUntouchedSlidingLimitShowsItsBurstAtAnyTime(t *testing.T) {
	t.Parallel()
	l := admission.Limit{Window: admission.Second, Max: 100, Sliding: true, Burst: 20}
	for millisecond := range 1000 {
		now := time.Date(2026, 7, 21, 10, 30, 0, 0,
			time.UTC).Add(time.Duration(millisecond) * time.Millisecond)
		c := admission.Counter{Limit: admission.Limit{Window: l.Window, Max: l.Max}, Max: l.Max}
		c.Roll(now, time.UTC)
		n := &status.Counters{
			Present: &ledger.Present{
				Now: now,
				Channels: []ledger.ChannelState{
					{Name: "a", Gate: admission.Gate{Counters: []admission.Counter{c}}},
				},
			},
			Zone: time.UTC,
		}
		shown := n.Limit("a", &l, admission.Ease{})
		if shown.Free.Units != 20 || !shown.NextPlace.Equal(now) {
			t.Errorf("at %d ms: %s free, next at %s", millisecond, shown.Free, shown.NextPlace)
		}
	}
}

// TestFreeFollowsTheRateThatIsLeft: while the rate is reduced, fewer slots are free.
func TestFreeFollowsTheRateThatIsLeft(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 21, 10, 30, 0, 0, time.UTC)
	n := &status.Counters{Zone: time.UTC, Present: &ledger.Present{
		Now: now,
		Channels: []ledger.ChannelState{{
			Name: "a",
			Gate: admission.Gate{Counters: []admission.Counter{
				{
					Limit: admission.Limit{Window: admission.Second, Max: 40}, Max: 40, Start: now,
					Granted: 5,
				},
			}},
		}},
	}}
	ease := admission.Ease{Rate: 0.5, Since: now}
	for window, want := range map[admission.Window]string{
		admission.Second: "20 15", admission.Minute: "40 40",
	} {
		l := n.Limit("a", &admission.Limit{Window: window, Max: 40}, ease)
		if got := fmt.Sprint(l.Effective, " ", l.Free); got != want {
			t.Errorf("%s: %s, want %s", window, got, want)
		}
	}
}

func TestLimitsSetChangesOneFigureOfTheDocument(t *testing.T) {
	t.Parallel()
	l, env := limitedBy(t)
	set := func(args ...string) control.Changed {
		t.Helper()
		got := dispatcher(t, "", env,
			withReason("as agreed",
				append([]string{"limits", "set", "--format", "json"}, args...)...)...)
		if got.code != exitOK {
			t.Fatalf("%v: got %+v, want exit code %d", args, got, exitOK)
		}
		return decoded[control.Changed](t, got)
	}
	for _, step := range []struct {
		args     []string
		old, now string // in the document
	}{
		{[]string{"a", "--window", "1s", "--max", "80"}, "max: 100, sliding", "max: 80, sliding"},
		{
			[]string{"a", "--window", "24h", "--tenant", "shop", "--max", "60"},
			"max: 50, tenant",
			"max: 60, tenant",
		},
		{
			[]string{"a", "--window", "1d", "--unit", "money", "--max", "3"},
			`max: "2.50"`,
			`max: "3.00"`,
		},
		{
			[]string{
				"--all-channels", "--window", "1d", "--unit", "money", "--tenant", "shop",
				"--max", "199.95",
			},
			`max: "250.00"`, `max: "199.95"`,
		},
		{
			[]string{"b", "--window", "1m", "--unit", "segments", "--max", "600"},
			"b: {provider: sandbox, ",
			"b: {provider: sandbox, limits: [{window: 1m, max: 600, unit: segments}], ",
		},
		{
			[]string{
				"--all-channels", "--window", "1h", "--prefix", "+44", "--unit", "money",
				"--currency", "GBP", "--max", "7",
			},
			"# their budget\n",
			"# their budget\n  - {window: 1h, max: 7.00, unit: money, currency: GBP, prefix: " +
				"\"+44\"}\n",
		},
		{
			[]string{"a", "--window", "1d", "--tenant", "shop", "--remove"},
			", {window: 1d, max: 60, tenant: shop}", "",
		},
	} {
		before := current(t, l)
		done := set(append(step.args, "--expect-version", fmt.Sprint(before.Version))...)
		v := current(t, l)
		want := strings.Replace(before.Document, step.old, step.now, 1)
		if v.Document != want || !done.Applied || v.Reason != "as agreed" || v.Author != "ann" {
			t.Errorf("%v: got %s", step.args, cmp.Diff(want, v.Document))
		}
	}
	if done := set("a", "--window", "1s", "--max", "80"); done.Applied || len(done.Warnings) != 0 {
		t.Errorf("got %+v, want no Applied and %d in Warnings", done, 0)
	}
}

func TestLimitsSetWarnsOfWhatNothingPasses(t *testing.T) {
	t.Parallel()
	l, env := limitedBy(t)
	claimed(t, l, drawn("m-1", 17, "b"))
	set := func(args ...string) []string {
		t.Helper()
		got := dispatcher(t, "", env,
			withReason("closed",
				append([]string{"limits", "set", "--max", "0", "--format", "json"}, args...)...)...)
		if got.code != exitOK {
			t.Fatalf("%v: got %+v, want exit code %d", args, got, exitOK)
		}
		return decoded[control.Changed](t, got).Warnings
	}
	for _, step := range []struct {
		args []string
		want []string
	}{
		{
			[]string{"a", "--window", "1d", "--tenant", "x"},
			[]string{"Messages of tenant x find no room on channel a: they go to others or wait."},
		},
		{
			[]string{"--all-channels", "--window", "1s", "--prefix", "+44"},
			[]string{
				"Messages to +44 wait until the limit is raised, or they expire: it stands over " +
					"all channels.",
			},
		},
		{[]string{"a", "--window", "1s"}, []string{}},
		{[]string{"b", "--window", "1m"}, []string{}},
		{
			[]string{"c", "--window", "1d"},
			[]string{
				"Route default has no channel left that takes messages: they wait until one does.",
			},
		},
	} {
		if diff := cmp.Diff(step.want, set(step.args...)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", step.args, diff)
		}
	}
}

// TestALoweredLimitSaysWhatItsWindowHasGranted: if that is above the new max, the limit grants
// nothing until the window ends.
func TestALoweredLimitSaysWhatItsWindowHasGranted(t *testing.T) {
	t.Parallel()
	l, env := limitedBy(t)
	granted(t, l)
	got := dispatcher(t, "", env,
		withReason("less", "limits", "set", "a", "--window", "1h", "--max", "0")...)
	if got.code != exitOK ||
		!strings.Contains(got.out,
			"The running window of a 1h messages has granted 1 messages already: it takes no") {
		t.Errorf("got %+v, want exit code %d and %q in the output",
			got, exitOK, "The running window of a 1h messages has granted 1 messages already: it takes no")
	}
	now := decoded[status.Limits](t, dispatcher(t, "", env, "limits", "show", "a", "--format", "json"))
	hour := now.Channels[0].Limits[1]
	if hour.ConfiguredMax.Units != 0 || hour.Free.Units != 0 ||
		hour.Granted.Units > hour.Max.Units {
		t.Errorf("got %+v", hour)
	}
}

func TestLimitsSetSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, env := limitedBy(t)
	for want, args := range map[string][]string{
		"name a channel, or write --all-channels": {
			"--window", "1s", "--max", "5",
		},
		"CHANNEL and --all-channels exclude each other": {
			"a", "--all-channels", "--window", "1s", "--max", "5",
		},
		"--window is missing": {"a", "--max", "5"},
		"--tenant is empty: write its value, or leave the flag out": {
			"a", "--window", "1s", "--max", "5", "--tenant", "",
		},
		"--prefix is empty": {
			"--all-channels", "--window", "1s", "--max", "5", "--prefix", "",
		},
		"--window is empty": {
			"a", "--window", "", "--max", "5",
		},
		"--currency is missing: write --currency GBP": {
			"--all-channels", "--tenant", "x", "--window", "1d", "--unit", "money", "--max", "5",
		},
		"write --window 1d": {
			"a", "--unit", "money", "--window", "1s", "--max", "5",
		},
		`--window: window "2s" is none of 1s, 1m, 1h, 1d`: {
			"a", "--window", "2s", "--max", "5",
		},
		`--unit: unit "parts" is none of`: {
			"a", "--window", "1s", "--unit", "parts", "--max", "5",
		},
		"--max is missing": {"a", "--window", "1s"},
		`--max: "many" is not a whole number from 0`: {
			"a", "--window", "1s", "--max", "many",
		},
		`--max: "0.0000001" has more than six decimals`: {
			"a", "--window", "1d", "--unit", "money", "--max", "0.0000001",
		},
		"--remove and --max exclude each other": {
			"a", "--window", "1s", "--max", "5", "--remove",
		},
		"--tenant and --prefix exclude each other": {
			"a", "--window", "1s", "--max", "5", "--tenant", "x", "--prefix", "+44",
		},
		`--prefix: it does not begin a number`: {
			"a", "--window", "1s", "--max", "5", "--prefix", "44",
		},
		"add --tenant or --prefix": {
			"--all-channels", "--window", "1s", "--max", "5",
		},
		"--currency is for limits in money": {
			"a", "--window", "1s", "--max", "5", "--currency", "GBP",
		},
		`there is no channel "x"; choose one of a, b, c`: {
			"x", "--window", "1s", "--max", "5",
		},
		"there is no limit of messages per 1m on channel a; there": {
			"a", "--window", "1m", "--remove",
		},
		"dispatcher: there is no limit of messages per 1m on channel a; there are --window 1s; " +
			"--window 1h; --window 1d --unit money; --window 1d --tenant shop\n": {
			"a", "--window", "1m", "--remove",
		},
		"dispatcher: there is no limit of segments per 1m on channel b; there is none " +
			"there\n": {"b", "--window", "1m", "--unit", "segments", "--remove"},
		"dispatcher: there is no limit of messages per 1d (tenant:shop) over all channels; there " +
			"are --window 1d --unit money --tenant shop\n": {
			"--all-channels", "--window", "1d", "--tenant", "shop", "--remove",
		},
		"dispatcher: on route default a message of 10 segments would never pass channel a, which " +
			"takes 5 segments per 1s; give the route max_segments: 5 or choose a higher --max": {
			"a", "--window", "1s", "--unit", "segments", "--max", "5",
		},
		"the limit of money per 1d is in GBP, not in EUR": {
			"a", "--window", "1d", "--unit", "money", "--currency", "EUR", "--max", "5",
		},
	} {
		got := dispatcher(t, "", env,
			withReason("x", append([]string{"limits", "set"}, args...)...)...)
		if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
		if strings.HasPrefix(got.err, "dispatcher: --") &&
			!strings.Contains(got.err, "Usage: dispatcher limits set CHANNEL") {
			t.Errorf("%v: no usage line in %s", args, got.err)
		}
	}
	got := dispatcher(t, "", env, "limits", "set", "a", "--window", "1s", "--max", "5")
	if got.code != exitUsage || !strings.Contains(got.err, "--reason is missing") ||
		!strings.Contains(got.err, "--reason TEXT") {
		t.Errorf("got %+v, want exit code %d, %q in the error and %q in the error",
			got, exitUsage, "--reason is missing", "--reason TEXT")
	}
	got = dispatcher(t, "", nil, "limits")
	if got.code != exitUsage || !strings.Contains(got.err, "name what to do: history, set, show") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitUsage, "name what to do: history, set, show")
	}
}

func TestLimitsHistoryShowsWhoChangedOneLimitAndWhy(t *testing.T) {
	t.Parallel()
	_, env := limitedBy(t)
	for _, args := range [][]string{
		{"limits", "set", "a", "--window", "1s", "--max", "80"},
		{"weights", "set", "default", "a=30"},
		{"limits", "set", "a", "--window", "1d", "--tenant", "shop", "--max", "60"},
		{"limits", "set", "a", "--window", "1s", "--max", "120"},
		{"limits", "set", "a", "--window", "1s", "--remove"},
	} {
		got := dispatcher(t, "", env, withReason(strings.Join(args, " "), args...)...)
		if got.code != exitOK {
			t.Fatalf("got %+v, want exit code %d", got, exitOK)
		}
	}
	type history struct {
		Changes []limitMove `json:"changes"`
	}
	lines := func(args ...string) []string {
		t.Helper()
		var out []string
		for _, m := range decoded[history](t,
			dispatcher(t, "", env,
				append([]string{"limits", "history", "--format", "json"}, args...)...)).Changes {
			out = append(out,
				fmt.Sprintf("%d %s %s %s %s %s %s: %s -> %s", m.Version, m.Author, m.Channel,
					m.Scope, m.Window, m.Unit, m.What, orEmpty(m.From), orEmpty(m.To)))
		}
		return out
	}
	want := []string{
		"7 ann a channel 1s messages max: 120 -> ",
		"7 ann a channel 1s messages sliding: true -> ",
		"7 ann a channel 1s messages burst: 20, then 101 per 1s -> ",
		"6 ann a channel 1s messages max: 80 -> 120",
		"3 ann a channel 1s messages max: 100 -> 80",
		"2 ann a channel 1s messages max:  -> 100",
		"2 ann a channel 1s messages sliding:  -> true",
		"2 ann a channel 1s messages burst:  -> 20, then 81 per 1s",
	}
	slices.Sort(want[:3])
	got := lines("a", "--window", "1s")
	slices.Sort(got[:3])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	diff := cmp.Diff([]string{"5 ann a tenant:shop 1d messages max: 50 -> 60"},
		lines("--tenant", "shop", "--limit", "1"))
	if diff != "" {
		t.Error(diff)
	}
	diff = cmp.Diff([]string{"2 ann  tenant:shop 1d money max:  -> 250.00 GBP"},
		lines("--all-channels"))
	if diff != "" {
		t.Error(diff)
	}
	login := loginOf(t, strings.TrimPrefix(env[0], "DISPATCHER_POSTGRES_URL="))
	for _, m := range decoded[history](t,
		dispatcher(t, "", env, "limits", "history", "--format", "json")).Changes {
		if m.Author == "ann" && m.Login != login {
			t.Errorf("the login of %+v is not %s", m, login)
		}
	}
	table := dispatcher(t, "", env, "limits", "history", "a", "--window", "1s")
	if !strings.Contains(table.out, "limits set a") ||
		!strings.Contains(table.out, "120, sliding") || !strings.Contains(table.out, "ann") ||
		strings.Contains(table.out, "weights set") {
		t.Errorf("got %+v", table)
	}
	for line := range strings.SplitSeq(table.out, "\n") {
		if utf8.RuneCountInString(line) > 100 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	none := dispatcher(t, "", env, "limits", "history", "b")
	if none.code != exitOK || none.out != "Such a limit never changed.\n" {
		t.Errorf("got %+v, want exit code %d and the output %q",
			none, exitOK, "Such a limit never changed.\n")
	}
	csv := dispatcher(t, "", env, "limits", "history", "b", "--format", "csv")
	if csv.out != "version,created_at,author,reason,channel,scope,window,unit,what,from,to,login,via\n" {
		t.Errorf("got %+v, want the output %q",
			csv, "version,created_at,author,reason,channel,scope,window,unit,what,from,to,login\n")
	}
	for _, flag := range []string{"--tenant", "--prefix", "--window", "--unit"} {
		got := dispatcher(t, "", env, "limits", "history", flag, "")
		if got.code != exitUsage || !strings.Contains(got.err, flag+" is empty") {
			t.Errorf("got %+v, want exit code %d and %q in the error", got, exitUsage, flag+" is empty")
		}
	}
	whole := []string{
		"2 ann a channel   admission: exact -> curve",
		"2 ann a channel   admission.curve_factor:  -> 0.5",
		"2 ann a channel   active.max:  -> 5", "2 ann a channel   active.until: submit -> receipt",
		"2 ann a channel   active.hold: 0s -> 10m",
	}
	all := lines("a")
	for _, want := range whole {
		if !slices.Contains(all, want) {
			t.Errorf("%q is not in %q", want, all)
		}
	}
	got = lines("a", "--unit", "messages")
	if slices.ContainsFunc(got,
		func(line string) bool { return strings.Contains(line, "active") }) {
		t.Errorf("got %q", got)
	}
	csv = dispatcher(t, "", env, "limits", "history", "--format", "csv")
	if !regexp.MustCompile(`\n7,\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^,]*Z,ann,`).MatchString(csv.out) {
		t.Errorf("got %+v", csv)
	}
	if got := dispatcher(t, "", env, "limits", "history", "--window", "2s"); got.code != exitUsage {
		t.Errorf("got %+v, want exit code %d", got, exitUsage)
	}
}
