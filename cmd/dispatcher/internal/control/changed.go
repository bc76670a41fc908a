package control

import (
	"fmt"
	"strings"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

// Changed is what came of a change of the routing. The JSON names are relied on by scripts.
type Changed struct {
	// Version is the one in force now: the new one, or the old one when nothing was applied.
	Version  int64  `json:"version"`
	Previous int64  `json:"previous"`
	Applied  bool   `json:"applied"`
	DryRun   bool   `json:"dry_run"`
	Changes  []Line `json:"changes"`
	// Before and After are the intervals of the route that a change of weights is about.
	Route  string               `json:"route,omitempty"`
	Before *report.RoutePreview `json:"before,omitempty"`
	After  *report.RoutePreview `json:"after,omitempty"`

	// Warnings are what the one who makes the change should know.
	Warnings []string `json:"warnings"`

	Routing *config.Routing `json:"-"` // the new one
	// InForce is Routing with the effects of health weighting that it takes over.
	InForce *config.Routing `json:"-"`
	Relaid  bool            `json:"-"` // only comments or the layout differ
	Forced  bool            `json:"-"` // which is to be applied all the same
}

// Line is one thing that differs between two documents.
type Line struct {
	Path string  `json:"path"`
	From *string `json:"from"` // null when it was not there
	To   *string `json:"to"`   // null when it is not there any more
}

// Lines are differences in this form.
func Lines(changes []config.Change) []Line {
	out := make([]Line, len(changes))
	for i, c := range changes {
		out[i] = Line{Path: c.Path, From: Present(c.From), To: Present(c.To)}
	}
	return out
}

// Present is nil for the empty text, which stands for nothing.
func Present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Summary tells changes in a few words. What stands in the same place as the change before is
// named by its last word: "routes.default.weights.a 25 → 40, c 60 → 45".
func Summary(changes []Line) string {
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
func (c Line) words(name string) string {
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
