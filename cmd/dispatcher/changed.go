package main

import (
	"fmt"
	"slices"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
)

func changeSheet(changes []control.Line, as format) sheet {
	return list(as, changes, []column[control.Line]{
		{key: "path", name: "what", width: 44}, {key: "from", width: 32}, {key: "to", width: 32},
	}...)
}

// writeChanged prints what has changed, or would change, and which version is in force now.
func writeChanged(c *cli, d *control.Changed, as format) error {
	if as != formatTable {
		as.warn(c, d.Warnings)
		return as.write(c.out, d, changeSheet(d.Changes, as))
	}
	if d.Before != nil && d.After != nil && len(d.Changes) > 0 {
		weightSheet(d.Before, d.After).draw(c.out)
	} else if len(d.Changes) > 0 {
		changeSheet(d.Changes, as).draw(c.out)
	}
	as.warn(c, d.Warnings)
	fmt.Fprintln(c.out, changedSentence(d))
	return nil
}

// changedSentence says what is in force now.
func changedSentence(d *control.Changed) string {
	switch {
	case d.Relaid && !d.Applied && !d.Forced:
		return fmt.Sprintf("Only comments or the layout differ from version %d: nothing to apply. "+
			"--force applies it all the same.", d.Version)
	case len(d.Changes) == 0 && !d.Relaid:
		return fmt.Sprintf("That is what version %d says already: nothing to apply.", d.Version)
	case d.DryRun && d.Version == 0:
		return "Dry run: nothing was written. It would be version 1."
	case d.DryRun:
		return fmt.Sprintf("Dry run: nothing was written, version %d stays in force.", d.Version)
	}
	return fmt.Sprintf("Version %d is in force for every claim from now on.", d.Version)
}

// weightSheet is the table of the intervals of a route before and after.
func weightSheet(before, after *report.RoutePreview) sheet {
	s := sheet{
		title: "route " + after.Route,
		header: []string{
			"channel", "weight", "share", "interval", "", "weight", "share",
			"interval",
		},
		right: []int{2, 3, 4, 6, 7, 8},
	}
	add := func(channel string, was, is []string) {
		s.rows = append(s.rows, slices.Concat([]string{channel}, was, []string{"→"}, is))
	}
	old := map[string]report.IntervalPreview{}
	for _, iv := range before.Intervals {
		old[iv.Channel] = iv
	}
	for _, iv := range after.Intervals {
		add(iv.Channel, intervalCells(old[iv.Channel]), intervalCells(iv))
		delete(old, iv.Channel)
	}
	for _, iv := range before.Intervals {
		if _, gone := old[iv.Channel]; gone {
			add(iv.Channel, intervalCells(iv), []string{"", "", ""})
		}
	}
	return s
}

// intervalCells are the weight, share and interval of a channel, as far as it has them. If health
// weighting has lowered the weight, the effective weight follows the configured one.
func intervalCells(iv report.IntervalPreview) []string {
	weight, part, bounds := "", "", ""
	if iv.Weight != nil {
		weight = iv.Weight.String()
	}
	if iv.Configured != nil {
		weight = iv.Configured.String() + " (" + weight + ")"
	}
	if iv.Share != nil {
		part = report.Percent(*iv.Share)
	}
	if iv.Low != nil {
		bounds = fmt.Sprintf("%d–%d", *iv.Low, *iv.High)
	}
	return []string{weight, part, bounds}
}
