package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// statusNow is how the dispatcher does at one moment. The JSON names are relied on by scripts.
type statusNow struct {
	Now time.Time `json:"now"` // the database's clock
	// Since is the beginning of what shares tell; rates, codes and answer times tell the last
	// WindowSeconds.
	Since          time.Time       `json:"since"`
	WindowSeconds  float64         `json:"window_seconds"`
	RoutingVersion int64           `json:"routing_version"`
	Channels       []channelStatus `json:"channels"`
	Lanes          []laneStatus    `json:"lanes"`
	// Paused is what operators have paused, such as "lane bulk".
	Paused    []string     `json:"paused"`
	Waiting   []waitersNow `json:"waiting"` // most of them first
	Ambiguous int64        `json:"ambiguous"`
	// Dead counts the records of the last day that could not be used.
	Dead      int64           `json:"dead"`
	Instances int             `json:"instances"`
	Processes []processStatus `json:"processes"`
	Findings  []finding       `json:"findings"` // what an operator should look at
}

// channelStatus is one channel over all instances.
type channelStatus struct {
	Channel string `json:"channel"`
	State   string `json:"state"`
	// Breaker is the worst over the instances; empty when none runs.
	Breaker      string     `json:"breaker"`
	BreakerSince *time.Time `json:"breaker_since"`
	// NotReady says on how many instances the channel cannot send now, and why.
	NotReady []reasonCount `json:"not_ready"`
	Silent   bool          `json:"silent"`
	// AgreedShare is by the document, EffectiveShare by the weights in force; null when no route
	// that draws has the channel. CarriedShare is null when nothing was carried.
	AgreedShare    *float64 `json:"agreed_share"`
	EffectiveShare *float64 `json:"effective_share"`
	CarriedShare   *float64 `json:"carried_share"`
	// Rate is in attempts a second, Limit the least that the channel's limits allow; null for none.
	Rate  float64  `json:"rate"`
	Limit *float64 `json:"limit"`
	// Throttled is the part of its rate that is left after the provider asked to slow down; 1 is
	// all. PausedUntil is as the provider asked.
	Throttled   float64     `json:"throttled_to"`
	PausedUntil *time.Time  `json:"paused_until"`
	Accepted    int64       `json:"accepted"`
	Codes       []codeCount `json:"codes"` // of attempts that were not accepted
	P50         *float64    `json:"p50_ms"`
	P99         *float64    `json:"p99_ms"`
	Unanswered  int64       `json:"unanswered"`
	Waiting     int64       `json:"waiting"`

	share report.ShareNow
}

// codeCount counts the attempts that ended with an error.
type codeCount struct {
	Code    string `json:"code"`
	Outcome string `json:"outcome"`
	Count   int64  `json:"count"`
}

// reasonCount counts the instances that say so.
type reasonCount struct {
	Reason    string `json:"reason"`
	Instances int    `json:"instances"`
}

// laneStatus is one lane over all instances.
type laneStatus struct {
	Lane string `json:"lane"`
	// Lag counts the records in Kafka that are not in the ledger yet; null when no instance knows.
	Lag *int64 `json:"lag"`
	// Paused: an instance does not read it, because too many messages wait, or an operator has
	// paused it.
	Paused  bool  `json:"paused"`
	Waiting int64 `json:"waiting"`
	// OldestSeconds is the age of the oldest message that waits; null when none does.
	OldestSeconds *float64 `json:"oldest_seconds"`
	Readers       int      `json:"readers"` // instances in its consumer group
	Away          string   `json:"away"`    // why it cannot be read; empty when it can

	byOperator bool
}

// processStatus is one running instance.
type processStatus struct {
	Instance       int64     `json:"instance"`
	Region         string    `json:"region"`
	Host           string    `json:"host"`
	Version        string    `json:"version"`
	StartedAt      time.Time `json:"started_at"`
	RoutingVersion int64     `json:"routing_version"`
}

// statusFacts is what a status is made of.
type statusFacts struct {
	version   int64
	doc       *config.Routing
	present   ledger.Present
	recent    ledger.Recent
	instances []ledger.Instance
	within    time.Duration
}

// newStatusNow puts together what the document says, what the ledger counts and what instances say.
func newStatusNow(f *statusFacts) *statusNow {
	s := &statusNow{
		Now: f.recent.Now, Since: f.recent.Since, WindowSeconds: f.within.Seconds(),
		RoutingVersion: f.version, Channels: []channelStatus{}, Lanes: []laneStatus{},
		Ambiguous: f.recent.Ambiguous, Dead: f.recent.Dead, Instances: len(f.instances),
		Processes: []processStatus{}, Paused: append([]string{}, f.doc.Paused.Words()...),
	}
	counters := &countersNow{&f.present, f.doc.Timezone}
	s.Waiting = counters.waiters(nil)
	shares := report.SharesNow(f.doc, f.recent.Carried)
	for i := range f.doc.Channels {
		c := &f.doc.Channels[i]
		one := channelStatus{
			Channel: c.Name, State: string(c.State), Waiting: counters.waitingOn(c.Name),
			NotReady: []reasonCount{}, Codes: []codeCount{}, Throttled: 1,
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
		s.Lanes = append(s.Lanes, newLaneStatus(lane.Name, f))
	}
	for i := range f.instances {
		p := &f.instances[i]
		s.Processes = append(s.Processes, processStatus{
			p.ID, p.Region, p.Host, p.Version, p.StartedAt, p.State.Version,
		})
	}
	s.Findings = s.find()
	return s
}

func (c *channelStatus) takeShare(share report.ShareNow) {
	c.share = share
	c.AgreedShare, c.EffectiveShare = &share.Agreed, &share.Effective
	if share.Messages > 0 {
		c.CarriedShare = &share.Carried
	}
}

func (c *channelStatus) takeLimits(counters *countersNow, channel *config.Channel) {
	for i := range channel.Limits {
		l := &channel.Limits[i]
		if l.Scope != (admission.Scope{}) || l.Unit == admission.Money {
			continue
		}
		perSecond := float64(l.Max) / float64(l.Window.Seconds())
		if c.Limit == nil || perSecond < *c.Limit {
			c.Limit = &perSecond
		}
	}
	if state := counters.channel(channel.Name); state != nil {
		ease := state.Gate.Ease
		c.Throttled = ease.RateOf(channel.Limits, counters.Now)
		if ease.Until.After(counters.Now) {
			c.PausedUntil = moment(ease.Until.UTC())
		}
	}
}

// mostCodes is how many codes of a channel are shown.
const mostCodes = 10

func (c *channelStatus) takeOutcomes(all []ledger.RecentOutcome, within time.Duration) {
	var attempts int64
	for _, o := range all {
		if o.Channel != c.Channel {
			continue
		}
		attempts += o.Attempts
		switch {
		case o.Outcome == "accepted":
			c.Accepted += o.Attempts
		case o.Outcome != "" && len(c.Codes) < mostCodes:
			c.Codes = append(c.Codes, codeCount{cmp.Or(o.Code, o.Outcome), o.Outcome, o.Attempts})
		}
	}
	c.Rate = float64(attempts) / within.Seconds()
}

// worse orders the states of a breaker.
var worse = map[string]int{"": 0, "closed": 1, "half_open": 2, "open": 3}

func (c *channelStatus) takeInstances(all []ledger.Instance) {
	reasons, answers := map[string]int{}, map[int64]int64{}
	for i := range all {
		said := all[i].State.Channels[c.Channel]
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
		c.NotReady = append(c.NotReady, reasonCount{why, reasons[why]})
	}
	c.P50, c.P99 = percentile(answers, 0.5), percentile(answers, 0.99)
}

// percentile is the least bound, in milliseconds, that this part of the answers do not exceed; nil
// without answers.
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

func newLaneStatus(name string, f *statusFacts) laneStatus {
	paused := f.doc.Paused.All || slices.Contains(f.doc.Paused.Lanes, name)
	lane := laneStatus{Lane: name, Paused: paused, byOperator: paused}
	for _, q := range f.recent.Queues {
		if q.Lane == name {
			lane.Waiting = q.Waiting
			lane.OldestSeconds = new(max(f.recent.Now.Sub(q.Received).Seconds(), 0))
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

// muchLag is how many records in Kafka are worth a finding.
const muchLag = 10_000

// find lists what an operator should look at.
func (s *statusNow) find() []finding {
	found := []finding{}
	for _, what := range s.Paused {
		found = append(found, warned("pause", what+" is paused by an operator",
			`end it with "dispatcher resume"; "dispatcher routing history" says who and why`))
	}
	for i := range s.Channels {
		found = append(found, s.Channels[i].find()...)
	}
	for i := range s.Lanes {
		found = append(found, s.Lanes[i].find(s.Instances)...)
	}
	if s.Instances == 0 {
		found = append(found, warned("instances", "no dispatcher runs",
			`start "dispatcher run"; what is in Kafka and in the ledger is kept`))
	}
	for _, p := range s.Processes {
		if p.RoutingVersion != 0 && p.RoutingVersion < s.RoutingVersion {
			found = append(found, warned(fmt.Sprintf("instance %d", p.Instance),
				fmt.Sprintf("works by routing version %d, and %d is in force", p.RoutingVersion,
					s.RoutingVersion), "if it stays, see routing in its /readyz and its log"))
		}
	}
	return found
}

// find lists what is wrong with a channel that is meant to send.
func (c *channelStatus) find() []finding {
	if c.State != string(config.Enabled) {
		return nil
	}
	check := "traffic of " + c.Channel
	var out []finding
	if c.Breaker == "open" || c.Breaker == "half_open" {
		out = append(out, warned(check, "its breaker is "+c.breakerWords()+c.codeWords(),
			"its messages go to other channels; ask the provider, or take the channel out with "+
				`"dispatcher channel drain"`))
	}
	for _, r := range c.NotReady {
		if r.Reason == "breaker_open" || r.Reason == "probing" || r.Reason == "busy" ||
			r.Reason == "throttled" {
			continue
		}
		out = append(out, warned(check, fmt.Sprintf("cannot send on %s: %s",
			instanceWords(r.Instances), report.WaitWords(r.Reason)),
			`see "channel `+c.Channel+`" in /readyz of the instance`))
	}
	if c.Silent {
		out = append(out, warned(check, "submissions have no answer in time",
			"it has half of its share in flight and no more until it answers; ask the provider"))
	}
	if c.PausedUntil != nil || c.Throttled < 1 {
		out = append(out, warned(check, "the provider has asked to slow down: "+
			format(formatTable).share(&c.Throttled)+" of its rate is left",
			"it recovers by itself; lower the channel's limit if this comes often"))
	}
	if c.share.Far() {
		out = append(out, warned(check, fmt.Sprintf("carries %s, agreed is %s of %d messages",
			report.Percent(c.share.Carried), report.Percent(c.share.Agreed), c.share.Messages),
			`see its state, limits and codes in "dispatcher status"; "dispatcher report daily" `+
				"says where messages went instead"))
	}
	return out
}

// find lists what is wrong with the intake of a lane.
func (l *laneStatus) find(instances int) []finding {
	check := "lane " + l.Lane
	var out []finding
	if l.Paused && !l.byOperator {
		out = append(out, warned(check, fmt.Sprintf("its topics are not read, because %d messages "+
			"wait", l.Waiting), `see what they wait for in "dispatcher limits show"`))
	}
	switch {
	case l.Away != "":
		out = append(out, warned(check, strings.TrimSuffix(l.Away, "."),
			"the instances go on by themselves"))
	case l.Readers == 0 && instances > 0:
		out = append(out, warned(check, "no instance reads it",
			`it may be new: lanes are read after a restart; else see "dispatcher doctor"`))
	}
	if l.Lag != nil && *l.Lag >= muchLag {
		out = append(out, warned(check, fmt.Sprintf("%d records in Kafka are not in the ledger yet",
			*l.Lag), "start more instances, or see what holds up the channels"))
	}
	return out
}

func instanceWords(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return number(int64(n)) + " instances"
}

// breakerWords is the state of the breaker and since when.
func (c *channelStatus) breakerWords() string {
	words := strings.ReplaceAll(c.Breaker, "_", "-")
	if c.BreakerSince != nil && c.Breaker != "closed" {
		words += " since " + c.BreakerSince.UTC().Format("15:04:05 UTC")
	}
	return words
}

// codeWords name the most frequent code, to follow a sentence.
func (c *channelStatus) codeWords() string {
	if len(c.Codes) == 0 {
		return ""
	}
	return fmt.Sprintf("; most frequent code %s, %d times", c.Codes[0].Code, c.Codes[0].Count)
}
