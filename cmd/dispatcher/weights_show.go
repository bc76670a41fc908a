package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

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
	Share      *float64     `json:"share"` // of the draws, by the effective weights; null when the route does not draw
}

func (c *cli) weightsShowCommand() *cobra.Command {
	as := format(formatTable)
	cmd := &cobra.Command{
		Use:   "show [ROUTE]",
		Short: "Show the weights in force, configured and effective, and ramps under way",
		Args:  arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return c.showWeights(ctx, "", as)
			}
			return c.showWeights(ctx, args[0], as)
		}),
	}
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}

func (c *cli) showWeights(ctx context.Context, route string, as format) error {
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	v, doc, err := inForce(ctx, l, s)
	if err != nil {
		return err
	}
	ramps, err := l.Ramps(ctx, false)
	if err != nil {
		return usage(postgresTrouble(s, err))
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
	s := sheet{header: []string{"route", "mode", "channel", "configured", "effective", "share"}, right: []int{4, 5, 6}}
	if as == formatTable {
		s.title = fmt.Sprintf("version %d", version)
	}
	for i := range routes {
		for _, w := range routes[i].Channels {
			s.rows = append(s.rows, []string{
				routes[i].Route, routes[i].Mode, w.Channel, decimal(w.Configured), decimal(w.Effective), as.share(w.Share),
			})
		}
	}
	if err := as.print(c.out, value, s); err != nil || as != formatTable {
		return err
	}
	for i := range routes {
		if routes[i].Ramp != nil {
			fmt.Fprintln(c.out, routes[i].Ramp.sentence())
		}
	}
	return nil
}

// decimal writes a weight; empty for none.
func decimal(n *json.Number) string {
	if n == nil {
		return ""
	}
	return n.String()
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
