package status

import (
	"fmt"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

// Figures at or above these are a Finding.
const (
	muchLag       = 10_000 // records in Kafka
	longWait      = 10 * time.Minute
	manyAmbiguous = 100
)

// find lists what an operator should look at.
func (n *Now) find() []Finding {
	found := []Finding{}
	for _, what := range n.Paused {
		if t := n.pausedBy(what); t != nil {
			found = append(found, Warned("guard", what+" was paused by a guard: "+t.words(),
				"find out whose traffic it is; dispatcher resume ends the pause, and the guard leaves it "+
					"alone until the next hour"))
			continue
		}
		found = append(found, Warned("pause", what+" is paused",
			`end it with "dispatcher resume"; "dispatcher routing history" says who and why`))
	}
	found = append(found, n.closed...)
	found = append(found, n.limits.spent()...)
	found = append(found, n.limits.Ahead()...)
	found = append(found, n.findChannels()...)
	for i := range n.Lanes {
		found = append(found, n.Lanes[i].find(n.Instances)...)
	}
	for i := range n.Trips {
		if t := &n.Trips[i]; t.Action == string(config.GuardWarns) && n.Now.Sub(t.At) < warnFor {
			found = append(found, Warned("guard", t.what()+" has far more messages than usual: "+
				t.words(), "find out whose traffic it is; dispatcher pause stops it"))
		}
	}
	found = append(found, findBudgets(n.Budgets)...)
	if n.Ambiguous >= manyAmbiguous {
		found = append(found, Warned("ambiguous", fmt.Sprintf("it is not known of %d submissions "+
			"whether the provider took them", n.Ambiguous), `see "dispatcher ambiguous list"; most are `+
			"resolved by receipts or by asking the provider"))
	}
	if n.Instances == 0 {
		found = append(found, Warned("instances", "no dispatcher runs",
			`start "dispatcher run"; what is in Kafka and in the ledger is kept`))
	}
	for _, p := range n.Processes {
		if p.RoutingVersion != 0 && p.RoutingVersion < n.RoutingVersion &&
			n.Now.Sub(n.applied) > n.deadAfter { // it reports more often than that
			found = append(found, Warned(fmt.Sprintf("instance %d", p.Instance),
				fmt.Sprintf("uses routing version %d, and %d is in force", p.RoutingVersion,
					n.RoutingVersion), "if it stays, see routing in its /readyz and its log"))
		}
	}
	return found
}

// warnFor is how long a trip that paused nothing is a Finding.
const warnFor = 2 * time.Hour

// pausedBy is the latest of n.Trips that paused this; nil when there is none.
func (n *Now) pausedBy(what string) *GuardTrip {
	for i := range n.Trips {
		if t := &n.Trips[i]; t.Version != nil && t.what() == what {
			return t
		}
	}
	return nil
}

// what is the subject of a trip, in the words of Now.Paused.
func (t *GuardTrip) what() string {
	var p config.Paused
	switch config.GuardBy(t.Per) {
	case config.ByTenant:
		p.Tenants = []string{t.Subject}
	case config.ByCallingCode:
		p.Prefixes = []string{"+" + t.Subject}
	case config.ByPrefix:
		p.Prefixes = []string{t.Subject}
	}
	return p.Words()[0]
}

func (t *GuardTrip) words() string {
	return fmt.Sprintf("%d messages from %s to %s (UTC), usual are %.1f in that hour (%d days)",
		t.Seen, t.Hour.Format("15:04"), t.At.Format("15:04"), t.Usual, t.Days)
}

// findChannels lists what is wrong with the channels. A missed share is added to the first finding
// of its channel. Without such a finding it is one of its own, unless the channel carries too much
// while another channel has a finding: it then carries what that one does not.
func (n *Now) findChannels() (out []Finding) {
	sick := false
	each := make([][]Finding, len(n.Channels))
	for i := range n.Channels {
		each[i] = n.Channels[i].find()
		sick = sick || len(each[i]) > 0
	}
	for i, found := range each {
		c := &n.Channels[i]
		if c.State == string(config.Enabled) && c.share.Far() {
			words := fmt.Sprintf("carries %s, agreed is %s of %d messages%s",
				report.Percent(c.share.Carried), report.Percent(c.share.Agreed), c.share.Messages,
				n.limits.spentBy(c.Name))
			switch {
			case len(found) > 0:
				found[0].Detail += "; it " + words
			case !sick || c.share.Carried < c.share.Agreed:
				found = append(found, Warned(c.check(), words, `see its state, limits and `+
					`codes in "dispatcher status"; "dispatcher report daily" says where messages went `+
					"instead"))
			}
		}
		out = append(out, found...)
	}
	return out
}

// check names the findings of a channel.
func (c *Channel) check() string { return "traffic of " + c.Name }

// find lists what is wrong with a channel; nothing unless it is enabled. Its share is left out.
func (c *Channel) find() []Finding {
	if c.State != string(config.Enabled) {
		return nil
	}
	check := c.check()
	var out []Finding
	if c.Breaker == "open" || c.Breaker == "half_open" {
		out = append(out, Warned(check, "its breaker is "+c.BreakerWords()+c.CodeWords(),
			"its messages go to other channels or wait; ask the provider, or take the channel out "+
				`with "dispatcher channel drain"`))
	}
	for _, r := range c.NotReady {
		if r.Reason == "breaker_open" || r.Reason == "probing" || r.Reason == "busy" ||
			r.Reason == "throttled" {
			continue
		}
		out = append(out, Warned(check, fmt.Sprintf("cannot send on %s: %s",
			instanceWords(r.Instances), report.WaitWords(r.Reason)),
			`see "channel `+c.Name+`" in /readyz of the instance`))
	}
	if _, _, often := c.often("unknown"); c.Silent && !often { // else findAnswers says it
		out = append(out, Warned(check, "submissions have no answer in time",
			"it has half of its share in flight and no more until it answers; ask the provider"))
	}
	out = append(out, c.findAnswers(check)...)
	if c.PausedUntil != nil || c.Throttled < 1 {
		out = append(out, Warned(check, "the provider has asked to slow down: "+
			report.Percent(c.Throttled)+" of its rate is left",
			"it recovers by itself; lower the channel's limit if this comes often"))
	}
	return out
}

// check names the findings of a lane.
func (l *Lane) check() string { return "lane " + l.Lane }

// find lists what is wrong with the intake of a lane.
func (l *Lane) find(instances int) []Finding {
	check := l.check()
	var out []Finding
	if l.Paused && !l.byOperator {
		out = append(out, Warned(check, fmt.Sprintf("its topics are not read, because %d messages "+
			"wait", l.Waiting), `see what they wait for in "dispatcher limits show"`))
	}
	switch {
	case l.Away != "":
		out = append(out, Warned(check, strings.TrimSuffix(l.Away, "."),
			"the instances go on by themselves"))
	case l.Readers == 0 && instances > 0:
		out = append(out, Warned(check, "no instance reads it",
			`it may be new: lanes are read after a restart; else see "dispatcher doctor"`))
	}
	if l.OldestSeconds != nil && *l.OldestSeconds >= longWait.Seconds() {
		out = append(out, Warned(check, fmt.Sprintf(
			"%d messages wait, the oldest for %s",
			l.Waiting, time.Duration(*l.OldestSeconds)*time.Second),
			`see what they wait for in "dispatcher status" and "dispatcher limits show"`))
	}
	if l.Lag != nil && *l.Lag >= muchLag {
		out = append(out, Warned(check, fmt.Sprintf("%d records in Kafka are not in the ledger yet",
			*l.Lag), "start more instances, or see what holds up the channels"))
	}
	return out
}
