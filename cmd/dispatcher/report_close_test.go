package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger/ledgertest"
)

// TestADayIsClosedAndCorrected: by commands, as a running dispatcher does by itself.
func TestADayIsClosedAndCorrected(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	stored := claimed(t, l, drawnMessages()...)
	settled(t, l, stored[:90])
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	if _, err := db.Exec(t.Context(), ledgertest.StoreOpen+`;
		update dispatcher.messages set received_at = received_at - interval '1 day';
		update dispatcher.attempts set claimed_at = claimed_at - interval '1 day'`); err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(zone)
	yesterday := now.AddDate(0, 0, -1).Format(time.DateOnly)
	daily := func() report.Daily {
		return decoded[report.Daily](t,
			dispatcher(t, "", env, "report", "--day", yesterday, "--format", "json"))
	}
	checkReport := func(want string, args ...string) {
		t.Helper()
		got := dispatcher(t, "", env, append([]string{"report"}, args...)...)
		if !strings.Contains(got.out+got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	open := daily()
	if open.ClosedAt != nil || len(open.Corrections) != 0 || len(open.Rows) != 3 {
		t.Fatalf("got %+v, want no ClosedAt, %d in Corrections and %d in Rows", open, 0, 3)
	}
	checkReport(yesterday+", Europe/London: not closed yet", "--day", yesterday)
	checkReport("is closed, with", "close", "--day", yesterday)
	closed := daily()
	if closed.ClosedAt == nil || closed.Rows[2].Accepted != open.Rows[2].Accepted {
		t.Errorf("got %+v", closed)
	}
	if diff := cmp.Diff(open.Routes, closed.Routes); diff != "" || len(open.Routes[0].Waterfall) < 3 ||
		open.Routes[0].Waterfall[2].CarriedSegments == 0 {
		t.Errorf("verdicts and waterfalls before and after the day was closed: %s", diff)
	}
	checkReport(",waterfall_messages,waterfall_segments,waterfall_cost", "--day", yesterday,
		"--format", "csv")
	checkReport(";open - -10;", "--day", yesterday, "--format", "csv")
	checkReport("is as it was when it was closed", "close", "--day", yesterday)
	uncorrected := decoded[report.Range](t, dispatcher(t, "", env, "report", "monthly", "--from",
		yesterday, "--to", yesterday, "--format", "json"))
	if uncorrected.CorrectedDays == nil || len(uncorrected.CorrectedDays) != 0 {
		t.Errorf("%+v", uncorrected.CorrectedDays)
	}
	settled(t, l, stored[90:])
	if got := daily(); got.Rows[2].Accepted != open.Rows[2].Accepted {
		t.Errorf("%d are accepted in a day that was closed", got.Rows[2].Accepted)
	}
	checkReport("is corrected in", "close", "--day", yesterday)
	got := daily()
	if got.Rows[2].Accepted != open.Rows[2].Accepted+10 || len(got.Corrections) != 1 ||
		got.Corrections[0].Changes == 0 {
		t.Fatalf("got %+v", got)
	}
	for i, channel := range []string{"a", "b", "c"} {
		var accepted, was, is int64 = 0, open.Rows[i].Accepted, got.Rows[i].Accepted
		for _, f := range got.Corrections[0].Figures {
			if f.Channel == channel && f.Figure == "accepted" {
				accepted++
				if f.Was != was || f.Now != is || f.Route != got.Rows[i].Route ||
					f.At != got.Corrections[0].At {
					t.Errorf("got correction %+v, want from %d to %d", f, was, is)
				}
			}
		}
		if want := min(1, is-was); accepted != want {
			t.Errorf("%d corrections of what %s accepted, want %d", accepted, channel, want)
		}
	}
	checkReport("corrections since the day was closed", "--day", yesterday)
	checkReport("without outcome", "--day", yesterday)
	checkReport("Corrections since the day was closed", "daily", "--day", yesterday, "--format", "html")
	checkReport(", corrected once, last ", "--day", yesterday)
	for _, unit := range []string{"daily", "weekly", "monthly"} {
		r := decoded[report.Range](t, dispatcher(t, "", env, "report", unit, "--from", yesterday,
			"--to", yesterday, "--format", "json"))
		if len(r.CorrectedDays) != 1 || r.CorrectedDays[0].Day != yesterday ||
			r.CorrectedDays[0].Changes != got.Corrections[0].Changes ||
			!r.CorrectedDays[0].At.Equal(got.Corrections[0].At) ||
			len(r.CorrectedDays[0].Figures) != len(got.Corrections[0].Figures) {
			t.Errorf("%s: %+v, and the day has %+v", unit, r.CorrectedDays, got.Corrections)
		}
		for _, as := range []string{"table", "html"} {
			checkReport(yesterday+" was corrected since it was closed, last on "+
				got.Corrections[0].At.UTC().Format(instant), unit, "--from", yesterday, "--to",
				yesterday, "--format", as)
			checkReport("Corrections since the day was closed: "+yesterday, unit, "--from", yesterday,
				"--to", yesterday, "--format", as)
		}
	}
	checkReport("is not over in Europe/London", "close", "--day", now.Format(time.DateOnly))
	checkReport("--day is missing", "close")
	record := decoded[dayClosed](t,
		dispatcher(t, "", env, "report", "close", "--day", yesterday, "--format", "json"))
	if record.Day != yesterday || record.Revision != 4 || record.Changes != 0 {
		t.Errorf("got %+v, want Day %v, Revision %v and Changes %v", record, yesterday, 4, 0)
	}
}
