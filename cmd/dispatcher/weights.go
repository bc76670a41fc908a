package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
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
				return ch.write(ch.SetWeights(ctx, args[0], weights))
			})
		}),
	}
	f.addTo(cmd, c)
	return cmd
}

// parseWeights reads arguments such as a=25.
func parseWeights(args []string) ([]config.Weight, error) {
	weights := make([]config.Weight, 0, len(args))
	for _, arg := range args {
		channel, value, ok := strings.Cut(arg, "=")
		if !ok || channel == "" {
			return nil, fmt.Errorf("%q is not a weight: write CHANNEL=WEIGHT, such as a=25", arg)
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

func (c *cli) weightsShowCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "show [ROUTE]",
		Short: "Show the weights in force, configured and effective, and ramps under way",
		Args:  arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			return c.withLedger(ctx, func(l *database) error {
				return c.showWeights(ctx, l, strings.Join(args, ""), as) // none for all routes
			})
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}

// showWeights adds a sentence for each ramp in a table.
func (c *cli) showWeights(ctx context.Context, l *database, route string, as format) error {
	weights, err := control.Weights(ctx, l.Ledger, route)
	if err != nil {
		return inCommands(err)
	}
	type weightRow struct {
		control.RouteWeights
		control.ChannelWeight
	}
	var rows []weightRow
	for _, r := range weights.Routes {
		for _, w := range r.Channels {
			rows = append(rows, weightRow{r, w})
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
	s.title = fmt.Sprintf("version %d", weights.Version)
	if err := as.write(c.out, weights, s); err != nil || as != formatTable {
		return err
	}
	for _, r := range weights.Routes {
		if r.Ramp != nil {
			fmt.Fprintln(c.out, r.Ramp.Sentence())
		}
	}
	return nil
}
