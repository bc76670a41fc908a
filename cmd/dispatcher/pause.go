package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

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
		func(now, more *config.Paused) {
			now.All = now.All || more.All
			for _, list := range pausedLists(now, more) {
				for _, name := range *list[1] {
					if !slices.Contains(*list[0], name) {
						*list[0] = append(*list[0], name)
					}
				}
			}
		})
}

func (c *cli) resumeCommand() *cobra.Command {
	return c.pausingCommand("resume", "Send again what was paused",
		`What waited is considered at once. --all ends every pause, also those of single lanes,
routes and tenants.`,
		func(now, less *config.Paused) {
			if less.All {
				*now = config.Paused{}
			}
			for _, list := range pausedLists(now, less) {
				*list[0] = slices.DeleteFunc(*list[0], func(name string) bool {
					return slices.Contains(*list[1], name)
				})
			}
		})
}

// pausedLists are the lists of both, side by side.
func pausedLists(a, b *config.Paused) [][2]*[]string {
	return [][2]*[]string{
		{&a.Lanes, &b.Lanes}, {&a.Routes, &b.Routes}, {&a.Tenants, &b.Tenants},
	}
}

// pausingCommand changes what is paused. apply changes what is paused now by what is asked for.
func (c *cli) pausingCommand(
	use, short, long string, apply func(now, by *config.Paused),
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
				return ch.pause(ctx, &f.paused, apply)
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

// pause changes what is paused.
func (ch *change) pause(
	ctx context.Context, by *config.Paused, apply func(now, by *config.Paused),
) error {
	if err := ch.need(); err != nil {
		return err
	}
	done, err := ch.make(ctx, func() (*config.Document, error) {
		now := ch.document.Routing.Paused
		now.Lanes, now.Routes, now.Tenants = slices.Clone(now.Lanes), slices.Clone(now.Routes),
			slices.Clone(now.Tenants)
		apply(&now, by)
		return ch.document.SetPaused(now)
	})
	if err != nil {
		return err
	}
	return done.write(ch.cli, ch.flags.as)
}
