package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
)

// tried is one attempt as TestCarriedOn stores it.
type tried struct{ channel, reason, outcome, code, ranking string }

// TestCarriedOnNamesTheFirstCause: for each message its attempts, and the row in which it counts.
// The first choice of all of them is a.
func TestCarriedOnNamesTheFirstCause(t *testing.T) {
	t.Parallel()
	const (
		full   = `{"version":1,"by":"load_ratio","line":"a 3/100 0 no_slot:1d:messages,b 4 250"}`
		drawn  = `{"version":1,"by":"redraw","key_id":"k","line":"a breaker_open,b"}`
		scored = `{"version":1,"by":"best_worker","scoring":"expression","latest":7,"line":"a 0.5 3/100 - price_cap,b = 4 250,c 0.1 1 -"}`
		behind = `{"version":1,"by":"load_ratio","attempts":1,"line":"a 3/100 0 already_tried,b 4 250"}`
	)
	rig := lend(t)
	l := rig.l
	apply(t, l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"}, ledger.ChannelSpec{
		Name: "c",
	})
	db, err := pgx.Connect(t.Context(), rig.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The test is over.
	var want []ledger.CarriedRow
	for id, tc := range map[string]struct {
		attempts []tried
		carried  []ledger.CarriedRow
	}{
		"as drawn": {[]tried{{"a", "first_choice", "accepted", "", ""}}, []ledger.CarriedRow{
			{Channel: "a"},
		}},
		"part after part": {
			[]tried{{"a", "first_choice", "accepted", "", ""}, {"a", "retry", "accepted", "", ""}},
			[]ledger.CarriedRow{{Channel: "a"}},
		},
		"late for its release": {
			[]tried{{"a", "first_choice", "refused", "late", ""}, {
				"a", "retry", "accepted", "", "",
			}}, []ledger.CarriedRow{{Channel: "a"}},
		},
		"late, then full": {
			[]tried{{"a", "first_choice", "refused", "late", ""}, {
				"b", "fallback", "accepted", "",
				full,
			}},
			[]ledger.CarriedRow{{Channel: "b", Cause: "no_slot:1d:messages"}},
		},
		"nobody took it": {[]tried{{"a", "first_choice", "rejected", "", ""}}, nil},
		"by redraw": {[]tried{{"b", "fallback", "accepted", "", drawn}}, []ledger.CarriedRow{
			{Channel: "b", Cause: "breaker_open"},
		}},
		"by score": {[]tried{{"b", "fallback", "accepted", "", scored}}, []ledger.CarriedRow{
			{Channel: "b", Cause: "price_cap"},
		}},
		"refused": {
			[]tried{{"a", "first_choice", "refused", "0x00000008", ""}, {
				"b", "fallback", "accepted", "", behind,
			}},
			[]ledger.CarriedRow{{Channel: "b", Cause: "refused"}},
		},
		"breaker opened behind the claim": {
			[]tried{{"a", "first_choice", "refused", "breaker_open", ""}, {
				"b", "fallback", "accepted", "", behind,
			}},
			[]ledger.CarriedRow{{Channel: "b", Cause: "breaker_open"}},
		},
		"throttled, then others full": {
			[]tried{{"a", "first_choice", "throttled", "", ""}, {
				"b", "fallback", "throttled", "",
				behind,
			}, {"c", "fallback", "accepted", "", full}},
			[]ledger.CarriedRow{{Channel: "c", Cause: "throttled"}},
		},
		"full, and the second refused": {
			[]tried{{"b", "fallback", "refused", "x", full}, {
				"c", "fallback", "accepted", "",
				behind,
			}},
			[]ledger.CarriedRow{{Channel: "c", Cause: "no_slot:1d:messages"}},
		},
		"sent once more": {
			[]tried{{"a", "first_choice", "unknown", "", ""}, {
				"b", "resend", "accepted", "", behind,
			}},
			[]ledger.CarriedRow{{Channel: "b", Cause: "unknown"}},
		},
		"taken twice": {
			[]tried{{"a", "first_choice", "accepted", "", ""}, {
				"b", "resend", "accepted", "", behind,
			}},
			[]ledger.CarriedRow{{Channel: "a"}, {Channel: "b", Cause: "unknown"}},
		},
	} {
		for i := range tc.carried {
			c := &tc.carried[i]
			c.Version, c.Route, c.FirstChoice, c.Messages, c.Currency = 1, id, "a", 1, "GBP"
			c.TextSegments = 3
			for _, a := range tc.attempts { // each accepted part is billed
				if a.channel == c.Channel && a.outcome == "accepted" {
					c.Segments, c.CostMicros = c.Segments+2, c.CostMicros+56
				}
			}
		}
		want = append(want, tc.carried...)
		store(t, db, "id, lane, received_at, route, routing_version, first_choice, state, "+
			"attempts, finished_at, segments",
			`values ($1, 'bulk', now(), $1, 1, 'a', 'failed', $2::int, now(), 3)`,
			id, len(tc.attempts))
		for i, a := range tc.attempts {
			execute(t, db, `insert into dispatcher.attempts (message_seq, attempt, channel, reason,
				outcome, provider_code, segments, price_micros, currency,
				claimed_at, settled_at, instance, answers, ranking)
				select seq, $2, $3, $4, $5, nullif($6, ''), 2, 56, 'GBP', now(), now(), 1, 1,
				  nullif($7, '')::jsonb from dispatcher.messages where id = $1`,
				id, i+1, a.channel, a.reason, a.outcome, a.code, a.ranking)
		}
	}
	got := figuresOf(t, l, time.Now()).Carried
	byRoute := func(rows []ledger.CarriedRow) map[string][]ledger.CarriedRow {
		out := map[string][]ledger.CarriedRow{}
		for _, r := range rows {
			out[r.Route] = append(out[r.Route], r)
		}
		return out
	}
	if diff := cmp.Diff(byRoute(want), byRoute(got)); diff != "" {
		t.Error(diff)
	}
	if before := figuresOf(t, l, time.Now().AddDate(0, 0, -2)).Carried; len(before) != 0 {
		t.Errorf("got %+v", before)
	}
}
