package report

import (
	"dispatcher/config"
	"dispatcher/selector"
)

// agreedShares are the shares of a route's channels by the weights of the document, with those of
// weight 0; nil when route is nil or does not draw.
func agreedShares(route *config.Route) map[string]float64 {
	return shares(route, func(w config.Weight) selector.Weight { return w.Configured })
}

// effectiveShares are the same by the effective weights, which draws use.
func effectiveShares(route *config.Route) map[string]float64 {
	return shares(route, func(w config.Weight) selector.Weight { return w.Weight })
}

func shares(route *config.Route, weight func(config.Weight) selector.Weight) map[string]float64 {
	if route == nil || !route.Draws() {
		return nil
	}
	entries := make([]selector.Entry, len(route.Weights))
	for i, w := range route.Weights {
		entries[i] = selector.Entry{Name: w.Channel, Weight: weight(w)}
	}
	table, err := selector.NewTable(entries)
	if err != nil {
		return nil // not expected: such a document cannot be applied
	}
	out := make(map[string]float64, table.Len())
	for i, e := range entries {
		out[e.Name] = table.Share(i)
	}
	return out
}
