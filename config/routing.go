package config

import (
	"slices"
	"time"
	_ "time/tzdata" // A container without zone files must still know the business time zone.

	"dispatcher/admission"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

// Routing is the checked routing document: what is sent where, at which proportions,
// limits and prices. It is a value; nothing in it changes after ParseRouting.
type Routing struct {
	// Timezone is where business days are cut; UTC when the document names none.
	Timezone *time.Location
	Channels []Channel // in the order of listing
	Routes   []Route   // in the order of listing: the first that matches wins
	Lanes    []Lane    // in the order of listing, which ranks them
	// Limits are those of tenants and prefixes over all channels.
	Limits []admission.Limit
	// Rates turn prices into one currency where they are compared; nothing is converted without them.
	Rates Rates
	// Blocked says to which numbers nothing is sent.
	Blocked Blocked
	// Inbound says whose the messages are that subscribers send.
	Inbound Inbound
}

// Channel is one account or bind at a provider.
type Channel struct {
	Name     string
	Provider string
	// Settings are for the adapter, which checks them. Values are string, bool, int,
	// float64, []any and map[string]any.
	Settings map[string]any
	// Capacity is how many attempts under way count as full load.
	Capacity int64
	Limits   []admission.Limit // of the channel, and of tenants and prefixes on it
	Active   ActiveLimit
	Receipts Receipts
	// Policy divides the slots of those Limits that count all its messages among regions and
	// processes; nil is policy exact, which divides nothing.
	Policy admission.Policy
	State  State
	Labels map[string]selector.Value
	Price  Price
	// Senders says which sender ids it may carry.
	Senders Senders
	// Test marks a channel that reaches no subscriber.
	Test bool
}

// ActiveLimit bounds the attempts under way at once. Max 0 is no bound.
type ActiveLimit struct {
	Max int64
	// Until is "submit": an attempt counts until its submit was answered, or "receipt": until a
	// receipt says what became of the message, or Hold is over.
	Until string
	// Hold is how long a slot is kept without word: after an accepted submit for the receipt, and
	// after a throttled one for the retry. 0 keeps none.
	Hold time.Duration
}

// UntilReceipt reports whether an attempt holds its slot until a receipt comes.
func (a *ActiveLimit) UntilReceipt() bool { return a.Until == untilReceipt }

// State says whether a channel takes messages.
type State string

const (
	// Enabled takes messages.
	Enabled State = "enabled"
	// Draining takes no new message but finishes what it has.
	Draining State = "draining"
	// Disabled takes nothing.
	Disabled State = "disabled"
)

// Takes reports whether the channel takes messages. A channel without a state is enabled.
func (s State) Takes() bool { return s == Enabled || s == "" }

// Route sends the messages that fit Match to its channels.
type Route struct {
	Name  string
	Match Match
	// Mode picks the first choice; empty is Weighted.
	Mode Mode
	// Channels are all members in the order of listing, which is the order that round
	// robin follows and the last tie-breaker of every ranking.
	Channels []string
	// Weights are the members with their weights, in the order of Channels; nil for a route
	// that lists channels without weights. The table that selector.NewTable makes of them
	// is known to be valid.
	Weights []Weight
	// Fallback orders the others when the first choice cannot take a message; empty is LoadRatio.
	Fallback Ranker
	// Scoring is how a ranking by best worker scores the members.
	Scoring Scoring
	// Health lowers the effective weights of channels that fail; nil does not.
	Health          *Health
	Wait            time.Duration // how long a message is held for its first choice
	BypassSelectors bool
	MaxSegments     int
	Substitute      bool // replace look-alikes so that a text fits GSM-7
	// PriceCap is the most that one message may cost, in micros by currency; nil caps nothing. It names the
	// currency of every member.
	PriceCap map[string]int64
	// HoldThrottled keeps a throttled message for its channel instead of trying the next.
	HoldThrottled bool
	// Tolerance is how far carried shares may be from the agreed ones before a report says so.
	Tolerance Tolerance
}

// Weight is one weighted channel of a route.
type Weight struct {
	Channel string
	// Weight is the effective weight: the one that draws go by.
	Weight selector.Weight
	// Configured is the weight as the document has it; Weight differs from it only while an effect of
	// health weighting is in force.
	Configured selector.Weight
}

// Mode is how a route picks the first choice. All but Weighted rank all members by the shared
// state of the claim, and take the first that can have the message.
type Mode string

// Modes of a route.
const (
	Weighted       Mode = "weighted" // by the interval that the draw falls into
	RoundRobinMode Mode = "round_robin"
	LongestIdle    Mode = "longest_idle"
	BestWorkerMode Mode = "best_worker"
)

// Ranker is how channels are ordered.
type Ranker string

// Rankers. A mode other than Weighted ranks as the ranker of the same name, LongestIdle as
// LoadRatio.
const (
	LoadRatio  Ranker = "load_ratio"
	BestWorker Ranker = "best_worker"
	RoundRobin Ranker = "round_robin"
	Redraw     Ranker = "redraw"
)

// Scoring is how a ranking by best worker scores the members of a route: by an expression, by a
// function or, when both are nil, by the default rule. The highest score is first.
type Scoring struct {
	Expression *score.Expression
	Function   *Function
	Ascending  bool // the lowest score is first
}

// defaultScoring is the word of the document for scoring by the default rule.
const defaultScoring = "default"

// Kind is the word for the rule: default, expression or function.
func (s *Scoring) Kind() string {
	switch {
	case s.Function != nil:
		return "function"
	case s.Expression != nil:
		return "expression"
	}
	return defaultScoring
}

// Function is an HTTP endpoint that scores candidates.
type Function struct {
	URL string
	// TokenFile holds a secret that is sent as a bearer token; none when empty.
	TokenFile string
	// Token is the content of TokenFile. It is never part of the document: it is read when the
	// document comes into force.
	Token string
	// AllowPrivate lets calls go to addresses of private networks and to this machine.
	AllowPrivate bool
	// Parameters are sent with every call.
	Parameters map[string]selector.Value
	// Batch sends up to BatchSize candidates in one call; else each has a call of its own.
	Batch     bool
	BatchSize int
	Deadline  time.Duration // for all calls about one message together
	Cache     time.Duration // how long an answer holds for an equal question
}

// Health lowers the effective weight of a channel that fails. Percentages are of the
// configured weight.
type Health struct {
	Errors   int64         // so many refused or unanswered attempts...
	Window   time.Duration // ... within this time move the weight down
	Step     int           // percent that one move takes or gives back
	Floor    int           // percent that is always left
	Interval time.Duration // at most one move of the route in this time
	Quiet    time.Duration // without so many errors for this long the weight moves back up
}

// Entries are the weights as selector.NewTable takes them.
func (r *Route) Entries() []selector.Entry {
	out := make([]selector.Entry, len(r.Weights))
	for i, w := range r.Weights {
		out[i] = selector.Entry{Name: w.Channel, Weight: w.Weight}
	}
	return out
}

// Match says which messages a route takes. An empty list takes all; a list takes a
// message that fits one of its members; all lists and all labels must fit.
type Match struct {
	Prefixes  []string // beginnings of the recipient's number, plus included
	Countries []string // ISO 3166 in lower case
	Tenants   []string
	Lanes     []string
	Labels    map[string]selector.Value // each must be on the message with this value
}

// Lane is a class of messages with its topics.
type Lane struct {
	Name       string
	Topics     []string
	TTL        time.Duration // how long a message without expires_at is worth sending
	MaxWaiting int64         // so many may wait before the topics are paused
	Ambiguous  string        // when nobody knows whether it was taken: "never" or "resend_once"
	Clarify    []string      // how it is tried before to find out: "same_key", "lookup", "receipt", in order
	ClarifyFor time.Duration // and for how long
	// IgnoreOptOut sends also to recipients who have opted out of what the tenant sends.
	IgnoreOptOut bool
}

func readRouting(root value, applied bool) *Routing {
	top, ok := root.fields("timezone", "channels", "routes", "lanes", "limits", "rates", "blocked", "inbound")
	if !ok {
		return nil
	}
	routing := &Routing{Timezone: time.UTC}
	if v, ok := top.get("timezone"); ok {
		routing.Timezone = v.timezone()
	}
	routing.Lanes = readLanes(top)
	routing.Channels = readChannels(top, routing.LaneNames(), routing.Timezone)
	if v, ok := top.get("limits"); ok {
		routing.Limits = readLimits(v, limitContext{channels: routing.Channels, lanes: routing.LaneNames()})
	}
	if v, ok := top.get("blocked"); ok {
		routing.Blocked = readBlocked(v)
	}
	if v, ok := top.get("rates"); ok {
		routing.Rates = readRates(v, routing.Channels)
	}
	known := newScope(routing)
	known.applied = applied
	routing.Routes = readRoutes(top, known)
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

// channel finds a channel by name; nil when there is none.
func (r *Routing) channel(name string) *Channel {
	for i := range r.Channels {
		if r.Channels[i].Name == name {
			return &r.Channels[i]
		}
	}
	return nil
}

// clone copies what edits and effects change: states, limits and weights.
func (r *Routing) clone() *Routing {
	out := *r
	out.Limits, out.Channels, out.Routes = slices.Clone(r.Limits), slices.Clone(r.Channels), slices.Clone(r.Routes)
	for i := range out.Channels {
		out.Channels[i].Limits = slices.Clone(r.Channels[i].Limits)
	}
	for i := range out.Routes {
		route := &out.Routes[i]
		route.Weights, route.Channels = slices.Clone(route.Weights), slices.Clone(route.Channels)
	}
	return &out
}
