package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
)

func (c *cli) limitsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Show what is left of the limits, change one, and list who changed them",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(c.limitsShowCommand(), c.limitsSetCommand(), c.limitsHistoryCommand())
	return cmd
}

// limitFlags select one limit, or some of those of a channel.
type limitFlags struct {
	all                          bool // over all channels
	window, unit, tenant, prefix string

	given func(flag string) bool
}

// addTo defines the flags.
func (f *limitFlags) addTo(cmd *cobra.Command) {
	f.given = func(flag string) bool { return cmd.Flags().Changed(flag) }
	cmd.Flags().BoolVar(&f.all, "all-channels", false,
		"the limits over all channels, instead of those of one channel")
	cmd.Flags().StringVar(&f.window, "window", "", "window of the limit: 1s, 1m, 1h, 1d or prepaid")
	cmd.Flags().StringVar(&f.unit, "unit", "", "unit of the limit: messages, segments or money")
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "only the limit of this tenant")
	cmd.Flags().StringVar(&f.prefix, "prefix", "",
		"only the limit for numbers that begin with this, such as +44")
}

// channel is the named channel; empty for the limits over all.
func (f *limitFlags) channel(args []string) (string, error) {
	switch {
	case f.all && len(args) > 0:
		return "", misused(errors.New("CHANNEL and --all-channels exclude each other: name one"))
	case f.all:
		return "", nil
	case len(args) == 0:
		return "", misused(errors.New("name a channel, or write --all-channels for a limit over " +
			"all of them"))
	}
	return args[0], nil
}

// key is the key of the limit that the flags name.
func (f *limitFlags) key() (key admission.Key, err error) {
	if f.window == "" && !f.given("window") {
		return key, misused(errors.New("--window is missing: write 1s, 1m, 1h, 1d or prepaid"))
	}
	if err := f.check(); err != nil {
		return key, err
	}
	key.Window, _ = config.ParseWindow(f.window) // check has validated them
	key.Unit, _ = admission.ParseUnit(f.unit)
	key.Scope = admission.Scope{Tenant: f.tenant, Prefix: f.prefix}
	switch {
	case f.tenant != "" && f.prefix != "":
		err = misused(errors.New("--tenant and --prefix exclude each other: a limit counts by " +
			"one of them"))
	case f.tenant == "" && f.prefix == "" && f.all:
		err = misused(errors.New("a limit over all channels is one of a tenant or of a prefix: " +
			"add --tenant or --prefix"))
	}
	return key, err
}

// allChannels is the channel column for limits over all channels.
const allChannels = "(all)"

// check refuses values that no limit can have, and normalizes the others. A flag with an empty
// value is most likely an unset shell variable, so it must not mean all messages.
func (f *limitFlags) check() error {
	for flag, value := range map[string]string{
		"window": f.window, "unit": f.unit,
		"tenant": f.tenant, "prefix": f.prefix,
	} {
		if value == "" && f.given(flag) {
			return misused(fmt.Errorf("--%s is empty: write its value, or leave the flag out",
				flag))
		}
	}
	if f.window != "" {
		w, err := config.ParseWindow(f.window)
		if err != nil {
			return misused(fmt.Errorf("--window: %w", err))
		}
		f.window = w.String()
	}
	if _, err := admission.ParseUnit(f.unit); err != nil {
		return misused(fmt.Errorf("--unit: %w", err))
	}
	if f.prefix == "" {
		return nil
	}
	if err := config.CheckPrefix(f.prefix); err != nil {
		return misused(fmt.Errorf("--prefix: %w", err))
	}
	return nil
}

// limitName is the name of a limit among those of its channel, for tables and sentences.
func limitName(k admission.Key) string {
	name := k.Window.String() + " " + k.Unit.String()
	if k.Scope != (admission.Scope{}) {
		name += " " + k.Scope.String()
	}
	return name
}

// unknownChannel is the error for an unknown channel; it lists the known ones.
func unknownChannel(name string, doc *config.Routing) error {
	return usage(fmt.Errorf("there is no channel %q; choose one of %s", name,
		strings.Join(doc.ChannelNames(), ", ")))
}

// aheadCause is why a window begins in the future.
const aheadCause = "the database's clock was ahead when this window was opened"

// eachAhead calls visit for each limit whose window begins in the future.
func eachAhead(now *status.Limits, visit func(channel string, l *status.Limit)) {
	look := func(channel string, limits []status.Limit) {
		for i := range limits {
			if limits[i].Ahead {
				visit(channel, &limits[i])
			}
		}
	}
	for i := range now.Channels {
		look(now.Channels[i].Channel, now.Channels[i].Limits)
	}
	look("", now.Limits)
}

// aheadSentences describe each of them, and how to restart its window.
func aheadSentences(now *status.Limits) []string {
	var out []string
	eachAhead(now, func(channel string, l *status.Limit) {
		out = append(out, "Limit "+l.Key.On(channel)+": "+aheadWords(now, l)+". Most likely "+
			""+aheadCause+"; "+aheadEffect(l)+
			". If the clock is right now, start the window of now: "+restartCommand(channel, l.Key))
	})
	return out
}

// aheadWords say when the window begins.
func aheadWords(now *status.Limits, l *status.Limit) string {
	return "its window begins at " + windowWords(l.WindowStart, now.Zone) + " (" + now.Timezone +
		"), later than now"
}

// aheadEffect says what such a window causes. A limit of a second has release times only in that
// window; a longer window can still be used up.
func aheadEffect(l *status.Limit) string {
	if l.Key.Window == admission.Second {
		return "nothing passes before that"
	}
	return "until " + l.Ends + " no more than what is left of it passes"
}

// restartCommand is the command that restarts the current window.
func restartCommand(channel string, k admission.Key) string {
	words := "dispatcher limits set " + flagsOf(channel, k)
	return words + " --restart --reason TEXT"
}

// flagsOf are the arguments that name a limit on the command line.
func flagsOf(channel string, k admission.Key) string {
	words := quoted(channel)
	if channel == "" {
		words = "--all-channels"
	}
	return words + " " + keyFlags(k)
}

// keyFlags are the flags that name a limit among those of its channel.
func keyFlags(k admission.Key) string {
	words := "--window " + k.Window.String()
	if k.Unit != admission.Messages {
		words += " --unit " + k.Unit.String()
	}
	if k.Scope.Tenant != "" {
		words += " --tenant " + quoted(k.Scope.Tenant)
	}
	if k.Scope.Prefix != "" {
		words += " --prefix " + quoted(k.Scope.Prefix)
	}
	return words
}

// windowWords are the start of a window with its date, in the business time zone.
func windowWords(start time.Time, zone *time.Location) string {
	return start.In(zone).Format("2 Jan 2006 15:04:05")
}
