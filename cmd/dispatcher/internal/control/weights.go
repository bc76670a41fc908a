package control

import (
	"context"
	"encoding/json"
	"fmt"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// SetWeights changes some weights of a route. The result has its intervals before and after.
func (d *Draft) SetWeights(
	ctx context.Context, route string, weights []config.Weight,
) (*Changed, error) {
	if err := d.need(); err != nil {
		return nil, err
	}
	before, err := WeightedRoute(d.InForce, route)
	if err != nil {
		return nil, err
	}
	done, err := d.Make(ctx, func() (*config.Document, error) {
		return d.Document.SetWeights(route, weights)
	})
	if err != nil {
		return nil, err
	}
	after, err := RouteOf(done.InForce, route)
	if err != nil {
		return nil, err
	}
	done.Warnings = append(done.Warnings, loweredWeights(after)...)
	done.Warnings = append(done.Warnings, drawnInVain(done.InForce, after)...)
	if done.Before, err = report.PreviewRoute(before); err != nil {
		return nil, err
	}
	if done.After, err = report.PreviewRoute(after); err != nil {
		return nil, err
	}
	done.Route = route
	return done, nil
}

// loweredWeights returns a warning for each weight of a route that health weighting keeps below the
// weight of the document.
func loweredWeights(route *config.Route) []string {
	var warnings []string
	for _, w := range route.Weights {
		if w.Weight != w.Configured {
			warnings = append(warnings, fmt.Sprintf(
				"Because of failures health weighting keeps %s at the effective weight %s instead "+
					"of %s: draws and intervals use the effective weight.", w.Channel, w.Weight,
				w.Configured))
		}
	}
	return warnings
}

// drawnInVain returns a warning for each channel that a route draws although it is not enabled.
func drawnInVain(doc *config.Routing, route *config.Route) []string {
	var warnings []string
	for _, w := range route.Weights {
		if c := doc.Channel(w.Channel); c != nil && c.State != config.Enabled && !w.Weight.IsZero() {
			warnings = append(warnings, TakesNone(w.Channel))
		}
	}
	return warnings
}

// TakesNone is the warning that a channel with a share is drained or disabled.
func TakesNone(channel string) string {
	return fmt.Sprintf("Channel %s takes no messages now: what is drawn for it goes to the others.",
		channel)
}

// WeightedRoute finds a route, and refuses one without weights.
func WeightedRoute(doc *config.Routing, name string) (*config.Route, error) {
	route, err := RouteOf(doc, name)
	if err == nil && route.Weights == nil {
		err = refusef(`route %s has no weights: its mode is %s; give it weights with `+
			`"dispatcher routing apply"`, name, route.Mode)
	}
	return route, err
}

// WeightList has the weights in force. Scripts rely on its JSON names.
type WeightList struct {
	Version int64          `json:"version"`
	Routes  []RouteWeights `json:"routes" nullable:"false"`
}

// RouteWeights are the weights of one route.
type RouteWeights struct {
	Route    string          `json:"route"`
	Mode     string          `json:"mode"`
	Channels []ChannelWeight `json:"channels"`
	Ramp     *Ramp           `json:"ramp"` // null when none runs or is held
}

// ChannelWeight is the weight of one channel. On a route without weights only the name is set.
type ChannelWeight struct {
	Channel    string       `json:"channel"`
	Configured *json.Number `json:"configured"`
	Effective  *json.Number `json:"effective"`
	// of the draws, by the effective weights; null when the route does not draw
	Share *float64 `json:"share"`
}

// Weights lists the weights in force of one route, or of all routes when route is empty, with the
// ramps that run or are held.
func Weights(ctx context.Context, l *ledger.Ledger, route string) (out WeightList, err error) {
	v, doc, err := InForce(ctx, l)
	if err != nil {
		return out, err
	}
	ramps, err := l.Ramps.List(ctx, false)
	if err != nil {
		return out, err
	}
	out.Version = v.Version
	if out.Routes, err = WeightsOf(doc, route); err != nil {
		return out, err
	}
	for i := range out.Routes {
		for j := range ramps {
			if ramps[j].Route == out.Routes[i].Route {
				shown := NewRamp(&ramps[j])
				out.Routes[i].Ramp = &shown
			}
		}
	}
	return out, nil
}

// WeightsOf lists the weights of one route, or of all routes when name is empty.
func WeightsOf(doc *config.Routing, name string) ([]RouteWeights, error) {
	var out []RouteWeights
	if name != "" {
		if _, err := RouteOf(doc, name); err != nil {
			return nil, err
		}
	}
	for i := range doc.Routes {
		route := &doc.Routes[i]
		if name != "" && route.Name != name {
			continue
		}
		preview, err := report.PreviewRoute(route)
		if err != nil {
			return nil, err
		}
		shown := RouteWeights{Route: route.Name, Mode: string(route.Mode)}
		for j, iv := range preview.Intervals {
			w := ChannelWeight{Channel: iv.Channel, Effective: iv.Weight, Share: iv.Share}
			if route.Weights != nil {
				configured := json.Number(route.Weights[j].Configured.String())
				w.Configured = &configured
			}
			shown.Channels = append(shown.Channels, w)
		}
		out = append(out, shown)
	}
	return out, nil
}
