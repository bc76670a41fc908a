package ledger_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
)

func TestChoicesAreSplitByRoutingVersion(t *testing.T) {
	t.Parallel()
	l := open(t)
	messages := batch("choice", 5)
	messages[3].Plan.Version, messages[4].Plan.Version = 2, 2
	messages[4].Plan.FirstChoice = "b"
	claimAll(t, l, messages, "a", "b", "c")
	want := []ledger.ChoiceRow{
		{Version: 1, Route: "default", Channel: "a", FirstChoice: 3, Open: 3, Segments: 3, Cause: "open"},
		{Version: 2, Route: "default", Channel: "a", FirstChoice: 1, Open: 1, Segments: 1, Cause: "open"},
		{Version: 2, Route: "default", Channel: "b", FirstChoice: 1, Open: 1, Segments: 1, Cause: "open"},
	}
	if diff := cmp.Diff(want, figuresOf(t, l, time.Now()).Choices); diff != "" {
		t.Error(diff)
	}
	if before := figuresOf(t, l, time.Now().AddDate(0, 0, -2)).Choices; len(before) != 0 {
		t.Errorf("got %+v", before)
	}
}

// TestChoicesNameWhyNobodyTookTheMessage, by the state and reason of the message and by the last of
// its attempts.
func TestChoicesNameWhyNobodyTookTheMessage(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"})
	for id, tc := range map[string]struct {
		state, reason string
		outcomes      []string
	}{
		"rejected":   {"rejected", "0x0000000b", []string{"rejected"}},
		"opted_out":  {"rejected", "opted_out", nil},
		"failed":     {"failed", "too_many_attempts", []string{"refused"}},
		"expired":    {"failed", "expired", []string{"refused", "throttled"}},
		"cancelled":  {"failed", "cancelled", nil},
		"no_channel": {"failed", "no_channel", nil},
		"no_answer":  {"unknown", "ambiguous_final", []string{"unknown"}},
		"open":       {"waiting", "no_slot", nil},
		"open again": {"retry", "refused", []string{"refused"}},
		"open first": {"sending", "", []string{""}},
		"open last":  {"sending", "", []string{"refused", ""}},
		"taken":      {"sending", "", []string{"accepted"}},
		"taken then": {"sending", "", []string{"refused", "accepted"}},
		"no receipt": {"no_receipt", "", []string{"accepted"}},
	} {
		store(t, r.db, "id, lane, received_at, route, routing_version, first_choice, state, reason, "+
			"attempts, next_at, finished_at, segments",
			`values ($1, 'bulk', now(), $1, 1, 'a', $2::text, nullif($3, ''), $4::int,
			  case when $2 in ('waiting', 'retry') then now() end,
			  case when $2 in ('rejected', 'failed', 'no_receipt', 'unknown') then now() end, 3)`,
			id, tc.state, tc.reason, len(tc.outcomes))
		for i, outcome := range tc.outcomes {
			execute(t, r.db, `insert into dispatcher.attempts (message_seq, attempt, channel, reason,
				outcome, segments, price_micros, currency, claimed_at, settled_at, instance, answers)
				select seq, $2, 'a', 'first_choice', nullif($3, ''), 3, 84, 'GBP', now(),
				  case when $3 <> '' then now() end, 1, case when $3 <> '' then 1 else 0 end
				from dispatcher.messages where id = $1`,
				id, i+1, outcome)
		}
	}
	got := figuresOf(t, r.l, time.Now()).Choices
	if len(got) != 14 {
		t.Errorf("%d rows", len(got))
	}
	for _, c := range got {
		want, _, _ := strings.Cut(c.Route, " ")
		if want == "taken" || want == "no" {
			want = ""
		}
		if c.Cause != want || c.FirstChoice != 1 || c.Segments != 3 ||
			(c.Open == 1) != (want == "open") {
			t.Errorf("%+v", c)
		}
	}
}
