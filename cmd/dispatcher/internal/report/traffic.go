package report

import (
	"maps"
	"math"
	"slices"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Traffic compares the messages of a past day as they were sent with the same messages under a
// routing document, where each goes to its first choice.
type Traffic struct {
	Day      string `json:"day"`
	Timezone string `json:"timezone"`
	// SoFar is set for a day that is not over.
	SoFar bool `json:"so_far"`
	// Against is the version to compare with; nil compares with what was recorded.
	Against *int64 `json:"against"`
	// Messages counts the messages of the day for which a route was found on that day.
	Messages int64 `json:"messages"`
	// Unroutable counts those that no route of the document takes, or that have too many segments
	// for their route.
	Unroutable int64 `json:"unroutable"`
	// Redrawn were drawn again under their own key. ByShare were counted by the shares of the weights
	// because their key is missing. Undecided are on routes that do not draw.
	Redrawn   int64 `json:"redrawn"`
	ByShare   int64 `json:"by_share"`
	Undecided int64 `json:"undecided"`
	// Compared counts the messages whose first choice is known on both sides, Moved those of them
	// for which it differs.
	Compared int64 `json:"compared"`
	Moved    int64 `json:"moved"`
	// WithoutCountry counts those whose number has no known country, if the document has rules or
	// prices of countries.
	WithoutCountry int64 `json:"without_country"`
	// WithoutPayload counts messages of the day whose number and text were deleted, or may not be read
	// by this login. They are in no other figure, because the document cannot be applied to them.
	WithoutPayload int64 `json:"without_payload"`
	// MissingKeys are the ids of the keys that the ByShare messages need.
	MissingKeys []string `json:"missing_keys"`
	// NotHonored are the settings of the document that this comparison ignores: they do not change a
	// first choice, but can exclude it or stop the message. They are price_cap, senders, blocked,
	// allowed and allowed_countries.
	NotHonored []string       `json:"not_honored"`
	Routes     []RouteTraffic `json:"routes"`
}

// RouteTraffic is the traffic of one route.
type RouteTraffic struct {
	Route string `json:"route"`
	Mode  string `json:"mode"` // empty for a route that the document does not have
	// Messages counts the messages that the route would take, BeforeMessages those that it took.
	Messages       int64            `json:"messages"`
	BeforeMessages int64            `json:"before_messages"`
	Moved          int64            `json:"moved"` // of Messages
	Channels       []ChannelTraffic `json:"channels"`
}

// ChannelTraffic is the traffic of one channel. The expected figures are nil if the route depends
// on load or scores, which cannot be known beforehand.
type ChannelTraffic struct {
	Channel    string   `json:"channel"`
	Currency   string   `json:"currency"`
	Messages   *float64 `json:"messages"` // first choices; whole unless counted by share
	Segments   *float64 `json:"segments"`
	CostMicros *int64   `json:"cost_micros"`
	// The figures before. Compared with the record, messages are recorded first choices; segments and
	// cost are what was billed, with fallbacks and retries. Compared with a version, they are nil if
	// its route depends on load or scores.
	BeforeMessages   *float64 `json:"before_messages"`
	BeforeSegments   *float64 `json:"before_segments"`
	BeforeCostMicros *int64   `json:"before_cost_micros"`
	BeforeCurrency   string   `json:"before_currency"`
}

// load sums what a channel gets.
type load struct {
	messages, segments, cost float64
	currency                 string
}

func (l *load) add(part float64, segments int, micros int64, currency string) {
	l.messages += part
	l.segments += part * float64(segments)
	l.cost += part * float64(micros)
	if currency != "" {
		l.currency = currency
	}
}

// routeLoad is one side of one route.
type routeLoad struct {
	messages, moved int64
	channels        map[string]*load
	unknown         bool // it is not known how the messages are spread over the channels
}

func (r *routeLoad) channel(name string) *load {
	if r.channels[name] == nil {
		r.channels[name] = &load{}
	}
	return r.channels[name]
}

// TrafficCounter sums the messages of a day.
type TrafficCounter struct {
	doc           *config.Routing
	traffic       Traffic
	after, before map[string]*routeLoad // by route
	missing       map[string]bool       // ids of keys
	shares        map[string]map[string]float64
	countries     *numbers.Countries // nil if the document does not use countries
}

// NewTrafficCounter returns a counter for a document. against is the version to compare with, nil
// for the record.
func NewTrafficCounter(doc *config.Routing, day, zone string, against *int64) *TrafficCounter {
	c := &TrafficCounter{
		doc:     doc,
		traffic: Traffic{Day: day, Timezone: zone, Against: against, NotHonored: notHonored(doc)},
		after:   map[string]*routeLoad{}, before: map[string]*routeLoad{},
		missing: map[string]bool{},
		shares:  map[string]map[string]float64{},
	}
	if usesCountries(doc) {
		c.countries = numbers.NewCountries()
	}
	return c
}

// notHonored returns the settings of a document that a first choice does not depend on.
func notHonored(doc *config.Routing) []string {
	keys := []string{}
	if slices.ContainsFunc(doc.Routes, func(r config.Route) bool { return len(r.PriceCap) > 0 }) {
		keys = append(keys, "price_cap")
	}
	senders := func(c config.Channel) bool { return len(c.Senders.Rules) > 0 }
	if slices.ContainsFunc(doc.Channels, senders) {
		keys = append(keys, "senders")
	}
	if b := &doc.Blocked; b.Premium || len(b.Prefixes)+len(b.Countries) > 0 {
		keys = append(keys, "blocked")
	}
	if doc.Allowed.Any() {
		keys = append(keys, "allowed")
	}
	if slices.ContainsFunc(doc.Routes, func(r config.Route) bool {
		return r.AllowedCountries != nil
	}) {
		keys = append(keys, "allowed_countries")
	}
	return keys
}

func side(of map[string]*routeLoad, route string) *routeLoad {
	if of[route] == nil {
		of[route] = &routeLoad{channels: map[string]*load{}}
	}
	return of[route]
}

// Skip counts a message whose payload cannot be read.
func (c *TrafficCounter) Skip() { c.traffic.WithoutPayload++ }

// Add counts a message: what the document chooses for it, and what was recorded.
func (c *TrafficCounter) Add(r *ledger.Record, now *decide.Choice) {
	plan := &r.Message.Plan
	before := side(c.before, plan.Route)
	before.messages++
	if plan.FirstChoice != "" {
		before.channel(plan.FirstChoice).messages++
	}
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.Outcome != outcomeUnknown && a.Segments > 0 {
			l := before.channel(a.Channel)
			l.segments += float64(a.Segments)
			l.cost += float64(a.PriceMicros)
			l.currency = a.Currency
		}
	}
	c.count(r, now, plan.FirstChoice)
}

// AddAgainst counts a message: what the document chooses for it, and what another version chooses.
func (c *TrafficCounter) AddAgainst(
	r *ledger.Record, now, then *decide.Choice, thenShares map[string]float64,
) {
	first := ""
	if then.Route != nil {
		before := side(c.before, then.Route.Name)
		before.messages++
		before.unknown = !foretold(then.Route.Mode)
		for place := range then.Route.Members {
			before.channel(then.Channel(place)) // list it even if it gets nothing, or that is unknown
		}
		spread(before, then, thenShares)
		if then.First >= 0 {
			first = then.Channel(then.First)
		}
	}
	c.count(r, now, first)
}

// count counts what the document chooses. first is the first choice to compare with; empty when it
// is not known.
func (c *TrafficCounter) count(r *ledger.Record, now *decide.Choice, first string) {
	c.traffic.Messages++
	if c.countries != nil {
		if country := countryOf(&r.Message, c.countries); country != nil && *country == "" {
			c.traffic.WithoutCountry++
		}
	}
	if now.Route == nil {
		c.traffic.Unroutable++
		return
	}
	after := side(c.after, now.Route.Name)
	after.messages++
	spread(after, now, c.sharesOf(now.Route.Name))
	switch {
	case now.First >= 0:
		c.traffic.Redrawn++
	case now.Route.Mode == decide.Weighted:
		c.traffic.ByShare++
		c.missing[r.Message.Plan.KeyID] = true
	default:
		c.traffic.Undecided++
	}
	if now.First < 0 || first == "" {
		return
	}
	c.traffic.Compared++
	if now.Channel(now.First) != first {
		c.traffic.Moved++
		after.moved++
	}
}

func (c *TrafficCounter) sharesOf(route string) map[string]float64 {
	shares, known := c.shares[route]
	if !known {
		shares = Shares(c.doc, route)
		c.shares[route] = shares
	}
	return shares
}

// Shares are the effective shares of a weighted route's channels; nil for others.
func Shares(doc *config.Routing, route string) map[string]float64 {
	return effectiveShares(doc.Route(route))
}

// spread adds a message to its first choice. When that is not known, it adds parts of it to all
// channels: by their shares or, in round robin, evenly to those that take messages.
func spread(to *routeLoad, choice *decide.Choice, shares map[string]float64) {
	if choice.First >= 0 {
		give(to, choice, choice.First, 1)
		return
	}
	// shares is nil for a route that does not draw.
	part := func(place int) float64 { return shares[choice.Channel(place)] }
	if choice.Route.Mode == decide.RoundRobinMode {
		part = evenly(choice)
	}
	for place := range choice.Route.Members {
		if p := part(place); p > 0 {
			give(to, choice, place, p)
		}
	}
}

// give adds a part of a message to the channel at a place of the route.
func give(to *routeLoad, choice *decide.Choice, place int, part float64) {
	segments, micros, currency := choice.Bill(place)
	to.channel(choice.Channel(place)).add(part, segments, micros, currency)
}

// evenly divides a message among the channels that take messages.
func evenly(choice *decide.Choice) func(place int) float64 {
	turns := 0.0
	for place := range choice.Route.Members {
		if choice.Enabled(place) {
			turns++
		}
	}
	return func(place int) float64 {
		if !choice.Enabled(place) {
			return 0
		}
		return 1 / turns
	}
}

// Traffic returns the result, with routes in the order of the document.
func (c *TrafficCounter) Traffic() *Traffic {
	t := c.traffic
	t.Routes, t.MissingKeys = []RouteTraffic{}, slices.AppendSeq([]string{}, maps.Keys(c.missing))
	order := c.doc.RouteNames()
	names := slices.AppendSeq(slices.Clone(order), maps.Keys(c.before))
	for _, name := range inOrder(names, order) {
		t.Routes = append(t.Routes, c.route(name))
	}
	slices.Sort(t.MissingKeys)
	return &t
}

// route returns the traffic of a route: its channels in order, then those that it had before.
func (c *TrafficCounter) route(name string) RouteTraffic {
	after, before := side(c.after, name), side(c.before, name)
	t := RouteTraffic{
		Route: name, Messages: after.messages, BeforeMessages: before.messages, Moved: after.moved,
		Channels: []ChannelTraffic{},
	}
	var order []string
	known := false
	if route := c.doc.Route(name); route != nil {
		t.Mode, order = string(route.Mode), route.Channels
		known = foretold(route.Mode)
	}
	names := slices.AppendSeq(slices.Clone(order), maps.Keys(before.channels))
	for _, channel := range inOrder(names, order) {
		one := ChannelTraffic{Channel: channel}
		if now := after.channel(channel); known || t.Mode == "" {
			one.Messages, one.Segments, one.CostMicros, one.Currency = now.figures()
		}
		if then := before.channel(channel); !before.unknown {
			one.BeforeMessages, one.BeforeSegments, one.BeforeCostMicros, one.BeforeCurrency = then.figures()
		}
		t.Channels = append(t.Channels, one)
	}
	return t
}

// foretold reports whether it is known, before sending, how a mode spreads messages over channels.
func foretold(mode decide.Mode) bool {
	return mode == decide.Weighted || mode == decide.RoundRobinMode
}

// figures returns the figures of ChannelTraffic.
func (l *load) figures() (messages, segments *float64, micros *int64, currency string) {
	micros = new(int64(math.Round(l.cost)))
	return new(rounded(l.messages)), new(rounded(l.segments)), micros, l.currency
}

// rounded removes the rounding errors of summed shares.
func rounded(f float64) float64 { return math.Round(f*1e6) / 1e6 }
