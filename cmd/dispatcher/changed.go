package main

import (
	"fmt"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

// changed is what came of a change of the routing. The JSON names are relied on by scripts.
type changed struct {
	// Version is the one in force now: the new one, or the old one when nothing was applied.
	Version  int64        `json:"version"`
	Previous int64        `json:"previous"`
	Applied  bool         `json:"applied"`
	DryRun   bool         `json:"dry_run"`
	Changes  []changeLine `json:"changes"`
	// Before and After are the intervals of the route that a change of weights is about.
	Route  string               `json:"route,omitempty"`
	Before *report.RoutePreview `json:"before,omitempty"`
	After  *report.RoutePreview `json:"after,omitempty"`

	// Warnings are what the one who makes the change should know.
	Warnings []string `json:"warnings"`

	after   *config.Routing
	inForce *config.Routing // after with the effects of health weighting that it takes over
	relaid  bool            // only comments or the layout differ
	forced  bool            // which is to be applied all the same
}

// changeLine is one thing that differs between two documents.
type changeLine struct {
	Path string  `json:"path"`
	From *string `json:"from"` // null when it was not there
	To   *string `json:"to"`   // null when it is not there any more
}

func diffLines(changes []config.Change) []changeLine {
	out := make([]changeLine, len(changes))
	for i, c := range changes {
		out[i] = changeLine{Path: c.Path, From: present(c.From), To: present(c.To)}
	}
	return out
}

// present is nil for the empty text, which stands for nothing.
func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func changeSheet(changes []changeLine, as format) sheet {
	return list(as, changes, []column[changeLine]{
		{key: "path", name: "what", width: 44}, {key: "from", width: 32}, {key: "to", width: 32},
	}...)
}

// write shows what has changed, or would, and which version is in force now.
func (d *changed) write(c *cli, as format) error {
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
	fmt.Fprintln(c.out, d.sentence())
	return nil
}

// sentence says what is in force now.
func (d *changed) sentence() string {
	switch {
	case d.relaid && !d.Applied && !d.forced:
		return fmt.Sprintf("Only comments or the layout differ from version %d: nothing to apply. "+
			"--force applies it all the same.", d.Version)
	case len(d.Changes) == 0 && !d.relaid:
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

// intervalCells are weight, share and interval of a channel, as far as it has them; behind the
// configured weight the one that health weighting has put in its place.
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

// summary tells changes in a few words. What stands in the same place as the change before is
// named by its last word: "routes.default.weights.a 25 → 40, c 60 → 45".
func summary(changes []changeLine) string {
	const shown = 4
	var out strings.Builder
	place := ""
	for i, c := range changes {
		if i == shown {
			fmt.Fprintf(&out, "; %d more", len(changes)-i)
			break
		}
		at := strings.LastIndexByte(c.Path, '.') + 1
		name := c.Path
		switch {
		case i > 0 && at > 0 && c.Path[:at] == place:
			out.WriteString(", ")
			name = c.Path[at:]
		case i > 0:
			out.WriteString("; ")
		}
		place = c.Path[:at]
		out.WriteString(c.words(name))
	}
	return out.String()
}

// words is one change as people say it.
func (c changeLine) words(name string) string {
	switch {
	case c.From == nil && c.To == nil:
		return name
	case c.From == nil:
		return name + " added (" + shortened(*c.To) + ")"
	case c.To == nil:
		return name + " removed"
	}
	return name + " " + shortened(*c.From) + " → " + shortened(*c.To)
}

// shortened keeps a long value, such as a whole channel, from filling a line.
func shortened(s string) string {
	const most = 40
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}
