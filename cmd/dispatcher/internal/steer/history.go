package steer

import (
	"maps"
	"slices"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// moment is what lastMove needs of a routing version. Versions never change, so it can be cached.
type moment struct {
	at     time.Time
	routes []string // routes whose effective weights health weighting moved in this version
}

// maxHistory bounds the number of cached moments.
const maxHistory = 10_000

// history caches moments by version.
type history map[int64]moment

// movedBy returns the routes whose weights health weighting moved in a version, given the version
// before it. A version with a new document has no moves: it keeps each effect in proportion to the
// new weights.
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

// effectsAfter returns the effects after a move: every effective weight that then differs from the
// configured one.
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
