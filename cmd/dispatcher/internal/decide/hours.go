package decide

import (
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// reasonQuiet is the reason of a message that waits for the quiet hours of its route to end.
const reasonQuiet = ledger.ReasonQuiet

// The hours in a route's match are compared with the time at which a message could first be sent,
// so a message does not change its route because time passes. Quiet hours are checked at each
// claim, on the message's route.

// open reports whether the hours of a route admit messages that can first be sent at a moment.
func (r *Routing) open(route *Route, at time.Time, country string) bool {
	if hours := route.Match.Hours; len(hours) > 0 && !hours.Contains(at.In(r.Zone)) {
		return false
	}
	quiet := route.Quiet
	return quiet == nil || !quiet.Next || !quiet.At(at, country)
}

// byHours reports whether the messages that a route takes depend on the time.
func (r *Route) byHours() bool {
	return len(r.Match.Hours) > 0 || r.Quiet != nil && r.Quiet.Next
}

// asksCountry reports whether the messages that a route takes depend on countries.
func (r *Route) asksCountry() bool {
	return len(r.Match.Countries) > 0 || r.Quiet != nil && r.Quiet.Next && r.Quiet.ByRecipient
}

// sendable is when the message can first be sent. A new message counts as received now.
func (t *Task) sendable(now time.Time) time.Time {
	if !t.Row.ReceivedAt.IsZero() {
		now = t.Row.ReceivedAt
	}
	return later(now, t.msg.SendAt)
}

// pastHours reports whether a route's hours began or ended between planning a new message and
// receiving it. Then another route may take it, whose channels are not locked.
func (p *Plan) pastHours(seen *ledger.Seen) bool {
	for i := range p.Routing.Routes {
		if route := &p.Routing.Routes[i]; route.byHours() && p.pastHoursOf(route, seen) {
			return true
		}
	}
	return false
}

func (p *Plan) pastHoursOf(route *Route, seen *ledger.Seen) bool {
	for i := range p.Jobs {
		t := &p.Tasks[i]
		if seen.Intakes[i] != ledger.Fresh || t.msg.ID == "" {
			continue
		}
		country := ""
		if route.asksCountry() {
			country = p.Routing.Country(t.msg.To)
		}
		before, now := later(p.Now, t.msg.SendAt), later(seen.Messages[i].ReceivedAt, t.msg.SendAt)
		if p.Routing.open(route, before, country) != p.Routing.open(route, now, country) {
			return true
		}
	}
	return false
}

// quiet reports whether the quiet hours of its route keep the message from being sent at a moment.
// The rest of a message that was partly submitted is still sent.
func (t *Task) quiet(at time.Time) bool {
	return t.whole() && t.Route.Quiet.At(at, t.to.Country)
}

// quietEnds is how long a message waits for quiet hours to end.
func (t *Task) quietEnds(now time.Time) delay {
	return delay{at: t.Route.Quiet.Ends(now, t.to.Country), why: reasonQuiet}
}

// Quiet are the quiet hours in which nothing of a task could be sent at a moment. It is nil when
// there are none, or when they depend on the country of a number that has been erased.
func (r *Replay) Quiet(t *Task, at time.Time) *config.Quiet {
	quiet := t.Route.Quiet
	if quiet == nil || t.withoutPayload && quiet.ByRecipient || !t.quiet(at) {
		return nil
	}
	return quiet
}
