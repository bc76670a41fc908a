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
}

// limitShown is a limit in its running window. It counts all messages of the channel: "limits show" has those
// of tenants and prefixes, too.
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
	as := format(formatTable)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the channels with their state, what they carry and what their limits leave",
		Args:  cobra.NoArgs,
		RunE:  work(func(ctx context.Context, _ []string) error { return c.listChannels(ctx, as) }),
	}
	cmd.Flags().Var(&as, "format", "output format")
	return cmd
}

func (c *cli) listChannels(ctx context.Context, as format) error {
	s, l, err := c.ledger(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	v, doc, err := inForce(ctx, l, s)
	if err != nil {
		return err
	}
	present, err := l.Present(ctx)
	if err != nil {
		return usage(postgresTrouble(s, err))
	}
	value := struct {
		Version  int64          `json:"version"`
		Channels []channelShown `json:"channels"`
	}{Version: v.Version}
	for i := range doc.Channels {
		value.Channels = append(value.Channels, newChannelShown(doc, &doc.Channels[i], &present))
	}
	return as.print(c.out, value, channelSheet(v.Version, value.Channels, as))
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
		if l := now.limit(c.Name, &c.Limits[i], state.Gate.Ease); c.Limits[i].Scope == (admission.Scope{}) {
			shown.Limits = append(shown.Limits, limitShown{
				Window: l.Window, Unit: l.Unit, Currency: l.Currency, Max: l.Max, ConfiguredMax: l.ConfiguredMax, Granted: l.Granted, Free: l.Free,
			})
		}
	}
	return shown
}

func channelSheet(version int64, channels []channelShown, as format) sheet {
	s := sheet{
		header: []string{"channel", "provider", "state", "capacity", "active", "load_ratio", "last_assigned", "limits", "routes"},
		right:  []int{4, 5, 6},
	}
	between, layout, granted := ", ", time.RFC3339, "%s of %s %s/%s"
	if as == formatTable {
		s.title, s.tight, s.wrap, between = fmt.Sprintf("version %d", version), true, map[int]int{1: 14, 7: 19, 8: 18, 9: 13}, "\n"
		layout, granted = time.DateTime, "%s/%s %s/%s"
		s.header[5], s.header[6] = "load", "last_assigned (UTC)"
	}
	for i := range channels {
		c := &channels[i]
		last := "never"
		if c.LastAssigned != nil {
			last = c.LastAssigned.Format(layout)
		}
		limits := make([]string, len(c.Limits))
		for j := range c.Limits {
			limits[j] = c.Limits[j].words(granted)
		}
		s.rows = append(s.rows, []string{
			c.Channel, c.Provider, c.State, number(c.Capacity), number(c.Active), as.fraction(&c.LoadRatio), last,
			strings.Join(limits, between), strings.Join(c.Routes, between),
		})
	}
	return s
}
