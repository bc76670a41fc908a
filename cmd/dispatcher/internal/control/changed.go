package control

import (
	"fmt"
	"strings"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

// Changed is the result of a change of the routing. Scripts rely on its JSON names.
type Changed struct {
	// Version is the one in force now: the new one, or the old one when nothing was applied.
	Version  int64  `json:"version"`
	Previous int64  `json:"previous"`
	Applied  bool   `json:"applied"`
	DryRun   bool   `json:"dry_run"`
	Changes  []Line `json:"changes"`
	// Before and After are the intervals of Route; set by a change of weights only.
	Route  string               `json:"route,omitempty"`
	Before *report.RoutePreview `json:"before,omitempty"`
	After  *report.RoutePreview `json:"after,omitempty"`

	// Warnings are sentences for the author of the change.
	Warnings []string `json:"warnings"`

	Routing *config.Routing `json:"-"` // the new one
	// InForce is Routing with the effects of health weighting that it takes over.
	InForce *config.Routing `json:"-"`
	Relaid  bool            `json:"-"` // only comments or layout differ
	Forced  bool            `json:"-"` // a Relaid document is applied too
}

// Line is one thing that differs between two documents.
type Line struct {
	Path string  `json:"path"`
	From *string `json:"from"` // null when it was added
	To   *string `json:"to"`   // null when it was removed
}

// Lines converts differences between documents.
func Lines(changes []config.Change) []Line {
	out := make([]Line, len(changes))
	for i, c := range changes {
		out[i] = Line{Path: c.Path, From: OrNil(c.From), To: OrNil(c.To)}
	}
	return out
}

// OrNil is a pointer to s; nil when s is empty.
func OrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Summary lists the first changes in one line. A change with the same parent path as the one before
// is named by the last part of its path: "routes.default.weights.a 25 → 40, c 60 → 45".
func Summary(changes []Line) string {
	const shown = 4
	var out strings.Builder
	place := ""
	for i, l := range changes {
		if i == shown {
			fmt.Fprintf(&out, "; %d more", len(changes)-i)
			break
		}
		at := strings.LastIndexByte(l.Path, '.') + 1
		name := l.Path
		switch {
		case i > 0 && at > 0 && l.Path[:at] == place:
			out.WriteString(", ")
			name = l.Path[at:]
		case i > 0:
			out.WriteString("; ")
		}
		place = l.Path[:at]
		out.WriteString(l.words(name))
	}
	return out.String()
}

// words writes one change, such as "max 5 → 10".
func (l Line) words(name string) string {
	switch {
	case l.From == nil && l.To == nil:
		return name
	case l.From == nil:
		return name + " added (" + Shortened(*l.To) + ")"
	case l.To == nil:
		return name + " removed"
	}
	return name + " " + Shortened(*l.From) + " → " + Shortened(*l.To)
}

// Shortened cuts a long value, such as a whole channel.
func Shortened(s string) string {
	const most = 40
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}
