package status

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Limits is what the limits of the routing in force leave at one moment.
type Limits struct {
	Version  int64           `json:"version"`
	Now      time.Time       `json:"now"` // the database's clock
	Timezone string          `json:"timezone"`
	Channels []ChannelLimits `json:"channels"`
	// Limits are those over all channels.
	Limits []Limit `json:"limits"`
	// Waiting are the waiting messages by what they wait for and why, the largest group first.
	Waiting []Waiters `json:"waiting"`
	// WaitingForOthers counts the messages that wait for no particular channel or limit above.
	WaitingForOthers int64 `json:"waiting_for_others"`

	// Zone is Timezone.
	Zone *time.Location `json:"-"`
}

// ChannelLimits is one channel with its limits.
type ChannelLimits struct {
	Channel     string   `json:"channel"`
	Policy      string   `json:"policy"`
	CurveFactor *float64 `json:"curve_factor"` // null unless the policy is curve
	// Rate is the part of its limits per second that the channel may use after its provider asked to
	// slow down; 1 for all of them, or when it has none.
	Rate        float64    `json:"rate"`
	PausedUntil *time.Time `json:"paused_until"` // as the provider asked; null when not paused
	Active      int64      `json:"active"`
	ActiveMax   *int64     `json:"active_max"` // null for no bound
	ActiveUntil string     `json:"active_until"`
	HoldSeconds float64    `json:"hold_seconds"`
	// Waiting counts the messages that wait for the channel or for one of its limits.
	Waiting int64   `json:"waiting"`
	Limits  []Limit `json:"limits"`
}

// Limit is one limit in its running window.
type Limit struct {
	Scope    string `json:"scope"`
	Window   string `json:"window"`
	Unit     string `json:"unit"`
	Currency string `json:"currency"` // empty unless the unit is money
	// Max is what the running window may grant. ConfiguredMax differs from it only after it was
	// lowered below what had been granted; it applies from the next window on.
	Max           Quantity `json:"max"`
	ConfiguredMax Quantity `json:"configured_max"`
	// Effective is what a window admits at the present rate of the channel.
	Effective Quantity `json:"effective_max"`
	Granted   Quantity `json:"granted"`
	// what could be admitted now; of a sliding limit by its arrival time
	Free     Quantity `json:"free"`
	Reserved Quantity `json:"reserved"` // part of what the window has left, kept for lanes
	Waiting  int64    `json:"waiting"`  // messages that wait for this limit
	// WindowStart is the start of the running window. Ahead is set when that is in the future: the
	// database's clock was ahead when the window was opened, and no other is opened before it.
	WindowStart time.Time `json:"window_start"`
	Ahead       bool      `json:"ahead"`
	// NextPlace is when a sliding limit admits one more; null for others and for a closed one.
	NextPlace  *time.Time `json:"next_place"`
	NextWindow *time.Time `json:"next_window"` // null for a prepaid budget
	Sliding    bool       `json:"sliding"`
	Burst      *int64     `json:"burst"` // null unless it slides
	// what a window admits after a burst; null unless it slides
	Sustained *int64           `json:"sustained"`
	Reserve   map[string]int64 `json:"reserve"` // percent by lane

	// For output in words.
	Key        admission.Key `json:"-"`
	BurstWords string        `json:"-"`
	Ends       string        `json:"-"` // NextWindow in the zone
}

// NewLimits combines the limits of the document with their counters: those of the named channels,
// or, when none is named, those of all channels and those over all channels.
func NewLimits(
	version int64, doc *config.Routing, present *ledger.Present, named []string,
) *Limits {
	n := &Counters{present, doc.Timezone}
	out := &Limits{
		Version: version, Now: present.Now, Timezone: doc.Timezone.String(),
		Channels: []ChannelLimits{}, Limits: []Limit{},
		Waiting: n.Waiters(named), Zone: doc.Timezone,
	}
	out.WaitingForOthers = n.WaitingFor("")
	for i := range doc.Channels {
		if c := &doc.Channels[i]; len(named) == 0 || slices.Contains(named, c.Name) {
			out.Channels = append(out.Channels, n.ofChannel(c))
		}
	}
	if len(named) == 0 {
		for _, l := range n.withTenants("", doc.Limits) {
			out.Limits = append(out.Limits, n.Limit("", &l, admission.Ease{}))
		}
	}
	return out
}

func (cs *Counters) ofChannel(c *config.Channel) ChannelLimits {
	out := ChannelLimits{
		Channel: c.Name, Policy: admission.Exact{}.String(), ActiveUntil: c.Active.Until,
		HoldSeconds: c.Active.Hold.Seconds(), Waiting: cs.WaitingOn(c.Name), Limits: []Limit{},
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
	if state := cs.Channel(c.Name); state != nil {
		out.Active, ease = state.Gate.Active.Count, state.Gate.Ease
	}
	out.Rate = ease.RateOf(c.Limits, cs.Now)
	if ease.Until.After(cs.Now) {
		out.PausedUntil = report.Moment(ease.Until.UTC())
	}
	for _, l := range cs.withTenants(c.Name, c.Limits) {
		out.Limits = append(out.Limits, cs.Limit(c.Name, &l, ease))
	}
	return out
}

// Limit combines one limit with its counter; ease is that of its channel.
func (cs *Counters) Limit(channel string, l *admission.Limit, ease admission.Ease) Limit {
	c := cs.Counter(channel, l)
	l = &c.Limit
	of := func(units int64) Quantity { return QuantityOf(l, units) }
	effective := l.Effective(ease, cs.Now)
	free := c.FreeAt(cs.Now)
	if effective < l.Max {
		free = min(free, max(effective-c.Granted, 0))
	}
	out := Limit{
		Scope: l.Scope.String(), Window: l.Window.String(), Unit: l.Unit.String(),
		Currency: l.Currency,
		Max:      of(c.Max), ConfiguredMax: of(l.Max), Effective: of(effective),
		Granted:  of(c.Granted),
		Reserved: of(c.Reserved()),
		Waiting:  cs.WaitingFor(l.Key().On(channel)), WindowStart: c.Start.UTC(), Ahead: c.Ahead(cs.Now),
		Sliding: l.Sliding,
		Reserve: make(map[string]int64, len(l.Reserve)), Key: l.Key(), BurstWords: config.BurstWords(l),
	}
	if l.Sliding && l.Max > 0 {
		sustained := l.Sustained()
		out.Burst, out.Sustained = &l.Burst, &sustained
		free = min(free, cs.atOnce(c, ease))
		out.NextPlace = cs.nextPlace(c, ease)
	}
	out.Free = of(free)
	for _, r := range l.Reserve {
		out.Reserve[r.Lane] = r.Percent
	}
	if l.Window == admission.Prepaid {
		out.Ends = "never"
		return out
	}
	out.NextWindow = new(c.End(cs.Zone))
	ends := out.NextWindow.In(cs.Zone)
	out.Ends = ends.Format(time.TimeOnly)
	switch {
	case out.Ahead:
		out.Ends = ends.Format("2 Jan 15:04:05")
	case l.Window == admission.Day:
		out.Ends = ends.Format("2 Jan 15:04")
	}
	return out
}

// Lanes are the lanes that the limit has a reserve for, sorted.
func (l *Limit) Lanes() []string { return slices.Sorted(maps.Keys(l.Reserve)) }

// Sum is an amount with its currency or unit.
func (l *Limit) Sum(q Quantity) string { return q.String() + " " + cmp.Or(l.Currency, l.Unit) }
