package report

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// document returns a routing with one route of the given weights.
func document(route string, weights ...string) *config.Routing {
	doc := &config.Routing{Timezone: time.UTC, Routes: []config.Route{{
		Name: route,
		Mode: "weighted", Fallback: "load_ratio", Tolerance: config.DefaultTolerance,
	}}}
	r := &doc.Routes[0]
	for i := 0; i < len(weights); i += 2 {
		doc.Channels = append(doc.Channels, config.Channel{Name: weights[i], Capacity: 100})
		w := selector.MustWeight(weights[i+1])
		r.Channels = append(r.Channels, weights[i])
		r.Weights = append(r.Weights, config.Weight{Channel: weights[i], Weight: w, Configured: w})
	}
	return doc
}

// inMode returns a routing with one route that depends on the shared state.
func inMode(route, mode string, channels ...string) *config.Routing {
	doc := document(route)
	doc.Routes[0].Mode, doc.Routes[0].Channels = config.Mode(mode), channels
	for _, name := range channels {
		doc.Channels = append(doc.Channels, config.Channel{Name: name, Capacity: 100})
	}
	return doc
}

// lower sets the effective weight of a channel of the only route.
func lower(doc *config.Routing, channel, weight string) *config.Routing {
	for i := range doc.Routes[0].Weights {
		if w := &doc.Routes[0].Weights[i]; w.Channel == channel {
			w.Weight = selector.MustWeight(weight)
		}
	}
	return doc
}

var approximately = cmpopts.EquateApprox(0, 1e-9)

func TestDailySharesAreThoseOfTheVersionsInForce(t *testing.T) {
	t.Parallel()
	d := NewDaily(&Figures{
		Day: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Zone: time.UTC,
		Choices: []ledger.ChoiceRow{
			{Version: 1, Route: "default", Channel: "a", FirstChoice: 260},
			{Version: 1, Route: "default", Channel: "b", FirstChoice: 740},
			{Version: 2, Route: "default", Channel: "a", FirstChoice: 1510},
			{Version: 2, Route: "default", Channel: "b", FirstChoice: 1490},
		},
		Versions: map[int64]*config.Routing{
			1: document("default", "b", "75", "a", "25"),
			2: document("default", "b", "50", "a", "50"),
		},
		Current: document("default", "b", "50", "a", "50"),
	})
	// 1000 messages at 25 % and 3000 at 50 % make 43.75 %.
	want := []DailyRow{
		{
			Route: "default", Channel: "b", ConfiguredShare: new(0.5625),
			EffectiveShare: new(0.5625),
			FirstChoice:    2230, FirstChoiceShare: 0.5575, Deviation: new(-0.005),
			AgreedShare: new(0.5625),
		},
		{
			Route: "default", Channel: "a", ConfiguredShare: new(0.4375),
			EffectiveShare: new(0.4375),
			FirstChoice:    1770, FirstChoiceShare: 0.4425, Deviation: new(0.005),
			AgreedShare: new(0.4375),
		},
	}
	for i := range want {
		want[i].PValue, want[i].Moved = d.Rows[i].PValue, []Move{}
		want[i].Waterfall = &d.Routes[0].Waterfall[i]
		// nothing was carried
		want[i].Verdict, want[i].TrafficVerdict, want[i].DrawsVerdict = TooFew, TooFew, Fair
	}
	if !cmp.Equal(d.Rows, want, approximately) {
		t.Error(cmp.Diff(want, d.Rows, approximately))
	}
	// x = 10²/250 + 10²/750 + 10²/1500 + 10²/1500 with two degrees of freedom.
	if p := d.Rows[0].PValue; p == nil || math.Abs(*p-0.7165) > 0.001 ||
		d.Routes[0].DegreesOfFreedom != 2 {
		t.Errorf("p = %v, %+v", p, d.Routes)
	}
}

// TestDailyJudgesByTheWeightsThatDrewAndShowsThoseAgreed: for half of the day health weighting had
// lowered a from 50 to 10. The agreed share is a half; the draws used a third.
func TestDailyJudgesByTheWeightsThatDrewAndShowsThoseAgreed(t *testing.T) {
	t.Parallel()
	whole := document("default", "a", "50", "b", "50")
	d := NewDaily(&Figures{
		Zone: time.UTC,
		Choices: []ledger.ChoiceRow{
			{Version: 1, Route: "default", Channel: "a", FirstChoice: 500},
			{Version: 1, Route: "default", Channel: "b", FirstChoice: 500},
			{Version: 2, Route: "default", Channel: "a", FirstChoice: 167},
			{Version: 2, Route: "default", Channel: "b", FirstChoice: 833},
		},
		Versions: map[int64]*config.Routing{1: whole, 2: lower(document("default", "a", "50", "b",
			"50"), "a", "10")},
		Current: whole,
	})
	a := d.Rows[0]
	if a.DrawsVerdict != Fair || !cmp.Equal(a.ConfiguredShare, new(0.5)) ||
		!cmp.Equal(a.EffectiveShare, new(1.0/3), approximately) {
		t.Errorf("got %+v", a)
	}
	if !cmp.Equal(a.Deviation, new(0.3335-0.5), approximately) {
		t.Errorf("deviation %v", *a.Deviation)
	}
}

func TestDailyJudgesNothingWhereNothingIsDrawn(t *testing.T) {
	t.Parallel()
	doc := inMode("default", "round_robin", "a", "b", "spare")
	d := NewDaily(&Figures{
		Zone: time.UTC,
		Choices: []ledger.ChoiceRow{
			{Version: 1, Route: "default", Channel: "a", FirstChoice: 30},
			{Version: 1, Route: "default", Channel: "b", FirstChoice: 10},
		},
		Versions: map[int64]*config.Routing{1: doc}, Current: doc,
	})
	want := []DailyRow{
		{
			Route: "default", Channel: "a", FirstChoice: 30, FirstChoiceShare: 0.75, Verdict: NoWeight,
			TrafficVerdict: NoWeight, DrawsVerdict: NoWeight, Moved: []Move{},
		},
		{
			Route: "default", Channel: "b", FirstChoice: 10, FirstChoiceShare: 0.25, Verdict: NoWeight,
			TrafficVerdict: NoWeight, DrawsVerdict: NoWeight, Moved: []Move{},
		},
		{
			Route: "default", Channel: "spare", Verdict: NoWeight, TrafficVerdict: NoWeight,
			DrawsVerdict: NoWeight, Moved: []Move{},
		},
	}
	if !cmp.Equal(d.Rows, want) {
		t.Error(cmp.Diff(want, d.Rows))
	}
}

// TestDailyJudgesOnlyTheDrawsOfADayThatChangedItsMode: ninety round robin choices say nothing about
// the shares of the forty draws before them.
func TestDailyJudgesOnlyTheDrawsOfADayThatChangedItsMode(t *testing.T) {
	t.Parallel()
	turns := inMode("default", "round_robin", "a", "b")
	d := NewDaily(&Figures{
		Zone: time.UTC,
		Choices: []ledger.ChoiceRow{
			{Version: 1, Route: "default", Channel: "a", FirstChoice: 10},
			{Version: 1, Route: "default", Channel: "b", FirstChoice: 30},
			{Version: 2, Route: "default", Channel: "a", FirstChoice: 45},
			{Version: 2, Route: "default", Channel: "b", FirstChoice: 45},
		},
		Versions: map[int64]*config.Routing{1: document("default", "a", "25", "b", "75"), 2: turns},
		Current:  turns,
	})
	a := d.Rows[0]
	if a.FirstChoice != 55 || a.DrawsVerdict != Fair || *a.PValue != 1 ||
		*a.ConfiguredShare != 0.25 || *a.Deviation != 0 {
		t.Errorf("got %+v", a)
	}
}

func TestDailyShowsAChannelThatGotNothing(t *testing.T) {
	t.Parallel()
	doc := document("default", "a", "50", "b", "50", "spare", "0")
	d := NewDaily(&Figures{
		Zone: time.UTC, Choices: []ledger.ChoiceRow{{
			Version: 1, Route: "default", Channel: "a",
			FirstChoice: 100,
		}},
		Versions: map[int64]*config.Routing{1: doc}, Current: doc,
	})
	if len(d.Rows) != 3 || d.Rows[1].Channel != "b" || d.Rows[1].FirstChoice != 0 ||
		d.Rows[1].Verdict != TooFew || d.Rows[1].DrawsVerdict != Unfair {
		t.Errorf("got %+v", d.Rows)
	}
}

func TestDailyKeepsCurrenciesApart(t *testing.T) {
	t.Parallel()
	doc := document("default", "a", "50", "b", "50")
	d := NewDaily(&Figures{
		Zone: time.UTC,
		Rows: []ledger.DailyRow{
			{
				Route: "default", Channel: "a", Fallback: 1, Submitted: 7, Accepted: 5, Rejected: 1,
				Throttled: 1, Segments: 6, CostMicros: 60, Currency: "EUR",
			},
			{
				Route: "default", Channel: "a", Submitted: 1, Accepted: 1, Segments: 1, CostMicros: 9,
				Currency: "GBP",
			},
			{
				Route: "default", Channel: "b", Submitted: 2, Unknown: 1, Refused: 4, Accepted: 1,
				Segments: 1, CostMicros: 11, Currency: "GBP",
			},
		},
		Choices: []ledger.ChoiceRow{
			{Version: 1, Route: "default", Channel: "a", FirstChoice: 4},
			{Version: 1, Route: "default", Channel: "b", FirstChoice: 2},
		},
		Versions: map[int64]*config.Routing{1: doc}, Current: doc,
	})
	if len(d.Rows) != 3 || d.Rows[0].FirstChoice != 4 || d.Rows[1].FirstChoice != 0 ||
		d.Rows[1].Currency != "GBP" || d.Rows[2].Failed != 4 {
		t.Errorf("got %+v", d.Rows)
	}
	want := []DailyTotal{
		{
			Route: "default", FirstChoice: 6, Fallback: 1, Submitted: 7, Accepted: 5, Failed: 2,
			Segments: 6, CostMicros: 60, Currency: "EUR",
		},
		{
			Route: "default", Submitted: 3, Accepted: 2, Failed: 4, Unknown: 1, Segments: 2,
			CostMicros: 20, Currency: "GBP",
		},
	}
	if !cmp.Equal(d.Totals, want) {
		t.Error(cmp.Diff(want, d.Totals))
	}
}

func TestDailyOfRetriesAloneJudgesNothing(t *testing.T) {
	t.Parallel()
	d := NewDaily(&Figures{
		Zone: time.UTC,
		Rows: []ledger.DailyRow{
			{Route: "gone", Channel: "x", Submitted: 1, Accepted: 1},
			{Route: "default", Channel: "b", Submitted: 1, Accepted: 1},
		},
		Current: document("default", "a", "25", "b", "75"),
	})
	want := []DailyRow{
		{
			Route: "default", Channel: "a", ConfiguredShare: new(0.25), EffectiveShare: new(0.25),
			Deviation:   new(0.0),
			AgreedShare: new(0.25), Verdict: TooFew, TrafficVerdict: TooFew, DrawsVerdict: TooFew,
			Moved: []Move{},
		},
		{
			Route: "default", Channel: "b", ConfiguredShare: new(0.75), EffectiveShare: new(0.75),
			Deviation:   new(0.0),
			AgreedShare: new(0.75), Submitted: 1, Accepted: 1, Verdict: TooFew,
			TrafficVerdict: TooFew, DrawsVerdict: TooFew, Moved: []Move{},
		},
		{
			Route: "gone", Channel: "x", Submitted: 1, Accepted: 1, Verdict: TooFew,
			TrafficVerdict: TooFew, DrawsVerdict: TooFew, Moved: []Move{},
		},
	}
	if !cmp.Equal(d.Rows, want) {
		t.Error(cmp.Diff(want, d.Rows))
	}
}

func TestADayWithoutMessagesIsAnEmptyList(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("far east", 9*3600)
	d := NewDaily(&Figures{
		Day: time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC), Zone: zone,
		Current: document("default", "a", "1"),
	})
	if d.Day != "2026-11-22" || d.Timezone != "far east" || d.Rows == nil || len(d.Rows) != 0 ||
		d.Totals == nil {
		t.Errorf("got %+v", d)
	}
}

func TestMoneyIsExact(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]string{
		0: "0.00", 1: "0.000001", 28_000: "0.028", 500_000: "0.50", 1_000_000: "1.00",
		12_345_600_000: "12345.60", -30_500: "-0.0305",
	} {
		if got := Money(micros); got != want {
			t.Errorf("%d micros are %s, want %s", micros, got, want)
		}
	}
}
