package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger/ledgertest"
)

// sent stores n messages whose draw picked first under a version and that channel accepted. All
// have the same ranking; "" is none.
func sent(t *testing.T, db *pgx.Conn, version int64, first, channel, ranking string, n int) {
	t.Helper()
	sentOn(t, db, 0, version, first, channel, ranking, n)
}

// sentOn is sent with the date some days ago.
func sentOn(
	t *testing.T, db *pgx.Conn, ago int, version int64, first, channel, ranking string, n int,
) {
	t.Helper()
	_, err := db.Exec(t.Context(), `
		with m as (
		  insert into dispatcher.messages (seq, id, lane, received_at, route,
		    routing_version, draw, draw_size, first_choice, state, attempts)
		  select `+ledgertest.NewSeq+` - ($6::bigint << 36),
		    concat_ws('-', $1::bigint, $2::text, $3::text, $6::int, i), 'bulk',
		    now() - make_interval(days => $6::int), 'default', $1, 0, 100, $2, 'accepted', 1 from generate_series(1, $5::int) i
		  returning seq)
		insert into dispatcher.attempts (message_seq, attempt, channel, reason, outcome, segments,
		price_micros, currency, claimed_at, settled_at, instance, answers, ranking)
		select seq, 1, $3, case when $2 = $3 then 'first_choice'
		else 'fallback' end, 'accepted', 1, 1000, 'GBP', now() - make_interval(days => $6::int), now(), 1, 1, nullif($4::text,
		'')::jsonb from m`,
		version, first, channel, ranking, n, ago)
	if err != nil {
		t.Fatal(err)
	}
}

// reportedRouting is the test routing with other weights and further keys of channel b.
func reportedRouting(weights, b string) string {
	doc := strings.Replace(testRouting, "{a: 25, b: 15, c: 60}", weights, 1)
	return strings.Replace(doc, "  b: {", "  b: {"+b, 1)
}

func TestReportSaysWhatWasCarriedInsteadOfWhat(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		versions []string // documents from version 2 on
		fill     func(t *testing.T, db *pgx.Conn)
		code     int
		draws    string
		traffic  string
		says     []string
	}{
		"a daily limit lets 100 of 3000 through": {
			[]string{reportedRouting("{a: 70, b: 30}", "limits: ["+
				"{window: 1d, max: 100}, {window: 1h, max: 90}], ")},
			func(t *testing.T, db *pgx.Conn) {
				sent(t, db, 2, "a", "a", "", 2100)
				sent(t, db, 2, "b", "b", "", 100)
				sent(t, db, 2, "b", "a",
					`{"version":2,"by":"load_ratio","line":"b 0/100 - no_slot:1d:messages,a 4 -"}`, 800)
			},
			exitFailed, report.Fair, report.Moved,
			[]string{
				"b carried 3.33 % instead of 30.00 %",
				"800 of 900 messages went to a (its limit of 100 messages a day used up)",
			},
		},
		"one channel of 5 % carries a half": {
			[]string{reportedRouting("{a: 95, c: 5}", "")},
			func(t *testing.T, db *pgx.Conn) {
				sent(t, db, 2, "a", "a", "", 500)
				sent(t, db, 2, "a", "c",
					`{"version":2,"by":"redraw","key_id":"k","line":"a breaker_open,c"}`, 450)
				sent(t, db, 2, "c", "c", "", 50)
			},
			exitFailed, report.Fair, report.Moved,
			[]string{
				"c carried 50.00 % instead of 5.00 %: 450 messages drawn for a went to it (a: " +
					"breaker open after repeated failures).",
			},
		},
		"draws whose faults cancel": {
			[]string{reportedRouting("{a: 50, c: 50}", ""), reportedRouting("{a: 1, c: 1}", "")},
			func(t *testing.T, db *pgx.Conn) {
				sent(t, db, 2, "a", "a", "", 600)
				sent(t, db, 2, "c", "c", "", 400)
				sent(t, db, 3, "a", "a", "", 400)
				sent(t, db, 3, "c", "c", "", 600)
			},
			exitFailed, report.Unfair, report.Kept,
			[]string{
				"traffic kept; unfair draws", "p < 1e-6 over 2 versions",
				"under version 2 they picked",
			},
		},
		"kept": {
			[]string{reportedRouting("{a: 70, b: 30}", "")},
			func(t *testing.T, db *pgx.Conn) {
				sent(t, db, 2, "a", "a", "", 700)
				sent(t, db, 2, "b", "b", "", 300)
			},
			exitOK, report.Fair, report.Kept,
			[]string{"traffic kept; fair draws", "The channels carried what was agreed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := ledgertest.URL(t)
			openSeeded(t, url)
			env := []string{"DISPATCHER_POSTGRES_URL=" + url}
			for _, doc := range tc.versions {
				applyRouting(t, env, write(t, "next.yaml", doc))
			}
			db, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close(t.Context()) //nolint:errcheck // The test is over.
			tc.fill(t, db)
			got := dispatcher(t, "", env, "report", "daily", "--format", "json")
			daily := decoded[report.Daily](t, got)
			if got.code != tc.code || got.err != "" || len(daily.Routes) != 1 {
				t.Fatalf("exit code %d, %q, %+v", got.code, got.err, daily)
			}
			for _, r := range daily.Rows {
				if r.Verdict != tc.traffic || r.TrafficVerdict != tc.traffic ||
					r.DrawsVerdict != tc.draws {
					t.Errorf("got %+v, want Verdict %v, TrafficVerdict %v and DrawsVerdict %v",
						r, tc.traffic, tc.traffic, tc.draws)
				}
			}
			table := dispatcher(t, "", env, "report")
			if table.code != tc.code || table.err != "" {
				t.Errorf("exit code %d, %q", table.code, table.err)
			}
			text := strings.Join(strings.Fields(table.out), " ")
			for _, want := range tc.says {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in\n%s", want, table.out)
				}
			}
			if csv := dispatcher(t, "", env, "report", "--format", "csv"); csv.code != tc.code {
				t.Errorf("got %+v, want exit code %d", csv, tc.code)
			}
		})
	}
}

func TestReportCountsWhatMovedByCause(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	openSeeded(t, url)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	sent(t, db, 1, "b", "a", `{"version":1,"by":"load_ratio","line":"b 0/100 - no_slot:1d:messages,a 4 -"}`, 3)
	sent(t, db, 1, "b", "c", `{"version":1,"by":"load_ratio","line":"b 0/100 - draining,c 4 -"}`, 1)
	sent(t, db, 1, "c", "c", "", 4) // four draws for b alone could not be chance
	got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url}, "report",
		"--format", "json")
	b := decoded[report.Daily](t, got).Rows[1]
	want := []report.Move{
		{
			Cause: "no_slot", Limit: "b 1d messages", Channel: "a", Messages: 3, Segments: 3,
			Costs: []report.MoveCost{{Currency: "GBP", CostMicros: 3000}},
		},
		{
			Cause: "draining", Channel: "c", Messages: 1, Segments: 1,
			Costs: []report.MoveCost{{Currency: "GBP", CostMicros: 1000}},
		},
	}
	if !cmp.Equal(b.Moved, want) || b.Verdict != report.TooFew || got.code != exitOK {
		t.Errorf("exit code %d, %+v", got.code, b)
	}
	csv := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url}, "report",
		"--format", "csv")
	if !strings.Contains(csv.out, "no_slot:1d:messages a 3;draining c 1") {
		t.Error(csv.out)
	}
}
