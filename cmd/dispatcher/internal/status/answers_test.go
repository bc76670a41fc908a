package status

import (
	"slices"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider/breaker"
)

func TestAFindingNamesWhatTheProviderAnswers(t *testing.T) {
	accepted := func(n int64) ledger.RecentOutcome {
		return ledger.RecentOutcome{Channel: "a", Outcome: "accepted", Attempts: n}
	}
	other := func(outcome, code string, n int64) ledger.RecentOutcome {
		return ledger.RecentOutcome{Channel: "a", Outcome: outcome, Code: code, Attempts: n}
	}
	for name, c := range map[string]struct {
		outcomes []ledger.RecentOutcome
		want     []string
	}{
		"refused": {
			[]ledger.RecentOutcome{
				accepted(16), other("refused", "0x08", 3), other("refused", "0x45", 1),
			},
			[]string{"the provider refuses 4 of 20 submits, 3 times with code 0x08"},
		},
		"rejected": {
			[]ledger.RecentOutcome{accepted(1), other("rejected", "0x0b", 19)},
			[]string{"the provider rejects 19 of 20 messages for good, 19 times with code 0x0b"},
		},
		"throttled and without an answer": {
			[]ledger.RecentOutcome{
				accepted(10), other("throttled", "0x58", 5), other("unknown", "", 5),
			},
			[]string{
				"the provider asks to slow down in 5 of 20 answers, 5 times with code 0x58",
				"5 of 20 submits have no answer, 5 times with code unknown",
			},
		},
		"too few answers": {[]ledger.RecentOutcome{other("refused", "0x08", 19)}, nil},
		"too few bad ones": {
			[]ledger.RecentOutcome{accepted(17), other("refused", "0x08", 4)}, nil,
		},
		"not sent": {
			[]ledger.RecentOutcome{accepted(1), other("refused", breaker.CodeEnded, 40)}, nil,
		},
		"under way": {[]ledger.RecentOutcome{accepted(1), other("", "", 40)}, nil},
		"another channel": {
			[]ledger.RecentOutcome{
				accepted(20), {Channel: "b", Outcome: "refused", Code: "0x08", Attempts: 20},
			}, nil,
		},
	} {
		channel := Channel{Name: "a", answered: map[string]int64{}}
		channel.takeOutcomes(c.outcomes, time.Minute)
		var got []string
		for _, f := range channel.findAnswers("traffic of a") {
			got = append(got, f.Detail)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
