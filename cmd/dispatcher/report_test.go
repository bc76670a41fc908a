package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

func TestReportJudgesTheDay(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	var messages []ledger.Message
	for i := range 100 {
		first := "c"
		if i < 25 {
			first = "a"
		} else if i < 40 {
			first = "b"
		}
		messages = append(messages, drawn(fmt.Sprintf("m-%d", i), int64(i), first))
	}
	stored := claimed(t, l, messages...)
	settled(t, l, stored[:90]) // the last ten are under way
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
		if daily.Timezone != "Europe/London" || daily.Day != time.Now().In(zone).Format(time.DateOnly) || len(daily.Rows) != 3 {
			t.Fatalf("%+v", daily)
		}
		a, c := daily.Rows[0], daily.Rows[2]
		if a.Channel != "a" || *a.ConfiguredShare != 0.25 || a.FirstChoice != 25 || a.FirstChoiceShare != 0.25 || a.PValue != 1 || a.Verdict != report.Kept {
			t.Errorf("%+v", a)
		}
		if c.Submitted != 50 || c.Accepted != 50 || c.Segments != 50 || c.CostMicros != 50*28_000 || c.Currency != "GBP" {
			t.Errorf("%+v", c)
		}
	}
	table := dispatcher(t, "", env, "report").out
	for _, want := range []string{"25.00 %", "all", "2.52", "kept (p 1.0000)"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
	if csv := dispatcher(t, "", env, "report", "--format", "csv").out; strings.Count(csv, "\n") != 4 || strings.Contains(csv, ",all,") {
		t.Errorf("%s", csv)
	}
	past := dispatcher(t, "", env, "report", "--day", "2020-02-29", "--format", "json")
	if past.code != exitOK || !strings.Contains(past.out, `"rows": []`) || !strings.Contains(past.out, "2020-02-29") {
		t.Errorf("%+v", past)
	}
	if got := dispatcher(t, "", env, "report", "--day", "29.2.2020"); got.code != exitUsage || !strings.Contains(got.err, "--day") {
		t.Errorf("%+v", got)
	}
}

func TestDayIsTheOneThatWasNamedWhereMidnightDoesNotExist(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Sao_Paulo")
	if err != nil {
		t.Fatal(err)
	}
	day, err := parseDay("2018-11-04", zone)
	if err != nil || day.In(zone).Format(time.DateOnly) != "2018-11-04" || !admission.Day.Start(day, zone).Before(day) {
		t.Errorf("%v %v", day, err)
	}
}

func TestCommandsOverTheDatabaseSayWhatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	good := ledgertest.URL(t)
	for name, tc := range map[string]struct{ url, want string }{
		"unset":        {"", "DISPATCHER_POSTGRES_URL is missing"},
		"no server":    {"postgres://u:hush@127.0.0.1:1/x", "PostgreSQL at 127.0.0.1:1 of DISPATCHER_POSTGRES_URL does not answer (connection refused): start it"},
		"no address":   {"postgres://u:hush@[", "neither a"},
		"no database":  {strings.Replace(good, "/test_", "/gone_", 1), "does not exist: create it"},
		"no schema":    {ledgertest.Empty(t), `run "dispatcher migrate"`},
		"no routing":   {good, "there is no routing yet"},
		"wrong secret": {wrongPassword(good), "refuses the user or the password"},
	} {
		got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + tc.url}, "report")
		if got.code != exitUsage || !strings.Contains(got.err, tc.want) || strings.Contains(got.err, "hush") || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
}

// wrongPassword changes the password in a URL.
func wrongPassword(url string) string {
	at := strings.LastIndex(url, "@")
	colon := strings.LastIndex(url[:at], ":")
	return url[:colon] + ":hush" + url[at:]
}
