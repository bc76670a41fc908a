package main

import (
	"fmt"
	"strings"

	"dispatcher/cmd/dispatcher/internal/simulate"
)

// simulationSheet has one row per policy; in a table without what became of messages when none arrived.
func simulationSheet(outcomes []simulate.Outcome, as format) sheet {
	out := sheet{
		header: []string{"policy", "free", "region_slots", "anywhere_slots", "per_worker"}, right: []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, tight: true,
	}
	if as == formatTable {
		out.header = []string{"policy", "free", "region", "anywhere", "per worker"}
	}
	shown := as == formatCSV || outcomes[0].Arrived > 0
	for i := range outcomes {
		o := &outcomes[i]
		row := []string{o.Policy, number(o.Free), number(o.RegionSlots), number(o.AnywhereSlots), number(o.PerWorker)}
		for _, f := range trafficFigures(&o.Traffic) {
			name := f.name
			if as == formatTable {
				name = f.short
			}
			if !shown || name == "" {
				continue
			}
			if i == 0 {
				out.header = append(out.header, name)
			}
			row = append(row, f.text(as))
		}
		out.rows = append(out.rows, row)
	}
	return out
}

// trafficFigure is one figure of what became of the messages.
type trafficFigure struct {
	name  string // in CSV and JSON
	short string // above the table; empty for those that it has no room for
	value float64
}

// text is the figure with all digits; in a table with two behind the point, and what is little not as nothing.
func (f *trafficFigure) text(as format) string {
	switch {
	case as != formatTable:
		return as.fraction(&f.value)
	case f.value > 0 && f.value < 0.005:
		return "<0.01"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.2f", f.value), ".00")
}

// trafficFigures are all of them.
func trafficFigures(t *simulate.Traffic) []trafficFigure {
	return []trafficFigure{
		{"arrived", "", float64(t.Arrived)},
		{"admitted", "admitted", float64(t.Admitted)},
		{"queued", "queued", float64(t.Queued)},
		{"early", "", float64(t.Early)},
		{"overtaken", "", float64(t.Overtaken)},
		{"over", "", float64(t.Over)},
		{"unused", "", float64(t.Unused)},
		{"stranded", "", float64(t.Stranded)},
		{"early_percent", "early %", t.EarlyPercent},
		{"overtaken_percent", "overtaken %", t.OvertakenPercent},
		{"over_percent", "over %", t.OverPercent},
		{"unused_percent", "unused %", t.UnusedPercent},
		{"stranded_percent", "", t.StrandedPercent},
		{"calls_per_message", "calls", t.CallsPerMessage},
		{"latency_ms", "ms", t.LatencyMs},
		{"latency_p95_ms", "", t.LatencyP95Ms},
		{"decision_ns", "", t.DecisionNs},
	}
}

// simulationLegend explains the columns of the table, below it: nothing when no messages arrived. What was measured here
// stands apart from what is modelled.
func simulationLegend(outcomes []simulate.Outcome) []string {
	if outcomes[0].Arrived == 0 {
		return nil
	}
	measured := make([]string, len(outcomes))
	for i := range outcomes {
		measured[i] = fmt.Sprintf("%s %.0f", outcomes[i].Policy, outcomes[i].DecisionNs)
	}
	return []string{
		"early: queued although a slot stayed free; overtaken: queued, and a later one got in; over: beyond the limit; unused: left at window ends.",
		"calls: per message, to counters; ms: their time, modelled by call_ms. Measured ns of a decision: " + strings.Join(measured, ", ") + ".",
	}
}
