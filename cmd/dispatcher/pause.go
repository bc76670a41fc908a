package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
)

// pauseFlags say what is to be paused or resumed.
type pauseFlags struct {
	changeFlags
	paused config.Paused
}

func (c *cli) pauseCommand() *cobra.Command {
	return c.pausingCommand("pause", "Stop sending a lane, a route, a tenant or everything",
		`Messages of what is paused wait, in the ledger or in Kafka, and lose nothing but time; what
is on its way is finished. At its deadline a message fails, as any other. All instances stop within
a second, and what is paused stays so over restarts, until "dispatcher resume". It is a change of
the routing document: the history has author and reason, and a document without it resumes all.`,
		(*control.Draft).Pause)
}

func (c *cli) resumeCommand() *cobra.Command {
	return c.pausingCommand("resume", "Send again what was paused",
		`What waited is considered at once. --all ends every pause, also those of single lanes,
routes and tenants.`,
		(*control.Draft).Resume)
}

// pausingCommand changes what is paused. apply changes what is paused now by what is asked for.
func (c *cli) pausingCommand(
	use, short, long string, apply func(*control.Draft, context.Context, *config.Paused) (*control.Changed, error),
) *cobra.Command {
	f := &pauseFlags{}
	cmd := &cobra.Command{
		Use:   use + " --lane NAME | --route NAME | --tenant NAME | --all",
		Short: short, Long: long,
		Example: `  dispatcher ` + use + ` --lane bulk --reason "wrong text in the campaign"`,
		Args:    cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if !f.paused.Any() {
				return misused(errors.New("name what is meant: --lane, --route, --tenant or --all"))
			}
			return c.withRouting(ctx, &f.changeFlags, func(ch *change) error {
				return ch.write(apply(ch.Draft, ctx, &f.paused))
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.paused.Lanes, "lane", nil, "messages of this lane; may be repeated")
	flags.StringArrayVar(&f.paused.Routes, "route", nil, "messages on this route; may be repeated")
	flags.StringArrayVar(&f.paused.Tenants, "tenant", nil, "messages of this tenant; may be "+
		"repeated")
	flags.BoolVar(&f.paused.All, "all", false, "everything")
	f.addTo(cmd, c)
	return cmd
}
