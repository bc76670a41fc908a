package main

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
)

// ago returns the date of a business day in London.
func ago(t *testing.T, days int) string {
	t.Helper()
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	return time.Now().In(zone).AddDate(0, 0, -days).Format(time.DateOnly)
}

// backDated stores hundreds of messages for each of three days: today and the two days before.
// Tenants, countries and currencies differ.
func backDated(t *testing.T, db *pgx.Conn) {
	t.Helper()
	_, err := db.Exec(t.Context(), `select dispatcher.make_day(dispatcher.day_at(now()) - n)
		from generate_series(1, 3) n`)
	if err != nil {
		t.Fatal(err)
	}
	for day := range 3 {
		sentOn(t, db, day, 1, "a", "a", "", 25+day)
		sentOn(t, db, day, 1, "b", "b", "", 15)
		sentOn(t, db, day, 1, "c", "c", "", 50)
		sentOn(t, db, day, 1, "c", "a",
			`{"version":1,"by":"load_ratio","line":"c 0/100 - no_slot,a 4 -"}`, 10*day)
	}
	_, err = db.Exec(t.Context(), `
		with m as (update dispatcher.messages set
		    tenant = case when seq % 3 = 0 then 'shop' else 'bank' end,
		    calling_code = case when seq % 2 = 0 then 44 end,
		    sender = case when seq % 5 = 0 then 'ACME' end
		  returning seq)
		update dispatcher.attempts a set currency = case when a.channel = 'b' then 'EUR' else 'GBP' end,
		  receipt_state = 'delivered', delivered_at = now()
		from m where a.message_seq = m.seq`)
	if err != nil {
		t.Fatal(err)
	}
}

// TestARangeOfDaysHasTheRowsOfEachDay: whether days are closed or not, the row of a period of one
// day is that of the daily report. Longer periods and finer groups have the same sums.
func TestARangeOfDaysHasTheRowsOfEachDay(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	backDated(t, db)
	read := func(args ...string) report.Range {
		t.Helper()
		return decoded[report.Range](t,
			dispatcher(t, "", env, append([]string{"report"}, append(args, "--format", "json")...)...))
	}
	days := func() (out []report.DailyRow) {
		for day := 2; day >= 0; day-- {
			out = append(out, decoded[report.Daily](t, dispatcher(t, "", env, "report", "daily",
				"--day", ago(t, day), "--format", "json")).Rows...)
		}
		return out
	}
	before := map[string][]report.RangeRow{} // while no day was closed
	compare := func(closed int) {
		t.Helper()
		want := days()
		r := read("daily", "--from", ago(t, 2))
		got := make([]report.DailyRow, len(r.Rows))
		for i := range r.Rows {
			got[i] = r.Rows[i].DailyRow
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) != 9 {
			t.Errorf("%d closed, days (-) and range (+): %s", closed, diff)
		}
		if len(r.OpenDays) != 3-closed || r.Complete {
			t.Errorf("%v are open", r.OpenDays)
		}
		all := sumsOf(want)
		shapes := [][]string{
			{"weekly"},
			{"monthly", "--by", "hour,country"},
			{"weekly", "--by", "channel,tenant,country,sender,hour,route,reason,currency"},
			{"daily"},
			{"monthly"},
			{"weekly", "--by", "tenant"},
			{"daily", "--by", "reason,channel"},
			{"daily", "--by", "sender,channel"},
		}
		for _, args := range shapes[:tier.Size(3, len(shapes))] {
			r := read(append(args, "--from", ago(t, 2))...)
			name := strings.Join(args, " ")
			if closed == 0 {
				before[name] = r.Rows
			}
			if diff := cmp.Diff(before[name], r.Rows); diff != "" {
				t.Errorf("%s: rows (-), and %d days closed (+): %s", name, closed, diff)
			}
			rows := make([]report.DailyRow, len(r.Rows))
			for i := range r.Rows {
				rows[i] = r.Rows[i].DailyRow
			}
			if diff := cmp.Diff(all, sumsOf(rows)); diff != "" {
				t.Errorf("%d closed, %v: %s", closed, args, diff)
			}
			var totals []report.DailyRow
			for _, total := range r.Totals {
				if total.Period == "" {
					totals = append(totals, report.DailyRow{
						Currency: total.Currency, FirstChoice: total.FirstChoice,
						Carried: total.Carried, Attempts: total.Attempts,
						Fallback: total.Fallback, Accepted: total.Accepted,
						Delivered: total.Delivered, Segments: total.Segments,
						CostMicros: total.CostMicros, FirstChoiceMicros: total.FirstChoiceMicros,
					})
				}
			}
			if diff := cmp.Diff(all, sumsOf(totals)); diff != "" || len(totals) != 2 {
				t.Errorf("totals of %v: %s", args, diff)
			}
		}
	}
	compare(0)
	for closed := range tier.Size(1, 2) {
		got := dispatcher(t, "", env, "report", "close", "--day", ago(t, 2-closed))
		if got.code != exitOK {
			t.Fatalf("got %+v, want exit code %d", got, exitOK)
		}
		compare(closed + 1)
	}
}

// sumsOf adds rows up: messages, and the attempts of each currency.
func sumsOf(rows []report.DailyRow) map[string]report.DailyRow {
	sums := map[string]report.DailyRow{}
	for _, r := range rows {
		messages, attempts := sums["messages"], sums[r.Currency]
		messages.FirstChoice += r.FirstChoice
		messages.Carried += r.Carried
		attempts.Attempts += r.Attempts
		attempts.Fallback += r.Fallback
		attempts.Accepted += r.Accepted
		attempts.Delivered += r.Delivered
		attempts.Segments += r.Segments
		attempts.CostMicros += r.CostMicros
		attempts.FirstChoiceMicros += r.FirstChoiceMicros
		sums["messages"] = messages
		if r.Currency != "" { // otherwise the row has chosen messages only
			sums[r.Currency] = attempts
		}
	}
	return sums
}

func TestARangeByOtherDimensions(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	backDated(t, db)
	first := ago(t, 2)
	run := func(args ...string) result {
		t.Helper()
		return dispatcher(t, "", env, append([]string{"report", "daily"}, args...)...)
	}
	by := func(what string) report.Range {
		t.Helper()
		return decoded[report.Range](t, run("--from", first, "--to", first, "--by", what, "--format",
			"json"))
	}
	// The day has 112 messages, of which a carried 47: 27 first choices of a, and 20 of c.
	channels := by("channel").Rows
	a, b := channels[0], channels[1]
	if a.FirstChoice != 27 || a.Carried != 47 || b.Carried != 15 || b.Currency != "EUR" ||
		!almostEqual(a.CarriedShare, 47./112) || !almostEqual(*a.AgreedShare, .25) || a.Route != "" ||
		a.Verdict != "" {
		t.Errorf("got %+v", a)
	}
	if want := []report.Move{{
		Cause: "no_slot", Channel: "a", Messages: 20, Segments: 20,
		Costs: []report.MoveCost{{Currency: "GBP", CostMicros: 20_000}},
	}}; !cmp.Equal(want, channels[2].Moved) {
		t.Errorf("got %+v", channels[2])
	}
	tenants := by("tenant").Rows
	if len(tenants) != 4 || tenants[0].Tenant != "bank" || tenants[0].Currency != "EUR" ||
		tenants[1].FirstChoice != 0 || tenants[1].Attempts == 0 || tenants[0].AgreedShare != nil ||
		tenants[0].FirstChoice+tenants[2].FirstChoice != 112 {
		t.Errorf("got %+v", tenants)
	}
	if countries := by("country").Rows; countries[0].Country != "" ||
		countries[2].Country != "+44" {
		t.Errorf("got %+v", countries)
	}
	senders := by("sender").Rows
	if senders[0].Sender != "" || senders[len(senders)-1].Sender != "ACME" {
		t.Errorf("got %+v", senders)
	}
	reasons := by("channel,reason").Rows
	if reasons[0].Reason != "first_choice" || reasons[0].Attempts != 27 || reasons[0].Carried != 47 ||
		reasons[1].Reason != "fallback" || reasons[1].Attempts != 20 || reasons[1].Carried != 0 {
		t.Errorf("got %+v", reasons[:2])
	}
	for want, args := range map[string][]string{
		`"shoe" is not a dimension: there are hour, route, channel, tenant, country, sender, currency and reason`: {
			"--from", first, "--by", "shoe",
		},
		"is after --to":                  {"--from", ago(t, 1), "--to", first},
		"--to 2999-01-01 has not begun":  {"--from", first, "--to", "2999-01-01"},
		"--day goes with neither --from": {"--from", first, "--day", first},
		"channel is named twice":         {"--by", "channel,channel"},
		"what was carried has no reason": {"--by", "reason", "--wide"},
	} {
		if got := run(args...); got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
}

// TestTheTableOfAWeek: a row for each day shows how many messages each channel carried, and its
// share.
func TestTheTableOfAWeek(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	backDated(t, db)
	got := dispatcher(t, "", env, "report", "daily", "--from", ago(t, 2), "--by", "channel", "--wide")
	for _, want := range []string{
		"│ day           a   b    c  all        a        b        c │",
		"│ " + ago(t, 2) + "   47  15   50  112  41.96 %  13.39 %  44.64 % │",
		"│ " + ago(t, 0) + "   25  15   50   90  27.78 %  16.67 %  55.56 % │",
		"│ all         108  45  150  303  35.64 %  14.85 %  49.50 % │",
		"Route default: in 2 days traffic moved, fair draws; in 1 day traffic kept, fair draws.",
		"the last day is not over", "3 days are not closed yet",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing in\n%s", want, got.out)
		}
	}
}

// TestSharesInSegmentsAndMoney: drawn, carried and delivered, with money of each currency apart.
func TestSharesInSegmentsAndMoney(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	backDated(t, db)
	// The messages of c have two segments, at 3 pence a segment, including those that a carried. Of
	// the messages that a carried, only its own first choices were delivered.
	_, err = db.Exec(t.Context(), `
		with m as (update dispatcher.messages set segments = case first_choice when 'c' then 2 else 1 end
		  returning seq, first_choice, segments)
		update dispatcher.attempts a set segments = m.segments, price_micros = m.segments * 30000,
		  receipt_state = case when a.channel = m.first_choice then 'delivered' else 'undelivered' end,
		  delivered_at = case when a.channel = m.first_choice then a.delivered_at end
		from m where a.message_seq = m.seq and a.outcome = 'accepted'`)
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		return dispatcher(t, "", env, slices.Concat([]string{
			"report", "daily", "--from", ago(t, 2),
			"--to", ago(t, 2),
		}, args)...).out
	}
	// 27 drawn for a, 15 for b and 70 for c, 20 of which a carried.
	r := decoded[report.Range](t, result{out: run("--format", "json")})
	a, b, c := r.Rows[0], r.Rows[1], r.Rows[2]
	if a.FirstChoiceSegments != 27 || !almostEqual(a.FirstChoiceSegmentsShare, 27./182) ||
		a.Segments != 67 || !almostEqual(a.SegmentsShare, 67./182) || a.DeliveredSegments != 27 ||
		!almostEqual(a.DeliveredSegmentsShare, 27./142) || !almostEqual(a.CostShare, 67./167) ||
		a.DeliveredMicros != 27*30_000 || !almostEqual(a.DeliveredCostShare, 27./127) {
		t.Errorf("got %+v", a)
	}
	if b.CostShare != 1 || b.Currency != "EUR" || !almostEqual(b.SegmentsShare, 15./182) ||
		c.FirstChoiceSegments != 140 || !almostEqual(c.CostShare, 100./167) {
		t.Errorf("%+v\n%+v", b, c)
	}
	daily := decoded[report.Daily](t, dispatcher(t, "", env, "report", "daily", "--day", ago(t, 2),
		"--format", "json"))
	if diff := cmp.Diff(daily.Rows, []report.DailyRow{a.DailyRow, b.DailyRow, c.DailyRow}); diff != "" {
		t.Error(diff)
	}
	for args, lines := range map[string][]string{
		"--in segments": {
			"a        25.00 %     27  14.84 %       67  36.81 %         27  19.01 %  2.01 GBP │",
			"all                                      182               167                 127           5.01 GBP │",
		},
		"--in money": {
			"drawn     share      cost     share         of     share    may be",
			"a        25.00 %  0.81 GBP   16.17 %  2.01 GBP   40.12 %   0.81 GBP   21.26 %",
			"b        15.00 %  0.45 EUR  100.00 %  0.45 EUR  100.00 %   0.45 EUR  100.00 %",
			"c        60.00 %  4.20 GBP   83.83 %  3.00 GBP   59.88 %   3.00 GBP   78.74 %",
		},
		"--in segments --by channel --wide": {"segments carried", "67  15  100  182  36.81 %  8.24 %"},
		"--in money --by channel --wide": {
			"cost of what was carried",
			"EUR       0.00  0.45  0.00  0.45   0.00 %  100.00 %",
			"all         GBP       2.01  0.00  3.00  5.01  40.12 %",
		},
		"--in attempts": {
			"attempts  fall-  accepted  failed      no  never  open    re-    re-  in ",
			"c              50      0        50       0       0      0     0      0      0  GBP",
			"all                                 97     20        97       0       0      0     0      0      0  GBP",
		},
		"--in attempts --by channel --wide": {"│ attempts, and shares of them", "47  15  50  112  41.96 %  13.39 %"},
		"--in money --format html":          {">may be\nbilled</th>"},
		"--by channel --wide --format html": {">all</th>"},
	} {
		out := run(strings.Fields(args)...)
		for _, want := range lines {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in\n%s", args, want, out)
			}
		}
	}
	if got := dispatcher(t, "", env, "report", "weekly", "--in", "pence"); got.code != exitUsage ||
		!strings.Contains(got.err, "must be messages, segments, money or attempts") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitUsage, "must be messages, segments, money or attempts")
	}
}

// TestMoneyLeadsFromAgreedToDrawnToCarried: in each currency to the micro, from the rows of an open
// day and from the figures of a closed one. What was drawn for b, which bills in EUR, and carried
// by a has a row of b in GBP. A day and its split by tenants have the same sums.
func TestMoneyLeadsFromAgreedToDrawnToCarried(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	backDated(t, db)
	sentOn(t, db, 2, 1, "b", "a",
		`{"version":1,"by":"load_ratio","line":"b 0/100 - no_slot,a 4 -"}`, 5)
	if _, err := db.Exec(t.Context(), `update dispatcher.attempts a set
		  price_micros = 1000 + m.seq % 7, currency = case a.channel when 'b' then 'EUR' else 'GBP' end
		from dispatcher.messages m where a.message_seq = m.seq`); err != nil {
		t.Fatal(err)
	}
	read := func(args ...string) report.Range {
		t.Helper()
		return decoded[report.Range](t, dispatcher(t, "", env, append([]string{
			"report", "daily", "--from", ago(t, 2), "--to", ago(t, 2), "--format", "json",
		}, args...)...))
	}
	check := func() (rows []report.RangeRow) {
		t.Helper()
		day, tenants := read("--by", "route,channel"), read("--by", "tenant,channel")
		rows = day.Rows
		type line struct{ channel, currency string }
		drawn, billed, split := map[line]int64{}, map[string]int64{}, map[line]int64{}
		for _, r := range rows {
			drawn[line{r.Channel, r.Currency}] += r.FirstChoiceMicros
			billed[r.Currency] += r.CostMicros - r.FirstChoiceMicros
		}
		for _, r := range tenants.Rows {
			if r.Currency != "" { // else none of the tenant's messages were drawn for it
				split[line{r.Channel, r.Currency}] += r.FirstChoiceMicros
			}
		}
		if diff := cmp.Diff(drawn, split); diff != "" || billed["GBP"] != 0 || billed["EUR"] != 0 ||
			drawn[line{"b", "GBP"}] < 5_000 || drawn[line{"b", "EUR"}] < 15_000 {
			t.Errorf("drawn %v, by tenant %v, %v is off", drawn, split, billed)
		}
		for _, w := range day.Routes[0].Waterfall {
			sums, toDrawn := map[string]int64{}, []string{"health_weighting", "draws", "prices"}
			add := func(sign int64, costs []report.MoveCost) {
				for _, c := range costs {
					sums[c.Currency] += sign * c.CostMicros
				}
			}
			same := func(costs []report.MoveCost) {
				t.Helper()
				add(-1, costs)
				for currency, off := range sums {
					if off != 0 {
						t.Errorf("%s is off by %d micros %s", w.Channel, off, currency)
					}
				}
				add(1, costs)
			}
			add(1, w.AgreedCosts)
			for _, s := range w.Steps {
				if slices.Contains(toDrawn, s.Cause) {
					add(1, s.Costs)
				}
			}
			same(w.DrawnCosts)
			for _, c := range w.DrawnCosts {
				if got := drawn[line{w.Channel, c.Currency}]; got != c.CostMicros {
					t.Errorf("%s has rows of %d, and drew %+v", w.Channel, got, c)
				}
			}
			for _, s := range w.Steps {
				if !slices.Contains(toDrawn, s.Cause) {
					add(1, s.Costs)
				}
			}
			same(w.CarriedCosts)
		}
		return rows
	}
	open := check()
	if got := dispatcher(t, "", env, "report", "close", "--day", ago(t, 2)); got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	if diff := cmp.Diff(open, check()); diff != "" || len(open) != 4 {
		t.Errorf("rows while open (-) and closed (+): %s", diff)
	}
}

// TestFilesOfReportsHaveTheSameColumns: whatever they are grouped by. Amounts are plain decimals.
func TestFilesOfReportsHaveTheSameColumns(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	backDated(t, db)
	const header = "unit,period,day,last_day,timezone,hour,route,channel,tenant,country,reason," +
		"currency,configured_share,effective_share,first_choice,first_choice_share,agreed_share," +
		"carried,carried_share,delivered,delivered_share,attempts,fallback,retries,resends," +
		"submitted,accepted,failed,unknown,unsent,pending,undelivered,no_receipt,segments,cost," +
		"unknown_segments,unknown_cost,deviation,p_value,verdict,draws_verdict,traffic_verdict,moved," +
		"first_choice_segments,first_choice_segments_share,segments_share,cost_share," +
		"delivered_segments,delivered_segments_share,delivered_cost,delivered_cost_share,sender,further," +
		"waterfall_messages,waterfall_segments,waterfall_cost," +
		"agreed_share_by_time,first_choice_cost,first_choice_cost_share"
	for _, args := range [][]string{
		{"daily", "--by", "hour,country"}, {"weekly"}, {"monthly", "--by", "currency"},
	} {
		got := dispatcher(t, "", env, append([]string{"report"}, append(args, "--from", ago(t, 2),
			"--format", "csv")...)...)
		all, err := csv.NewReader(strings.NewReader(got.out)).ReadAll()
		if err != nil || len(all) < 3 || strings.Join(all[0], ",") != header {
			t.Fatalf("%v: %v, %+v", args, err, got)
		}
		if all[1][4] != "Europe/London" || !strings.Contains(fmt.Sprint(all[1:]), " 0.0") {
			t.Errorf("got %v", all[1])
		}
	}
}
