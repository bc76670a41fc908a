package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/plots"
	"dispatcher/cmd/dispatcher/internal/report"
)

// waterfallTables lead from the agreed to the carried messages of each channel, over all periods:
// one table for each route that draws. In each column, the lines of a channel between the first and
// the last add up to the difference of these two.
func waterfallTables(r *report.Range) (tables []sheet) {
	var routes []string
	for i := range r.Routes {
		if route := r.Routes[i].Route; !slices.Contains(routes, route) {
			routes = append(routes, route)
		}
	}
	for _, route := range routes {
		all := report.SumWaterfalls(plots.Waterfalls(r, route))
		if len(all) > 0 {
			tables = append(tables, waterfallTable(route, all))
		}
	}
	return tables
}

// waterfallTable is the table of a route: messages, segments, and a column for each currency.
func waterfallTable(route string, all []report.Waterfall) sheet {
	currencies := waterfallCurrencies(all)
	s := sheet{
		title:  fmt.Sprintf("route %s: from agreed to carried", route),
		header: append([]string{"channel", "step", "messages", "segments"}, currencies...),
		wrap:   map[int]int{}, tight: true,
	}
	for len(s.right) < 2+len(currencies) {
		s.right = append(s.right, 3+len(s.right))
	}
	line := func(
		channel, step string, text func(int64, func(int64) string) string, messages int64,
		segments int64, costs []report.MoveCost,
	) {
		row := []string{channel, step, text(messages, number), text(segments, number)}
		for _, currency := range currencies {
			row = append(row, text(costIn(costs, currency), report.Money))
		}
		s.rows = append(s.rows, row)
	}
	plain := func(n int64, text func(int64) string) string { return text(n) }
	for i := range all {
		w := &all[i]
		line(w.Channel, "agreed", plain, w.Agreed, w.AgreedSegments, w.AgreedCosts)
		for j := range w.Steps {
			step := &w.Steps[j]
			line("", plots.StepName(step), signed, step.Messages, step.Segments, step.Costs)
		}
		line("", "carried", plain, w.Carried, w.CarriedSegments, w.CarriedCosts)
	}
	return s
}

// signed is a difference: with a plus if above zero, and empty if zero.
func signed(n int64, text func(int64) string) string {
	switch {
	case n > 0:
		return "+" + text(n)
	case n < 0:
		return text(n)
	}
	return ""
}

// waterfallCurrencies are the currencies in which anything cost something.
func waterfallCurrencies(all []report.Waterfall) (out []string) {
	for i := range all {
		for _, c := range slices.Concat(all[i].AgreedCosts, all[i].CarriedCosts) {
			out = append(out, c.Currency)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// costIn is the amount in a currency, in micros.
func costIn(costs []report.MoveCost, currency string) (micros int64) {
	for _, c := range costs {
		if c.Currency == currency {
			micros += c.CostMicros
		}
	}
	return micros
}

// steps writes a waterfall for CSV in one unit, as in "agreed - 150;draws - 3;no_slot:1d:messages
// a -80;carried - 73". It is empty without a waterfall.
func steps(w *report.Waterfall, in measure) string {
	if w == nil {
		return ""
	}
	var out []string
	add := func(cause, channel string, messages, segments int64, costs []report.MoveCost) {
		cause += " " + cmp.Or(channel, "-") + " "
		switch in {
		case inMessages:
			if messages != 0 || channel == "" {
				out = append(out, cause+number(messages))
			}
		case inSegments:
			out = append(out, cause+number(segments))
		case inMoney:
			for _, c := range costs {
				out = append(out, cause+report.Amount(c.CostMicros, c.Currency))
			}
		case inAttempts: // no channel gains or loses them
		}
	}
	add("agreed", "", w.Agreed, w.AgreedSegments, w.AgreedCosts)
	for i := range w.Steps {
		s := &w.Steps[i]
		add(s.Stored(), s.Channel, s.Messages, s.Segments, s.Costs)
	}
	add("carried", "", w.Carried, w.CarriedSegments, w.CarriedCosts)
	return strings.Join(out, ";")
}
