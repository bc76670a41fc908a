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

// Detail is one channel of the routing in force with its present load.
type Detail struct {
	Channel  string `json:"channel"`
	Provider string `json:"provider"`
	State    string `json:"state"`
	Capacity int64  `json:"capacity"`
	// Active is its number of attempts in flight, over all instances.
	Active       int64         `json:"active"`
	ActiveMax    *int64        `json:"active_max"` // null for no bound
	LoadRatio    float64       `json:"load_ratio"`
	LastAssigned *time.Time    `json:"last_assigned"` // null: never
	Limits       []DetailLimit `json:"limits"`
	Routes       []string      `json:"routes"` // that list it
	// The following are the same as in Channel.
	Breaker        string        `json:"breaker"`
	BreakerSince   *time.Time    `json:"breaker_since"`
	NotReady       []ReasonCount `json:"not_ready"`
	Silent         bool          `json:"silent"`
	AgreedShare    *float64      `json:"agreed_share"`
	EffectiveShare *float64      `json:"effective_share"`
	CarriedShare   *float64      `json:"carried_share"`
	Rate           float64       `json:"rate"`
	Limit          *float64      `json:"limit"`
	Throttled      float64       `json:"throttled_to"`
	PausedUntil    *time.Time    `json:"paused_until"`
	Accepted       int64         `json:"accepted"`
	Codes          []CodeCount   `json:"codes"`
	Unsent         []CodeCount   `json:"unsent"`
	P50            *float64      `json:"p50_ms"`
	P99            *float64      `json:"p99_ms"`
	Unanswered     int64         `json:"unanswered"`
	Waiting        int64         `json:"waiting"`
	Oldest         *float64      `json:"oldest_seconds"`

	// Status is the status of the channel; nil before Take.
	Status *Channel `json:"-"`
}

// Take copies the status of the channel.
func (d *Detail) Take(s *Channel) {
	d.Status = s
	d.Breaker, d.BreakerSince = s.Breaker, s.BreakerSince
	d.NotReady, d.Silent = s.NotReady, s.Silent
	d.AgreedShare, d.EffectiveShare, d.CarriedShare = s.AgreedShare, s.EffectiveShare, s.CarriedShare
	d.Rate, d.Limit, d.Throttled, d.PausedUntil = s.Rate, s.Limit, s.Throttled, s.PausedUntil
	d.Accepted, d.Codes, d.Unsent, d.P50, d.P99 = s.Accepted, s.Codes, s.Unsent, s.P50, s.P99
	d.Unanswered, d.Waiting, d.Oldest = s.Unanswered, s.Waiting, s.OldestSeconds
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

// NewDetail combines what the document says of a channel with its counters.
func NewDetail(doc *config.Routing, c *config.Channel, present *ledger.Present) Detail {
	shown := Detail{
		Channel: c.Name, Provider: c.Provider, State: string(c.State), Capacity: c.Capacity,
		Limits: []DetailLimit{}, Routes: []string{},
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
