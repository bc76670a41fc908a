package main

import (
	"maps"
	"slices"
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
	// Waiting are the messages that wait, by what for and why, most of them first.
	Waiting []waitersNow `json:"waiting"`
	// WaitingForOthers counts the messages that wait for none of the above in particular.
	WaitingForOthers int64 `json:"waiting_for_others"`

	zone *time.Location
}

// channelLimits is one channel with its limits.
type channelLimits struct {
	Channel     string   `json:"channel"`
	Policy      string   `json:"policy"`
	CurveFactor *float64 `json:"curve_factor"` // null unless the policy is curve
	// Rate is the part of its limits of a second that the channel may use after its provider asked
	// to slow down; 1 is all, or there are none.
	Rate        float64    `json:"rate"`
	PausedUntil *time.Time `json:"paused_until"` // as the provider asked; null when it is not
	Active      int64      `json:"active"`
	ActiveMax   *int64     `json:"active_max"` // null is no bound
	ActiveUntil string     `json:"active_until"`
	HoldSeconds float64    `json:"hold_seconds"`
	// Waiting counts the messages that wait for the channel: as such, or for one of its limits.
	Waiting int64      `json:"waiting"`
	Limits  []limitNow `json:"limits"`
}

// limitNow is one limit in its running window.
type limitNow struct {
	Scope    string `json:"scope"`
	Window   string `json:"window"`
	Unit     string `json:"unit"`
	Currency string `json:"currency"` // empty unless the unit is money
	// Max is what the running window may grant; ConfiguredMax differs from it only after it was
	// lowered below what had been granted, and holds from the next window on.
	Max           quantity `json:"max"`
	ConfiguredMax quantity `json:"configured_max"`
	// Effective is what a window takes at the present rate of the channel.
	Effective quantity `json:"effective_max"`
	Granted   quantity `json:"granted"`
	// what could be taken now; of a sliding limit by its arrival time
	Free     quantity `json:"free"`
	Reserved quantity `json:"reserved"` // of what the window has left, for lanes
	Waiting  int64    `json:"waiting"`  // messages that this limit is in the way of
	// WindowStart is when the running window began. Ahead is set when that is later than now: the
	// database's clock was ahead when it was opened, and no other window is opened before.
	WindowStart time.Time `json:"window_start"`
	Ahead       bool      `json:"ahead"`
	// NextPlace is when a sliding limit takes one more; null for others and for one that is closed.
	NextPlace  *time.Time `json:"next_place"`
	NextWindow time.Time  `json:"next_window"`
	Sliding    bool       `json:"sliding"`
	Burst      *int64     `json:"burst"` // null unless it slides
	// in a window behind a burst; null unless it slides
	Sustained *int64           `json:"sustained"`
	Reserve   map[string]int64 `json:"reserve"` // percent by lane

	key   admission.Key
	burst string // in words
	ends  string // NextWindow as the table has it
}

// newLimitsNow puts together what the document says and what has been taken. It takes the named
// channels, or all and the limits over all.
func newLimitsNow(
	version int64, doc *config.Routing, present *ledger.Present, named []string,
) *limitsNow {
	n := &countersNow{present, doc.Timezone}
	out := &limitsNow{
		Version: version, Now: present.Now, Timezone: doc.Timezone.String(),
		Channels: []channelLimits{}, Limits: []limitNow{},
		Waiting: n.waiters(named), zone: doc.Timezone,
	}
	out.WaitingForOthers = n.waiting("")
	for i := range doc.Channels {
		if c := &doc.Channels[i]; len(named) == 0 || slices.Contains(named, c.Name) {
			out.Channels = append(out.Channels, n.channelLimits(c))
		}
	}
	for i := range doc.Limits {
		if len(named) == 0 {
			out.Limits = append(out.Limits, n.limit("", &doc.Limits[i], admission.Ease{}))
		}
	}
	return out
}

func (n *countersNow) channelLimits(c *config.Channel) channelLimits {
	out := channelLimits{
		Channel: c.Name, Policy: admission.Exact{}.String(), ActiveUntil: c.Active.Until,
		HoldSeconds: c.Active.Hold.Seconds(), Waiting: n.waitingOn(c.Name), Limits: []limitNow{},
	}
	if c.Active.Max > 0 {
		out.ActiveMax = &c.Active.Max
	}
	if c.Policy != nil {
		out.Policy = c.Policy.String()
	}
	if curve, ok := c.Policy.(admission.Curve); ok {
		out.CurveFactor = &curve.Factor
	}
	var ease admission.Ease
	if state := n.channel(c.Name); state != nil {
		out.Active, ease = state.Gate.Active.Count, state.Gate.Ease
	}
	out.Rate = ease.RateOf(c.Limits, n.Now)
	if ease.Until.After(n.Now) {
		out.PausedUntil = moment(ease.Until.UTC())
	}
	for i := range c.Limits {
		out.Limits = append(out.Limits, n.limit(c.Name, &c.Limits[i], ease))
	}
	return out
}

// limit is one limit at the ease of its channel.
func (n *countersNow) limit(channel string, l *admission.Limit, ease admission.Ease) limitNow {
	c := n.counter(channel, l)
	of := func(units int64) quantity { return quantityOf(l, units) }
	effective := l.Effective(ease, n.Now)
	free := c.FreeAt(n.Now)
	if effective < l.Max {
		free = min(free, max(effective-c.Granted, 0))
	}
	out := limitNow{
		Scope: l.Scope.String(), Window: l.Window.String(), Unit: l.Unit.String(),
		Currency: l.Currency,
		Max:      of(c.Max), ConfiguredMax: of(l.Max), Effective: of(effective),
		Granted:  of(c.Granted),
		Reserved: of(c.Reserved()),
		Waiting:  n.waiting(l.Key().On(channel)), WindowStart: c.Start.UTC(), Ahead: c.Ahead(n.Now),
		NextWindow: c.End(n.zone), Sliding: l.Sliding,
		Reserve: make(map[string]int64, len(l.Reserve)), key: l.Key(), burst: config.BurstWords(l),
	}
	if l.Sliding && l.Max > 0 {
		sustained := config.Sustained(l)
		out.Burst, out.Sustained = &l.Burst, &sustained
		free = min(free, n.atOnce(c, ease))
		out.NextPlace = n.nextPlace(c, ease)
	}
	out.Free = of(free)
	for _, r := range l.Reserve {
		out.Reserve[r.Lane] = r.Percent
	}
	out.ends = out.NextWindow.In(n.zone).Format(time.TimeOnly)
	switch {
	case out.Ahead:
		out.ends = out.NextWindow.In(n.zone).Format("2 Jan 15:04:05")
	case l.Window == admission.Day:
		out.ends = out.NextWindow.In(n.zone).Format("2 Jan 15:04")
	}
	return out
}

// lanes are those that a limit keeps a part for, in order.
func (l *limitNow) lanes() []string { return slices.Sorted(maps.Keys(l.Reserve)) }
