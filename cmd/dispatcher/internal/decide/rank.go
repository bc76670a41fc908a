package decide

import (
	"slices"

	"dispatcher/config"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

// Kinds of scoring, as a stored ranking names them. The default scoring has no word.
const (
	ByExpression = "expression"
	ByFunction   = "function"
)

// ExpressionFailed is the trouble of an expression without a finite result for every candidate.
const ExpressionFailed = "expression_failed"

// basis is what a ranker depends on besides the candidates themselves.
type basis struct {
	after     int   // round robin: the place after which it continues; -1 is from the start
	ascending bool  // best worker: the lowest score first
	drawn     []int // redraw: places in the order in which they were drawn
}

// order sorts candidates, which must be in configured order, as a ranker does. It is pure: an
// auditor with the same candidates, scores and basis gets the same order.
func order(by Ranker, candidates []selector.Candidate, b basis) {
	switch by {
	case RoundRobin:
		selector.ByTurn(candidates, b.after)
	case BestWorker:
		selector.ByScore(candidates, b.ascending)
	case Redraw:
		byDraws(candidates, b.drawn)
	case LoadRatio:
		selector.ByLoadRatio(candidates)
	case InOrder: // they are in that order already
	}
}

// byDraws puts candidates into the order in which they were drawn. Those without a weight were not
// drawn and follow in configured order.
func byDraws(candidates []selector.Candidate, drawn []int) {
	most := 0
	for _, c := range candidates {
		most = max(most, c.Index)
	}
	turn := make([]int, most+1) // by place; those not drawn sort after all others
	for place := range turn {
		turn[place] = len(drawn) + place
	}
	for i, place := range drawn {
		if place <= most {
			turn[place] = i
		}
	}
	slices.SortFunc(
		candidates, func(a, b selector.Candidate) int { return turn[a.Index] - turn[b.Index] },
	)
}

// scored fills in the scores of a task's candidates by the rule of its route. If the rule fails for
// any of them, the default rule scores all of them, trouble says why in one word of a closed list,
// and scoring is empty. selectors are the message's selectors that have not expired.
func (r *Routing) scored(
	t *Task, selectors []selector.Selector, candidates []selector.Candidate,
) (scoring, trouble string) {
	switch rule := &t.Route.Scoring; {
	case rule.Expression != nil:
		if r.scoredByExpression(t, rule.Expression, candidates) {
			return ByExpression, ""
		}
		trouble = ExpressionFailed
	case rule.Function != nil:
		if trouble = scoredByFunction(t.Scores, candidates); trouble == "" {
			return ByFunction, ""
		}
	}
	if m := t.Route.matcher; m != nil {
		all := make([]float64, len(t.Route.Members))
		m.Scores(t.msg.Labels, selectors, all)
		for i := range candidates {
			candidates[i].Score = all[candidates[i].Index]
		}
		return "", trouble
	}
	for i := range candidates {
		c := &r.Channels[t.Route.Members[candidates[i].Index]]
		candidates[i].Score = selector.Match(t.msg.Labels, selectors, c.Labels)
	}
	return "", trouble
}

// lowestFirst reports whether the lowest score goes first. The rule sets that; when the default
// rule replaced it, the highest score goes first.
func lowestFirst(s *config.Scoring, trouble string) bool { return s.Ascending && trouble == "" }

func (r *Routing) scoredByExpression(
	t *Task, e *score.Expression, candidates []selector.Candidate,
) bool {
	in := score.Input{Labels: t.msg.Labels, Lane: t.Row.Lane, Priority: r.priority(t.Lane)}
	for i := range candidates {
		c := &r.Channels[t.Route.Members[candidates[i].Index]]
		in.Channel, in.ChannelLabels = c.Name, c.Labels
		in.LoadRatio, in.Price = candidates[i].LoadRatio(), c.Price.units(&t.to, t.At)
		value, err := e.Score(&in)
		if err != nil {
			return false
		}
		candidates[i].Score = value
	}
	return true
}

// scoredByFunction takes over the function's answer. A missing answer counts as unreachable.
func scoredByFunction(answer *Scores, candidates []selector.Candidate) (trouble string) {
	if answer == nil {
		return FunctionUnreachable
	}
	if answer.Trouble != "" {
		return answer.Trouble
	}
	for i := range candidates {
		candidates[i].Score = answer.Values[candidates[i].Index]
	}
	return ""
}

// priority is how many lanes of the document come after this one: 0 for one that it does not name.
func (r *Routing) priority(lane Lane) int {
	n := 0
	for _, other := range r.Lanes {
		if other.Order > lane.Order && !other.former {
			n++
		}
	}
	return n
}
