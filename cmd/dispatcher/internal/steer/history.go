package steer

import (
	"maps"
	"slices"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// moment is what matters of a routing version to the question when a route's weights moved
// last. Versions never change, so it is kept.
type moment struct {
	at     time.Time
	routes []string // whose effective weights this version moved
}

// maxHistory bounds the moments that are kept.
const maxHistory = 10_000

// history is what is known of past versions.
type history map[int64]moment

// movedBy tells the routes whose weights health weighting moved in a version, given the one before
// it. A new document is no move: it keeps every effect at the same part of its own weights.
func movedBy(version, before *ledger.RoutingVersion) ([]string, error) {
	if version.Base == version.Version {
		return nil, nil
	}
	after, err := config.ParseEffects(version.Effects)
	if err != nil {
		return nil, err
	}
	earlier, err := config.ParseEffects(before.Effects)
	if err != nil {
		return nil, err
	}
	var routes []string
	for _, route := range slices.Sorted(maps.Keys(union(after.Weights, earlier.Weights))) {
		if !maps.Equal(after.Weights[route], earlier.Weights[route]) {
			routes = append(routes, route)
		}
	}
	return routes, nil
}

func union(a, b map[string]map[string]selector.Weight) map[string]bool {
	out := make(map[string]bool, len(a)+len(b))
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}

// effectsAfter are the effects in force once a move has been made: every weight that then differs
// from the configured one.
func effectsAfter(routing *config.Routing, move HealthMove) config.Effects {
	var e config.Effects
	for i := range routing.Routes {
		route := &routing.Routes[i]
		for _, w := range route.Weights {
			effective := w.Weight
			if route.Name == move.Route && w.Channel == move.Channel {
				effective = move.To
			}
			if effective != w.Configured {
				e.Set(route.Name, w.Channel, effective)
			}
		}
	}
	return e
}
