package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"dispatcher/admission"
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
