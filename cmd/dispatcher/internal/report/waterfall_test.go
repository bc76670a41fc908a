package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// anyFigures draws arbitrary figures of a day over two versions, with a route that drew under at
// least one.
func anyFigures(t *rapid.T) *Figures {
	channel := rapid.SampledFrom([]string{"a", "b", "c", "gone"})
	n := rapid.Int64Range(0, 5000)
	currency := rapid.SampledFrom([]string{"GBP", "EUR"})
	ends := append([]string{"", "", causeOpen}, endCauses...)
	f := &Figures{
		Zone: time.UTC,
		Versions: map[int64]*config.Routing{
			1: document("default", "a", "25", "b", "15", "c", "60"),
			2: lower(document("default", "a", "50", "b", "33.3", "c", "16.7"), "b", "7"),
		},
	}
	f.Current = f.Versions[2]
	if rapid.Bool().Draw(t, "turns") {
		f.Versions[3] = inMode("default", "round_robin", "a", "b")
	}
	for version := range f.Versions {
		for range rapid.IntRange(0, 6).Draw(t, "choices") {
			c := ledger.ChoiceRow{
				Version: version, Route: "default", Channel: channel.Draw(t, "first"),
				Segments: n.Draw(t, "segments"),
			}
			if c.Cause = rapid.SampledFrom(ends).Draw(t, "end"); c.Cause == "" {
				c.Rejected, c.Failed = n.Draw(t, "rejected"), n.Draw(t, "failed")
				c.Unknown, c.Open = n.Draw(t, "unknown"), n.Draw(t, "open")
			}
			c.FirstChoice = c.Rejected + c.Failed + c.Unknown + c.Open + n.Draw(t, "others")
			f.Choices = append(f.Choices, c)
		}
		for range rapid.IntRange(0, 6).Draw(t, "carried") {
			c := ledger.CarriedRow{
				Version: version, Route: "default", FirstChoice: channel.Draw(t, "of"),
				Channel: channel.Draw(t, "by"), Messages: n.Draw(t, "messages"),
				Segments: n.Draw(t, "billed"), TextSegments: n.Draw(t, "text"),
				CostMicros: rapid.Int64Range(0, 9e12).Draw(t, "cost"), Currency: currency.Draw(t, "in"),
			}
			if c.Channel != c.FirstChoice {
				c.Cause = rapid.SampledFrom([]string{
					"no_slot", "no_slot:1d:messages", "tenant_limit:all:1h:money:tenant:shop", "breaker_open", "draining", "disabled", "selector", "price_cap",
					"throttled", "refused", "unknown",
				}).Draw(t, "cause")
			}
			f.Carried = append(f.Carried, c)
		}
		for range rapid.IntRange(0, 6).Draw(t, "attempts") {
			f.Rows = append(f.Rows, ledger.DailyRow{
				Route: "default", Channel: channel.Draw(t, "tried"), Segments: n.Draw(t, "bill"),
				CostMicros: rapid.Int64Range(0, 9e12).Draw(t, "micros"), Currency: currency.Draw(t, "of"),
				Attempts: 1, Accepted: 1,
			})
		}
	}
	return f
}

// sumOf returns the start of a waterfall plus its steps to what was drawn, and plus all steps, in
// messages, segments and amounts. moved is the sum of what moved between channels.
func sumOf(w *Waterfall) (drawn, sum, moved quantity) {
	sum = quantityOf(w.Agreed, w.AgreedSegments, w.AgreedCosts)
	drawn = sum
	for _, s := range w.Steps {
		q := quantityOf(s.Messages, s.Segments, s.Costs)
		if slices.Contains([]string{causeHealth, stepDraws, stepPrices}, s.Cause) {
			drawn = drawn.plus(&q)
		}
		if sum = sum.plus(&q); s.Channel != "" {
			moved = moved.plus(&q)
		}
	}
	return drawn, sum, moved
}

// TestTheWaterfallSumsExactly: for each channel the steps lead from the agreed to the carried
// messages, segments and money of each currency, and end with the figures of the rows. On the way
// they come to what was drawn. What one channel lost to another, the other gained. The same holds
// for the sum over two days. The first choices of all channels cost what was billed for carried
// messages.
func TestTheWaterfallSumsExactly(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		figures := anyFigures(rt)
		day := NewDaily(figures)
		ends := map[string]quantity{}
		var billed, first quantity
		for i := range figures.Carried {
			c := &figures.Carried[i]
			billed = billed.plus(&quantity{costs: map[string]int64{c.Currency: c.CostMicros}})
		}
		for _, r := range day.Rows {
			first = first.plus(&quantity{costs: map[string]int64{r.Currency: r.FirstChoiceMicros}})
			q := quantity{r.Carried, r.Segments, map[string]int64{r.Currency: r.CostMicros}}
			sum := ends[r.Channel]
			ends[r.Channel] = sum.plus(&q)
		}
		if off := first.less(&billed); len(off.listed()) > 0 {
			rt.Fatalf("what first choices cost is off by %+v", off.listed())
		}
		for _, v := range day.Routes {
			agreed, moved := checkSums(rt, v.Waterfall, ends)
			drawn := int64(0)
			for _, version := range v.Versions {
				drawn += version.Drawn
			}
			if len(v.Waterfall) > 0 && agreed.messages != drawn || moved.messages != 0 ||
				moved.segments != 0 || len(moved.listed()) > 0 {
				rt.Fatalf("%+v of %d are agreed, %+v moved", agreed, drawn, moved)
			}
		}
		all := slices.Clone(day.Routes[0].Waterfall)
		for _, v := range NewDaily(anyFigures(rt)).Routes {
			all = append(all, v.Waterfall...)
		}
		checkSums(rt, SumWaterfalls(all), nil)
	})
}

// checkSums checks that waterfalls add up and end with the given figures of their channels.
func checkSums(rt *rapid.T, all []Waterfall, ends map[string]quantity) (agreed, moved quantity) {
	for i := range all {
		w := &all[i]
		first := quantityOf(w.Agreed, w.AgreedSegments, w.AgreedCosts)
		last := quantityOf(w.Carried, w.CarriedSegments, w.CarriedCosts)
		drawn, sum, between := sumOf(w)
		given := quantityOf(w.Drawn, w.DrawnSegments, w.DrawnCosts)
		if off := drawn.less(&given); off.messages != 0 || off.segments != 0 || len(off.listed()) > 0 {
			rt.Fatalf("%+v: what was drawn is off by %+v", w, off)
		}
		agreed, moved = agreed.plus(&first), moved.plus(&between)
		want, known := ends[w.Channel]
		if !known {
			want = last
		}
		for _, got := range []quantity{sum, last} {
			if off := got.less(&want); off.messages != 0 || off.segments != 0 || len(off.listed()) > 0 {
				rt.Fatalf("%+v is off by %+v", w, off)
			}
		}
	}
	return agreed, moved
}

// TestTheWaterfallNamesEachCause: 1000 messages, each of two segments; those that expired have
// three. b counts one segment more in what it accepts from a, and was billed for a part of one
// message.
func TestTheWaterfallNamesEachCause(t *testing.T) {
	t.Parallel()
	carried := func(first, channel, cause string, messages, more, price int64) ledger.CarriedRow {
		return ledger.CarriedRow{
			Version: 1, Route: "default", FirstChoice: first, Channel: channel, Cause: cause,
			Messages: messages, TextSegments: 2 * messages, Segments: 2*messages + more,
			CostMicros: (2*messages + more) * price, Currency: "GBP",
		}
	}
	chosen := func(channel, cause string, messages, segments int64) ledger.ChoiceRow {
		return ledger.ChoiceRow{
			Version: 1, Route: "default", Channel: channel, FirstChoice: messages, Cause: cause,
			Segments: messages * segments,
		}
	}
	f := &Figures{
		Zone: time.UTC,
		Choices: []ledger.ChoiceRow{
			chosen("a", "", 519, 2), chosen("a", "open", 1, 2),
			chosen("b", "", 471, 2), chosen("b", "rejected", 3, 2), chosen("b", "opted_out", 2, 2),
			chosen("b", "expired", 4, 3),
		},
		Carried: []ledger.CarriedRow{
			carried("a", "a", "", 513, 0, 10), carried("a", "b", "disabled", 6, 1, 20),
			carried("b", "b", "", 401, 0, 20), carried("b", "a", "no_slot", 50, 0, 10),
			carried("b", "a", "breaker_open", 23, 0, 10),
		},
		Rows: []ledger.DailyRow{
			{Route: "default", Channel: "a", Segments: 1172, CostMicros: 11720, Currency: "GBP"},
			{Route: "default", Channel: "b", Segments: 816, CostMicros: 16320, Currency: "GBP"},
		},
		Versions: map[int64]*config.Routing{1: document("default", "a", "50", "b", "50")},
	}
	gbp := func(micros int64) []MoveCost {
		if micros == 0 {
			return []MoveCost{}
		}
		return []MoveCost{{"GBP", micros}}
	}
	step := func(cause, channel string, in bool, messages, segments, micros int64) WaterfallStep {
		return WaterfallStep{
			Cause: cause, Channel: channel, In: in, Messages: messages, Segments: segments,
			Costs: gbp(micros),
		}
	}
	want := []Waterfall{
		{
			Channel: "a", Agreed: 500, AgreedSegments: 1002, AgreedCosts: gbp(14010),
			Drawn: 520, DrawnSegments: 1040, DrawnCosts: gbp(10520),
			Carried: 586, CarriedSegments: 1172, CarriedCosts: gbp(11720),
			Steps: []WaterfallStep{
				step("draws", "", false, 20, 38, 635),
				step("prices", "", false, 0, 0, -4125),
				step("open", "", false, -1, -2, 0),
				step("counted_otherwise", "", false, 0, 1, 0),
				step("disabled", "b", false, -6, -13, -260),
				step("no_slot", "b", true, 50, 100, 1000),
				step("breaker_open", "b", true, 23, 46, 460),
			},
		},
		{
			Channel: "b", Agreed: 500, AgreedSegments: 1002, AgreedCosts: gbp(14010),
			Drawn: 480, DrawnSegments: 964, DrawnCosts: gbp(17500),
			Carried: 407, CarriedSegments: 816, CarriedCosts: gbp(16320),
			Steps: []WaterfallStep{
				step("draws", "", false, -20, -38, -635),
				step("prices", "", false, 0, 0, 4125),
				step("expired", "", false, -4, -12, 0),
				step("rejected", "", false, -3, -6, 0),
				step("opted_out", "", false, -2, -4, 0),
				step("other_day", "", false, 3, 6, 0),
				step("in_part", "", false, 0, 1, 20),
				step("no_slot", "a", false, -50, -100, -1000),
				step("breaker_open", "a", false, -23, -46, -460),
				step("disabled", "a", true, 6, 13, 260),
			},
		},
	}
	got := NewDaily(f)
	if diff := cmp.Diff(want, got.Routes[0].Waterfall); diff != "" {
		t.Error(diff)
	}
	twice := want[0]
	twice.Steps = append(slices.Clone(twice.Steps), step("no_slot", "b", false, -7, -14, -140))
	sum := SumWaterfalls([]Waterfall{want[0], twice})[0].Steps
	if diff := cmp.Diff([]WaterfallStep{
		step("disabled", "b", false, -12, -26, -520), step("no_slot", "b", false, -7, -14, -140),
		step("no_slot", "b", true, 100, 200, 2000), step("breaker_open", "b", true, 46, 92, 920),
	}, sum[len(sum)-4:]); diff != "" {
		t.Errorf("over two days, with one cause both ways: %s", diff)
	}
}

// TestColumnsAddUp: each attempt is in one of the columns of outcomes, and the totals are the sums
// of the rows, for each currency.
func TestColumnsAddUp(t *testing.T) {
	t.Parallel()
	n := rapid.Int64Range(0, 1000)
	tier.Check(t, func(rt *rapid.T) {
		f := anyFigures(rt)
		for range rapid.IntRange(0, 8).Draw(rt, "rows") {
			r := ledger.DailyRow{
				Route: "default", Channel: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "channel"),
				Currency: rapid.SampledFrom([]string{"GBP", "EUR"}).Draw(rt, "currency"),
				Accepted: n.Draw(rt, "accepted"), Rejected: n.Draw(rt, "rejected"),
				Refused: n.Draw(rt, "refused"), Throttled: n.Draw(rt, "throttled"),
				Unknown: n.Draw(rt, "unknown"), Unsent: n.Draw(rt, "unsent"),
				Pending: n.Draw(rt, "pending"), CostMicros: n.Draw(rt, "cost"),
			}
			r.Attempts = r.Accepted + r.Rejected + r.Refused + r.Throttled + r.Unknown + r.Unsent +
				r.Pending
			f.Rows = append(f.Rows, r)
		}
		d := NewDaily(f)
		cost := map[string]int64{}
		for _, r := range d.Rows {
			if r.Attempts != r.Accepted+r.Failed+r.Unknown+r.Unsent+r.Pending {
				rt.Fatalf("got %+v, want Attempts %v",
					r, r.Accepted+r.Failed+r.Unknown+r.Unsent+r.Pending)
			}
			cost[r.Currency] += r.CostMicros
		}
		for _, total := range d.Totals {
			if total.CostMicros != cost[total.Currency] {
				rt.Fatalf("%+v, rows have %v", total, cost)
			}
		}
	})
}

// TestTheFootnoteNamesTheVersions: those whose shares were agreed, with the messages under each.
func TestTheFootnoteNamesTheVersions(t *testing.T) {
	t.Parallel()
	doc := document("default", "a", "50", "b", "50")
	d := NewDaily(&Figures{
		Zone: time.UTC, Versions: map[int64]*config.Routing{3: doc, 4: doc},
		Choices: []ledger.ChoiceRow{
			{Version: 3, Route: "default", Channel: "a", FirstChoice: 100},
			{Version: 4, Route: "default", Channel: "b", FirstChoice: 110},
		},
		Carried: []ledger.CarriedRow{
			{Version: 4, Route: "default", FirstChoice: "b", Channel: "b", Messages: 70},
		},
	})
	if !slices.ContainsFunc(d.Routes[0].Text, func(s string) bool {
		return strings.Contains(s, "version 3 (100 drawn, 0 carried) and version 4 (110 drawn, "+
			"70 carried)")
	}) {
		t.Errorf("got %q", d.Routes[0].Text)
	}
}

// TestTheFootnoteHasTheAgreedSharesByTime, where they are not those by messages: a version that was
// in force for most of the day may have had few messages. Verdicts count messages.
func TestTheFootnoteHasTheAgreedSharesByTime(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	figures := func(versions map[int64]*config.Routing) *Figures {
		return &Figures{
			Day: begin, Zone: time.UTC, Versions: versions,
			Choices: []ledger.ChoiceRow{
				{Version: 3, Route: "default", Channel: "a", FirstChoice: 100},
				{Version: 5, Route: "default", Channel: "b", FirstChoice: 300},
			},
			Carried: []ledger.CarriedRow{
				{Version: 3, Route: "default", FirstChoice: "a", Channel: "a", Messages: 100},
				{Version: 5, Route: "default", FirstChoice: "b", Channel: "b", Messages: 300},
			},
			// Version 4 has effects on 3, and so its agreed shares.
			InForce: []ledger.InForce{
				{Version: 3, Base: 3, From: hour(0), To: hour(15)},
				{Version: 4, Base: 3, From: hour(15), To: hour(18)},
				{Version: 5, Base: 5, From: hour(18), To: hour(24)},
			},
		}
	}
	all, none := document("default", "a", "100", "b", "0"), document("default", "a", "0", "b", "100")
	day := NewDaily(figures(map[int64]*config.Routing{3: all, 4: all, 5: none}))
	v := day.Routes[0]
	want := []TimeShare{{"a", 0.75}, {"b", 0.25}}
	if !slices.Equal(v.AgreedByTime, want) || v.TrafficVerdict != Kept {
		t.Errorf("got %+v, verdict %s", v.AgreedByTime, v.TrafficVerdict)
	}
	for i, r := range day.Rows {
		if r.AgreedShareByTime == nil || *r.AgreedShareByTime != want[i].Share {
			t.Errorf("%s has %v by time, want %v", r.Channel, r.AgreedShareByTime, want[i].Share)
		}
	}
	text := strings.Join(v.Text, " ")
	for _, words := range []string{
		"version 3 (100 drawn, 100 carried, in force for 15.0 h) and version 5 (300 drawn, 300 " +
			"carried, in force for 6.0 h)",
		"Weighted by the time that each version was in force, the agreed shares are a 75.00 % and " +
			"b 25.00 %.",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("got %q, want %q in it", text, words)
		}
	}
	same := NewDaily(figures(map[int64]*config.Routing{3: none, 4: none, 5: none})).Routes[0]
	if strings.Contains(strings.Join(same.Text, " "), "Weighted by the time") {
		t.Errorf("without a difference: %q", same.Text)
	}
}
