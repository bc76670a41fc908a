package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// taskWithout is task for a message whose payload was deleted. It uses the recorded route, which
// must be one that can have taken the message. For an attempt or wait under another version no
// route is recorded; there it uses a route with the candidates of the ranking.
func (c *check) taskWithout(
	attempt int, e *edition, then *ledger.Message, ranking *decide.Ranking,
) *decide.Task {
	stored := &c.record.Message.Plan
	then.Plan.Segments, then.Plan.Alphabet = stored.Segments, stored.Alphabet
	elsewhere := e.Routing.Version != stored.Version && ranking != nil
	routes := slices.DeleteFunc(e.RoutesFor(then), func(route *decide.Route) bool {
		if elsewhere {
			return !e.ranks(route, ranking)
		}
		return route.Name != stored.Route
	})
	if len(routes) == 0 {
		c.differs(
			attempt, whatRoute, stored.Route, "one of version "+
				strconv.FormatInt(e.Routing.Version, 10)+" that may have taken it",
		)
		return &decide.Task{}
	}
	at := slices.IndexFunc(routes, func(r *decide.Route) bool { return r.Name == stored.Route })
	return e.PlanWithout(then, routes[max(at, 0)]) // of several, the one with the same name
}

// ranks reports whether the candidates of a ranking are the members of a route.
func (e *edition) ranks(route *decide.Route, r *decide.Ranking) bool {
	listed := r.Candidates
	if len(listed) > 0 && listed[0].Reason == decide.Removed &&
		e.Routing.MemberIndex(route, listed[0].Channel) < 0 {
		listed = listed[1:] // a first choice that was removed from the route
	}
	return len(listed)+r.More == len(route.Members) &&
		!slices.ContainsFunc(listed, func(one decide.Ranked) bool {
			return e.Routing.MemberIndex(route, one.Channel) < 0
		})
}

// cutsOtherwise reports whether a deleted text may have another number of segments on a channel
// than in the row: the channel counts them in its own way, or only one of the two routes replaces
// look-alike characters.
func (c *check) cutsOtherwise(t *decide.Task, ch *decide.Channel) bool {
	return c.withoutPayload && (ch.Segments != nil || c.planned == nil ||
		c.planned.Route.Substitute != t.Route.Substitute)
}

// partsOf is how many parts an attempt was to submit, as far as its outcome shows. If not all were
// taken, it returns one more than were billed, with guessed, because it may have been more.
func (c *check) partsOf(stored *ledger.AttemptRecord) (parts int, guessed bool) {
	c.notChecked(whatSegments)
	switch stored.Outcome {
	case "", "accepted":
		return stored.Segments, false
	}
	return stored.Segments + 1, true
}

// price checks the price of an attempt. Without the number, it must be one of the prices of numbers
// with the same calling code.
func (c *check) price(
	e *edition, t *decide.Task, ch *decide.Channel, stored *ledger.AttemptRecord,
) {
	if !c.withoutPayload {
		c.sameNumber(stored.Number, whatPrice, stored.PriceMicros, t.Price(ch, stored.Segments))
		return
	}
	amounts := e.Prices(t, ch, stored.Segments, t.At)
	if len(amounts) > 1 {
		c.notChecked(whatPrice)
	}
	if !slices.Contains(amounts, stored.PriceMicros) {
		c.differs(
			stored.Number, whatPrice, strconv.FormatInt(stored.PriceMicros, 10),
			strings.ReplaceAll(strings.Trim(fmt.Sprint(amounts), "[]"), " ", " or "),
		)
	}
}

// segmentsFit checks the number of segments of a deleted text: at most as many as its route allows,
// if no channel of the route counts them in its own way.
func (c *check) segmentsFit(e *edition, t *decide.Task) {
	stored := c.record.Message.Plan.Segments
	own := slices.ContainsFunc(t.Route.Members, func(member int) bool {
		return e.Routing.Channels[member].Segments != nil
	})
	if stored < 1 || !own && stored > t.Route.MaxSegments {
		c.differs(
			0, whatSegments, strconv.Itoa(stored), fmt.Sprintf("1 to %d", t.Route.MaxSegments),
		)
	}
}
