package decide

import (
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// reasonQuiet is why a message waits whose route sends nothing at this time.
const reasonQuiet = ledger.ReasonQuiet

// Hours by which a route takes messages are those of the moment at which a message could first be
// sent, so a message does not change its route because time passes. Quiet hours count at each
// claim: whatever route a message is on, nothing of it is sent in the quiet hours of that.

// open reports whether a route takes messages that can first be sent at a moment.
func (r *Routing) open(route *Route, at time.Time, country string) bool {
	if hours := route.Match.Hours; len(hours) > 0 && !hours.Contains(at.In(r.Zone)) {
		return false
	}
	quiet := route.Quiet
	return quiet == nil || !quiet.Next || !quiet.At(at, country)
}

// byHours reports whether it depends on the time which messages a route takes.
func (r *Route) byHours() bool {
	return len(r.Match.Hours) > 0 || r.Quiet != nil && r.Quiet.Next
}

// asksCountry reports whether it depends on countries which messages the route takes.
func (r *Route) asksCountry() bool {
	return len(r.Match.Countries) > 0 || r.Quiet != nil && r.Quiet.Next && r.Quiet.ByRecipient
}

// sendable is when the message can first be sent. A new one is received now.
func (t *Task) sendable(now time.Time) time.Time {
	if !t.Row.ReceivedAt.IsZero() {
		now = t.Row.ReceivedAt
	}
	return later(now, t.msg.SendAt)
}

// pastHours reports whether a new message was received in other hours than it was planned for: then
// another route may take it, whose channels are not locked.
func (r *Plan) pastHours(seen *ledger.Seen) bool {
	for i := range r.Routing.Routes {
		if route := &r.Routing.Routes[i]; route.byHours() && r.pastHoursOf(route, seen) {
			return true
		}
	}
	return false
}

func (r *Plan) pastHoursOf(route *Route, seen *ledger.Seen) bool {
	for i := range r.Jobs {
		t := &r.Tasks[i]
		if seen.Intakes[i] != ledger.Fresh || t.msg.ID == "" {
			continue
		}
		country := ""
		if route.asksCountry() {
			country = r.Routing.Country(t.msg.To)
		}
		before, now := later(r.Now, t.msg.SendAt), later(seen.Messages[i].ReceivedAt, t.msg.SendAt)
		if r.Routing.open(route, before, country) != r.Routing.open(route, now, country) {
			return true
		}
	}
	return false
}

// quiet reports whether nothing of the message may be sent at a moment because of the quiet hours
// of its route. What has begun is finished.
func (t *Task) quiet(at time.Time) bool {
	return t.whole() && t.Route.Quiet.At(at, t.to.Country)
}

// quietEnds is until when a message waits for quiet hours to end.
func (t *Task) quietEnds(now time.Time) delay {
	return delay{at: t.Route.Quiet.Ends(now, t.to.Country), why: reasonQuiet}
}

// Quiet are the quiet hours in which nothing of a task could be sent at a moment; nil when there
// are none, or the number is gone and they depend on its country.
func (r *Replay) Quiet(t *Task, at time.Time) *config.Quiet {
	quiet := t.Route.Quiet
	if quiet == nil || t.withoutPayload && quiet.ByRecipient || !t.quiet(at) {
		return nil
	}
	return quiet
}
