package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/config"
)

func (c *cli) channelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "channel",
		Short: "List the channels, drain one, switch one off or on",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(
		c.channelListCommand(),
		c.channelStateCommand("drain", config.Draining, "Give a channel no new messages; what it has is finished",
			`A draining channel gets no attempt any more. What is under way on it is answered, and its connections stay.
Messages that draws give to it go to the others by the route's fallback, as long as it drains.`),
		c.channelStateCommand("enable", config.Enabled, "Let a channel take messages again", ""),
		c.channelStateCommand("disable", config.Disabled, "Switch a channel off",
			`A disabled channel gets no attempt any more, as if it drained; the word tells the readers of the history and of
"dispatcher explain" that it is meant to stay that way.`),
	)
	return cmd
}

// channelStateCommand changes the state of a channel in the routing document.
func (c *cli) channelStateCommand(use string, state config.State, short, long string) *cobra.Command {
	f := &changeFlags{}
	cmd := &cobra.Command{
		Use: use + " CHANNEL --reason TEXT", Short: short, Long: long, Args: arguments(1, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			return c.withRouting(ctx, f, func(ch *change) error { return ch.setState(ctx, args[0], state) })
		}),
	}
	f.addTo(cmd, c)
	return cmd
}

// setState changes the state of a channel.
func (ch *change) setState(ctx context.Context, channel string, state config.State) error {
	if err := ch.need(); err != nil {
		return err
	}
	if names := ch.document.Routing.ChannelNames(); !slices.Contains(names, channel) {
		return usage(fmt.Errorf("there is no channel %q; choose one of %s", channel, strings.Join(names, ", ")))
	}
	done, err := ch.make(ctx, func() (*config.Document, error) { return ch.document.SetState(channel, state) })
	if err != nil {
		return err
	}
	return done.print(ch.cli, ch.flags.as)
}
