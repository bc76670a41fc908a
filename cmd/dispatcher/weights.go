package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/selector"
)

func (c *cli) weightsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "weights",
		Short: "Show and change the weights of a route, at once or in steps",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(c.weightsShowCommand(), c.weightsSetCommand(), c.weightsRampCommand())
	return cmd
}

func (c *cli) weightsSetCommand() *cobra.Command {
	f := &changeFlags{}
	cmd := &cobra.Command{
		Use:   "set ROUTE CHANNEL=WEIGHT... --reason TEXT",
		Short: "Give channels of a route other weights, from the next claim on",
		Long: `Changes the weights in the routing document, which keeps its comments, its order
and its quotes, and applies it as a new version. Channels that are not named keep their weight;
one that the route does not have yet is added to it. Weight 0 takes a channel out of the draw but
leaves it as a fallback.`,
		Example: `  dispatcher weights set default a=25 b=15 c=60 --reason "b costs more now"`,
		Args:    arguments(2, anyNumber),
		RunE: work(func(ctx context.Context, args []string) error {
			weights, err := parseWeights(args[1:])
			if err != nil {
				return usage(err)
			}
			return c.withRouting(ctx, f, func(ch *change) error {
				return ch.setWeights(ctx, args[0], weights)
			})
		}),
	}
	f.addTo(cmd, c)
	return cmd
}

// setWeights changes some weights of a route and shows its intervals before and after.
func (ch *change) setWeights(ctx context.Context, route string, weights []config.Weight) error {
	if err := ch.need(); err != nil {
		return err
	}
	before, err := weightedRoute(ch.inForce, route)
	if err != nil {
		return usage(err)
	}
	done, err := ch.make(ctx, func() (*config.Document, error) {
		return ch.document.SetWeights(route, weights)
	})
	if err != nil {
		return err
	}
	after, err := routeOf(done.inForce, route)
	if err != nil {
		return err
	}
	done.Warnings = append(done.Warnings, loweredWeights(after)...)
	if done.Before, err = report.PreviewRoute(before); err != nil {
		return err
	}
	if done.After, err = report.PreviewRoute(after); err != nil {
		return err
	}
	done.Route = route
	return done.write(ch.cli, ch.flags.as)
}

// loweredWeights say which weights of a route health weighting keeps below those of the document.
func loweredWeights(route *config.Route) []string {
	var warnings []string
	for _, w := range route.Weights {
		if w.Weight != w.Configured {
			warnings = append(warnings, fmt.Sprintf(
				"Because of failures health weighting keeps %s at the effective weight %s instead "+
					"of %s: draws go by that, and so do the intervals.", w.Channel, w.Weight,
				w.Configured))
		}
	}
	return warnings
}

// weightedRoute finds a route that has weights.
func weightedRoute(doc *config.Routing, name string) (*config.Route, error) {
	route, err := routeOf(doc, name)
	if err == nil && route.Weights == nil {
		err = fmt.Errorf(`route %s has no weights: its mode is %s; give it weights with `+
			`"dispatcher routing apply"`, name, route.Mode)
	}
	return route, err
}

// parseWeights reads arguments such as a=25.
func parseWeights(args []string) ([]config.Weight, error) {
	weights := make([]config.Weight, 0, len(args))
	for _, arg := range args {
		channel, value, ok := strings.Cut(arg, "=")
		if !ok || channel == "" {
			return nil, fmt.Errorf("%q is no weight: write CHANNEL=WEIGHT, such as a=25", arg)
		}
		for _, other := range weights {
			if other.Channel == channel {
				return nil, fmt.Errorf("channel %s is named twice", channel)
			}
		}
		w, err := selector.ParseWeight(value)
		if err != nil {
			return nil, fmt.Errorf("channel %s: %w", channel, err)
		}
		weights = append(weights, config.Weight{Channel: channel, Weight: w, Configured: w})
	}
	return weights, nil
}

// routeWeights is what one route draws by.
type routeWeights struct {
	Route    string          `json:"route"`
	Mode     string          `json:"mode"`
	Channels []channelWeight `json:"channels"`
	Ramp     *rampShown      `json:"ramp"` // null when none runs or is held
}

// channelWeight is one channel's part of it. A route without weights has only names.
type channelWeight struct {
	Channel    string       `json:"channel"`
	Configured *json.Number `json:"configured"`
	Effective  *json.Number `json:"effective"`
	// of the draws, by the effective weights; null when the route does not draw
	Share *float64 `json:"share"`
}

func (c *cli) weightsShowCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "show [ROUTE]",
		Short: "Show the weights in force, configured and effective, and ramps under way",
		Args:  arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return c.withLedger(ctx, func(l *database) error {
					return c.showWeights(ctx, l, "", as)
				})
			}
			return c.withLedger(ctx, func(l *database) error {
				return c.showWeights(ctx, l, args[0], as)
			})
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) showWeights(ctx context.Context, l *database, route string, as format) error {
	v, doc, err := inForce(ctx, l)
	if err != nil {
		return err
	}
	ramps, err := l.Ramps.List(ctx, false)
	if err != nil {
		return err
	}
	value := struct {
		Version int64          `json:"version"`
		Routes  []routeWeights `json:"routes"`
	}{Version: v.Version}
	if value.Routes, err = weightsOf(doc, route); err != nil {
		return err
	}
	for i := range value.Routes {
		for j := range ramps {
			if ramps[j].Route == value.Routes[i].Route {
				shown := newRampShown(&ramps[j])
				value.Routes[i].Ramp = &shown
			}
		}
	}
	return c.printWeights(value, value.Version, value.Routes, as)
}

// printWeights adds the ramps in a sentence each where there is room for them.
func (c *cli) printWeights(value any, version int64, routes []routeWeights, as format) error {
	type weightRow struct {
		routeWeights
		channelWeight
	}
	var rows []weightRow
	for i := range routes {
		for _, w := range routes[i].Channels {
			rows = append(rows, weightRow{routes[i], w})
		}
	}
	s := list(as, rows, []column[weightRow]{
		{key: "route"},
		{key: "mode"},
		{key: "channel"},
		{key: "configured", right: true},
		{key: "effective", right: true},
		{key: "share", style: share},
	}...)
	s.title = fmt.Sprintf("version %d", version)
	if err := as.write(c.out, value, s); err != nil || as != formatTable {
		return err
	}
	for i := range routes {
		if routes[i].Ramp != nil {
			fmt.Fprintln(c.out, routes[i].Ramp.sentence())
		}
	}
	return nil
}

// weightsOf lists the weights of one route, or of all when it has no name.
func weightsOf(doc *config.Routing, name string) ([]routeWeights, error) {
	var out []routeWeights
	if name != "" {
		if _, err := routeOf(doc, name); err != nil {
			return nil, usage(err)
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
		shown := routeWeights{Route: route.Name, Mode: string(route.Mode)}
		for j, iv := range preview.Intervals {
			w := channelWeight{Channel: iv.Channel, Effective: iv.Weight, Share: iv.Share}
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
