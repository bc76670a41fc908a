package decide

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Routing is one version of the routing document, compiled for the pipeline. It is immutable: a
// change creates a new Routing and swaps the pointer.
type Routing struct {
	Version int64
	// Since is when the version was made, by the database's clock; zero if it always held.
	Since time.Time
	// Zone is the time zone of business days.
	Zone     *time.Location
	Channels []Channel // in the order of the document
	Routes   []Route   // in order: the first that matches wins
	Lanes    map[string]Lane
	// Limits are the limits of tenants and prefixes over all channels.
	Limits []admission.Limit
	// Blocked says to which numbers nothing is sent.
	Blocked Blocked
	// Allowed says to which countries messages are sent, if only to some.
	Allowed config.Allowed
	// Paused says what is not sent for now.
	Paused config.Paused
	// Country returns the ISO 3166 region of a number in lower case. It is called only when a route, a
	// price, a rule about senders or a block depends on countries, and must be quick.
	Country func(number string) string
	// CallingCode returns the calling code of such a region, 44 for gb, or 0 when it has none of its
	// own. It is nil when there is no lookup. Only replays of messages whose numbers are gone call it.
	CallingCode func(country string) int

	index     *scopeIndex // of all limits; nil until Prepare
	countries countryUse  // unknown until Prepare
	portions  []float64   // by channel, adding up to 1, see Portions; nil until Prepare
	slides    bool        // see SlidesBySecond; false until Prepare
}

// Channel is a channel of the document together with what its adapter says about it.
type Channel struct {
	config.Channel
	// Price is the document's price list, indexed.
	Price Price
	// Segments counts the billed segments of a text on this channel, as its adapter splits it; nil
	// counts GSM-7 and UCS-2 with an 8-bit concatenation reference.
	Segments func(text string) int
	// Cut identifies how the adapter would split a text to send some of its parts, in the words of its
	// Result.Cut; nil when it sends only whole messages.
	Cut func(text string) string
	// Substitute replaces look-alikes of characters that this channel's alphabets lack, on routes that
	// ask for it; nil does so for the GSM alphabet.
	Substitute func(text string) string
	// Writes reports whether the adapter can write a sender on messages to a number; nil if it can
	// write every sender.
	Writes func(from, to string) bool
	// Account identifies the kind and the settings of the channel: while it is equal, the provider
	// behind the channel is the same. It is empty while that is not certain.
	Account string
	// AwaitReceipts is how long after its answer the receipt of an accepted message is expected, when
	// the provider sends receipts (provider.Capabilities.Receipts); 0 expects none.
	AwaitReceipts time.Duration
	// Concurrency is how many submits one process has in flight on this channel at most.
	Concurrency int
}

// Route is a route of the document with its members.
type Route struct {
	config.Route
	// Table holds the weights; entry i is Members[i]. It is nil for a route without weights,
	// which has neither Mode Weighted nor Fallback Redraw.
	Table *selector.Table
	// Members are indices into Routing.Channels, in configured order.
	Members []int

	matcher *selector.Matcher // scores all members at once; nil before Prepare and without best_worker
}

// Types and words of the document.
type (
	// ChannelState says whether operators let a channel take messages.
	ChannelState = config.ChannelState
	// Match says which messages a route takes.
	Match = config.Match
	// Mode picks the first choice of a route.
	Mode = config.Mode
	// Ranker orders channels.
	Ranker = config.Ranker
	// Scoring is how best worker scores the members of a route.
	Scoring = config.Scoring
	// Function is an HTTP endpoint that scores candidates. It is called while planning, never
	// inside a claim.
	Function = config.Function
	// Senders says which sender ids a channel may carry.
	Senders = config.Senders
	// SenderRule says which sender ids pass to some countries.
	SenderRule = config.SenderRule
	// PriceList holds what a segment costs from a date on.
	PriceList = config.PriceList
)

// Words of the document.
const (
	Enabled  = config.Enabled
	Draining = config.Draining
	Disabled = config.Disabled

	Weighted       = config.Weighted
	RoundRobinMode = config.RoundRobinMode
	LongestIdle    = config.LongestIdle
	BestWorkerMode = config.BestWorkerMode
	InOrderMode    = config.InOrderMode

	LoadRatio  = config.LoadRatio
	BestWorker = config.BestWorker
	RoundRobin = config.RoundRobin
	Redraw     = config.Redraw
	InOrder    = config.InOrder
)

// Prepare indexes what the pipeline looks up for every message. Without it everything works the
// same, only slower. It copies the routes first, because a routing in use may share them.
func (r *Routing) Prepare() {
	r.index = newScopeIndex(r)
	r.countries = r.lookForCountries()
	r.portions = portionsOf(r)
	r.slides = r.anySlides()
	r.Routes = slices.Clone(r.Routes)
	for i := range r.Routes {
		route := &r.Routes[i]
		if !route.ranks(BestWorker) {
			continue
		}
		labels := make([]map[string]selector.Value, len(route.Members))
		for place, c := range route.Members {
			labels[place] = r.Channels[c].Labels
		}
		route.matcher = selector.NewMatcher(labels)
	}
}

// SlidesBySecond reports whether some limit is a sliding one of a second.
func (r *Routing) SlidesBySecond() bool { return r.slides }

func (r *Routing) anySlides() bool {
	slides := func(l admission.Limit) bool { return l.Sliding && l.Window == admission.Second }
	return slices.ContainsFunc(r.Limits, slides) ||
		slices.ContainsFunc(r.Channels, func(c Channel) bool {
			return slices.ContainsFunc(c.Limits, slides)
		})
}

// scopeIndex finds limits by what they count.
func (r *Routing) scopeIndex() *scopeIndex {
	if r.index == nil {
		return newScopeIndex(r)
	}
	return r.index
}

// Ranker is what orders the members for an attempt. A route that does not draw orders the first
// attempt by its mode and all others by its fallback.
func (r *Route) Ranker(attempts int) Ranker {
	switch {
	case attempts > 0 || r.Draws():
		if r.Fallback == "" {
			return LoadRatio
		}
		return r.Fallback
	case r.Mode == RoundRobinMode:
		return RoundRobin
	case r.Mode == BestWorkerMode:
		return BestWorker
	case r.Mode == InOrderMode:
		return InOrder
	}
	return LoadRatio
}

// RouteSpecs are the routes of a document in the form of the ledger.
func RouteSpecs(doc *config.Routing) []ledger.RouteSpec {
	specs := make([]ledger.RouteSpec, len(doc.Routes))
	for i := range doc.Routes {
		r := &doc.Routes[i]
		specs[i] = ledger.RouteSpec{
			Name: r.Name, Members: r.Channels,
			Mode: string(cmp.Or(r.Mode, Weighted)), Fallback: string(cmp.Or(r.Fallback, LoadRatio)),
			LowestFirst: r.Scoring.Ascending, Sticky: r.Sticky,
		}
		for _, w := range r.Weights {
			specs[i].Weights = append(specs[i].Weights, w.Configured.String())
		}
	}
	return specs
}

// ranks reports whether the route uses the ranker.
func (r *Route) ranks(by Ranker) bool { return r.Ranker(0) == by || r.Ranker(1) == by }

// Asks reports whether a scoring function may have to be asked about a message.
func (r *Route) Asks() bool { return r.Scoring.Function != nil && r.ranks(BestWorker) }

// Lane is a lane of the document with its place in the order of lanes.
type Lane struct {
	config.Lane
	// Order ranks lanes when slots are short: lower goes first.
	Order int
	// former marks a lane that the document no longer names but whose records may still come. Its
	// Order is lastOrder.
	former bool
}

// ResendOnce reports whether a message is sent once more, flagged as a possible duplicate, when it
// stays unknown whether it was taken.
func (l *Lane) ResendOnce() bool { return l.Ambiguous == "resend_once" }

// Clears reports whether a lane uses a step to find out what became of a submission.
func (l *Lane) Clears(step ledger.Step) bool { return slices.Contains(l.Clarify, string(step)) }

// lastOrder is the order of lanes which the document does not name.
const lastOrder = math.MaxInt

// Lane finds a lane by name. One that the document does not name goes after all others. So the
// order is the same in a process that knew the lane from an older document, in a process started
// since, and for an auditor, who has only the document.
func (r *Routing) Lane(name string) Lane {
	if lane, ok := r.Lanes[name]; ok {
		return lane
	}
	return Lane{Lane: config.Lane{Name: name}, Order: lastOrder}
}

// rankedLanes are the lanes of the document, the first of them first.
func (r *Routing) rankedLanes() []string {
	var names []string
	for name, lane := range r.Lanes {
		if !lane.former {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Lanes[a].Order, r.Lanes[b].Order), cmp.Compare(a, b))
	})
	return names
}

// KeepLanes takes over those lanes of the previous routing that this one does not name. Their
// records may still come, and their messages keep their deadlines and bounds.
func (r *Routing) KeepLanes(before *Routing) {
	for name, lane := range before.Lanes {
		if _, named := r.Lanes[name]; !named {
			lane.former, lane.Order = true, lastOrder
			r.Lanes[name] = lane
		}
	}
}

// Channel finds a channel by name; -1 when there is none. Routings are small and the lookup is
// rare, so it scans the list.
func (r *Routing) Channel(name string) int {
	for i := range r.Channels {
		if r.Channels[i].Name == name {
			return i
		}
	}
	return -1
}

// route finds the first route that takes a message which can first be sent at a moment; nil when
// none does.
func (r *Routing) route(m *envelope.Message, lane string, at time.Time) *Route {
	country := ""
	for i := range r.Routes {
		route := &r.Routes[i]
		if route.asksCountry() && country == "" {
			country = r.Country(m.To)
		}
		if fits(&route.Match, m, lane, country) && r.open(route, at, country) {
			return route
		}
	}
	return nil
}

// MemberIndex is the place of a channel among the members of a route; -1 when it is not a member or
// route is nil.
func (r *Routing) MemberIndex(route *Route, channel string) int {
	if route == nil {
		return -1
	}
	return slices.IndexFunc(
		route.Members, func(c int) bool { return r.Channels[c].Name == channel },
	)
}

func fits(m *config.Match, msg *envelope.Message, lane, country string) bool {
	return oneOf(m.Tenants, msg.Tenant) &&
		oneOf(m.Lanes, lane) &&
		oneOf(m.Countries, country) &&
		oneOf(m.Senders, msg.From) &&
		beginsWithOne(m.Prefixes, msg.To) &&
		hasAll(m.Labels, msg.Labels)
}

func oneOf(wanted []string, is string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, is)
}

func beginsWithOne(prefixes []string, number string) bool {
	if len(prefixes) == 0 {
		return true
	}
	return slices.ContainsFunc(
		prefixes, func(p string) bool { return strings.HasPrefix(number, p) },
	)
}

func hasAll(wanted, has map[string]selector.Value) bool {
	for key, value := range wanted {
		if got, ok := has[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// leastPortion sets the smallest portion of a channel, whatever its weight: 1/leastPortion of an
// equal portion, because fallbacks may need it.
const leastPortion = 4

// Portions are the parts of all messages that the channels get by the weights of the routes;
// members of a route without weights count equally. Every channel that is not switched off gets a
// small part. Together they are 1.
func (r *Routing) Portions() []float64 {
	if r.portions == nil {
		return portionsOf(r)
	}
	return r.portions
}

func portionsOf(r *Routing) []float64 {
	out, sum, open := make([]float64, len(r.Channels)), 0.0, 0
	for i := range r.Routes {
		route := &r.Routes[i]
		for place, c := range route.Members {
			switch {
			case !r.Channels[c].State.Takes():
			case route.Draws() && route.Table != nil:
				out[c] += route.Table.Share(place) / float64(len(r.Routes))
			default:
				out[c] += 1 / float64(len(route.Members)*len(r.Routes))
			}
		}
	}
	for i := range r.Channels {
		if r.Channels[i].State != Disabled {
			open++
		}
	}
	for i := range out {
		if r.Channels[i].State != Disabled {
			out[i] = max(out[i], 1/float64(leastPortion*open))
		}
		sum += out[i]
	}
	for i := range out {
		out[i] /= max(sum, 1e-9)
	}
	return out
}
