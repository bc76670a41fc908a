package main

import (
	"fmt"
	"slices"

	"dispatcher/cmd/dispatcher/internal/plots"
	"dispatcher/cmd/dispatcher/internal/report"
)

// waterfallTables lead from the agreed to the carried messages of each channel, over all periods: a
// table for each route that draws. Of each channel the lines between the first and the last add up
// to their difference.
func waterfallTables(r *report.Range) (tables []sheet) {
	var routes []string
	for i := range r.Routes {
		if route := r.Routes[i].Route; !slices.Contains(routes, route) {
			routes = append(routes, route)
		}
	}
	for _, route := range routes {
		s := sheet{
			title:  fmt.Sprintf("route %s: from agreed to carried, in messages", route),
			header: []string{"channel", "step", "messages"}, right: []int{3}, wrap: map[int]int{},
			tight: true,
		}
		for _, w := range report.SumWaterfalls(plots.Waterfalls(r, route)) {
			s.rows = append(s.rows, []string{w.Channel, "agreed", number(w.Agreed)})
			for _, step := range w.Steps {
				s.rows = append(s.rows, []string{"", plots.StepName(&step), fmt.Sprintf("%+d", step.Messages)})
			}
			s.rows = append(s.rows, []string{"", "carried", number(w.Carried)})
		}
		if len(s.rows) > 0 {
			tables = append(tables, s)
		}
	}
	return tables
}
