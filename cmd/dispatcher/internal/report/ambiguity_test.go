package report

import (
	"strings"
	"testing"
	"time"

	"dispatcher/ledger"
)

func TestAnAmbiguityIsShownInItsCurrentState(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 21, 12, 10, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		record ledger.AmbiguityRecord
		want   string
	}{
		"open lookup": {
			ledger.AmbiguityRecord{Last: 1, Step: ledger.Lookup, Until: until, Asked: 3},
			"To find out, the provider is asked for it, until 12:10:00 UTC (tried 3 times).",
		},
		"open receipt": {
			ledger.AmbiguityRecord{Last: 1, Step: ledger.AwaitReceipt, Until: until},
			"To find out, a receipt is awaited, until 12:10:00 UTC.",
		},
		"taken": {ledger.AmbiguityRecord{
			Last: 1, Step: ledger.SameKey,
			ResolvedAs: ledger.Taken,
		}, "A search found that it had been taken."},
		"final": {ledger.AmbiguityRecord{
			Last: 1, Step: ledger.Lookup,
			ResolvedAs: ledger.Unresolved, Asked: 1,
		}, "counts as possibly billable (tried 1 " +
			"time)."},
		"nothing asked": {ledger.AmbiguityRecord{
			Last: 1, Step: ledger.NoStep,
			ResolvedAs: ledger.Unresolved,
		}, ""},
		"by hand": {
			ledger.AmbiguityRecord{
				Last: 1, Step: ledger.Lookup, ResolvedAs: ledger.NotTaken,
				Author: "ann", Note: "not in their log.",
			},
			"ann settled it as not taken: not in their log.",
		},
		"by a login": {
			ledger.AmbiguityRecord{
				Last: 1, Step: ledger.Lookup, ResolvedAs: ledger.NotTaken,
				Author: "ann", Login: "ops", Via: ledger.ViaCommand,
			},
			"ann (login ops) settled it as not taken.",
		},
		"by the console, where the login is the dispatcher's": {
			ledger.AmbiguityRecord{
				Last: 1, Step: ledger.Lookup, ResolvedAs: ledger.NotTaken,
				Author: "ann", Login: "dispatcher", Via: ledger.ViaConsole,
			},
			"ann (console) settled it as not taken.",
		},
		"of another attempt": {ledger.AmbiguityRecord{
			Last: 2, Step: ledger.Lookup,
			ResolvedAs: ledger.Taken,
		}, ""},
	} {
		r := newRecord(ledger.Sending, attempt("a", ledger.ByFirstChoice, "", ""))
		r.Ambiguities = []ledger.AmbiguityRecord{tc.record}
		_, got, _ := strings.Cut(explain(t, r, nil).Text, "No answer has come yet.")
		if !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestWhoFoundOutIsNotTakenForTheProvider: the provider never answered.
func TestWhoFoundOutIsNotTakenForTheProvider(t *testing.T) {
	t.Parallel()
	claimed := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	settled := claimed.Add(3300 * time.Millisecond)
	for _, tc := range []struct{ code, outcome, want string }{
		{"operator", "accepted", "silent gave no answer; an operator settled after 3.3 s that it " +
			"had been taken, reference 8a71, 1 segment."},
		{"operator", "refused", "silent gave no answer; an operator settled after 3.3 s that it " +
			"had not been taken"},
		{"lookup", "accepted", "silent gave no answer; the provider was asked and said after 3.3 " +
			"s that it had been taken"},
		{"lookup", "refused", "silent gave no answer; the provider was asked and said after 3.3 " +
			"s " +
			"that it had not been taken"},
	} {
		a := Attempt{
			Channel: "silent", Code: tc.code, Outcome: tc.outcome, ClaimedAt: claimed,
			SettledAt: &settled,
		}
		if tc.outcome == "accepted" {
			a.Reference, a.Segments = "8a71", 1
		}
		var out strings.Builder
		err := templates.ExecuteTemplate(&out, "outcome", &attemptPage{Attempt: &a})
		if got := strings.TrimSpace(out.String()); err != nil || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s %s: %q", tc.code, tc.outcome, got)
		}
	}
}
