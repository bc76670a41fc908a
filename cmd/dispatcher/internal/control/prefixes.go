package control

import (
	"slices"

	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
)

// noNumbers refuses a routing with a new prefix that is a whole number: everybody who may read the
// routing, or the windows of its limits, would see the number of a person.
func noNumbers(before, after *config.Routing) error {
	known := prefixesOf(before)
	for _, prefix := range prefixesOf(after) {
		if numbers.Whole(prefix) && !slices.Contains(known, prefix) {
			return refusef("a prefix in match, blocked, paused or limits is as long as a whole number, " +
				"and whoever reads the routing would see it: write fewer digits")
		}
	}
	return nil
}

// prefixesOf are the prefixes of a routing, except those of prices.
func prefixesOf(r *config.Routing) []string {
	all := slices.Concat(r.Blocked.Prefixes, r.Paused.Prefixes)
	for i := range r.Routes {
		all = append(all, r.Routes[i].Match.Prefixes...)
	}
	limits := slices.Clone(r.Limits)
	for i := range r.Channels {
		limits = append(limits, r.Channels[i].Limits...)
	}
	for i := range limits {
		if prefix := limits[i].Scope.Prefix; prefix != "" {
			all = append(all, prefix)
		}
	}
	return all
}
