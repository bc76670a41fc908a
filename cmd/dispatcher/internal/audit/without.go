package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// taskWithout is task for a message whose payload is gone: its route is the one on record, which
// has to be one that may have taken it. An attempt or a wait under another version names no route;
// there it is one with the candidates of its ranking.
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
	return e.PlanWithout(then, routes[max(at, 0)]) // of several, that of the same name
}

// ranks reports whether a ranking is of the members of a route.
func (e *edition) ranks(route *decide.Route, r *decide.Ranking) bool {
	listed := r.Candidates
	if len(listed) > 0 && listed[0].Reason == decide.Removed &&
		e.Routing.Place(route, listed[0].Channel) < 0 {
		listed = listed[1:] // a first choice that the route has lost
	}
	return len(listed)+r.More == len(route.Members) &&
		!slices.ContainsFunc(listed, func(one decide.Ranked) bool {
			return e.Routing.Place(route, one.Channel) < 0
		})
}

// cutsOtherwise reports whether the text, which is gone, may have another number of segments on a
// channel than the row says: the channel counts them in its own way, or the route replaces
// look-alikes where that of the row does not, or the other way round.
func (c *check) cutsOtherwise(t *decide.Task, ch *decide.Channel) bool {
	return c.withoutPayload && (ch.Segments != nil || c.planned == nil ||
		c.planned.Route.Substitute != t.Route.Substitute)
}

// partsOf is how many parts an attempt was to submit, as far as its answer tells. It may have been
// more of those that were not taken.
func (c *check) partsOf(stored *ledger.AttemptRecord) (parts int, guessed bool) {
	c.notChecked(whatSegments)
	switch stored.Outcome {
	case "", "accepted":
		return stored.Segments, false
	}
	return stored.Segments + 1, true
}

// price checks what an attempt was to cost. Without the number it has to be one of the amounts that
// a number of its country code may cost.
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

// segmentsFit checks the number of segments of a text that is gone: as many as its route allows,
// where all channels of the route count them as the row does.
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
