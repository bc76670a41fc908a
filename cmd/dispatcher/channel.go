package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

func (c *cli) channelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "channel",
		Short: "List the channels, drain one, switch one off or on",
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
	)
	return cmd
}

// channelStateCommand changes the state of a channel in the routing document.
func (c *cli) channelStateCommand(
	use string, state config.State, short, long string,
) *cobra.Command {
	f := &changeFlags{}
	cmd := &cobra.Command{
		Use: use + " CHANNEL --reason TEXT", Short: short, Long: long, Args: arguments(1, 1),
		RunE: work(func(ctx context.Context, args []string) error {
			return c.withRouting(ctx, f, func(ch *change) error {
				return ch.setState(ctx, args[0], state)
			})
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
		return usage(fmt.Errorf("there is no channel %q; choose one of %s", channel,
			strings.Join(names, ", ")))
	}
	done, err := ch.make(ctx, func() (*config.Document, error) {
		return ch.document.SetState(channel, state)
	})
	if err != nil {
		return err
	}
	return done.write(ch.cli, ch.flags.as)
}

// channelShown is one channel of the routing in force with what it carries now.
type channelShown struct {
	Channel  string `json:"channel"`
	Provider string `json:"provider"`
	State    string `json:"state"`
	Capacity int64  `json:"capacity"`
	// Active is how many attempts are under way on it, over all instances.
	Active       int64        `json:"active"`
	ActiveMax    *int64       `json:"active_max"` // null is no bound
	LoadRatio    float64      `json:"load_ratio"`
	LastAssigned *time.Time   `json:"last_assigned"` // null: never
	Limits       []limitShown `json:"limits"`
	Routes       []string     `json:"routes"` // that list it
	// How it does now is told as in "dispatcher status".
	Breaker      string      `json:"breaker"`
	BreakerSince *time.Time  `json:"breaker_since"`
	AgreedShare  *float64    `json:"agreed_share"`
	CarriedShare *float64    `json:"carried_share"`
	Rate         float64     `json:"rate"`
	Codes        []codeCount `json:"codes"`
	P50          *float64    `json:"p50_ms"`
	P99          *float64    `json:"p99_ms"`
	Waiting      int64       `json:"waiting"`

	status *channelStatus
}

// take copies how the channel does now.
func (c *channelShown) take(s *channelStatus) {
	c.status = s
	c.Breaker, c.BreakerSince = s.Breaker, s.BreakerSince
	c.AgreedShare, c.CarriedShare, c.Rate = s.AgreedShare, s.CarriedShare, s.Rate
	c.Codes, c.P50, c.P99, c.Waiting = s.Codes, s.P50, s.P99, s.Waiting
}

// limitShown is a limit in its running window. It counts all messages of the channel: "limits show"
// has those of tenants and prefixes, too.
type limitShown struct {
	Window   string `json:"window"`
	Unit     string `json:"unit"`
	Currency string `json:"currency"` // empty unless the unit is money
	// Max is what the running window may grant; ConfiguredMax what the document says, see limitNow.
	Max           quantity `json:"max"`
	ConfiguredMax quantity `json:"configured_max"`
	Granted       quantity `json:"granted"`
	Free          quantity `json:"free"`
}

// words says what has been granted, in a form that has room for two amounts, unit and window.
func (l *limitShown) words(form string) string {
	words := fmt.Sprintf(form, l.Granted, l.Max, cmp.Or(l.Currency, l.Unit), l.Window)
	if l.Max != l.ConfiguredMax {
		words += ", then " + l.ConfiguredMax.String()
	}
	return words
}

func (c *cli) channelListCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the channels with their state, what they carry and what their limits leave",
		Args:  cobra.NoArgs,
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
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return err
	}
	value := struct {
		Version  int64          `json:"version"`
		Channels []channelShown `json:"channels"`
	}{Version: v.Version}
	status, err := statusOf(ctx, l, v.Version, doc)
	if err != nil {
		return err
	}
	for i := range doc.Channels {
		shown := newChannelShown(doc, &doc.Channels[i], &present)
		shown.take(&status.Channels[i])
		value.Channels = append(value.Channels, shown)
	}
	return as.write(c.out, value, channelSheet(v.Version, value.Channels, as))
}

// newChannelShown puts together what the document says of a channel and what it carries.
func newChannelShown(doc *config.Routing, c *config.Channel, present *ledger.Present) channelShown {
	shown := channelShown{
		Channel: c.Name, Provider: c.Provider, State: string(c.State), Capacity: c.Capacity,
		Limits: []limitShown{}, Routes: []string{},
	}
	if c.Active.Max > 0 {
		shown.ActiveMax = &c.Active.Max
	}
	for i := range doc.Routes {
		if slices.Contains(doc.Routes[i].Channels, c.Name) {
			shown.Routes = append(shown.Routes, doc.Routes[i].Name)
		}
	}
	now := &countersNow{present, doc.Timezone}
	state := now.channel(c.Name)
	if state == nil {
		return shown // the routing was changed between the two looks
	}
	shown.Active, shown.LastAssigned = state.Gate.Active.Count, moment(state.LastAssigned)
	shown.LoadRatio = float64(shown.Active) / float64(c.Capacity)
	for i := range c.Limits {
		if l := now.limit(c.Name, &c.Limits[i],
			state.Gate.Ease); c.Limits[i].Scope == (admission.Scope{}) {
			shown.Limits = append(shown.Limits, limitShown{
				Window: l.Window, Unit: l.Unit, Currency: l.Currency, Max: l.Max,
				ConfiguredMax: l.ConfiguredMax, Granted: l.Granted, Free: l.Free,
			})
		}
	}
	return shown
}

func channelSheet(version int64, channels []channelShown, as format) sheet {
	limits := func(form, between string) func(*channelShown) any {
		return func(c *channelShown) any {
			words := make([]string, len(c.Limits))
			for i := range c.Limits {
				words[i] = c.Limits[i].words(form)
			}
			return strings.Join(words, between)
		}
	}
	s := list(as, channels, []column[channelShown]{
		{key: "channel", width: 14},
		{key: "provider"},
		{key: "state", only: formatTable, width: 12, cell: func(c *channelShown) any {
			if c.status != nil {
				return c.status.stateWords()
			}
			return c.State
		}},
		{key: "breaker", only: formatTable, width: 10, cell: func(c *channelShown) any {
			if c.status != nil {
				return c.status.breakerWords()
			}
			return c.Breaker
		}},
		{key: "state", only: formatCSV},
		{key: "capacity", only: formatCSV},
		{key: "active"},
		{key: "load_ratio", only: formatCSV},
		{key: "carried", only: formatTable, right: true, cell: func(c *channelShown) any {
			if c.AgreedShare == nil {
				return nil
			}
			carried := "none"
			if c.CarriedShare != nil {
				carried = format(formatTable).share(c.CarriedShare)
			}
			return carried + "\nof " + format(formatTable).share(c.AgreedShare)
		}},
		{key: "waiting", only: formatTable},
		{
			name: "last_assigned", only: formatCSV,
			cell: func(c *channelShown) any {
				if c.LastAssigned == nil {
					return "never"
				}
				return *c.LastAssigned
			},
		},
		{key: "limits", only: formatTable, width: 18, cell: limits("%s/%s %s/%s", "\n")},
		{key: "limits", only: formatCSV, cell: limits("%s of %s %s/%s", ", ")},
		{key: "routes", only: formatTable, width: 13, cell: func(c *channelShown) any {
			return strings.Join(c.Routes, "\n")
		}},
		{key: "routes", only: formatCSV, cell: func(c *channelShown) any {
			return strings.Join(c.Routes, ", ")
		}},
		{key: "breaker", only: formatCSV},
		{key: "breaker_since", only: formatCSV},
		{key: "agreed_share", only: formatCSV},
		{key: "carried_share", only: formatCSV},
		{key: "rate", only: formatCSV},
		{key: "codes", only: formatCSV, cell: func(c *channelShown) any {
			return (&channelStatus{Codes: c.Codes}).errorWords(", ")
		}},
		{key: "p50_ms", only: formatCSV},
		{key: "p99_ms", only: formatCSV},
		{key: "waiting", only: formatCSV},
	}...)
	s.title, s.tight = fmt.Sprintf("version %d", version), true
	return s
}
