package report

import (
	"encoding/json"
	"fmt"

	"dispatcher/config"
	"dispatcher/selector"
)

// Preview shows the intervals of a routing document's weights.
type Preview struct {
	Routes []RoutePreview `json:"routes"`
	// Traffic is a past day under the document; nil unless a day was asked for.
	Traffic *Traffic `json:"traffic,omitempty"`
	// Warnings say how the document would show numbers, texts or secrets to others.
	Warnings []string `json:"warnings,omitempty"`
}

// RoutePreview is the interval table of one route.
type RoutePreview struct {
	Route string `json:"route"`
	Mode  string `json:"mode"`
	// Sticky says that the route draws by recipient.
	Sticky bool `json:"sticky,omitempty"`
	// Size is the number of possible draws; 0 for a route that does not draw.
	Size      uint64            `json:"size"`
	Intervals []IntervalPreview `json:"intervals"`
}

// IntervalPreview is the closed range of draws that pick one channel. Low and High are nil for a
// channel of weight 0 and on a route that does not draw. On the latter Share is nil too, and Weight
// if the channel has none.
type IntervalPreview struct {
	Channel string       `json:"channel"`
	Weight  *json.Number `json:"weight"`
	// Configured is the weight of the document; nil if Weight is the same.
	Configured *json.Number `json:"configured,omitempty"`
	Low        *uint64      `json:"low"`
	High       *uint64      `json:"high"`
	Share      *float64     `json:"share"` // between 0 and 1
}

// NewPreview computes the intervals of every route, in the order of the document.
func NewPreview(doc *config.Routing) (Preview, error) {
	p := Preview{Routes: make([]RoutePreview, 0, len(doc.Routes))}
	for i := range doc.Routes {
		route, err := PreviewRoute(&doc.Routes[i])
		if err != nil {
			return Preview{}, err
		}
		p.Routes = append(p.Routes, *route)
	}
	return p, nil
}

// PreviewRoute computes the intervals of one route by its effective weights.
func PreviewRoute(route *config.Route) (*RoutePreview, error) {
	p := &RoutePreview{Route: route.Name, Mode: string(route.Mode), Sticky: route.Sticky}
	if !route.Draws() {
		p.Intervals = members(route)
		return p, nil
	}
	table, err := selector.NewTable(route.Entries())
	if err != nil {
		return nil, fmt.Errorf("route %s: %w", route.Name, err)
	}
	p.Size, p.Intervals = table.Size(), intervals(table)
	for i, w := range route.Weights {
		if w.Weight != w.Configured {
			p.Intervals[i].Configured = jsonWeight(w.Configured)
		}
	}
	return p, nil
}

// members lists the channels of a route that does not draw. If it has weights, its fallback redraws
// by them.
func members(route *config.Route) []IntervalPreview {
	out := make([]IntervalPreview, len(route.Channels))
	for i, name := range route.Channels {
		out[i].Channel = name
		if i < len(route.Weights) {
			out[i].Weight = jsonWeight(route.Weights[i].Weight)
		}
	}
	return out
}

func intervals(table *selector.Table) []IntervalPreview {
	out := make([]IntervalPreview, table.Len())
	for i, iv := range table.Intervals() {
		out[i] = IntervalPreview{
			Channel: iv.Name, Weight: jsonWeight(iv.Weight), Share: new(table.Share(i)),
		}
		if !iv.Empty {
			out[i].Low, out[i].High = &iv.Low, &iv.High
		}
	}
	return out
}

// jsonWeight writes a weight as an exact JSON number.
func jsonWeight(w selector.Weight) *json.Number {
	n := json.Number(w.String())
	return &n
}
