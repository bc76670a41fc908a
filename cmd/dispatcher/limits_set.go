package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
)

// limitChange holds the arguments of limits set.
type limitChange struct {
	limitFlags
	most, currency string
	remove         bool
	restart        bool // restart a window that begins in the future
}

func (c *cli) limitsSetCommand() *cobra.Command {
	f, asked := &changeFlags{}, &limitChange{}
	cmd := &cobra.Command{
		Use: "set CHANNEL --window 1s --max N --reason TEXT | " +
			"set --all-channels --window 1s --max N --reason TEXT",
		Short: "Change, add or remove one limit, from the next claim on",
		Long: `Changes the max of the limit with that window, unit, tenant and prefix in the
routing document, which keeps its comments, its order and its quotes, and applies it as a new
version. If there is no such limit it is added; --remove takes it out. Max 0 closes: messages fall
back or wait. A burst that does not fit under a lower max becomes the default. active and
admission are changed in the document: "dispatcher routing apply".

A higher max acts at once. A lower one too, but what the running window has granted already stays
granted. A new limit counts what the running window has taken already, unless it is one of a
second.

--restart changes no max: it starts the window of now for a limit whose window begins in the
future, because the database's clock was ahead when it was opened ("dispatcher limits show" and
"doctor" say so). What attempts on record have taken in it counts. It is in the history.`,
		Example: `  dispatcher limits set a --window 1s --max 80 --reason "less was agreed"
  dispatcher limits set a --window 1d --unit money --max 250.00 --tenant shop \
      --reason "their budget"
  dispatcher limits set --all-channels --window 1m --max 600 --prefix +44 \
      --reason "a flood of sign-ups"
  dispatcher limits set a --window 1s --remove --reason "the contract has none any more"
  dispatcher limits set a --window 1s --restart --reason "the database's clock was two days ahead"`,
		Args: arguments(0, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			channel, limit, err := asked.read(args)
			if err != nil {
				return err
			}
			return c.withRouting(ctx, f, func(ch *change) error {
				if asked.restart {
					return ch.restartLimit(ctx, channel, limit)
				}
				return ch.setLimit(ctx, channel, limit, asked.remove)
			})
		}),
	}
	asked.addTo(cmd)
	cmd.Flags().Lookup("unit").Usage = "unit of the limit: messages (the default), segments or " +
		"money"
	cmd.Flags().StringVar(&asked.most, "max", "",
		"most units in one window; money as a decimal, such as 250.00")
	cmd.Flags().StringVar(&asked.currency, "currency", "",
		"currency of a new limit in money over all channels, such as GBP")
	cmd.Flags().BoolVar(&asked.remove, "remove", false, "remove the limit")
	cmd.Flags().BoolVar(&asked.restart, "restart", false,
		"replace a window that begins in the future by the current one")
	f.addTo(cmd, c)
	return cmd
}

// read reads the arguments as a limit.
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
		return "", l, misused(errors.New("--remove and --max exclude each other: name one"))
	case lc.restart && (lc.remove || lc.most != "" || lc.currency != ""):
		return "", l, misused(errors.New("--restart changes nothing else: leave out --max, " +
			"--currency and --remove"))
	case lc.remove, lc.restart:
		return channel, l, nil
	case lc.most == "":
		return "", l, misused(errors.New("--max is missing: write how many units a window may " +
			"take, or --remove, or --restart"))
	case lc.currency != "" && l.Unit != admission.Money:
		return "", l, misused(errors.New("--currency is for limits in money: add --unit money or " +
			"leave it out"))
	}
	if l.Max, err = config.ParseMax(lc.most, l.Unit); err != nil {
		return "", l, misused(fmt.Errorf("--max: %w", err))
	}
	return channel, l, nil
}

// setLimit changes one limit.
func (ch *change) setLimit(
	ctx context.Context, channel string, l admission.Limit, remove bool,
) error {
	if err := ch.need(); err != nil {
		return err
	}
	if channel != "" {
		if _, err := control.ChannelOf(ch.Base(), channel); err != nil {
			return err
		}
	}
	if remove {
		if err := ch.needLimit(channel, l.Key()); err != nil {
			return err
		}
	}
	if channel == "" && !remove {
		if err := ch.needCurrency(&l); err != nil {
			return err
		}
	}
	return ch.write(ch.SetLimit(ctx, channel, l, remove, ch.inFlags))
}

// inFlags words a problem of the changed document in terms of the flags, because their user has
// never seen a line of the document. Other errors stay unchanged.
func (ch *change) inFlags(err error) error {
	problem, ok := errors.AsType[*config.Problem](err)
	if !ok {
		return err
	}
	text := problem.Text
	var at int
	if n, _ := fmt.Sscanf(problem.Key, "routes[%d]", &at); n == 1 && at < len(ch.Base().Routes) {
		text = "on route " + ch.Base().Routes[at].Name + " " + text
	}
	return errors.New(strings.NewReplacer(
		"set max_segments: ", "give the route max_segments: ", "raise the limit",
		"choose a higher --max",
		"write for example window: 1d", "write --window 1d",
	).Replace(text))
}

// needLimit refuses to remove a limit that does not exist, and lists those that do by their flags.
func (ch *change) needLimit(channel string, key admission.Key) error {
	limits := ch.Base().LimitsOf(channel)
	if slices.ContainsFunc(limits, func(l admission.Limit) bool { return l.Key() == key }) {
		return nil
	}
	place, has := "on channel "+channel, "there is none there"
	if channel == "" {
		place = "over all channels"
	}
	if len(limits) > 0 {
		words := make([]string, len(limits))
		for i := range limits {
			words[i] = status.KeyFlags(limits[i].Key())
		}
		has = "there are " + strings.Join(words, "; ")
	}
	whose := ""
	if key.Scope != (admission.Scope{}) {
		whose = " (" + key.Scope.String() + ")"
	}
	return usage(fmt.Errorf("there is no limit of %s per %s%s %s; %s", key.Unit, key.Window, whose,
		place, has))
}

// needCurrency refuses a new limit in money over all channels without a currency.
func (ch *change) needCurrency(l *admission.Limit) error {
	if l.Unit != admission.Money || l.Currency != "" || slices.ContainsFunc(ch.Base().Limits,
		func(o admission.Limit) bool { return o.Key() == l.Key() }) {
		return nil
	}
	currency := "GBP"
	for i := range ch.Base().Channels {
		if priced := ch.Base().Channels[i].Price.Currency; priced != "" {
			currency = priced
			break
		}
	}
	return misused(fmt.Errorf("there is no such limit yet, and --currency is missing: write "+
		"--currency %s", currency))
}
