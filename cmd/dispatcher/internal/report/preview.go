package report

import (
	"encoding/json"
	"fmt"

	"dispatcher/config"
	"dispatcher/selector"
)

// Preview shows what a routing document's weights come to.
type Preview struct {
	Routes []RoutePreview `json:"routes"`
}

// RoutePreview is the interval table of one route.
type RoutePreview struct {
	Route string `json:"route"`
	Mode  string `json:"mode"`
	// Size is N, the number of possible draws.
	Size      uint64            `json:"size"`
	Intervals []IntervalPreview `json:"intervals"`
}

// IntervalPreview is the closed range of draws that pick one channel. A channel of weight 0
// has no range: Low and High are nil.
type IntervalPreview struct {
	Channel string      `json:"channel"`
	Weight  json.Number `json:"weight"`
	Low     *uint64     `json:"low"`
	High    *uint64     `json:"high"`
	Share   float64     `json:"share"` // between 0 and 1
}

// NewPreview lays out the intervals of every route in the order of the document.
func NewPreview(doc *config.Routing) (Preview, error) {
	p := Preview{Routes: make([]RoutePreview, 0, len(doc.Routes))}
	for i := range doc.Routes {
		route := &doc.Routes[i]
		table, err := selector.NewTable(route.Entries())
		if err != nil {
			return Preview{}, fmt.Errorf("route %s: %w", route.Name, err)
		}
		p.Routes = append(p.Routes, RoutePreview{
			Route: route.Name, Mode: route.Mode, Size: table.Size(), Intervals: intervals(table),
		})
	}
	return p, nil
}

func intervals(table *selector.Table) []IntervalPreview {
	out := make([]IntervalPreview, table.Len())
	for i, iv := range table.Intervals() {
		out[i] = IntervalPreview{Channel: iv.Name, Weight: json.Number(iv.Weight.String())}
		if !iv.Empty {
			out[i].Low, out[i].High = &iv.Low, &iv.High
			out[i].Share = float64(iv.High-iv.Low+1) / float64(table.Size())
		}
	}
	return out
}
