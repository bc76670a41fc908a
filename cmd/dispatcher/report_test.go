package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// drawnMessages returns a hundred messages whose draws have exactly the shares of testRouting.
func drawnMessages() (messages []ledger.Message) {
	for i := range 100 {
		first := "c"
		if i < 25 {
			first = "a"
		} else if i < 40 {
			first = "b"
		}
		messages = append(messages, drawn(fmt.Sprintf("m-%d", i), int64(i), first))
	}
	return messages
}

func TestReportHasTheVerdictOfTheDay(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	stored := claimed(t, l, drawnMessages()...)
	settled(t, l, stored[:90]) // the last ten, all of c, are in flight
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}

	for _, args := range [][]string{{"report"}, {"report", "daily"}} {
		got := dispatcher(t, "", env, append(args, "--format", "json")...)
		var daily report.Daily
		if err := json.Unmarshal([]byte(got.out), &daily); err != nil || got.code != exitOK {
			t.Fatalf("%v: %v %+v", args, err, got)
		}
		zone, err := time.LoadLocation("Europe/London")
		if err != nil {
			t.Fatal(err)
		}
		if daily.Timezone != "Europe/London" ||
			daily.Day != time.Now().In(zone).Format(time.DateOnly) || len(daily.Rows) != 3 {
			t.Fatalf("got %+v", daily)
		}
		a, c := daily.Rows[0], daily.Rows[2]
		if a.Channel != "a" || *a.ConfiguredShare != 0.25 || a.FirstChoice != 25 ||
			a.FirstChoiceShare != 0.25 || *a.PValue != 1 || a.Verdict != report.Kept {
			t.Errorf("got %+v", a)
		}
		if c.Submitted != 50 || c.Accepted != 50 || c.Segments != 50 || c.CostMicros != 50*28_000 ||
			c.Currency != "GBP" {
			t.Errorf("got %+v, want Submitted %v, Accepted %v, Segments %v, CostMicros %v and Currency %v",
				c, 50, 50, 50, 50*28_000, "GBP")
		}
	}
	table := dispatcher(t, "", env, "report").out
	for _, want := range []string{
		"25.00 %", "all", "2.52", "route default: traffic kept; fair draws (p 1.0000)",
		"The channels carried what was agreed", "the day is not over",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
	csv := dispatcher(t, "", env, "report", "--format", "csv").out
	if strings.Count(csv, "\n") != 4 || strings.Contains(csv, ",all,") {
		t.Errorf("got %s", csv)
	}
	// Files of reports can be concatenated. The ten under way have no outcome.
	ranges := dispatcher(t, "", env, "report", "daily", "--by", "route,channel", "--format", "csv").out
	if csv != ranges {
		t.Errorf("the CSV of a day is\n%s\nthat of a range is\n%s", csv, ranges)
	}
	if want := ",60,0,0,0,50,50,0,0,0,10,0,0,50,1.40,"; strings.Count(csv, want) != 1 {
		t.Errorf("%s is missing in\n%s", want, csv)
	}
	past := dispatcher(t, "", env, "report", "--day", "2020-02-29", "--format", "json")
	if past.code != exitOK || !strings.Contains(past.out, `"rows": []`) ||
		!strings.Contains(past.out, "2020-02-29") {
		t.Errorf("got %+v, want exit code %d, %q in the output and %q in the output",
			past, exitOK, `"rows": []`, "2020-02-29")
	}
	if !strings.Contains(past.out, `"complete": true`) {
		t.Errorf("got %+v, want %q in the output", past, `"complete": true`)
	}
	for _, args := range [][]string{
		{"report"},
		{"report", "daily", "--waterfall"},
		{"report", "close"},
		{"report", "contracts"},
		{"audit", "verify", "--without-keys"},
	} {
		future := dispatcher(t, "", env, append(args, "--day", "2999-01-01")...)
		if future.code != exitUsage ||
			!strings.Contains(future.err, "2999-01-01 has not begun in Europe/London") ||
			future.out != "" {
			t.Errorf("%v: got %+v, want exit code %d, %q in the error and no output",
				args, future, exitUsage, "2999-01-01 has not begun in Europe/London")
		}
	}
	if today := dispatcher(t, "", env, "report", "daily", "--by", "channel").out; !strings.Contains(
		today, ", Europe/London: the day is not over, these are its figures so far\n") {
		t.Errorf("got %s, want %q in it",
			today, ", Europe/London: the day is not over, these are its figures so far\n")
	}
	got := dispatcher(t, "", env, "report", "--day", "29.2.2020")
	if got.code != exitUsage || !strings.Contains(got.err, "--day") {
		t.Errorf("got %+v, want exit code %d and %q in the error", got, exitUsage, "--day")
	}
}

func TestDayIsTheOneThatWasNamedWhereMidnightDoesNotExist(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Sao_Paulo")
	if err != nil {
		t.Fatal(err)
	}
	day, err := parseDay("2018-11-04", zone)
	if err != nil || day.In(zone).Format(time.DateOnly) != "2018-11-04" ||
		!admission.Day.Start(day, zone).Before(day) {
		t.Errorf("got %v, error %v", day, err)
	}
}

func TestCommandsOverTheDatabaseSayWhatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	good := ledgertest.URL(t)
	for name, tc := range map[string]struct{ url, want string }{
		"unset": {"", "DISPATCHER_POSTGRES_URL is missing"},
		"no server": {
			"postgres://u:hush@127.0.0.1:1/x",
			"PostgreSQL at 127.0.0.1:1 of DISPATCHER_POSTGRES_URL does not answer (connection " +
				"refused): start it",
		},
		"no address":   {"postgres://u:hush@[", "neither a"},
		"no database":  {strings.Replace(good, "/test_", "/gone_", 1), "does not exist: create it"},
		"no schema":    {ledgertest.Empty(t), `run "dispatcher migrate"`},
		"no routing":   {good, "there is no routing yet"},
		"wrong secret": {withPassword(t, good, "hush"), "refuses the user or the password"},
	} {
		got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + tc.url}, "report")
		if got.code != exitUsage || !strings.Contains(got.err, tc.want) ||
			strings.Contains(got.err, "hush") || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
}

// TestReportOfADayWithChangedWeightsJudgesEachVersionByItsOwn: 100 messages at 25/15/60. At midday
// the weights change, and one is lowered by health weighting: 80 messages at 50/10/20. Both parts
// have exactly their shares.
func TestReportOfADayWithChangedWeightsJudgesEachVersionByItsOwn(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	fill := func(version int64, size int64, shares map[string]int) {
		t.Helper()
		var messages []ledger.Message
		for channel, n := range shares {
			for i := range n {
				m := drawn(fmt.Sprintf("v%d-%s-%d", version, channel, i), 0, channel)
				m.Plan.Version, m.Plan.Size = version, size
				messages = append(messages, m)
			}
		}
		settled(t, l, claimed(t, l, messages...))
	}
	fill(1, 100, map[string]int{"a": 25, "b": 15, "c": 60})
	file := write(t, "next.yaml",
		strings.Replace(testRouting, "{a: 25, b: 15, c: 60}}",
			"{a: 50, b: 10, c: 40}, health: {errors: 5}}", 1))
	applyRouting(t, env, file)
	_, err := l.Routing.ApplyEffects(t.Context(),
		ledger.NewEffects{
			Expect: 2, Author: "health", Overrides: []byte(`{"weights":{"default":{"c":"20"}}}`),
		})
	if err != nil {
		t.Fatal(err)
	}
	fill(3, 80, map[string]int{"a": 50, "b": 10, "c": 20})

	daily := decoded[report.Daily](t, dispatcher(t, "", env, "report", "--format", "json"))
	if len(daily.Rows) != 3 {
		t.Fatalf("got %+v, want %d in Rows", daily, 3)
	}
	c := daily.Rows[2]
	agreed, went := (100*0.6+80*0.4)/180, (100*0.6+80*0.25)/180
	if c.DrawsVerdict != report.Fair || *c.PValue != 1 || !almostEqual(*c.ConfiguredShare, agreed) ||
		!almostEqual(*c.EffectiveShare, went) || !almostEqual(c.FirstChoiceShare, went) {
		t.Errorf("got %+v", c)
	}
	table := dispatcher(t, "", env, "report").out
	if !strings.Contains(table, "51.11 %") || !strings.Contains(table, "(44.44 %)") {
		t.Error(table)
	}
}

func almostEqual(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestReportOfARouteThatDoesNotDrawHasNoShares(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	file := write(t, "turns.yaml",
		strings.Replace(testRouting, "weights: {a: 25, b: 15, c: 60}",
			"mode: round_robin, channels: [a, b, c]", 1))
	applyRouting(t, env, file)
	m := drawn("m-1", 0, "a")
	m.Plan.Version, m.Plan.Draw, m.Plan.Size, m.Plan.KeyID = 2, 0, 0, ""
	claimed(t, l, m)
	got := dispatcher(t, "", env, "report", "--format", "json")
	daily := decoded[report.Daily](t, got)
	if len(daily.Rows) != 3 || daily.Rows[0].ConfiguredShare != nil ||
		daily.Rows[0].Deviation != nil || daily.Rows[0].Verdict != report.NoWeight ||
		daily.Rows[0].FirstChoice != 1 {
		t.Errorf("got %+v", daily)
	}
	if !strings.Contains(got.out, `"configured_share": null`) {
		t.Error(got.out)
	}
	table := dispatcher(t, "", env, "report").out
	if !strings.Contains(table, "no share is agreed") || strings.Contains(table, "(p ") {
		t.Error(table)
	}
}
