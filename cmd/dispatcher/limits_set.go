package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/config"
)

// limitChange is what limits set is asked for.
type limitChange struct {
	limitFlags
	most, currency string
	remove         bool
}

func (c *cli) limitsSetCommand() *cobra.Command {
	f, asked := &changeFlags{}, &limitChange{}
	cmd := &cobra.Command{
		Use:   "set (CHANNEL | --all-channels) --window 1s --max N --reason TEXT",
		Short: "Change, add or remove one limit, from the next claim on",
		Long: `Changes the max of the limit with that window, unit, tenant and prefix in the routing document, which keeps its
comments and its layout otherwise, and applies it as a new version. If there is no such limit it is added;
--remove takes it out. Max 0 closes: messages fall back or wait.

A higher max acts at once. A lower one too, but what the running window has granted already stays granted.`,
		Example: `  dispatcher limits set a --window 1s --max 80 --reason "the provider asked for less"
  dispatcher limits set a --window 1d --unit money --max 250.00 --tenant shop --reason "their budget"
  dispatcher limits set --all-channels --window 1m --max 600 --prefix +44 --reason "a flood of sign-ups"
  dispatcher limits set a --window 1s --remove --reason "the contract has none any more"`,
		Args: arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			channel, limit, err := asked.read(args)
			if err != nil {
				return err
			}
			return c.withRouting(ctx, f, func(ch *change) error { return ch.setLimit(ctx, channel, limit, asked.remove) })
		}),
	}
	asked.addTo(cmd)
	cmd.Flags().Lookup("unit").Usage = "messages (unless given), segments or money"
	cmd.Flags().StringVar(&asked.most, "max", "", "so many units in each window at most; money as a decimal, such as 250.00")
	cmd.Flags().StringVar(&asked.currency, "currency", "", "of a new limit in money over all channels, such as GBP")
	cmd.Flags().BoolVar(&asked.remove, "remove", false, "take the limit out")
	f.addTo(cmd, c)
	return cmd
}

// read makes a limit of the arguments.
func (lc *limitChange) read(args []string) (channel string, l admission.Limit, err error) {
	if channel, err = lc.channel(args); err != nil {
		return "", l, err
	}
	key, err := lc.key()
	if err != nil {
		return "", l, err
	}
	l = admission.Limit{Scope: key.Scope, Window: key.Window, Unit: key.Unit, Currency: lc.currency}
	switch {
	case lc.remove && lc.most != "":
		return "", l, usage(errors.New("--remove and --max exclude each other: name one"))
	case lc.remove:
		return channel, l, nil
	case lc.most == "":
		return "", l, usage(errors.New("--max is missing: write how many units a window may take, or --remove"))
	case lc.currency != "" && l.Unit != admission.Money:
		return "", l, usage(errors.New("--currency is for limits in money: add --unit money or leave it out"))
	}
	if l.Max, err = config.ParseMax(lc.most, l.Unit); err != nil {
		return "", l, usage(fmt.Errorf("--max: %w", err))
	}
	return channel, l, nil
}

// setLimit changes one limit and warns of what it comes to in the running window and for the routes.
func (ch *change) setLimit(ctx context.Context, channel string, l admission.Limit, remove bool) error {
	if err := ch.need(); err != nil {
		return err
	}
	if channel != "" && !slices.Contains(ch.document.ChannelNames(), channel) {
		return unknownChannel(channel, ch.document)
	}
	done, err := ch.make(ctx, func() (string, []byte, error) {
		var document []byte
		var err error
		if remove {
			document, err = config.DropLimit([]byte(ch.current.Document), channel, l.Key())
		} else {
			document, err = config.SetLimit([]byte(ch.current.Document), channel, l)
		}
		return changedName(ch.current.Version), document, ch.inStored(err)
	})
	if err != nil {
		return err
	}
	if !remove && len(done.Changes) > 0 {
		if err := ch.warnOfLimit(ctx, done, channel, l.Key()); err != nil {
			return err
		}
	}
	return done.print(ch.cli, ch.flags.as)
}

// warnOfLimit notes what a limit lets nothing through to, and what its window has granted already.
func (ch *change) warnOfLimit(ctx context.Context, done *changed, channel string, key admission.Key) error {
	limits := limitsOf(done.after, channel)
	at := slices.IndexFunc(limits, func(l admission.Limit) bool { return l.Key() == key })
	if at < 0 {
		return nil
	}
	if limits[at].Max == 0 {
		done.Warnings = append(done.Warnings, closedBy(done.after, channel, key.Scope)...)
	}
	present, err := ch.ledger.Present(ctx)
	if err != nil {
		return usage(postgresTrouble(ch.settings, err))
	}
	now := &countersNow{&present, done.after.Timezone}
	shown := now.limit(channel, &limits[at], 1)
	if over := shown.Granted > shown.ConfiguredMax; over && key.Window != admission.Second {
		done.Warnings = append(done.Warnings, fmt.Sprintf(
			"The running window has granted %s already: it takes no more before it ends (%s, %s), and the new max holds from then on.", shown.shown(shown.Granted), shown.ends, done.after.Timezone))
	}
	return nil
}

// closedBy says whom a max of 0 leaves without a channel.
func closedBy(doc *config.Routing, channel string, scope admission.Scope) []string {
	who := map[bool]string{true: "Messages of tenant " + scope.Tenant, false: "Messages to " + scope.Prefix}[scope.Tenant != ""]
	switch {
	case channel == "":
		return []string{who + " wait until the limit is raised, or they expire: it stands over all channels."}
	case scope != admission.Scope{}:
		return []string{fmt.Sprintf("%s find no room on channel %s: they go to others or wait.", who, channel)}
	}
	return idleRoutes(doc, channel)
}
