package main

import (
	"fmt"
	"strings"

	"dispatcher/cmd/dispatcher/internal/simulate"
)

// simulationSheet has one row per policy; in a table without what became of messages when none arrived.
func simulationSheet(outcomes []simulate.Outcome, as format) sheet {
	out := sheet{header: []string{"policy", "free", "region_slots", "anywhere_slots", "per_worker"}, right: []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, tight: true}
	traffic := []string{"admitted", "queued", "early_percent", "over_percent", "unused_percent", "stranded_percent", "calls_per_message", "latency_ms"}
	if as == formatTable {
		out.header = []string{"policy", "free", "region", "anywhere", "per worker"}
		traffic = []string{"admitted", "queued", "early %", "over %", "unused %", "stranded %", "calls", "ms"}
	}
	arrived := outcomes[0].Arrived > 0
	if arrived || as == formatCSV {
		out.header = append(out.header, traffic...)
	}
	for i := range outcomes {
		o := &outcomes[i]
		row := []string{o.Policy, number(o.Free), number(o.RegionSlots), number(o.AnywhereSlots), number(o.PerWorker)}
		if arrived || as == formatCSV {
			row = append(row, trafficCells(&o.Traffic, as)...)
		}
		out.rows = append(out.rows, row)
	}
	return out
}

// trafficCells are what became of the messages.
func trafficCells(t *simulate.Traffic, as format) []string {
	cells := []string{number(t.Admitted), number(t.Queued)}
	for _, f := range []float64{t.EarlyPercent, t.OverPercent, t.UnusedPercent, t.StrandedPercent, t.CallsPerMessage, t.LatencyMs} {
		cell := as.fraction(&f)
		if as == formatTable {
			cell = strings.TrimSuffix(fmt.Sprintf("%.2f", f), ".00")
		}
		cells = append(cells, cell)
	}
	return cells
}
