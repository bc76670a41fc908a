package audit

import (
	"math"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/selector"
)

// scoreTolerance is how far a score may differ from the stored one, because the exponential
// function differs in its last bits between processors. The order is checked by the stored scores.
const scoreTolerance = 1e-9

// scoring checks that the route can have used the recorded scoring.
func (c *check) scoring(t *decide.Task, ch *choice) bool {
	r, rule := ch.ranking, &t.Route.Scoring
	allowed := []string{""}
	switch {
	case rule.Expression != nil:
		allowed = []string{decide.ByExpression, decide.ExpressionFailed}
	case rule.Function != nil:
		allowed = append(functionTroubles(), decide.ByFunction)
	}
	if !slices.Contains(allowed, r.Scoring+r.Trouble) ||
		(r.Scoring != "" && r.Scoring != decide.ByExpression && r.Scoring != decide.ByFunction) {
		c.differs(
			ch.attempt, whatScoring, r.Scoring+" "+r.Trouble,
			"what the rule of route "+t.Route.Name+" leads to",
		)
		return false
	}
	return true
}

// functionTroubles are the words for why a scoring function could not be used.
func functionTroubles() []string {
	return []string{
		decide.FunctionTimeout, decide.FunctionStatus, decide.FunctionInvalid, decide.FunctionTooFew,
		decide.FunctionNotFinite, decide.FunctionTooLarge, decide.FunctionUnreachable,
	}
}

// scores computes the scores of the candidates again. It cannot derive the answer of a function,
// nor the failure of an expression if not all candidates are recorded.
func (c *check) scores(e *edition, t *decide.Task, ch *choice, candidates []selector.Candidate) {
	r := ch.ranking
	if c.withoutPayload {
		c.notChecked(whatScore)
		return
	}
	selectors, known := c.selectors(ch.at)
	if r.Scoring == decide.ByFunction || !known ||
		(r.Trouble == decide.ExpressionFailed && r.More > 0) {
		return
	}
	if ch.at.IsZero() && e.changesPrices(t) {
		return // it is not recorded which price list was used
	}
	answer := &decide.Scores{Trouble: r.Trouble} // of a function; an expression must fail again
	derived := slices.Clone(candidates)
	scoring, trouble := e.Score(t, answer, selectors, derived)
	c.same(ch.attempt, whatScoring, r.Scoring+r.Trouble, scoring+trouble)
	for i := range derived {
		if math.Abs(derived[i].Score-candidates[i].Score) > scoreTolerance {
			c.differs(ch.attempt, whatScore, figure(candidates[i].Score), figure(derived[i].Score))
		}
	}
}

// changesPrices reports whether a channel of the task's route has several price lists.
func (e *edition) changesPrices(t *decide.Task) bool {
	return slices.ContainsFunc(
		t.Route.Members, func(c int) bool { return len(e.Routing.Channels[c].Price.Lists) > 1 },
	)
}

// selectors are the selectors that had not expired at a time; known is false when the time is not
// known and matters.
func (c *check) selectors(at time.Time) (selectors []selector.Selector, known bool) {
	if !at.IsZero() {
		return selector.Unexpired(c.msg.Selectors, at.Sub(c.record.Message.ReceivedAt)), true
	}
	return c.msg.Selectors, !slices.ContainsFunc(
		c.msg.Selectors, func(s selector.Selector) bool { return s.ExpiresAfter > 0 },
	)
}
