package config

import (
	"time"

	"dispatcher/admission"
	"dispatcher/selector"
)

// Route sends the messages that fit Match to its channels.
type Route struct {
	Name  string
	Match Match
	// Mode picks the first choice; empty is Weighted.
	Mode Mode
	// Channels are all members in the order of listing, which round robin follows and which is the
	// last tie-breaker of every ranking.
	Channels []string
	// Weights are the members with their weights, in the order of Channels; nil for a route that lists
	// channels without weights. selector.NewTable accepts them.
	Weights []Weight
	// Fallback orders the other members when the first choice cannot take a message; empty is
	// LoadRatio. ParseRouting sets InOrder for mode InOrderMode.
	Fallback Ranker
	// Sticky draws by the recipient's number instead of the message's id, so that a recipient stays on
	// one channel. Only for mode Weighted.
	Sticky bool
	// Scoring is how a ranking by best worker scores the members.
	Scoring Scoring
	// NoReceipt sends a message on to the next channel when no receipt came in time; nil does not.
	NoReceipt *NoReceipt
	// Quiet says when nothing is sent; nil for never.
	Quiet *Quiet
	// Health lowers the effective weights of channels that fail; nil does not.
	Health          *Health
	Wait            time.Duration // how long a message is held for its first choice
	BypassSelectors bool
	MaxSegments     int
	Substitute      bool // replace look-alikes so that a text fits GSM-7
	// PriceCap is the most that one message may cost, in micros by currency; nil means no cap. It has
	// an amount for the currency of every member.
	PriceCap map[string]int64
	// AllowedCountries are those that the route carries messages to, in lower case; nil allows all.
	AllowedCountries []string
	// HoldThrottled keeps a throttled message for its channel instead of trying the next.
	HoldThrottled bool
	// Tolerance is how far carried shares may be from the agreed ones before a report mentions it.
	Tolerance Tolerance
}

// Mode is how a route picks the first choice. All modes but Weighted rank all members by the shared
// state of the claim and take the first that can take the message.
type Mode string

// Modes of a route.
const (
	Weighted       Mode = "weighted" // the interval that the draw falls into
	RoundRobinMode Mode = "round_robin"
	LongestIdle    Mode = "longest_idle"
	BestWorkerMode Mode = "best_worker"
	InOrderMode    Mode = "order" // the first in the order of listing that can take the message
)

// Draws reports whether the first choice of the route is drawn.
func (r *Route) Draws() bool { return r.Mode == Weighted || r.Mode == "" }

// Ranker is how channels are ordered.
type Ranker string

// Rankers. A mode other than Weighted ranks like the ranker of the same name; mode LongestIdle
// ranks like LoadRatio.
const (
	LoadRatio  Ranker = "load_ratio"
	BestWorker Ranker = "best_worker"
	RoundRobin Ranker = "round_robin"
	Redraw     Ranker = "redraw"
	InOrder    Ranker = "order" // of listing
)

// Match says which messages a route takes. All lists and all labels must match. A list matches a
// message that fits one of its members; an empty list matches all.
type Match struct {
	Prefixes  []string // beginnings of the recipient's number, plus included
	Countries []string // ISO 3166 in lower case
	Tenants   []string
	Lanes     []string
	Senders   []string // exactly as the message has them
	// Hours are compared with when the message could first be sent, in the zone of the document.
	Hours  Hours
	Labels map[string]selector.Value // each must be on the message with this value
}

// scope is what the routes of a document may refer to.
type scope struct {
	channels map[string]*Channel
	names    []string // of the channels, in order
	lanes    []string
	isLane   nameCheck
	limits   []admission.Limit // over all channels
	zone     *time.Location
	rates    Rates
	applied  bool // see ParseApplied
}

func newScope(routing *Routing, isLane nameCheck) *scope {
	s := &scope{
		channels: map[string]*Channel{}, names: routing.ChannelNames(),
		lanes: routing.LaneNames(), limits: routing.Limits, rates: routing.Rates,
		zone: routing.Timezone, isLane: isLane,
	}
	for i := range routing.Channels {
		s.channels[routing.Channels[i].Name] = &routing.Channels[i]
	}
	return s
}

func readRoutes(top fields, known *scope) []Route {
	v, ok := top.need("routes", "routes: [{name: default, match: {}, weights: {a: 1}}]")
	if !ok {
		return nil
	}
	items := v.items()
	if len(items) == 0 {
		v.fail("there is no route; write for example - {name: default, match: {}, weights: {a: 1}}")
	}
	var out []Route
	taken := map[string]bool{}
	for _, item := range items {
		f, ok := item.fields(routePart)
		if !ok {
			continue
		}
		r := readRoute(f, known)
		if r.Name != "" && taken[r.Name] {
			item.fail("there is already a route %s; give each its own name", r.Name)
		}
		taken[r.Name] = true
		out = append(out, r)
	}
	return out
}

func readRoute(f fields, known *scope) Route {
	r := Route{
		Mode: modes[0], Fallback: fallbacks[0],
		MaxSegments: defaultMaxSegments, Tolerance: readTolerance(f),
	}
	if v, ok := f.need("name", "name: default"); ok {
		if s, ok := v.text(); ok && v.checkName("route", s) {
			r.Name = s
		}
	}
	if v, ok := f.get("match"); ok {
		r.Match = readMatch(v, known)
	}
	if v, ok := f.get("mode"); ok {
		r.Mode, _ = wordOf(v, "mode", modes)
	}
	if r.Mode == InOrderMode {
		r.Fallback = InOrder
	}
	if v, ok := f.get("fallback"); ok {
		r.Fallback, _ = wordOf(v, "fallback", fallbacks)
	}
	r.Sticky = readSticky(f, r)
	r.Quiet = readQuietHours(f, known.zone)
	r.Wait = readWait(f, r)
	r.AllowedCountries = readAllowedCountries(f, "allowed_countries", "allowed_country")
	if v, ok := f.get("bypass_selectors"); ok {
		r.BypassSelectors = v.flag()
	}
	if v, ok := f.get("max_segments"); ok {
		n := v.integer(1, 255) // the header counts segments in one octet
		r.MaxSegments = int(n)
	}
	if v, ok := f.get("substitute"); ok {
		r.Substitute = v.flag()
	}
	if v, ok := f.get("throttled"); ok {
		word, _ := v.word("throttled", throttleds)
		r.HoldThrottled = word == holdThrottled
	}
	readMembers(f, &r, known)
	r.Scoring = readScoring(f, r)
	checkScoredPrices(f, &r, known)
	r.Health = readHealth(f, r)
	r.NoReceipt = readNoReceipt(f, &r, known)
	r.PriceCap = readPriceCap(f)
	checkPriceCap(f, &r, known)
	checkLimits(f, &r, known)
	return r
}

// readWait reads how long a message is held for its first choice. In other modes the first choice
// is a channel that can take the message, so there is nothing to wait for.
func readWait(f fields, r Route) time.Duration {
	v, ok := f.get("wait")
	if !ok {
		return 0
	}
	wait, _ := v.duration(0, day)
	if wait > 0 && !r.Draws() {
		v.fail("holds a message for the channel that a draw picked, which mode %s does not "+
			"have; remove wait", r.Mode)
	}
	return wait
}

// readSticky reads whether a recipient stays on one channel, which requires a draw.
func readSticky(f fields, r Route) bool {
	v, ok := f.get("sticky")
	if !ok {
		return false
	}
	sticky := v.flag()
	if sticky && !r.Draws() {
		v.fail("keeps a recipient on the channel that a draw picked, which mode %s does not "+
			"have; remove sticky", r.Mode)
	}
	return sticky
}

// readMatch reads what a route takes. A list may be written as a single value, and its key in the
// singular.
func readMatch(v value, known *scope) Match {
	f, ok := v.fields(matchPart)
	if !ok {
		return Match{}
	}
	m := Match{
		Prefixes:  readWords(f, "prefixes", "prefix", checkPrefix),
		Countries: readCountries(f, "countries", "country"),
		Tenants:   readWords(f, "tenants", "tenant", nil),
		Lanes: readWords(f, "lanes", "lane", func(v value, s string) bool {
			known.isLane(v, s)
			return true
		}),
	}
	m.Senders = readWords(f, "senders", "sender", checkSender)
	if hours, ok := f.get("hours"); ok {
		m.Hours = readHours(hours)
	}
	if labels, ok := f.get("labels"); ok {
		m.Labels = labels.labels()
	}
	return m
}

// readWords reads a list of texts under either of two keys. An empty list would look like "none"
// and mean "all", so it is refused.
func readWords(f fields, plural, singular string, check nameCheck) []string {
	v, ok := f.get(plural)
	if other, both := f.get(singular); both && ok {
		other.fail("stands beside %s; keep %s", plural, plural)
	} else if both {
		v, ok = other, true
	}
	if !ok {
		return nil
	}
	items := v.items()
	if len(items) == 0 {
		v.fail("is an empty list; remove the key to match all")
	}
	var out []string
	for _, item := range items {
		s, ok := item.text()
		if ok && (check == nil || check(item, s)) {
			out = append(out, s)
		}
	}
	return out
}

// Tolerance is how far the share that a channel carried may be from the agreed one before the daily
// report mentions it, in millionths of a percentage point.
type Tolerance int64

// DefaultTolerance is two percentage points.
const DefaultTolerance Tolerance = 2_000_000

const maxTolerance = 100_000_000 // 100 percentage points

// Share is the tolerance as a share between 0 and 1.
func (t Tolerance) Share() float64 { return float64(t) / maxTolerance }

// readTolerance reads the percentage points of a route.
func readTolerance(f fields) Tolerance {
	v, ok := f.get("tolerance")
	if !ok {
		return DefaultTolerance
	}
	const want = "percentage points from 0 to 100, such as 2 or 0.5"
	s, ok := v.raw(want)
	if !ok {
		return DefaultTolerance
	}
	n, err := parseMicros(s, maxTolerance)
	if err != nil {
		v.fail("%q is not a tolerance; write %s", s, want)
		return DefaultTolerance
	}
	return Tolerance(n)
}
