package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// limitedRouting has limits of every kind.
var limitedRouting = strings.NewReplacer(
	"a: {provider: sandbox,", "a: {provider: sandbox, admission: {policy: curve, curve_factor: 0.5}, active: {max: 5, until: receipt},\n"+
		"      limits: [{window: 1s, max: 100, sliding: true, burst: 20}, {window: 1h, max: 1000, reserve: {otp: 20%}}, {window: 1d, max: \"2.50\", unit: money}, {window: 1d, max: 50, tenant: shop}],",
	"routes:", "limits: # over all\n  - {window: 1d, max: \"250.00\", unit: money, currency: GBP, tenant: shop} # their budget\nroutes:",
).Replace(testRouting)

// limitedBy is a database with limitedRouting as version 2.
func limitedBy(t *testing.T) (l *ledger.Ledger, env []string) {
	t.Helper()
	l, env = seeded(t)
	if got := dispatcher(t, "", env, because("limits", "routing", "apply", write(t, "limits.yaml", limitedRouting))...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	return l, env
}

func TestLimitsShowTellsOfEachLimitWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	_, env := limitedBy(t)
	now := decoded[limitsNow](t, dispatcher(t, "", env, "limits", "show", "--format", "json"))
	if now.Version != 2 || len(now.Channels) != 3 || len(now.Limits) != 1 || now.Timezone != "Europe/London" {
		t.Fatalf("%+v", now)
	}
	a := now.Channels[0]
	if a.Policy != "curve" || *a.CurveFactor != 0.5 || a.ActiveMax != 5 || a.ActiveUntil != "receipt" || a.HoldSeconds != 600 || a.Rate != 1 || len(a.Limits) != 4 {
		t.Errorf("%+v", a)
	}
	if l := a.Limits[0]; !l.Sliding || l.Burst != 20 || *l.Effective != 100 || l.Free != 100 {
		t.Errorf("%+v", l)
	}
	if l := a.Limits[1]; l.Reserved != 200 || l.Reserve["otp"] != 20 || l.Effective != nil {
		t.Errorf("%+v", l)
	}
	if l := now.Limits[0]; l.Scope != "tenant:shop" || l.Max != 250_000_000 || l.Currency != "GBP" || l.Unit != "money" {
		t.Errorf("%+v", l)
	}
	one := dispatcher(t, "", env, "limits", "show", "a", "--format", "csv")
	if lines := strings.Split(strings.TrimSpace(one.out), "\n"); len(lines) != 5 || !strings.HasPrefix(lines[3], "a,channel,1d,money,GBP,2.50,2.50,,0.00,2.50,0.00,0,") {
		t.Errorf("%+v", one)
	}
	table := dispatcher(t, "", env, "limits", "show").out
	for _, want := range []string{"curve 0.5", "0 of 5 until receipt", "1d GBP tenant:shop", "burst 20", "messages, 20 %", "(all)"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
	if got := dispatcher(t, "", env, "limits", "show", "x"); got.code != exitUsage || !strings.Contains(got.err, `there is no channel "x"; choose one of a, b, c`) {
		t.Errorf("%+v", got)
	}
}

// TestLimitsNowAreThoseOfTheRunningWindow with the rate and the pause that the provider asked for, and who waits
// for what.
func TestLimitsNowAreThoseOfTheRunningWindow(t *testing.T) {
	t.Parallel()
	doc, err := config.ParseRouting("r.yaml", []byte(limitedRouting))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 7, 21, 10, 30, 0, 0, time.UTC) // summer time
	today := time.Date(2026, 7, 20, 23, 0, 0, 0, time.UTC)
	limits := doc.Channels[0].Limits
	bare := func(l admission.Limit) admission.Limit { // as a row has it
		l.Sliding, l.Burst, l.Reserve = false, 0, nil
		return l
	}
	present := &ledger.Present{
		Now: now,
		Channels: []ledger.ChannelState{{Name: "a", Gate: admission.Gate{
			Active: admission.Active{Max: 5, Count: 3},
			Ease:   admission.Ease{Rate: 0.25, Since: now.Add(-time.Second), Until: now.Add(time.Minute)},
			Counters: []admission.Counter{
				{Limit: bare(limits[0]), Max: 100, Start: now.Add(-time.Minute), Granted: 90}, // long over
				{Limit: bare(limits[1]), Max: 1000, Start: now.Truncate(time.Hour), Granted: 400, Taken: map[string]int64{"lane:otp": 50}},
				{Limit: bare(limits[2]), Max: 3_000_000, Start: today, Granted: 3_000_000}, // lowered since
			},
		}}},
		Scoped: []ledger.ScopeState{
			{ScopeRef: ledger.ScopeRef{Scope: admission.Scope{Tenant: "shop"}}, Counters: []admission.Counter{{Limit: doc.Limits[0], Max: doc.Limits[0].Max, Start: today, Granted: 31_000}}},
			{ScopeRef: ledger.ScopeRef{Channel: "a", Scope: admission.Scope{Tenant: "shop"}}, Counters: []admission.Counter{{Limit: limits[3], Max: 50, Start: today, Granted: 7}}},
		},
		Waiting: []ledger.Waiters{
			{On: "a", Reason: "no_active", Messages: 4}, {On: "a tenant:shop 1d messages", Reason: "tenant_limit", Messages: 2},
			{On: "tenant:shop 1d money", Reason: "no_budget", Messages: 9}, {Reason: "no_route", Messages: 1},
		},
	}
	shown := newLimitsNow(2, doc, present, nil)
	a := shown.Channels[0]
	if a.Rate < 0.299 || a.Rate > 0.301 || !a.PausedUntil.Equal(now.Add(time.Minute)) || a.Active != 3 || a.Waiting != 4 || shown.WaitingForOthers != 1 {
		t.Errorf("%+v", a)
	}
	type figures struct{ Max, Configured, Granted, Free, Reserved, Waiting int64 }
	of := func(l limitNow) figures {
		return figures{l.Max, l.ConfiguredMax, l.Granted, l.Free, l.Reserved, l.Waiting}
	}
	for i, want := range []figures{
		{100, 100, 0, 100, 0, 4},
		{1000, 1000, 400, 600, 150, 4},
		{3_000_000, 2_500_000, 3_000_000, 0, 0, 4},
		{50, 50, 7, 43, 0, 2},
	} {
		if diff := cmp.Diff(want, of(a.Limits[i])); diff != "" {
			t.Errorf("limit %d: %s", i, diff)
		}
	}
	if diff := cmp.Diff(figures{250_000_000, 250_000_000, 31_000, 249_969_000, 0, 9}, of(shown.Limits[0])); diff != "" {
		t.Error(diff)
	}
	if *a.Limits[0].Effective != 30 || a.Limits[1].Effective != nil {
		t.Errorf("%+v", a.Limits)
	}
	if ends := a.Limits[2]; !ends.NextWindow.Equal(today.Add(24*time.Hour)) || ends.ends != "22 Jul 00:00" || a.Limits[1].ends != "12:00:00" {
		t.Errorf("%+v", ends)
	}
	var table strings.Builder
	channelLimitSheet(shown).draw(&table)
	limitSheet(shown).draw(&table)
	for _, want := range []string{"30 %", "3 of 5 until receipt", "10:31:00 UTC", "100, now 30", "3.00, then"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is missing in\n%s", want, table.String())
		}
	}
}

func TestLimitsSetChangesOneFigureOfTheDocument(t *testing.T) {
	t.Parallel()
	l, env := limitedBy(t)
	set := func(args ...string) changed {
		t.Helper()
		got := dispatcher(t, "", env, because("as agreed", append([]string{"limits", "set", "--format", "json"}, args...)...)...)
		if got.code != exitOK {
			t.Fatalf("%v: %+v", args, got)
		}
		return decoded[changed](t, got)
	}
	for _, step := range []struct {
		args     []string
		old, now string // in the document
	}{
		{[]string{"a", "--window", "1s", "--max", "80"}, "max: 100, sliding", "max: 80, sliding"},
		{[]string{"a", "--window", "24h", "--tenant", "shop", "--max", "60"}, "max: 50, tenant", "max: 60, tenant"},
		{[]string{"a", "--window", "1d", "--unit", "money", "--max", "3"}, `max: "2.50"`, `max: "3.00"`},
		{[]string{"--all-channels", "--window", "1d", "--unit", "money", "--tenant", "shop", "--max", "199.95"}, `max: "250.00"`, `max: "199.95"`},
		{[]string{"b", "--window", "1m", "--unit", "segments", "--max", "600"}, "b: {provider: sandbox, ", "b: {provider: sandbox, limits: [{window: 1m, max: 600, unit: segments}], "},
		{
			[]string{"--all-channels", "--window", "1h", "--prefix", "+44", "--unit", "money", "--currency", "GBP", "--max", "7"},
			"# their budget\n", "# their budget\n  - {window: 1h, max: 7.00, unit: money, currency: GBP, prefix: \"+44\"}\n",
		},
		{[]string{"a", "--window", "1d", "--tenant", "shop", "--remove"}, ", {window: 1d, max: 60, tenant: shop}", ""},
	} {
		before := current(t, l)
		done := set(append(step.args, "--expect-version", fmt.Sprint(before.Version))...)
		v := current(t, l)
		if want := strings.Replace(before.Document, step.old, step.now, 1); v.Document != want || !done.Applied || v.Reason != "as agreed" || v.Author != "ann" {
			t.Errorf("%v: %s", step.args, cmp.Diff(want, v.Document))
		}
	}
	if done := set("a", "--window", "1s", "--max", "80"); done.Applied || len(done.Warnings) != 0 {
		t.Errorf("%+v", done)
	}
}

func TestLimitsSetWarnsOfWhatNothingPasses(t *testing.T) {
	t.Parallel()
	l, env := limitedBy(t)
	claimed(t, l, drawn("m-1", 17, "b"))
	set := func(args ...string) []string {
		t.Helper()
		got := dispatcher(t, "", env, because("closed", append([]string{"limits", "set", "--max", "0", "--format", "json"}, args...)...)...)
		if got.code != exitOK {
			t.Fatalf("%v: %+v", args, got)
		}
		return decoded[changed](t, got).Warnings
	}
	for _, step := range []struct {
		args []string
		want []string
	}{
		{[]string{"a", "--window", "1d", "--tenant", "x"}, []string{"Messages of tenant x find no room on channel a: they go to others or wait."}},
		{[]string{"--all-channels", "--window", "1s", "--prefix", "+44"}, []string{"Messages to +44 wait until the limit is raised, or they expire: it stands over all channels."}},
		{[]string{"a", "--window", "1s"}, []string{}},
		{[]string{"b", "--window", "1m"}, []string{}},
		{[]string{"c", "--window", "1d"}, []string{"Route default has no channel left that takes messages: they wait until one does."}},
	} {
		if diff := cmp.Diff(step.want, set(step.args...)); diff != "" {
			t.Errorf("%v: %s", step.args, diff)
		}
	}
}

// TestALoweredLimitSaysWhatItsWindowHasGranted, because it takes no more until that is over.
func TestALoweredLimitSaysWhatItsWindowHasGranted(t *testing.T) {
	t.Parallel()
	l, env := limitedBy(t)
	err := l.Claim(t.Context(), ledger.Claim{Messages: []ledger.Message{drawn("m-1", 17, "a")}, Channels: []string{"a", "b", "c"}}, func(seen *ledger.Seen) (ledger.Decisions, error) {
		zone, err := time.LoadLocation("Europe/London")
		if err != nil {
			return ledger.Decisions{}, err
		}
		gate := &seen.Channels[0].Gate
		gate.Roll(seen.Now, zone)
		for i := range gate.Counters {
			gate.Counters[i].Granted++ // of money a millionth
		}
		m := &seen.Messages[0]
		d := toFirstChoice(seen, m)
		d.Attempt.PriceMicros = 1
		return ledger.Decisions{Each: []ledger.Decision{d}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := dispatcher(t, "", env, because("less", "limits", "set", "a", "--window", "1h", "--max", "0")...)
	if got.code != exitOK || !strings.Contains(got.out, "The running window has granted 1 already: it takes no more before it ends (") {
		t.Errorf("%+v", got)
	}
	now := decoded[limitsNow](t, dispatcher(t, "", env, "limits", "show", "a", "--format", "json"))
	if hour := now.Channels[0].Limits[1]; hour.ConfiguredMax != 0 || hour.Free != 0 || hour.Granted > hour.Max {
		t.Errorf("%+v", hour)
	}
}

func TestLimitsSetSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, env := limitedBy(t)
	for want, args := range map[string][]string{
		"name a channel, or write --all-channels":                   {"--window", "1s", "--max", "5"},
		"CHANNEL and --all-channels exclude each other":             {"a", "--all-channels", "--window", "1s", "--max", "5"},
		"--window is missing":                                       {"a", "--max", "5"},
		`--window: window "2s" is none of 1s, 1m, 1h, 1d`:           {"a", "--window", "2s", "--max", "5"},
		`--unit: unit "parts" is none of`:                           {"a", "--window", "1s", "--unit", "parts", "--max", "5"},
		"--max is missing":                                          {"a", "--window", "1s"},
		`--max: "many" is not a whole number from 0`:                {"a", "--window", "1s", "--max", "many"},
		`--max: "0.0000001" has more than six decimals`:             {"a", "--window", "1d", "--unit", "money", "--max", "0.0000001"},
		"--remove and --max exclude each other":                     {"a", "--window", "1s", "--max", "5", "--remove"},
		"--tenant and --prefix exclude each other":                  {"a", "--window", "1s", "--max", "5", "--tenant", "x", "--prefix", "+44"},
		`--prefix: "44" does not begin a number`:                    {"a", "--window", "1s", "--max", "5", "--prefix", "44"},
		"add --tenant or --prefix":                                  {"--all-channels", "--window", "1s", "--max", "5"},
		"--currency is for limits in money":                         {"a", "--window", "1s", "--max", "5", "--currency", "GBP"},
		`there is no channel "x"; choose one of a, b, c`:            {"x", "--window", "1s", "--max", "5"},
		"there is no limit of messages per 1m on channel a; there":  {"a", "--window", "1m", "--remove"},
		"would never pass channel a, which takes 5 segments per 1s": {"a", "--window", "1s", "--unit", "segments", "--max", "5"},
		"the limit of money per 1d is in GBP, not in EUR":           {"a", "--window", "1d", "--unit", "money", "--currency", "EUR", "--max", "5"},
	} {
		got := dispatcher(t, "", env, because("x", append([]string{"limits", "set"}, args...)...)...)
		if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	if got := dispatcher(t, "", env, "limits", "set", "a", "--window", "1s", "--max", "5"); got.code != exitUsage || !strings.Contains(got.err, "--reason is missing") {
		t.Errorf("%+v", got)
	}
	if got := dispatcher(t, "", nil, "limits"); got.code != exitUsage || !strings.Contains(got.err, "name what to do: history, set, show") {
		t.Errorf("%+v", got)
	}
}

func TestLimitsHistoryTellsWhoChangedOneLimitAndWhy(t *testing.T) {
	t.Parallel()
	_, env := limitedBy(t)
	for _, args := range [][]string{
		{"limits", "set", "a", "--window", "1s", "--max", "80"},
		{"weights", "set", "default", "a=30"},
		{"limits", "set", "a", "--window", "1d", "--tenant", "shop", "--max", "60"},
		{"limits", "set", "a", "--window", "1s", "--max", "120"},
		{"limits", "set", "a", "--window", "1s", "--remove"},
	} {
		if got := dispatcher(t, "", env, because(strings.Join(args, " "), args...)...); got.code != exitOK {
			t.Fatalf("%+v", got)
		}
	}
	type told struct {
		Changes []limitMove `json:"changes"`
	}
	lines := func(args ...string) []string {
		t.Helper()
		var out []string
		for _, m := range decoded[told](t, dispatcher(t, "", env, append([]string{"limits", "history", "--format", "json"}, args...)...)).Changes {
			out = append(out, fmt.Sprintf("%d %s %s %s %s %s %s: %s -> %s", m.Version, m.Author, m.Channel, m.Scope, m.Window, m.Unit, m.What, orEmpty(m.From), orEmpty(m.To)))
		}
		return out
	}
	want := []string{
		"7 ann a channel 1s messages max: 120 -> ",
		"7 ann a channel 1s messages sliding: true -> ",
		"7 ann a channel 1s messages burst: 20 -> ",
		"6 ann a channel 1s messages max: 80 -> 120",
		"3 ann a channel 1s messages max: 100 -> 80",
		"2 ann a channel 1s messages max:  -> 100",
		"2 ann a channel 1s messages sliding:  -> true",
		"2 ann a channel 1s messages burst:  -> 20",
	}
	slices.Sort(want[:3])
	got := lines("a", "--window", "1s")
	slices.Sort(got[:3])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"5 ann a tenant:shop 1d messages max: 50 -> 60"}, lines("--tenant", "shop", "--limit", "1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"2 ann  tenant:shop 1d money max:  -> 250 GBP"}, lines("--all-channels")); diff != "" {
		t.Error(diff)
	}
	table := dispatcher(t, "", env, "limits", "history", "a", "--window", "1s")
	if !strings.Contains(table.out, "limits set a") || !strings.Contains(table.out, "120, sliding") || !strings.Contains(table.out, "ann") || strings.Contains(table.out, "weights set") {
		t.Errorf("%+v", table)
	}
	for line := range strings.SplitSeq(table.out, "\n") {
		if utf8.RuneCountInString(line) > 100 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	if got := dispatcher(t, "", env, "limits", "history", "b"); got.code != exitOK || got.out != "There was never such a limit.\n" {
		t.Errorf("%+v", got)
	}
	if csv := dispatcher(t, "", env, "limits", "history", "b", "--format", "csv"); csv.out != "version,created_at,author,reason,channel,scope,window,unit,what,from,to\n" {
		t.Errorf("%+v", csv)
	}
	if got := dispatcher(t, "", env, "limits", "history", "--window", "2s"); got.code != exitUsage {
		t.Errorf("%+v", got)
	}
}
