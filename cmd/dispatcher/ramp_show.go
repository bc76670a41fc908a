package main

import (
	"fmt"
	"strings"

	"dispatcher/cmd/dispatcher/internal/control"
)

// rampSheet joins columns in a table, to save room: who changed the ramp and when; who started it
// and why.
func rampSheet(ramps []control.Ramp, as format) sheet {
	step := func(r *control.Ramp) string { return fmt.Sprintf("%d/%d", r.Step, r.Steps) }
	target := func(between string) func(*control.Ramp) any {
		return func(r *control.Ramp) any { return strings.ReplaceAll(r.Target(), " ", between) }
	}
	s := list(as, ramps, []column[control.Ramp]{
		{key: "id", name: "ramp"},
		{key: "route", width: 12},
		{key: "to", only: formatCSV, cell: target(" ")},
		{key: "to", only: formatTable, width: 20, cell: target("\n")},
		{key: "state", only: formatCSV},
		{key: "step", only: formatCSV, cell: func(r *control.Ramp) any { return step(r) }},
		{key: "state", only: formatTable, width: 10, cell: func(r *control.Ramp) any {
			return r.State + " " + step(r)
		}},
		{key: "changed_at", only: formatCSV},
		{key: "changed_by", only: formatCSV},
		{key: "author", only: formatCSV},
		{key: "reason", only: formatCSV},
		{only: formatTable, head: "changed_at (UTC), by", width: 20, cell: func(r *control.Ramp) any {
			return as.cell(byType, r.ChangedAt) + "\n" + r.ChangedBy
		}},
		{only: formatTable, head: "author: reason", width: 18, cell: func(r *control.Ramp) any {
			return r.Author + ": " + r.Reason
		}},
		{key: "why", head: "why in this state", width: 18},
	}...)
	s.tight = true
	return s
}
