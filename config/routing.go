package config

import (
	"slices"
	"time"
	_ "time/tzdata" // A container without zone files must still know the business time zone.

	"dispatcher/admission"
)

// Routing is the checked routing document: what is sent where, in which proportions, with which
// limits and prices. It does not change after ParseRouting.
type Routing struct {
	// Timezone is the zone of business days; UTC when the document names none.
	Timezone *time.Location
	Channels []Channel // in the order of listing
	Routes   []Route   // in the order of listing: the first that matches wins
	Lanes    []Lane    // in the order of listing, which ranks them
	// Limits are the limits of tenants and prefixes over all channels.
	Limits []admission.Limit
	// Rates convert prices to one currency where they are compared; without them nothing is converted.
	Rates Rates
	// CountryGroups are the groups that lists of countries may name. In Routing the lists hold their
	// members instead.
	CountryGroups map[string][]string
	// Blocked says to which numbers nothing is sent.
	Blocked Blocked
	// Allowed says to which countries messages are sent, if only to some.
	Allowed Allowed
	// Paused says what is not sent for now.
	Paused Paused
	// Guards look for unusual traffic.
	Guards []Guard
	// Inbound says which tenant gets the messages of subscribers.
	Inbound Inbound
}

func readRouting(root value, applied bool) *Routing {
	top, ok := root.fields(documentPart)
	if !ok {
		return nil
	}
	routing := &Routing{Timezone: time.UTC}
	if v, ok := top.get("timezone"); ok {
		routing.Timezone = v.timezone()
	}
	routing.CountryGroups = readCountryGroups(top)
	root.r.countryGroups = routing.CountryGroups
	routing.Lanes = readLanes(top)
	isLane := oneOf("lane", routing.LaneNames(), "define it under lanes")
	routing.Channels = readChannels(top, isLane, routing.Timezone)
	if v, ok := top.get("limits"); ok {
		routing.Limits = readLimits(v, limitContext{channels: routing.Channels, isLane: isLane})
	}
	if v, ok := top.get("blocked"); ok {
		routing.Blocked = readBlocked(v)
	}
	if v, ok := top.get("allowed"); ok {
		routing.Allowed = readAllowed(v)
	}
	if v, ok := top.get("rates"); ok {
		routing.Rates = readRates(v, routing.Channels)
	}
	known := newScope(routing, isLane)
	known.applied = applied
	routing.Routes = readRoutes(top, known)
	if v, ok := top.get("paused"); ok {
		routing.Paused = readPaused(v, routing)
	}
	if v, ok := top.get("guards"); ok {
		routing.Guards = readGuards(v)
	}
	routing.Inbound = readInbound(top, routing.ChannelNames())
	routing.settleBursts()
	return routing
}

// ChannelNames are the names of all channels in order.
func (r *Routing) ChannelNames() []string {
	names := make([]string, len(r.Channels))
	for i := range r.Channels {
		names[i] = r.Channels[i].Name
	}
	return names
}

// LaneNames are the names of all lanes in order.
func (r *Routing) LaneNames() []string {
	names := make([]string, len(r.Lanes))
	for i := range r.Lanes {
		names[i] = r.Lanes[i].Name
	}
	return names
}

// RouteNames are the names of all routes in order.
func (r *Routing) RouteNames() []string {
	names := make([]string, len(r.Routes))
	for i := range r.Routes {
		names[i] = r.Routes[i].Name
	}
	return names
}

// Channel finds a channel by name; nil when there is none, or no routing.
func (r *Routing) Channel(name string) *Channel {
	if r == nil {
		return nil
	}
	at := slices.IndexFunc(r.Channels, func(c Channel) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	return &r.Channels[at]
}

// Route finds a route by name; nil when there is none, or no routing.
func (r *Routing) Route(name string) *Route {
	if r == nil {
		return nil
	}
	at := slices.IndexFunc(r.Routes, func(o Route) bool { return o.Name == name })
	if at < 0 {
		return nil
	}
	return &r.Routes[at]
}

// LimitsOf are the limits of a channel, or those over all channels when channel is empty; nil when
// there is no such channel, or no routing.
func (r *Routing) LimitsOf(channel string) []admission.Limit {
	if r != nil && channel == "" {
		return r.Limits
	}
	if c := r.Channel(channel); c != nil {
		return c.Limits
	}
	return nil
}

// IdleRoutes are the names of the routes without a channel that takes messages.
func (r *Routing) IdleRoutes() []string {
	var idle []string
	for i := range r.Routes {
		if r.Idle(&r.Routes[i]) {
			idle = append(idle, r.Routes[i].Name)
		}
	}
	return idle
}

// Idle reports whether no channel of a route takes messages: each is drained, switched off or
// closed by a limit of 0.
func (r *Routing) Idle(route *Route) bool {
	return !slices.ContainsFunc(route.Channels, func(name string) bool {
		c := r.Channel(name)
		return c != nil && c.State == Enabled && c.Closing() == nil
	})
}

// clone copies what edits and effects change: states, limits and weights.
func (r *Routing) clone() *Routing {
	out := *r
	out.Limits, out.Channels, out.Routes = slices.Clone(r.Limits), slices.Clone(r.Channels),
		slices.Clone(r.Routes)
	for i := range out.Channels {
		out.Channels[i].Limits = slices.Clone(r.Channels[i].Limits)
	}
	for i := range out.Routes {
		route := &out.Routes[i]
		route.Weights, route.Channels = slices.Clone(route.Weights), slices.Clone(route.Channels)
	}
	return &out
}

// The words of the routing document. A new word is added here and in the code that uses it, nowhere
// else.
var (
	// providers: those with an HTTP API have their opener in internal/app.
	providers = []string{
		"smpp", "sandbox", "aws", "bird", "httpapi", "infobip", "plivo", "sinch",
		"telnyx", "twilio", "vonage",
	}
	modes      = []Mode{Weighted, RoundRobinMode, LongestIdle, BestWorkerMode, InOrderMode}
	fallbacks  = []Ranker{LoadRatio, BestWorker, RoundRobin, Redraw, InOrder}
	untils     = []string{untilSubmit, untilReceipt}
	policies   = []string{"even", "curve", "counter", exactPolicy}
	states     = []ChannelState{Enabled, Draining, Disabled}
	throttleds = []string{"next", holdThrottled}
	ambiguous  = []string{"never", "resend_once"}
	clarifies  = []string{"same_key", "lookup", "receipt"}
)

// Words that the code compares with.
const (
	untilSubmit  = "submit"
	untilReceipt = "receipt"
	exactPolicy  = "exact"

	holdThrottled = "wait"
)

// Providers are the words that a channel's provider is chosen from.
func Providers() []string { return slices.Clone(providers) }

// Defaults of the routing document.
const (
	defaultCapacity    = 100
	defaultMaxSegments = 10
	defaultMaxWaiting  = 10_000
	defaultHold        = 10 * time.Minute // of a slot that is kept until the receipt
	defaultCurveFactor = 1
)
