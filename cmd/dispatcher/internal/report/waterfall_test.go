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

// anyFigures are figures of a day as no day would have them, over two versions and a route that
// drew under one of them at least.
func anyFigures(t *rapid.T) *Figures {
	channel := rapid.SampledFrom([]string{"a", "b", "c", "gone"})
	n := rapid.Int64Range(0, 5000)
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
				Rejected: n.Draw(t, "rejected"), Failed: n.Draw(t, "failed"),
				Unknown: n.Draw(t, "unknown"), Open: n.Draw(t, "open"),
			}
			c.FirstChoice = c.Rejected + c.Failed + c.Unknown + c.Open + n.Draw(t, "others")
			f.Choices = append(f.Choices, c)
		}
		for range rapid.IntRange(0, 6).Draw(t, "carried") {
			c := ledger.CarriedRow{
				Version: version, Route: "default", FirstChoice: channel.Draw(t, "of"),
				Channel: channel.Draw(t, "by"), Messages: n.Draw(t, "messages"),
			}
			if c.Channel != c.FirstChoice {
				c.Cause = rapid.SampledFrom([]string{
					"no_slot", "breaker_open", "draining", "disabled", "selector", "price_cap",
					"throttled", "refused", "unknown",
				}).Draw(t, "cause")
			}
			f.Carried = append(f.Carried, c)
		}
	}
	return f
}

// TestTheWaterfallSumsExactly from what was agreed to what was carried, channel by channel, and
// what one channel lost to another the other has got.
func TestTheWaterfallSumsExactly(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		f := anyFigures(rt)
		for _, v := range NewDaily(f).Routes {
			var agreed, moved int64
			for _, w := range v.Waterfall {
				sum := w.Agreed
				for _, s := range w.Steps {
					if sum += s.Messages; s.Channel != "" {
						moved += s.Messages
					}
				}
				if agreed += w.Agreed; sum != w.Carried {
					rt.Fatalf("%+v comes to %d", w, sum)
				}
			}
			drawn := int64(0)
			for _, version := range v.Versions {
				drawn += version.Drawn
			}
			if len(v.Waterfall) > 0 && agreed != drawn || moved != 0 {
				rt.Fatalf("%d of %d are agreed, %d moved", agreed, drawn, moved)
			}
		}
	})
}

func TestTheWaterfallNamesEachCause(t *testing.T) {
	t.Parallel()
	f := &Figures{
		Zone: time.UTC,
		Choices: []ledger.ChoiceRow{
			{Version: 1, Route: "default", Channel: "a", FirstChoice: 520, Open: 1},
			{Version: 1, Route: "default", Channel: "b", FirstChoice: 480, Rejected: 5, Failed: 4},
		},
		Carried: []ledger.CarriedRow{
			{Version: 1, Route: "default", FirstChoice: "a", Channel: "a", Messages: 519},
			{Version: 1, Route: "default", FirstChoice: "b", Channel: "b", Messages: 401},
			{Version: 1, Route: "default", FirstChoice: "b", Channel: "a", Cause: "no_slot", Messages: 50},
			{
				Version: 1, Route: "default", FirstChoice: "b", Channel: "a", Cause: "breaker_open",
				Messages: 23,
			},
		},
		Versions: map[int64]*config.Routing{1: document("default", "a", "50", "b", "50")},
	}
	want := []Waterfall{
		{Channel: "a", Agreed: 500, Carried: 592, Steps: []WaterfallStep{
			{Cause: "draws", Messages: 20},
			{Cause: "open", Messages: -1},
			{Cause: "no_slot", Channel: "b", Messages: 50},
			{Cause: "breaker_open", Channel: "b", Messages: 23},
		}},
		{Channel: "b", Agreed: 500, Carried: 401, Steps: []WaterfallStep{
			{Cause: "draws", Messages: -20},
			{Cause: "rejected", Messages: -5},
			{Cause: "failed", Messages: -4},
			{Cause: "other_day", Messages: 3},
			{Cause: "no_slot", Channel: "a", Messages: -50},
			{Cause: "breaker_open", Channel: "a", Messages: -23},
		}},
	}
	if diff := cmp.Diff(want, NewDaily(f).Routes[0].Waterfall); diff != "" {
		t.Error(diff)
	}
}

// TestColumnsAddUp: each attempt is in one of the columns of what became of it, and the totals are
// the sums of the rows, currency by currency.
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
				rt.Fatalf("%+v", r)
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

// TestTheFootnoteNamesTheVersions whose shares were agreed, with the messages under each.
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
		t.Errorf("%q", d.Routes[0].Text)
	}
}
