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

// Now is the status of the dispatcher at one moment. Scripts rely on its JSON names.
type Now struct {
	Now time.Time `json:"now"` // the database's clock
	// Since is the start of the period of shares. Rates, codes and answer times are of the last
	// WindowSeconds.
	Since          time.Time `json:"since"`
	WindowSeconds  float64   `json:"window_seconds"`
	RoutingVersion int64     `json:"routing_version"`
	Channels       []Channel `json:"channels"`
	Lanes          []Lane    `json:"lanes"`
	// Paused is what operators or guards have paused, such as "lane bulk".
	Paused []string `json:"paused"`
	// Trips are what guards found in the last day, newest first.
	Trips []GuardTrip `json:"trips"`
	// Budgets are the prepaid budgets, the most used first.
	Budgets   []Budget `json:"budgets"`
	Waiting   []Group  `json:"waiting"` // the largest group first
	Ambiguous int64    `json:"ambiguous"`
	// Dead counts the records of the last day that could not be used.
	Dead int64 `json:"dead"`
	// PendingCancellations counts those that wait for their message; the oldest was stored at
	// OldestPending, null for none.
	PendingCancellations int64      `json:"pending_cancellations"`
	OldestPending        *time.Time `json:"oldest_pending_cancellation"`

	Instances int       `json:"instances"`
	Processes []Process `json:"processes"`
	Findings  []Finding `json:"findings"` // what an operator should look at

	applied   time.Time // when the routing was
	deadAfter time.Duration
	closed    []Finding // of the document
	limits    Limits
}

// Channel is one channel over all instances.
type Channel struct {
	Name  string `json:"channel"`
	State string `json:"state"`
	// Breaker is the worst state over the instances; empty when none runs.
	Breaker      string     `json:"breaker"`
	BreakerSince *time.Time `json:"breaker_since"`
	// NotReady counts the instances on which the channel cannot send now, by reason.
	NotReady []ReasonCount `json:"not_ready"`
	Silent   bool          `json:"silent"`
	// AgreedShare is by the weights of the document, EffectiveShare by the effective weights; null
	// when no route with weights has the channel. CarriedShare is null when nothing was carried.
	AgreedShare    *float64 `json:"agreed_share"`
	EffectiveShare *float64 `json:"effective_share"`
	CarriedShare   *float64 `json:"carried_share"`
	// Rate is in attempts a second, and so is Limit: the strictest of the channel's limits on messages
	// with a window of at most a minute, of which each attempt takes one message; null for none.
	// Limits in segments and money count something else.
	Rate  float64  `json:"rate"`
	Limit *float64 `json:"limit"`
	// Throttled is the part of its rate that it may use after the provider asked to slow down; 1 for
	// all of it. PausedUntil is as the provider asked.
	Throttled   float64    `json:"throttled_to"`
	PausedUntil *time.Time `json:"paused_until"`
	Accepted    int64      `json:"accepted"`
	// Codes are the provider's codes of attempts that were not accepted. Unsent are the dispatcher's
	// codes of attempts that did not leave: breaker_open, late and so on.
	Codes      []CodeCount `json:"codes"`
	Unsent     []CodeCount `json:"unsent"`
	P50        *float64    `json:"p50_ms"`
	P99        *float64    `json:"p99_ms"`
	Unanswered int64       `json:"unanswered"`
	// Waiting counts the messages that wait for the channel or one of its limits. OldestSeconds is how
	// long the oldest of them has waited, as in Lane; null when none waits.
	Waiting       int64    `json:"waiting"`
	OldestSeconds *float64 `json:"oldest_seconds"`

	share    report.ShareNow
	answered map[string]int64 // attempts that left, by outcome
	// receipts says that receipts are expected. awaited counts messages that were accepted more than a
	// minute ago, receipted those of them with a receipt.
	receipts           bool
	awaited, receipted int64
}

// Group is a group of waiting messages, and how long the oldest of them has waited, as in Lane.
type Group struct {
	Waiters
	// OldestSeconds is null when the group appeared or disappeared between the reads of the database.
	OldestSeconds *float64 `json:"oldest_seconds"`
}

// CodeCount counts the attempts that ended with one code.
type CodeCount struct {
	Code    string `json:"code"`
	Outcome string `json:"outcome"`
	Count   int64  `json:"count"`
}

// ReasonCount counts the instances that report a reason.
type ReasonCount struct {
	Reason    string `json:"reason"`
	Instances int    `json:"instances"`
}

// Lane is one lane over all instances.
type Lane struct {
	Lane string `json:"lane"`
	// Lag counts the records in Kafka that are not in the ledger yet; null when no instance knows.
	Lag *int64 `json:"lag"`
	// Paused is whether an instance does not read it, because too many messages wait or an operator
	// has paused it.
	Paused  bool  `json:"paused"`
	Waiting int64 `json:"waiting"`
	// OldestSeconds is how long the oldest waiting message has waited: since its receipt, or since
	// its send_at if that is later. It is null when none waits.
	OldestSeconds *float64 `json:"oldest_seconds"`
	// Scheduled counts messages whose send_at is in the future, Held those that a pause holds.
	// Neither is in Waiting.
	Scheduled int64  `json:"scheduled"`
	Held      int64  `json:"held"`
	Readers   int    `json:"readers"` // instances in its consumer group
	Away      string `json:"away"`    // why it cannot be read; empty when it can

	byOperator bool
}

// Process is one running instance.
type Process struct {
	Instance       int64     `json:"instance"`
	Region         string    `json:"region"`
	Host           string    `json:"host"`
	Version        string    `json:"version"`
	StartedAt      time.Time `json:"started_at"`
	RoutingVersion int64     `json:"routing_version"`
}

// GuardTrip is a tenant, a calling code or a prefix that got far more messages in an hour than
// usual.
type GuardTrip struct {
	At      time.Time `json:"at"`
	Per     string    `json:"per"` // tenant, calling_code or prefix
	Subject string    `json:"subject"`
	Action  string    `json:"action"` // pause or warn
	Hour    time.Time `json:"hour"`   // the start of the hour
	Seen    int64     `json:"seen"`   // messages in the hour, until At
	Usual   float64   `json:"usual"`  // mean of messages in that hour of the Days before
	Days    int       `json:"days"`
	Version *int64    `json:"version"` // the version that paused it; null when none did
}

// facts is the input of newNow.
type facts struct {
	version   int64
	applied   time.Time // when the version was
	deadAfter time.Duration
	doc       *config.Routing
	present   ledger.Present
	recent    ledger.Recent
	instances []ledger.Instance
	trips     []ledger.Trip
	within    time.Duration
	awaits    Awaits

	pendingCancellations int64
	oldestPending        time.Time
}

// newNow combines the routing document, the figures of the ledger and the reports of instances.
func newNow(f *facts) *Now {
	s := &Now{
		Now: f.recent.Now, Since: f.recent.Since, WindowSeconds: f.within.Seconds(),
		RoutingVersion: f.version, Channels: []Channel{}, Lanes: []Lane{}, Waiting: []Group{},
		Ambiguous: f.recent.Ambiguous, Dead: f.recent.Dead, Instances: len(f.instances),
		Processes: []Process{}, Paused: append([]string{}, f.doc.Paused.Words()...),
		PendingCancellations: f.pendingCancellations, OldestPending: report.Moment(f.oldestPending),
	}
	counters := &Counters{&f.present, f.doc.Timezone}
	for _, w := range counters.Waiters(nil) {
		s.Waiting = append(s.Waiting, Group{w, f.oldest(func(o *ledger.Oldest) bool {
			return o.On == w.On && o.Reason == w.Reason
		})})
	}
	s.Trips = newTrips(f.trips)
	s.Budgets = NewBudgets(f.version, f.doc, &f.present).Budgets
	shares := report.SharesNow(f.doc, f.recent.Carried)
	for i := range f.doc.Channels {
		c := &f.doc.Channels[i]
		one := Channel{
			Name: c.Name, State: string(c.State), Waiting: counters.WaitingOn(c.Name),
			NotReady: []ReasonCount{}, Codes: []CodeCount{}, Unsent: []CodeCount{}, Throttled: 1,
			answered: map[string]int64{}, receipts: f.awaits(c) > 0,
			OldestSeconds: f.oldest(func(o *ledger.Oldest) bool { return waitsOn(o.On, c.Name) }),
		}
		if share, ok := shares[c.Name]; ok {
			one.takeShare(share)
		}
		one.takeLimits(counters, c)
		one.takeOutcomes(f.recent.Outcomes, f.within)
		one.takeInstances(f.instances)
		s.Channels = append(s.Channels, one)
	}
	for _, lane := range f.doc.Lanes {
		s.Lanes = append(s.Lanes, newLane(lane.Name, f))
	}
	for i := range f.instances {
		s.Processes = append(s.Processes, newProcess(&f.instances[i]))
	}
	s.applied, s.deadAfter = f.applied, f.deadAfter
	s.closed, s.limits = Closed(f.doc), *NewLimits(f.version, f.doc, &f.present, nil)
	s.Findings = s.find()
	return s
}

// oldest is for how many seconds the oldest of the messages in some groups has waited; nil when
// there is none.
func (f *facts) oldest(of func(*ledger.Oldest) bool) (seconds *float64) {
	for i := range f.recent.Oldest {
		o := &f.recent.Oldest[i]
		age := max(f.recent.Now.Sub(o.Since).Seconds(), 0)
		if of(o) && (seconds == nil || age > *seconds) {
			seconds = &age
		}
	}
	return seconds
}

func newTrips(trips []ledger.Trip) []GuardTrip {
	out := make([]GuardTrip, len(trips))
	for i := range trips {
		t := &trips[i]
		out[i] = GuardTrip{
			At: t.At, Per: t.Per, Subject: t.Subject, Action: t.Action, Hour: t.Hour, Seen: t.Seen,
			Usual: t.Usual, Days: t.Days,
		}
		if t.Version > 0 {
			out[i].Version = &t.Version
		}
	}
	return out
}

func (c *Channel) takeShare(share report.ShareNow) {
	c.share = share
	c.AgreedShare, c.EffectiveShare = &share.Agreed, &share.Effective
	if share.Messages > 0 {
		c.CarriedShare = &share.Carried
	}
}

// longestRateWindow is the longest window of a limit that a rate is compared with, in seconds. In a
// longer one a channel may well be faster than the average.
const longestRateWindow = 60

func (c *Channel) takeLimits(counters *Counters, channel *config.Channel) {
	for i := range channel.Limits {
		l := &channel.Limits[i]
		if l.Scope != (admission.Scope{}) || l.Unit != admission.Messages ||
			l.Window.Seconds() > longestRateWindow {
			continue
		}
		perSecond := float64(l.Max) / float64(l.Window.Seconds())
		if c.Limit == nil || perSecond < *c.Limit {
			c.Limit = &perSecond
		}
	}
	if state := counters.Channel(channel.Name); state != nil {
		ease := state.Gate.Ease
		c.Throttled = ease.RateOf(channel.Limits, counters.Now)
		if ease.Until.After(counters.Now) {
			c.PausedUntil = report.Moment(ease.Until.UTC())
		}
	}
}

// worse orders the states of a breaker.
var worse = map[string]int{"": 0, "closed": 1, "half_open": 2, "open": 3}

func (c *Channel) takeInstances(all []ledger.Instance) {
	reasons, answers := map[string]int{}, map[int64]int64{}
	for i := range all {
		said := all[i].State.Channels[c.Name]
		if said.Why != "" {
			reasons[said.Why]++
		}
		c.Silent = c.Silent || said.Silent
		c.Unanswered += said.Unanswered
		for bound, n := range said.Answers {
			answers[bound] += n
		}
		was, is := worse[c.Breaker], worse[said.Breaker]
		earlier := said.BreakerSince != nil && c.BreakerSince != nil &&
			said.BreakerSince.Before(*c.BreakerSince)
		if is > was || is == was && earlier {
			c.Breaker, c.BreakerSince = said.Breaker, said.BreakerSince
		}
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		c.NotReady = append(c.NotReady, ReasonCount{why, reasons[why]})
	}
	c.P50, c.P99 = percentile(answers, 0.5), percentile(answers, 0.99)
}

// percentile is the lowest bound of the histogram, in milliseconds, that at least this part of the
// answers do not exceed; nil when there are no answers.
func percentile(answers map[int64]int64, part float64) *float64 {
	var total, sum int64
	for _, n := range answers {
		total += n
	}
	for _, bound := range slices.Sorted(maps.Keys(answers)) {
		if sum += answers[bound]; float64(sum) >= part*float64(total) {
			return new(float64(bound) / 1000)
		}
	}
	return nil
}

func newLane(name string, f *facts) Lane {
	paused := f.doc.Paused.Lane(name)
	lane := Lane{Lane: name, Paused: paused, byOperator: paused}
	for _, q := range f.recent.Queues {
		if q.Lane != name {
			continue
		}
		lane.Waiting, lane.Scheduled, lane.Held = q.Waiting, q.Scheduled, q.Paused
		if q.Since != nil {
			lane.OldestSeconds = new(max(f.recent.Now.Sub(*q.Since).Seconds(), 0))
		}
	}
	for i := range f.instances {
		said := f.instances[i].State.Lanes[name]
		lane.Paused = lane.Paused || said.Paused
		lane.Away = cmp.Or(lane.Away, said.Away)
		if said.Joined {
			lane.Readers++
		}
		if said.Lag != nil {
			if lane.Lag == nil {
				lane.Lag = new(int64)
			}
			*lane.Lag += *said.Lag
		}
	}
	return lane
}
