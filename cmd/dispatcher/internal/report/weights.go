package report

import (
	"slices"

	"dispatcher/config"
	"dispatcher/selector"
)

// agreedEntries are the weights of a route as its document has them; Route.Entries gives those
// that draws go by.
func agreedEntries(route *config.Route) []selector.Entry {
	out := make([]selector.Entry, len(route.Weights))
	for i, w := range route.Weights {
		out[i] = selector.Entry{Name: w.Channel, Weight: w.Configured}
	}
	return out
}

// agreedShares are the shares of a weighted route's channels by the document, those of weight
// 0 included; nil when there is no such route or it does not draw.
func agreedShares(route *config.Route) map[string]float64 {
	if route == nil || route.Mode != modeWeighted {
		return nil
	}
	return sharesOf(agreedEntries(route))
}

// effectiveShares are the same of the weights that draws go by.
func effectiveShares(route *config.Route) map[string]float64 {
	if route == nil || route.Mode != modeWeighted {
		return nil
	}
	return sharesOf(route.Entries())
}

func sharesOf(entries []selector.Entry) map[string]float64 {
	table, err := selector.NewTable(entries)
	if err != nil {
		return nil // a document with such weights was never applied
	}
	out := make(map[string]float64, table.Len())
	for _, iv := range table.Intervals() {
		out[iv.Name] = shareOf(iv, table)
	}
	return out
}

// shareOf is the part of all draws that an interval holds.
func shareOf(iv selector.Interval, table *selector.Table) float64 {
	if iv.Empty {
		return 0
	}
	return float64(iv.High-iv.Low+1) / float64(table.Size())
}

// lowered are the channels of a route that health weighting has given another weight than
// the document's.
func lowered(route *config.Route) []config.Weight {
	return slices.DeleteFunc(slices.Clone(route.Weights), func(w config.Weight) bool { return w.Weight == w.Configured })
}

func routeNamed(doc *config.Routing, name string) *config.Route {
	if doc == nil {
		return nil
	}
	at := slices.IndexFunc(doc.Routes, func(r config.Route) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	return &doc.Routes[at]
}
