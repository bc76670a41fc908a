package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// ChannelList has the channels of the routing in force. Scripts rely on its JSON names.
type ChannelList struct {
	Version  int64    `json:"version"`
	Channels []Detail `json:"channels" nullable:"false"`
}

// Detail is the status of one channel with its load, its limits and its place in the routing.
type Detail struct {
	Channel
	Provider string `json:"provider"`
	Capacity int64  `json:"capacity"`
	// Active is its number of attempts in flight, over all instances.
	Active       int64         `json:"active"`
	ActiveMax    *int64        `json:"active_max"` // null for no bound
	LoadRatio    float64       `json:"load_ratio"`
	LastAssigned *time.Time    `json:"last_assigned"` // null: never
	Limits       []DetailLimit `json:"limits"`
	Routes       []string      `json:"routes"` // that list it
}

// DetailLimit is a limit in its running window. It is a limit on all messages of the channel; only
// "limits show" has those of tenants and prefixes.
type DetailLimit struct {
	Window   string `json:"window"`
	Unit     string `json:"unit"`
	Currency string `json:"currency"` // empty unless the unit is money
	// Max is what the running window may grant; ConfiguredMax is that of the document, see Limit.
	Max           Quantity `json:"max"`
	ConfiguredMax Quantity `json:"configured_max"`
	Granted       Quantity `json:"granted"`
	Free          Quantity `json:"free"`
}

// Words says what has been granted. form is a format of four strings: granted, max, unit, window.
func (l *DetailLimit) Words(form string) string {
	words := fmt.Sprintf(form, l.Granted, l.Max, cmp.Or(l.Currency, l.Unit), l.Window)
	if l.Max != l.ConfiguredMax {
		words += ", then " + l.ConfiguredMax.String()
	}
	return words
}

// Details adds to the status of the channels their load and their place in the document that the
// status was read under.
func (n *Now) Details(doc *config.Routing, present *ledger.Present) []Detail {
	details := make([]Detail, len(doc.Channels))
	for i := range doc.Channels {
		details[i] = newDetail(doc, &doc.Channels[i], &n.Channels[i], present)
	}
	return details
}

func newDetail(
	doc *config.Routing, c *config.Channel, of *Channel, present *ledger.Present,
) Detail {
	shown := Detail{
		Channel: *of, Provider: c.Provider, Capacity: c.Capacity, Limits: []DetailLimit{},
		Routes: []string{},
	}
	if c.Active.Max > 0 {
		shown.ActiveMax = &c.Active.Max
	}
	for i := range doc.Routes {
		if slices.Contains(doc.Routes[i].Channels, c.Name) {
			shown.Routes = append(shown.Routes, doc.Routes[i].Name)
		}
	}
	now := &Counters{present, doc.Timezone}
	state := now.Channel(c.Name)
	if state == nil {
		return shown // the routing was changed between the two reads
	}
	shown.Active, shown.LastAssigned = state.Gate.Active.Count, report.Moment(state.LastAssigned)
	shown.LoadRatio = float64(shown.Active) / float64(c.Capacity)
	for i := range c.Limits {
		if l := now.Limit(c.Name, &c.Limits[i],
			state.Gate.Ease); c.Limits[i].Scope == (admission.Scope{}) {
			shown.Limits = append(shown.Limits, DetailLimit{
				Window: l.Window, Unit: l.Unit, Currency: l.Currency, Max: l.Max,
				ConfiguredMax: l.ConfiguredMax, Granted: l.Granted, Free: l.Free,
			})
		}
	}
	return shown
}
