package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// drawnFor returns first choices under a version: pairs of channel and number.
func drawnFor(version int64, pairs ...any) (out []ledger.ChoiceRow) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, ledger.ChoiceRow{
			Version: version, Route: "default",
			Channel: pairs[i].(string), FirstChoice: int64(pairs[i+1].(int)),
		})
	}
	return out
}

// carriedRow is how many first choices of one channel another one carried.
func carriedRow(version int64, first, channel, cause string, n int64) ledger.CarriedRow {
	return ledger.CarriedRow{
		Version: version, Route: "default", FirstChoice: first,
		Channel: channel, Cause: cause, Messages: n,
	}
}

// dayOf returns the report of a day under numbered documents, the last of which is in force.
func dayOf(choices []ledger.ChoiceRow, carried []ledger.CarriedRow, docs ...*config.Routing) Daily {
	f := Figures{
		Zone: time.UTC, Choices: choices, Carried: carried,
		Versions: map[int64]*config.Routing{}, Current: docs[len(docs)-1],
	}
	for i, doc := range docs {
		f.Versions[int64(i+1)] = doc
	}
	return NewDaily(&f)
}

// limitedTo sets the limits of a channel.
func limitedTo(doc *config.Routing, channel string, limits ...admission.Limit) *config.Routing {
	doc.Channel(channel).Limits = limits
	return doc
}

func TestVerdictsAnswerBothQuestions(t *testing.T) {
	t.Parallel()
	thirty := func() *config.Routing { return document("default", "a", "70", "b", "30") }
	daily := admission.Limit{Window: admission.Day, Max: 100, Unit: admission.Messages}
	hourly := admission.Limit{Window: admission.Hour, Max: 20, Unit: admission.Messages}
	for name, tc := range map[string]struct {
		day            Daily
		draws, traffic string
		says           []string // parts of the text
		never          []string
	}{
		"a limit lets a tenth through": {
			dayOf(drawnFor(1, "a", 2100, "b", 900),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 2100), carriedRow(1, "b", "b", "",
					100), carriedRow(1, "b", "a", "no_slot", 800)},
				limitedTo(thirty(), "b", daily)),
			Fair, Moved,
			[]string{
				"b carried 3.33 % instead of 30.00 %: 800 of 900 messages went to a (its limit " +
					"of " +
					"100 messages a day used up).",
				"a carried 96.67 % instead of 70.00 %: 800 messages drawn for b went to it (b: " +
					"its limit of 100 messages a day used up).",
				"The draws were fair (p 1.0000).",
			},
			nil,
		},
		"everything failed": {
			dayOf([]ledger.ChoiceRow{
				{
					Version: 1, Route: "default", Channel: "a", FirstChoice: 2100, Failed: 2099,
					Rejected: 1,
				},
				{Version: 1, Route: "default", Channel: "b", FirstChoice: 900, Failed: 898},
			}, []ledger.CarriedRow{carriedRow(1, "b", "b", "", 2)}, thirty()),
			Fair, Moved,
			[]string{"2 of 3000 drawn messages were carried: 1 rejected, 2997 failed without " +
				"being taken."},
			[]string{"too few"},
		},
		"a channel agreed at 2 % carries nothing": {
			dayOf(drawnFor(1, "a", 98000, "d", 2000),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 98000), carriedRow(1, "d", "a",
					"no_slot", 2000)},
				document("default", "a", "98", "d", "2")),
			Fair, Moved,
			[]string{"d carried 0.00 % instead of 2.00 %"},
			nil,
		},
		"one of two limits": {
			dayOf(drawnFor(1, "a", 2100, "b", 900),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 2100), carriedRow(1, "b", "b", "",
					100), carriedRow(1, "b", "a", "no_slot", 800)},
				limitedTo(thirty(), "b", daily, hourly)),
			Fair, Moved,
			[]string{"(one of its limits (100 messages a day, 20 messages an hour) used up)"},
			nil,
		},
		"two named limits": {
			dayOf(drawnFor(1, "a", 2100, "b", 900),
				[]ledger.CarriedRow{
					carriedRow(1, "a", "a", "", 2100), carriedRow(1, "b", "b", "", 100),
					carriedRow(1, "b", "a", "no_slot:1h:messages", 500),
					carriedRow(1, "b", "a", "no_slot:1d:messages", 300),
				},
				limitedTo(thirty(), "b", daily, hourly)),
			Fair, Moved,
			[]string{
				"500 of 900 messages went to a (its limit of 20 messages an hour used up); " +
					"300 of 900 messages went to a (its limit of 100 messages a day used up).",
				"500 messages drawn for b went to it (b: its limit of 20 messages an hour used up)",
			},
			nil,
		},
		"fallbacks to a channel of 5 %": {
			dayOf(drawnFor(1, "a", 950, "d", 50),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 500), carriedRow(1, "a", "d",
					"breaker_open", 450), carriedRow(1, "d", "d", "", 50)},
				document("default", "a", "95", "d", "5")),
			Fair, Moved,
			[]string{"d carried 50.00 % instead of 5.00 %: 450 messages drawn for a went to it " +
				"(a: breaker open after repeated failures)."},
			nil,
		},
		"draws whose faults cancel over two versions": {
			dayOf(append(drawnFor(1, "a", 600, "b", 400), drawnFor(2, "a", 400, "b", 600)...),
				[]ledger.CarriedRow{
					carriedRow(1, "a", "a", "", 600), carriedRow(1, "b", "b", "", 400),
					carriedRow(2, "a", "a", "", 400), carriedRow(2, "b", "b", "", 600),
				},
				document("default", "a", "50", "b", "50"), document("default", "a", "1", "b", "1")),
			Unfair, Kept,
			[]string{"The draws were not fair (p < 1e-6 over 2 versions): under version 1 they " +
				"picked a for 60.00 % of the messages instead of 50.00 %."},
			nil,
		},
		"all as agreed": {
			dayOf(drawnFor(1, "a", 700, "b", 300),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 700), carriedRow(1, "b", "b", "",
					295), carriedRow(1, "b", "a", "throttled", 5)}, thirty()),
			Fair, Kept,
			[]string{"The channels carried what was agreed, within 2 points; the largest difference is " +
				"a with 70.50 % instead of 70.00 %."},
			[]string{"throttled"},
		},
		"each version by its own shares": {
			dayOf(append(drawnFor(1, "a", 700, "b", 300), drawnFor(2, "a", 100, "b", 900)...),
				[]ledger.CarriedRow{
					carriedRow(1, "a", "a", "", 700), carriedRow(1, "b", "b", "", 300),
					carriedRow(2, "a", "a", "", 100), carriedRow(2, "b", "b", "", 900),
				}, thirty(), document("default", "a", "10", "b", "90")),
			Fair, Kept,
			[]string{"a with 40.00 % instead of 40.00 %"},
			nil,
		},
		"chance alone, of a hundred messages": {
			dayOf(drawnFor(1, "a", 66, "b", 34),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 66), carriedRow(1, "b", "b", "",
					34)}, thirty()),
			Fair, Kept,
			[]string{", which chance explains with so few messages."},
			nil,
		},
		"moved by more than the tolerance, where chance could be as large": {
			dayOf(drawnFor(1, "a", 70, "b", 30),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 70), carriedRow(1, "b", "b", "",
					26), carriedRow(1, "b", "a", "refused", 4)}, thirty()),
			Fair, Moved,
			[]string{"b carried 26.00 % instead of 30.00 %: 4 of 30 messages went to a (submit " +
				"refused)."},
			nil,
		},
		"too few to say anything": {
			dayOf(drawnFor(1, "a", 2, "b", 1), []ledger.CarriedRow{carriedRow(1, "a", "a", "", 3)},
				thirty()),
			TooFew, TooFew,
			[]string{"3 messages carried: too few", "too few draws"},
			nil,
		},
		"a channel without weight carried": {
			dayOf(drawnFor(1, "a", 100),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 90), carriedRow(1, "a", "spare",
					"draining", 10)},
				document("default", "a", "1", "spare", "0")),
			OneWay, Moved,
			[]string{"spare carried 10.00 % instead of 0.00 %: 10 messages drawn for a went to " +
				"it " +
				"(a: being drained)."},
			nil,
		},
		"the tolerance of the route": {
			dayOf(drawnFor(1, "a", 700, "b", 300),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 700), carriedRow(1, "b", "b", "",
					250), carriedRow(1, "b", "a", "no_slot", 50)},
				tolerant(thirty(), 6_000_000)),
			Fair, Kept,
			[]string{"what was agreed, within 6 points;"},
			nil,
		},
		"the tolerances of two versions, by their messages": {
			dayOf(append(drawnFor(1, "a", 700, "b", 300), drawnFor(2, "a", 70, "b", 30)...),
				[]ledger.CarriedRow{
					carriedRow(1, "a", "a", "", 700), carriedRow(1, "b", "b", "", 250),
					carriedRow(1, "b", "a", "no_slot", 50),
					carriedRow(2, "a", "a", "", 70), carriedRow(2, "b", "b", "", 30),
				},
				tolerant(thirty(), 6_000_000), tolerant(thirty(), 500_000)),
			Fair, Kept,
			[]string{"what was agreed, within 5.5 points;"},
			nil,
		},
		"what nobody carried": {
			dayOf([]ledger.ChoiceRow{
				{Version: 1, Route: "default", Channel: "a", FirstChoice: 700},
				{
					Version: 1, Route: "default", Channel: "b", FirstChoice: 300, Rejected: 150,
					Failed: 1,
				},
			}, []ledger.CarriedRow{carriedRow(1, "a", "a", "", 700), carriedRow(1, "b", "b", "",
				149)}, thirty()),
			Fair, Moved,
			[]string{"150 of 300 messages were rejected; 1 of 300 messages failed without being taken."},
			nil,
		},
		"a lowered weight": {
			dayOf(drawnFor(1, "a", 900, "b", 100),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 900), carriedRow(1, "b", "b", "",
					100)},
				lower(document("default", "a", "45", "b", "55"), "b", "5")),
			Fair, Moved,
			[]string{"b carried 10.00 % instead of 55.00 %: health weighting had lowered its " +
				"weight, which took about 450 messages from it."},
			nil,
		},
		"draws by recipient, one of whom got half of all messages": {
			dayOf(drawnFor(1, "a", 2700, "b", 300),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 2700), carriedRow(1, "b", "b", "",
					300)}, sticky(thirty())),
			Sticky, Kept,
			[]string{
				"a with 90.00 % instead of 70.00 %, because some recipients got many messages.",
				"The route draws by recipient, so its draws are not tested",
			},
			[]string{"chance", "too few"},
		},
		"draws by recipient that a limit moved": {
			dayOf(drawnFor(1, "a", 2100, "b", 900),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 2100), carriedRow(1, "b", "b", "",
					100), carriedRow(1, "b", "a", "no_slot", 800)}, sticky(thirty())),
			Sticky, Moved,
			[]string{"b carried 3.33 % instead of 30.00 %: 800 of 900 messages went to a"},
			nil,
		},
		"draws by recipient under a lowered weight": {
			dayOf(drawnFor(1, "a", 900, "b", 100),
				[]ledger.CarriedRow{carriedRow(1, "a", "a", "", 900), carriedRow(1, "b", "b", "",
					100)},
				sticky(lower(document("default", "a", "45", "b", "55"), "b", "5"))),
			Sticky, Moved,
			[]string{"health weighting had lowered its weight"},
			nil,
		},
		"draws by recipient that nobody carried": {
			dayOf([]ledger.ChoiceRow{
				{Version: 1, Route: "default", Channel: "a", FirstChoice: 2100, Failed: 2100},
				{Version: 1, Route: "default", Channel: "b", FirstChoice: 900, Failed: 900},
			}, nil, sticky(thirty())),
			Sticky, Moved,
			[]string{"0 of 3000 drawn messages were carried"},
			nil,
		},
		"draws by id after a morning of draws by recipient": {
			dayOf(append(drawnFor(1, "a", 2900, "b", 100), drawnFor(2, "a", 600, "b", 400)...),
				[]ledger.CarriedRow{
					carriedRow(2, "a", "a", "", 600), carriedRow(2, "b", "b", "", 400),
				}, sticky(thirty()), thirty()),
			Unfair, Moved,
			[]string{"under version 2 they picked b"},
			[]string{"over 2 versions", "version 1 they"},
		},
		"fair draws by id after a morning of draws by recipient": {
			dayOf(append(drawnFor(1, "a", 2900, "b", 100), drawnFor(2, "a", 700, "b", 300)...),
				[]ledger.CarriedRow{
					carriedRow(2, "a", "a", "", 700), carriedRow(2, "b", "b", "", 300),
				}, sticky(thirty()), thirty()),
			Fair, Kept, nil, nil,
		},
		"a mode that does not draw": {
			dayOf(drawnFor(1, "a", 70, "b", 30), []ledger.CarriedRow{carriedRow(1, "a", "a", "",
				100)}, inMode("default", "round_robin", "a", "b")),
			NoWeight, NoWeight,
			[]string{"no share is agreed"},
			[]string{"fair"},
		},
	} {
		v := tc.day.Routes[0]
		text := strings.Join(v.Text, " ")
		if v.DrawsVerdict != tc.draws || v.TrafficVerdict != tc.traffic {
			t.Errorf("%s: draws %s, traffic %s; want %s, %s: %s", name, v.DrawsVerdict,
				v.TrafficVerdict, tc.draws, tc.traffic, text)
		}
		if found := tc.day.Found(); found != (tc.traffic == Moved || tc.draws == Unfair) {
			t.Errorf("%s: found is %t", name, found)
		}
		for i := range tc.day.Rows {
			if r := &tc.day.Rows[i]; r.Verdict != tc.traffic || r.TrafficVerdict != tc.traffic ||
				r.DrawsVerdict != tc.draws {
				t.Errorf("%s: row %+v", name, r)
			}
		}
		for _, want := range tc.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in %q", name, want, text)
			}
		}
		for _, bad := range tc.never {
			if strings.Contains(text, bad) {
				t.Errorf("%s: %q is in %q", name, bad, text)
			}
		}
	}
}

// sticky makes the only route draw by recipient.
func sticky(doc *config.Routing) *config.Routing {
	doc.Routes[0].Sticky = true
	return doc
}

// tolerant sets the tolerance of the only route.
func tolerant(doc *config.Routing, points config.Tolerance) *config.Routing {
	doc.Routes[0].Tolerance = points
	return doc
}

func TestRowsShowWhatWasCarriedAndWhyNot(t *testing.T) {
	t.Parallel()
	billed := func(segments, micros int64, currency string) ledger.CarriedRow {
		row := carriedRow(1, "b", "a", "breaker_open", 10)
		row.Segments, row.CostMicros, row.Currency = segments, micros, currency
		return row
	}
	d := dayOf([]ledger.ChoiceRow{
		{Version: 1, Route: "default", Channel: "a", FirstChoice: 50},
		{Version: 1, Route: "default", Channel: "b", FirstChoice: 50, Open: 5},
	}, []ledger.CarriedRow{
		carriedRow(1, "a", "a", "", 50), carriedRow(1, "b", "b", "", 15),
		carriedRow(1, "b", "a", "no_slot", 10), billed(10, 300_000, "GBP"), billed(14, 560_000, "EUR"),
	}, document("default", "a", "1", "b", "1"))
	a, b := d.Rows[0], d.Rows[1]
	if a.Carried != 80 || b.Carried != 15 || a.CarriedShare != 80.0/95 ||
		b.CarriedShare != 15.0/95 || *b.AgreedShare != 0.5 {
		t.Errorf("%+v\n%+v", a, b)
	}
	want := []Move{
		{
			Cause: "breaker_open", Channel: "a", Messages: 20, Segments: 24,
			Costs: []MoveCost{{"GBP", 300_000}, {"EUR", 560_000}},
		},
		{Cause: "no_slot", Channel: "a", Messages: 10},
		{Cause: "open", Messages: 5},
	}
	if !cmp.Equal(b.Moved, want) || a.Moved == nil || len(a.Moved) != 0 {
		t.Errorf("%+v, %+v", a.Moved, b.Moved)
	}
}
