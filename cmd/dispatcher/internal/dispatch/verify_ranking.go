package dispatch

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/ledger"
	"dispatcher/selector"
)

// scoreTolerance is how far a score may be from the stored one: the exponential function may
// differ in its last bits from one processor to another. The order is checked over what was stored.
const scoreTolerance = 1e-9

// choice is a stored ranking and what it led to.
type choice struct {
	ranking *Ranking
	attempt int       // number of the attempt; 0 for a wait
	before  int       // attempts before it
	channel string    // where the attempt went; empty for a wait
	at      time.Time // of the claim; zero where it is not known
}

// read decodes a stored ranking; nil without one, or when it cannot be read, which is noted.
func (c *check) read(attempt int, raw []byte) *Ranking {
	r, err := ReadRanking(raw)
	if err != nil {
		c.differs(attempt, whatRanking, "unreadable", "readable")
	}
	return r
}

// waited checks the ranking that the last wait was decided on.
func (c *check) waited() error {
	ranking := c.read(0, c.record.Seen)
	if ranking == nil || ranking.By == byWait {
		return nil
	}
	a, err := c.v.under(ranking.Version)
	if err != nil {
		return err
	}
	t := c.task(a)
	if t.route == nil {
		c.differs(0, whatRoute, c.record.Message.Plan.Route, "none under version "+strconv.FormatInt(ranking.Version, 10))
		return nil
	}
	// How many attempts there were before the wait is not kept: the ranker tells.
	before := 0
	if ranking.By != string(t.route.ranker(0)) {
		before = 1
	}
	c.ranking(a, t, &choice{ranking: ranking, before: before})
	return nil
}

// ranking checks a stored ranking: that it lists the members of the route in the order that
// their stored state leads to, that the attempt went to the first without obstacle, and that the
// obstacles which the version alone tells are those on record.
func (c *check) ranking(a *assigner, t *task, ch *choice) {
	r := ch.ranking
	by := t.route.ranker(ch.before)
	c.same(ch.attempt, whatBy, r.By, string(by))
	if r.By != string(by) {
		return
	}
	first := -1
	if t.route.draws() {
		first = a.routing.place(t.route, c.record.Message.Plan.FirstChoice)
	}
	places, ok := c.places(a, t, ch)
	if !ok {
		return
	}
	c.order(a, t, ch, places, first)
	c.obstacles(a, t, ch, places, first)
	chosen := ""
	if at := r.Chosen(); at >= 0 {
		chosen = r.Candidates[at].Channel
	}
	c.same(ch.attempt, whatChannel, ch.channel, chosen)
}

// places finds the candidates among the members of the route. A first choice that was lost
// to a new version stands at the front without a place, and is left out.
func (c *check) places(a *assigner, t *task, ch *choice) (places []int, ok bool) {
	listed := ch.ranking.Candidates
	if len(listed) > 0 && listed[0].Reason == removed && listed[0].Channel == c.record.Message.Plan.FirstChoice &&
		a.routing.place(t.route, listed[0].Channel) < 0 {
		listed = listed[1:]
	}
	seen := make(map[int]bool, len(listed))
	for i := range listed {
		place := a.routing.place(t.route, listed[i].Channel)
		if place < 0 || seen[place] {
			c.differs(ch.attempt, whatCandidates, listed[i].Channel, "a member of route "+t.route.Name+", once")
			return nil, false
		}
		seen[place] = true
		places = append(places, place)
	}
	if members := len(places) + ch.ranking.More; members != len(t.route.Members) {
		c.sameNumber(ch.attempt, whatCandidates, int64(members), int64(len(t.route.Members)))
		return nil, false
	}
	return places, true
}

// order ranks the stored candidates again.
func (c *check) order(a *assigner, t *task, ch *choice, places []int, first int) {
	r := ch.ranking
	listed := r.Candidates[len(r.Candidates)-len(places):]
	if first >= 0 && (len(places) == 0 || places[0] != first) {
		c.differs(ch.attempt, whatOrder, names(listed), "the first choice at the front")
		return
	}
	stored := fieldsOf(r)
	candidates := make([]selector.Candidate, len(places))
	for i, place := range places {
		candidates[i] = listed[i].Candidate(place)
		if stored.load {
			c.sameNumber(ch.attempt, whatCandidates, listed[i].Capacity, a.routing.Channels[t.route.Members[place]].Capacity)
		}
	}
	if stored.stateless() { // those behind the chosen one are not listed and need not be: nothing but their places counts
		for place := range t.route.Members {
			if !slices.Contains(places, place) {
				candidates = append(candidates, selector.Candidate{Index: place})
			}
		}
	}
	if Ranker(r.By) == BestWorker {
		c.scores(a, t, ch, candidates)
	}
	others := candidates
	if first >= 0 {
		others = others[1:]
	}
	slices.SortFunc(others, func(x, y selector.Candidate) int { return x.Index - y.Index }) // configured order, as order takes them
	basis, ok := c.basis(a, t, ch, first)
	if !ok {
		return
	}
	order(Ranker(r.By), others, basis)
	for i := range places {
		if candidates[i].Index != places[i] {
			derived := make([]Ranked, len(places))
			for j := range derived {
				derived[j].Channel = a.routing.Channels[t.route.Members[candidates[j].Index]].Name
			}
			c.differs(ch.attempt, whatOrder, names(listed), names(derived))
			return
		}
	}
}

// basis is what the ranker went by; false when it cannot be had.
func (c *check) basis(a *assigner, t *task, ch *choice, first int) (b basis, ok bool) {
	r := ch.ranking
	switch Ranker(r.By) {
	case RoundRobin:
		if r.After == nil {
			c.differs(ch.attempt, whatCursor, "none", "where the round robin stood")
			return b, false
		}
		b.after = *r.After
		if place := a.routing.place(t.route, r.Cursor); place >= 0 {
			c.sameNumber(ch.attempt, whatCursor, int64(b.after), int64(place))
		}
	case BestWorker:
		b.ascending = t.route.Scoring.lowestFirst(r.Trouble)
	case Redraw:
		if !c.v.keys.has(r.KeyID) {
			c.differs(ch.attempt, whatDrawKey, r.KeyID, "not in the key file")
			return b, false
		}
		b.drawn = t.route.Table.Redraw(c.v.keys.of(r.KeyID), t.row.ID, first)
	case LoadRatio:
	}
	return b, true
}

// scores gives the candidates their scores again. What a function answered cannot be derived;
// nor can the failure of an expression over candidates that are not all on record.
func (c *check) scores(a *assigner, t *task, ch *choice, candidates []selector.Candidate) {
	r := ch.ranking
	wishes, known := c.wishes(ch.at)
	if r.Scoring == byFunction || !known || (r.Trouble == expressionFailed && r.More > 0) {
		return
	}
	t.scores = &Scores{Trouble: r.Trouble} // of a function; an expression has to fail again
	derived := slices.Clone(candidates)
	scoring, trouble := a.routing.scored(t, wishes, derived)
	c.same(ch.attempt, whatScoring, r.Scoring+r.Trouble, scoring+trouble)
	for i := range derived {
		if math.Abs(derived[i].Score-candidates[i].Score) > scoreTolerance {
			c.differs(ch.attempt, whatScore, figure(candidates[i].Score), figure(derived[i].Score))
		}
	}
}

// wishes are the selectors that counted at a time; false when that is not known and matters.
func (c *check) wishes(at time.Time) (wishes []selector.Selector, known bool) {
	if !at.IsZero() {
		return selector.Unexpired(c.msg.Selectors, at.Sub(c.record.Message.ReceivedAt)), true
	}
	for _, s := range c.msg.Selectors {
		if s.ExpiresAfter > 0 {
			return nil, false
		}
	}
	return c.msg.Selectors, true
}

// obstacles checks why candidates were passed over. Slots, breakers and connections are
// what the claim saw and nobody can see again; the rest follows from the version and the attempts before.
func (c *check) obstacles(a *assigner, t *task, ch *choice, places []int, first int) {
	listed := ch.ranking.Candidates[len(ch.ranking.Candidates)-len(places):]
	wishes, known := c.wishes(ch.at)
	if !known {
		return
	}
	considered := len(listed)
	if ch.channel != "" {
		considered = slices.IndexFunc(listed, func(r Ranked) bool { return r.Reason == "" }) + 1
	}
	for i := range listed[:considered] {
		stored, derived := listed[i].Reason, a.obstacle(t, wishes, t.route.Members[places[i]])
		if drawn := i > 0 || first < 0; drawn && ch.ranking.By == string(Redraw) && t.route.Table.Entry(places[i]).Weight.IsZero() {
			derived = weightZero
		}
		switch {
		case stored == pinnedAway: // what a message was held for is not kept
		case stored == alreadyTried:
			if !c.triedBefore(listed[i].Channel, ch) {
				c.differs(ch.attempt, whatObstacle, listed[i].Channel+" "+stored, "no attempt on it before")
			}
		case derived != "" || told(stored):
			c.same(ch.attempt, whatObstacle, strings.TrimSpace(listed[i].Channel+" "+stored), strings.TrimSpace(listed[i].Channel+" "+derived))
		}
	}
}

// told reports whether a reason follows from the routing version alone.
func told(reason string) bool {
	switch reason {
	case disabled, draining, unfit, priceCap, weightZero:
		return true
	}
	return false
}

// triedBefore reports whether an attempt on the channel came before the choice.
func (c *check) triedBefore(channel string, ch *choice) bool {
	before := c.record.Attempts
	if ch.attempt > 0 {
		before = before[:min(ch.before, len(before))]
	}
	return slices.ContainsFunc(before, func(a ledger.AttemptRecord) bool { return a.Channel == channel })
}

func names(candidates []Ranked) string {
	out := make([]string, len(candidates))
	for i := range candidates {
		out[i] = candidates[i].Channel
	}
	return strings.Join(out, " ")
}

func figure(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
