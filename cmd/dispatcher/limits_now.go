package main

import (
	"slices"
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// limitsNow is what the limits of the routing in force leave at one moment.
type limitsNow struct {
	Version  int64           `json:"version"`
	Now      time.Time       `json:"now"` // the database's clock
	Timezone string          `json:"timezone"`
	Channels []channelLimits `json:"channels"`
	// Limits are those over all channels.
	Limits []limitNow `json:"limits"`
	// WaitingForOthers counts the messages that wait for none of the above in particular.
	WaitingForOthers int64 `json:"waiting_for_others"`
}

// channelLimits is one channel with its limits.
type channelLimits struct {
	Channel     string   `json:"channel"`
	Policy      string   `json:"policy"`
	CurveFactor *float64 `json:"curve_factor"` // null unless the policy is curve
	// Rate is the part of its limits that the channel may use after its provider asked to slow
	// down; 1 is all.
	Rate        float64    `json:"rate"`
	PausedUntil *time.Time `json:"paused_until"` // by the provider's wish; null when it is not
	Active      int64      `json:"active"`
	ActiveMax   int64      `json:"active_max"` // 0 is no bound
	ActiveUntil string     `json:"active_until"`
	HoldSeconds float64    `json:"hold_seconds"`
	Waiting     int64      `json:"waiting"` // messages that wait for the channel itself
	Limits      []limitNow `json:"limits"`
}

// limitNow is one limit in its running window. Amounts of money are in micros.
type limitNow struct {
	Scope    string `json:"scope"`
	Window   string `json:"window"`
	Unit     string `json:"unit"`
	Currency string `json:"currency"` // empty unless the unit is money
	// Max is what the running window may grant; ConfiguredMax differs from it only after it was lowered
	// below what had been granted, and holds from the next window on.
	Max           int64 `json:"max"`
	ConfiguredMax int64 `json:"configured_max"`
	Granted       int64 `json:"granted"`
	Free          int64 `json:"free"`
	Reserved      int64 `json:"reserved"` // of Free, for lanes
	Waiting       int64 `json:"waiting"`  // messages that wait for the channel or scope
	// Effective is what a window takes at the present rate; null where the rate slows nothing down.
	Effective  *int64           `json:"effective_max"`
	NextWindow time.Time        `json:"next_window"`
	Sliding    bool             `json:"sliding"`
	Burst      int64            `json:"burst"`   // 0 unless it slides
	Reserve    map[string]int64 `json:"reserve"` // percent by lane

	key  admission.Key
	ends string // NextWindow as the table has it, in the business time zone
}

// countersNow finds the counters of limits in what the ledger tells of the present.
type countersNow struct {
	*ledger.Present
	zone *time.Location
}

// counter is that of a limit, brought to the present. A limit that has been applied between the two
// looks at the database has taken nothing yet.
func (n *countersNow) counter(channel string, l *admission.Limit) admission.Counter {
	c := admission.Counter{Limit: *l, Max: l.Max}
	var stored []admission.Counter
	if l.Scope == (admission.Scope{}) {
		if state := n.channel(channel); state != nil {
			stored = state.Gate.Counters
		}
	} else {
		at := slices.IndexFunc(n.Scoped, func(s ledger.ScopeState) bool { return s.Channel == channel && s.Scope == l.Scope })
		if at >= 0 {
			stored = n.Scoped[at].Counters
		}
	}
	if at := slices.IndexFunc(stored, func(s admission.Counter) bool { return s.Key() == l.Key() }); at >= 0 {
		c = stored[at]
		c.Limit = *l // with what the rows do not hold
	}
	c.Roll(n.Now, n.zone)
	return c
}

// channel is the state of one; nil when it has been applied between the two looks.
func (n *countersNow) channel(name string) *ledger.ChannelState {
	at := slices.IndexFunc(n.Channels, func(s ledger.ChannelState) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &n.Channels[at]
}

// newLimitsNow puts together what the document says and what has been taken. It takes the named
// channels, or all and the limits over all.
func newLimitsNow(version int64, doc *config.Routing, present *ledger.Present, named []string) *limitsNow {
	n := &countersNow{present, doc.Timezone}
	out := &limitsNow{
		Version: version, Now: present.Now, Timezone: doc.Timezone.String(), Channels: []channelLimits{}, Limits: []limitNow{},
	}
	out.WaitingForOthers = n.waiting("")
	for i := range doc.Channels {
		if c := &doc.Channels[i]; len(named) == 0 || slices.Contains(named, c.Name) {
			out.Channels = append(out.Channels, n.channelLimits(c))
		}
	}
	for i := range doc.Limits {
		if len(named) == 0 {
			out.Limits = append(out.Limits, n.limit("", &doc.Limits[i], 1))
		}
	}
	return out
}

func (n *countersNow) channelLimits(c *config.Channel) channelLimits {
	out := channelLimits{
		Channel: c.Name, Policy: admission.Exact{}.String(), Rate: 1, ActiveMax: c.Active.Max, ActiveUntil: c.Active.Until,
		HoldSeconds: c.Active.Hold.Seconds(), Waiting: n.waitingOn(c.Name), Limits: []limitNow{},
	}
	if c.Policy != nil {
		out.Policy = c.Policy.String()
	}
	if curve, ok := c.Policy.(admission.Curve); ok {
		out.CurveFactor = &curve.Factor
	}
	if state := n.channel(c.Name); state != nil {
		out.Active, out.Rate = state.Gate.Active.Count, state.Gate.Ease.RateAt(n.Now)
		if until := state.Gate.Ease.Until; until.After(n.Now) {
			out.PausedUntil = moment(until.UTC())
		}
	}
	for i := range c.Limits {
		out.Limits = append(out.Limits, n.limit(c.Name, &c.Limits[i], out.Rate))
	}
	return out
}

func (n *countersNow) limit(channel string, l *admission.Limit, rate float64) limitNow {
	c := n.counter(channel, l)
	out := limitNow{
		Scope: l.Scope.String(), Window: l.Window.String(), Unit: l.Unit.String(), Currency: l.Currency,
		Max: c.Max, ConfiguredMax: l.Max, Granted: c.Granted, Free: c.Free(), Reserved: c.Reserved(), Waiting: n.waiting(l.Key().On(channel)),
		NextWindow: c.End(n.zone), Sliding: l.Sliding, Burst: l.Burst, Reserve: make(map[string]int64, len(l.Reserve)), key: l.Key(),
	}
	if l.Paced() || l.Sliding {
		effective := int64(float64(l.Max) * rate)
		out.Effective = &effective
	}
	for _, r := range l.Reserve {
		out.Reserve[r.Lane] = r.Percent
	}
	out.ends = out.NextWindow.In(n.zone).Format(time.TimeOnly)
	if l.Window == admission.Day {
		out.ends = out.NextWindow.In(n.zone).Format("2 Jan 15:04")
	}
	return out
}

// waiting counts who waits for a channel as such or for a limit.
func (n *countersNow) waiting(on string) (messages int64) {
	for _, w := range n.Waiting {
		if w.On == on {
			messages += w.Messages
		}
	}
	return messages
}

// waitingOn counts who waits for a channel or for one of its limits.
func (n *countersNow) waitingOn(channel string) (messages int64) {
	for _, w := range n.Waiting {
		if w.On == channel || strings.HasPrefix(w.On, channel+" ") {
			messages += w.Messages
		}
	}
	return messages
}
