package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
)

func (c *cli) channelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "channel",
		Short: "List the channels, drain one, switch one off or on, send a message over one",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(
		c.channelListCommand(),
		c.channelStateCommand("drain", config.Draining,
			"Give a channel no new messages; what it has is finished",
			`A draining channel gets no attempt any more. What is in flight on it is finished, and
its connections stay. Messages that draws give to it go to the others by the route's fallback, as
long as it drains.`),
		c.channelStateCommand("enable", config.Enabled, "Let a channel take messages again", ""),
		c.channelStateCommand("disable", config.Disabled, "Switch a channel off",
			`A disabled channel gets no attempt any more, like a draining one; the word tells the
readers of the history and of "dispatcher explain" that it is meant to stay that way.`),
		c.channelTestCommand(),
	)
	return cmd
}

// channelStateCommand changes the state of a channel in the routing document.
func (c *cli) channelStateCommand(
	use string, state config.ChannelState, short, long string,
) *cobra.Command {
	f := &changeFlags{}
	cmd := &cobra.Command{
		Use: use + " CHANNEL --reason TEXT", Short: short, Long: long, Args: arguments(1, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			return c.withRouting(ctx, f, func(ch *change) error {
				return ch.write(ch.SetState(ctx, args[0], state))
			})
		}),
	}
	f.addTo(cmd, c)
	return cmd
}

func (c *cli) channelListCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the channels with their state, what they carry and what their limits leave",
		Long: `Lists the channels with the facts of "dispatcher status": the state, the breaker and
since when unless it is closed, the share carried of late against the agreed one, attempts a second
of what the strictest limit on messages allows, errors by code, answer times in milliseconds (p50
and p99), what waits and for how long the oldest of it has waited; then what their limits leave, and
the routes that list them.`,
		Args: cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			return c.withLedger(ctx, func(l *database) error {
				return c.listChannels(ctx, l, as)
			})
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}

func (c *cli) listChannels(ctx context.Context, l *database, as format) error {
	v, doc, err := inForce(ctx, l)
	if err != nil {
		return err
	}
	found, err := lookup.Channels(ctx, l.Ledger, l.settings.DeadAfter, v.Version, doc)
	if err != nil {
		return err
	}
	return as.write(c.out, found, channelSheet(found.Version, found.Channels, as))
}

func channelSheet(version int64, channels []status.Detail, as format) sheet {
	columns := channelCells
	if as == formatCSV {
		columns = channelValues
	}
	s := list(as, channels, columns...)
	s.title, s.tight = fmt.Sprintf("version %d", version), true
	return s
}

// channelCells are the columns of the table, in which a cell has several lines.
var channelCells = []column[status.Detail]{
	{key: "channel", width: 14, cell: func(c *status.Detail) any {
		return c.Name + "\n" + c.Provider
	}},
	{key: "state", width: 12, cell: func(c *status.Detail) any {
		words := c.StateWords()
		if c.Breaker == "" || c.Breaker == "closed" {
			return words
		}
		return words + "\nbreaker " + c.BreakerWords()
	}},
	{key: "active"},
	{key: "carried", right: true, cell: func(c *status.Detail) any {
		if c.AgreedShare == nil {
			return nil
		}
		carried := "none"
		if c.CarriedShare != nil {
			carried = format(formatTable).share(c.CarriedShare)
		}
		return carried + "\nof " + format(formatTable).share(c.AgreedShare)
	}},
	{key: "rate", head: "rate/s", right: true, cell: func(c *status.Detail) any {
		return strings.Replace(c.RateWords(), " ", "\n", 1)
	}},
	{key: "errors", width: 14, cell: func(c *status.Detail) any {
		return c.ErrorWords()
	}},
	{key: "ms", cell: func(c *status.Detail) any {
		if c.P50 == nil || c.P99 == nil {
			return nil
		}
		return fmt.Sprintf("p50 %.0f\np99 %.0f", *c.P50, *c.P99)
	}},
	{key: "waiting", right: true, cell: func(c *status.Detail) any {
		if c.OldestSeconds == nil {
			return c.Waiting
		}
		return fmt.Sprintf("%d\n%s", c.Waiting, age(c.OldestSeconds))
	}},
	{key: "limits", width: 14, cell: func(c *status.Detail) any {
		return channelLimits(c, "%s/%s %s/%s", "\n")
	}},
	{key: "routes", width: 13, cell: func(c *status.Detail) any {
		return strings.Join(c.Routes, "\n")
	}},
}

// channelValues are the columns of CSV.
var channelValues = []column[status.Detail]{
	{key: "channel"},
	{key: "provider"},
	{key: "state"},
	{key: "capacity"},
	{key: "active"},
	{key: "load_ratio"},
	{name: "last_assigned", cell: func(c *status.Detail) any {
		if c.LastAssigned == nil {
			return "never"
		}
		return *c.LastAssigned
	}},
	{key: "limits", cell: func(c *status.Detail) any {
		return channelLimits(c, "%s of %s %s/%s", ", ")
	}},
	{key: "routes", cell: func(c *status.Detail) any { return strings.Join(c.Routes, ", ") }},
	{key: "breaker"},
	{key: "breaker_since"},
	{key: "agreed_share"},
	{key: "carried_share"},
	{key: "rate"},
	{key: "codes", cell: func(c *status.Detail) any { return status.CountWords(c.Codes, ", ") }},
	{key: "p50_ms"},
	{key: "p99_ms"},
	{key: "waiting"},
	{key: "oldest_seconds"},
	{key: "not_ready", cell: func(c *status.Detail) any { return status.ReasonWords(c.NotReady) }},
	{key: "silent"},
	{key: "effective_share"},
	{key: "limit"},
	{key: "throttled_to"},
	{key: "paused_until"},
	{key: "accepted"},
	{key: "unsent", cell: func(c *status.Detail) any { return status.CountWords(c.Unsent, ", ") }},
	{key: "unanswered"},
}

func channelLimits(c *status.Detail, form, between string) string {
	words := make([]string, len(c.Limits))
	for i := range c.Limits {
		words[i] = c.Limits[i].Words(form)
	}
	return strings.Join(words, between)
}
