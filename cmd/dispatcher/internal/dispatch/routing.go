package dispatch

import (
	"cmp"
	"math"
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

// Routing is one version of the routing document, compiled for the pipeline. It is
// immutable: a change makes a new one and swaps a pointer.
type Routing struct {
	Version int64
	// Zone is where business days are cut.
	Zone     *time.Location
	Channels []Channel // in the order of the document
	Routes   []Route   // in order: the first that matches wins
	Lanes    map[string]Lane
	// Limits are those of tenants and prefixes over all channels.
	Limits []admission.Limit
	// Blocked says to which numbers nothing is sent.
	Blocked Blocked
	// Country names the ISO 3166 region of a number in lower case. It is called only
	// when a route, a price, a rule about senders or a block goes by countries, and must be quick.
	Country func(number string) string

	index     *scopeIndex // of all limits; nil until prepare
	countries countryUse  // unknown until prepare
}

// Channel is what the pipeline knows of a channel.
type Channel struct {
	Name     string
	Capacity int64 // attempts under way that count as full load; above 0
	State    ChannelState
	Labels   map[string]selector.Value
	Price    Price
	// Senders says which sender ids it may carry.
	Senders Senders
	// Segments counts the billed segments of a text on this channel, as its adapter will
	// cut it; nil counts GSM-7 and UCS-2 with an 8-bit concatenation reference.
	Segments func(text string) int
	// Cut stands for how the adapter would cut a text to send some of its parts, in the words of its Result.Cut; nil when it
	// sends messages as a whole only.
	Cut func(text string) string
	// Substitute replaces look-alikes for the alphabets of this channel, on routes that want it; nil replaces
	// them for the GSM alphabet.
	Substitute func(text string) string
	// Limits are those of the channel, and those of tenants and prefixes on it. What they
	// have taken so far comes with a claim.
	Limits []admission.Limit
	// Policy divides the slots of the channel's own limits; nil is policy exact.
	Policy admission.Policy
	// Hold is how long the active slot of an answered attempt is kept for a retry on the channel
	// and, when UntilReceipt is set, for the receipt. 0 keeps none.
	Hold         time.Duration
	UntilReceipt bool
	// Account stands for the kind and the settings of the channel: while it is the same, so is the provider behind it.
	Account string
	// AwaitReceipts is how long after its answer the receipt of an accepted message is expected, when the
	// channel's provider sends any (provider.Capabilities.Receipts); 0 expects none.
	AwaitReceipts time.Duration
	// Concurrency is how many submits one process has under way on this channel at most.
	Concurrency int
}

// ChannelState says whether operators let a channel take messages.
type ChannelState uint8

// States of a channel.
const (
	Enabled ChannelState = iota
	Draining
	Disabled
)

// Route sends the messages that fit Match to its members.
type Route struct {
	Name  string
	Match Match
	// Mode picks the first choice; empty is Weighted.
	Mode Mode
	// Fallback orders the others when the first choice cannot take a message; empty is LoadRatio.
	Fallback Ranker
	// Table holds the weights; entry i is Members[i]. It is nil for a route without weights,
	// which has neither Mode Weighted nor Fallback Redraw.
	Table *selector.Table
	// Members are indices into Routing.Channels, in configured order.
	Members []int
	// Scoring is what rankings by best worker go by.
	Scoring Scoring
	// Wait is how long a message is held for its first choice before a fallback may take it.
	Wait time.Duration
	// PriceCap is the most that a message may cost, in micros by currency.
	PriceCap map[string]int64
	// MaxSegments refuses longer texts.
	MaxSegments int
	// Substitute replaces look-alikes so that a text fits the GSM alphabet.
	Substitute bool
	// BypassSelectors lets channels take messages whose selectors they fail.
	BypassSelectors bool
	// HoldThrottled keeps a throttled message for its channel instead of trying the next.
	HoldThrottled bool

	matcher *selector.Matcher // scores all members at once; nil until prepare, and where best worker never ranks
}

// Mode says how a route picks the first choice. Its text is the word of the routing document.
type Mode string

// Modes of a route. All but Weighted go by the shared state of the claim: they order all members
// and take the first that can have the message.
const (
	Weighted       Mode = "weighted"    // by the interval that the draw falls into
	RoundRobinMode Mode = "round_robin" // the next after the shared cursor
	LongestIdle    Mode = "longest_idle"
	BestWorkerMode Mode = "best_worker"
)

// Ranker orders channels. Its text is the word of the routing document.
type Ranker string

// Rankers, of which the first four are a route's fallback; a mode other than Weighted ranks as
// the ranker of the same name, LongestIdle as LoadRatio.
const (
	LoadRatio  Ranker = "load_ratio"
	BestWorker Ranker = "best_worker"
	RoundRobin Ranker = "round_robin"
	Redraw     Ranker = "redraw"
)

// prepare indexes what the pipeline looks up for every message. Without it all works the same,
// only slower. The routes are copied first: a routing in use may share them.
func (r *Routing) prepare() {
	r.index = newScopeIndex(r)
	r.countries = r.lookForCountries()
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

// scopeIndex finds limits by what they count.
func (r *Routing) scopeIndex() *scopeIndex {
	if r.index == nil {
		return newScopeIndex(r)
	}
	return r.index
}

// draws reports whether the route's first choice is drawn.
func (r *Route) draws() bool { return r.Mode == Weighted || r.Mode == "" }

// ranker orders the members for an attempt. A route that does not draw orders the first
// attempt by its mode; all else goes by the fallback.
func (r *Route) ranker(attempts int) Ranker {
	switch {
	case attempts > 0 || r.draws():
		if r.Fallback == "" {
			return LoadRatio
		}
		return r.Fallback
	case r.Mode == RoundRobinMode:
		return RoundRobin
	case r.Mode == BestWorkerMode:
		return BestWorker
	}
	return LoadRatio
}

// ranks reports whether the ranker may be asked for on this route.
func (r *Route) ranks(by Ranker) bool { return r.ranker(0) == by || r.ranker(1) == by }

// asks reports whether a scoring function may have to be asked about a message.
func (r *Route) asks() bool { return r.Scoring.Function != nil && r.ranks(BestWorker) }

// Scoring is how best worker scores the members of a route. The zero value is the default
// scoring of package selector, the highest score first.
type Scoring struct {
	Expression *score.Expression
	Function   *Function
	Ascending  bool // the lowest score first
}

// Function is an HTTP endpoint that scores candidates. It is called while planning,
// never inside a claim.
type Function struct {
	URL   string
	Token string // sent as a bearer token when not empty
	// AllowPrivate lets calls go to addresses of private networks and to this machine.
	AllowPrivate bool
	Parameters   map[string]selector.Value
	Batch        bool // up to BatchSize candidates in one call; else one each
	BatchSize    int
	Deadline     time.Duration // for all calls about one message together
	Cache        time.Duration // how long an answer holds for an equal question
}

// Lane is a class of messages.
type Lane struct {
	Name string
	// Order ranks lanes when slots are short: lower goes first.
	Order int
	// TTL is how long a message without a deadline of its own is worth sending.
	TTL time.Duration
	// MaxWaiting pauses the lane's topics when so many messages wait.
	MaxWaiting int64
	// Clarify lists the ways, in order, to learn what became of a submission that nobody answered; it is
	// tried for ClarifyFor.
	Clarify    []ledger.Step
	ClarifyFor time.Duration
	// ResendOnce allows one more send when nobody knows in the end, flagged as a possible duplicate.
	ResendOnce bool
	// IgnoreOptOut sends also to recipients who have opted out of what the tenant sends.
	IgnoreOptOut bool
	// former marks a lane that the document no longer names but whose records may come. Its
	// Order is lastOrder.
	former bool
}

// lastOrder is that of lanes which the document does not name.
const lastOrder = math.MaxInt

// lane finds a lane by name. One that the document does not name, or no longer, goes behind all
// others: that has to hold in a process that knew it under an older document, in one that was
// started since, and for an auditor, who has nothing but the document.
func (r *Routing) lane(name string) Lane {
	if lane, ok := r.Lanes[name]; ok {
		return lane
	}
	return Lane{Name: name, Order: lastOrder}
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

// keepLanes takes over the lanes of the routing before which this one does not name: records of them may be on
// their way, and their messages keep their deadlines and bounds.
func (r *Routing) keepLanes(before *Routing) {
	for name, lane := range before.Lanes {
		if _, named := r.Lanes[name]; !named {
			lane.former, lane.Order = true, lastOrder
			r.Lanes[name] = lane
		}
	}
}

// channel finds a channel by name; -1 when the routing has none of that name. Routings
// are small and the lookup is rare, so it walks the list.
func (r *Routing) channel(name string) int {
	for i := range r.Channels {
		if r.Channels[i].Name == name {
			return i
		}
	}
	return -1
}
