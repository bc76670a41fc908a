package app

import (
	"fmt"

	"dispatcher/config"
)

// maxSummary bounds the changes that a line of the log names.
const maxSummary = 8

// summary says in short what differs between two routings, for the log. Settings that may be
// secret are hidden by config.Diff.
func summary(before, after *config.Routing) []string {
	changes := config.Diff(before, after)
	var out []string
	for _, c := range changes[:min(len(changes), maxSummary)] {
		switch {
		case c.From == "":
			out = append(out, fmt.Sprintf("%s added: %s", c.Path, c.To))
		case c.To == "":
			out = append(out, fmt.Sprintf("%s removed: %s", c.Path, c.From))
		default:
			out = append(out, fmt.Sprintf("%s: %s -> %s", c.Path, c.From, c.To))
		}
	}
	if more := len(changes) - maxSummary; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return out
}
