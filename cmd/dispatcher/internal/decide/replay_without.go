package decide

import (
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// Messages whose payload is gone are planned again from their rows alone: on the recorded route,
// with the recorded number of segments. What depended on number, text, sender, labels or selectors
// cannot be decided and is left open.

// RoutesFor lists the routes that may have taken a message whose number and labels are no longer
// known. The list ends with the first route that takes every message of its lane, tenant and
// calling code.
func (r *Replay) RoutesFor(row *ledger.Message) []*Route {
	var routes []*Route
	for i := range r.a.routing.Routes {
		route := &r.a.routing.Routes[i]
		may, surely := r.mayTake(route, row)
		if may {
			routes = append(routes, route)
		}
		if surely {
			break
		}
	}
	return routes
}

func (r *Replay) mayTake(route *Route, row *ledger.Message) (may, surely bool) {
	m := &route.Match
	if !oneOf(m.Tenants, row.Tenant) || !oneOf(m.Lanes, row.Lane) ||
		len(m.Countries) > 0 && !slices.ContainsFunc(m.Countries, func(country string) bool {
			return r.a.routing.mayBeIn(row.CallingCode, country)
		}) {
		return false, false
	}
	may, surely = len(m.Prefixes) == 0, len(m.Prefixes) == 0
	for _, prefix := range m.Prefixes {
		one, all := begins(row.CallingCode, prefix)
		may, surely = may || one, surely || all
	}
	// Its send_at, which decides the hours, is not known either.
	return may, surely && len(m.Countries) == 0 && len(m.Labels) == 0 && len(m.Senders) == 0 &&
		!route.byHours()
}

// PlanWithout is Plan for a message whose payload is gone, on a route of the version.
func (r *Replay) PlanWithout(row *ledger.Message, route *Route) *Task {
	t := &Task{
		Row: *row, Lane: r.a.routing.Lane(row.Lane), Route: route, First: -1,
		msg:            envelope.Message{ID: row.ID, Tenant: row.Tenant},
		common:         row.Plan.Segments,
		withoutPayload: true,
	}
	p := &planner{routing: r.a.routing, keys: r.a.keys}
	t.Row.Plan = ledger.Plan{
		Route: route.Name, Version: r.a.routing.Version, Segments: row.Plan.Segments,
		Alphabet: row.Plan.Alphabet,
	}
	if route.Draws() {
		p.draw(t, row.Plan.KeyID)
	}
	if row.Attempts > 0 || !r.Draws(route, row.Plan.KeyID) {
		t.First = r.a.routing.MemberIndex(route, row.Plan.FirstChoice)
	}
	p.unpinIfGone(t)
	return t
}

// MayMisfit reports whether the payload may have excluded channel c for this reason, and no reason
// that is checked earlier applies. cut says whether the text may have another number of segments
// there than recorded.
func (r *Replay) MayMisfit(t *Task, c int, reason string, cut bool) bool {
	ch := &r.a.routing.Channels[c]
	if ch.State == Disabled || ch.State == Draining ||
		t.Row.Pinned != "" && t.Row.Pinned != ch.Name {
		return false
	}
	switch reason {
	case CutOtherwise:
		return len(t.Row.PartsLeft) > 0
	case unfit:
		return !t.Route.BypassSelectors
	case tooLong:
		return t.whole() && (cut || t.common > t.Route.MaxSegments)
	case badFrom:
		return len(ch.Senders.Rules) > 0 || ch.Writes != nil
	case PriceCap:
		return true // the message may have had a sender of its own
	}
	return false
}

// mostNeeded is the most that a message may take of the limits of a channel.
func (r *Replay) mostNeeded(t *Task, ch *Channel, cut bool) admission.Need {
	parts := r.a.parts(t, ch)
	if cut {
		parts = max(parts, t.Route.MaxSegments)
	}
	most := slices.Max(r.Prices(t, ch, parts, t.At))
	return admission.Need{Lane: t.Row.Lane, Segments: parts, Micros: most}
}

// Prices are what a number of segments of a message without payload may cost on a channel at a
// time, ascending.
func (r *Replay) Prices(t *Task, ch *Channel, segments int, at time.Time) []int64 {
	amounts := ch.Price.possible(r.a.routing, t.Row.CallingCode, at)
	for i := range amounts {
		amounts[i] *= int64(segments)
	}
	return amounts
}
