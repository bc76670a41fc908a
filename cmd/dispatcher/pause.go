package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	return c.pausingCommand("pause", "Stop sending a lane, a route, a tenant, a prefix or everything",
		"wrong text in the campaign",
		`Messages of what is paused wait, in the ledger or in Kafka, and lose nothing but time; what
is on its way is finished. At its deadline a message fails, as any other. All instances stop within
a second, and what is paused stays so over restarts, until "dispatcher resume". It is a change of
the routing document: the history has author and reason, and a document without it resumes all.`,
		(*control.Draft).Pause)
}

func (c *cli) resumeCommand() *cobra.Command {
	return c.pausingCommand("resume", "Send again what was paused", "the text is corrected",
		`What waited is considered at once. --all ends every pause, also those of single lanes,
routes, tenants and prefixes.`,
		(*control.Draft).Resume)
}

// pausingCommand changes what is paused. apply adds or removes what the flags name.
func (c *cli) pausingCommand(
	use, short, why, long string,
	apply func(*control.Draft, context.Context, *config.Paused) (*control.Changed, error),
) *cobra.Command {
	f := &pauseFlags{}
	cmd := &cobra.Command{
		Use:   use + " --lane NAME|--route NAME|--tenant NAME|--prefix +NN|--all --reason TEXT",
		Short: short, Long: long,
		Example: `  dispatcher ` + use + ` --lane bulk --reason "` + why + `"`,
		Args:    cobra.NoArgs,
		RunE: work(func(ctx context.Context, _ []string) error {
			if !f.paused.Any() {
				return misused(errors.New("name what is meant: --lane, --route, --tenant, " +
					"--prefix or --all"))
			}
			return c.withRouting(ctx, &f.changeFlags, func(ch *change) error {
				done, err := apply(ch.Draft, ctx, &f.paused)
				if err != nil {
					return err
				}
				return writePaused(ch, done, use, &f.paused)
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.paused.Lanes, "lane", nil, "messages of this lane; may be repeated")
	flags.StringArrayVar(&f.paused.Routes, "route", nil, "messages on this route; may be repeated")
	flags.StringArrayVar(&f.paused.Tenants, "tenant", nil, "messages of this tenant; may be "+
		"repeated")
	flags.StringArrayVar(&f.paused.Prefixes, "prefix", nil, "messages to numbers that begin so, "+
		"such as +44; may be repeated")
	flags.BoolVar(&f.paused.All, "all", false, "everything")
	f.addTo(cmd, c)
	return cmd
}

// writePaused prints what a pause or its end changed.
func writePaused(ch *change, done *control.Changed, use string, by *config.Paused) error {
	if ch.flags.as == formatTable && len(done.Changes) == 0 {
		state := "paused already"
		if use == "resume" {
			state = "not paused"
		}
		fmt.Fprintf(ch.cli.out, "Nothing is changed, as it is %s: %s.\n", state,
			strings.Join(by.Words(), ", "))
		return nil
	}
	if err := ch.write(done, nil); err != nil || use == "resume" ||
		ch.flags.as != formatTable || !done.Applied {
		return err
	}
	fmt.Fprintln(ch.cli.out, `What is on its way is finished. "dispatcher resume" ends the pause.`)
	return nil
}
