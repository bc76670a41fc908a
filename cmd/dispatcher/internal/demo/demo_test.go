package demo

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// TestTheVerdictUsesWhatWasCarried: the draws of a demo are fair while one of its carriers is
// down.
func TestTheVerdictUsesWhatWasCarried(t *testing.T) {
	t.Parallel()
	doc, err := config.ParseRouting("the demo's routing", []byte(Routing))
	if err != nil {
		t.Fatal(err)
	}
	row := func(first, channel, cause string) ledger.CarriedRow {
		return ledger.CarriedRow{
			Version:     1,
			Route:       "default",
			FirstChoice: first,
			Channel:     channel,
			Cause:       cause,
		}
	}
	earlier := moves{row("a", "a", ""): 1000, row("a", "c", "no_slot"): 7}
	for name, c := range map[string]struct {
		carried moves
		verdict string
		says    string
	}{
		"as drawn": {
			moves{
				row("a", "a", ""): 1250, row("a", "c", "no_slot"): 7, row("b", "b", ""): 150,
				row("c", "c", ""): 600,
			},
			report.Kept, "The channels carried what was agreed",
		},
		"b is down": {
			moves{
				row("a", "a", ""): 1250, row("a", "c", "no_slot"): 7,
				row("b", "c", "breaker_open"): 150, row("c", "c", ""): 600,
			},
			report.Moved, "b carried 0.00 % instead of 15.00 %: 150 of 150 messages went to c " +
				"(breaker open",
		},
		// by more than the tolerance, and so little that chance could explain it
		"a little was moved": {
			moves{
				row("a", "a", ""): 1225, row("a", "c", "no_slot"): 7,
				row("a", "b", "refused"): 25, row("b", "b", ""): 150, row("c", "c", ""): 600,
			},
			report.Moved, "a carried 22.50 % instead of 25.00 %: 25 of 250 messages went to b " +
				"(submit refused)",
		},
	} {
		r := Result{Channels: []Channel{
			{
				Channel:     "a",
				FirstChoice: 250,
			}, {Channel: "b", FirstChoice: 150}, {Channel: "c", FirstChoice: 600},
		}}
		r.compare(doc, c.carried.since(earlier))
		text := strings.Join(r.Text, " ")
		if r.Verdict != c.verdict || r.TrafficVerdict != c.verdict ||
			r.DrawsVerdict != report.Fair ||
			!strings.Contains(text, c.says) {
			t.Errorf("%s: %s, draws %s: %s", name, r.Verdict, r.DrawsVerdict, text)
		}
	}
}

// TestAnotherRunOverTheSameDataCountsItsOwnMessages: what the channels had billed before does not
// count.
func TestAnotherRunOverTheSameDataCountsItsOwnMessages(t *testing.T) {
	t.Parallel()
	carried := func(messages int64) moves {
		m := moves{}
		m.add([]ledger.CarriedRow{{
			Version: 3, Route: "default", FirstChoice: "a", Channel: "a", Messages: messages,
			Segments: 2 * messages, TextSegments: messages, CostMicros: 9 * messages, Currency: "GBP",
		}})
		return m
	}
	got := carried(1300).since(carried(1000))
	if len(got) != 1 || got[0].Messages != 300 || got[0].Version != 1 {
		t.Errorf("got %+v", got)
	}
}
