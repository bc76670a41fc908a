package report

import (
	"fmt"
	"slices"
	"strconv"

	"dispatcher/cmd/dispatcher/internal/dispatch"
)

// order is a ranking as a sentence needs it.
type order struct {
	Basis
	candidates []Candidate
	ascending  bool // the lowest score first
	others     bool // the first choice stood apart at the front
	forecast   bool // times of assignment are not known
}

// merit says what the chosen channel was first by, after a comma; empty when that is not known.
func (t *teller) merit(a *Attempt) string {
	p := &t.record.Message.Plan
	o := order{
		Basis: a.Basis, candidates: a.Candidates, ascending: t.ascending(),
		others: p.Size > 0 && len(a.Candidates) > 0 && a.Candidates[0].Channel == p.FirstChoice,
	}
	return o.merit(slices.IndexFunc(a.Candidates, func(c Candidate) bool { return c.Channel == a.Channel && c.can() }))
}

// ascending reports whether the scoring of the message's route puts the lowest score first.
func (t *teller) ascending() bool {
	route := routeNamed(t.doc, t.record.Message.Plan.Route)
	return route != nil && !route.Scoring.Descending && route.Scoring.Kind != ""
}

// merit is that of the candidate at a place of the order.
func (o *order) merit(at int) string {
	if at < 0 {
		return ""
	}
	switch dispatch.Ranker(o.RankedBy) {
	case dispatch.LoadRatio:
		return o.byLoad(at)
	case dispatch.BestWorker:
		return o.byScore(at)
	case dispatch.RoundRobin:
		return o.byTurn(at)
	case dispatch.Redraw:
		return o.byRedraw(at)
	}
	return ""
}

// byLoad tells the load ratio, and why it came before one that is as loaded.
func (o *order) byLoad(at int) string {
	c := &o.candidates[at]
	if c.LoadRatio == nil {
		return ""
	}
	load := percent(*c.LoadRatio) + o.tie(at, func(other *Candidate) bool { return other.LoadRatio != nil && *other.LoadRatio == *c.LoadRatio })
	switch {
	case !o.others && at == 0:
		return ", the least loaded (" + load + ")"
	case o.others && at == 1:
		return ", the least loaded of the others (" + load + ")"
	}
	return ", which came next by load (" + load + ")"
}

// byScore tells the score and the rule that made it.
func (o *order) byScore(at int) string {
	c := &o.candidates[at]
	if c.Score == nil {
		return ""
	}
	best := "highest"
	if o.ascending && o.Trouble == "" {
		best = "lowest"
	}
	rule := ""
	switch o.Scoring {
	case "expression":
		rule = " by the expression of the route"
	case "function":
		rule = " by the scoring function of the route"
	}
	score := strconv.FormatFloat(*c.Score, 'g', 4, 64) + o.tie(at, func(other *Candidate) bool { return other.Score != nil && *other.Score == *c.Score })
	switch {
	case !o.others && at == 0:
		return fmt.Sprintf(", which scored %s%s (%s)", best, rule, score)
	case o.others && at == 1:
		return fmt.Sprintf(", which scored %s of the others%s (%s)", best, rule, score)
	}
	return fmt.Sprintf(", which came next by score%s (%s)", rule, score)
}

// byTurn tells whose turn it was.
func (o *order) byTurn(at int) string {
	first := 0
	if o.others {
		first = 1
	}
	switch {
	case o.Cursor == "":
		return ", in the first turn of the route"
	case at == first:
		return ", whose turn it was after " + o.Cursor
	}
	return ", which came next in turn after " + o.Cursor
}

// byRedraw tells the draw among those that were left.
func (o *order) byRedraw(at int) string {
	words := ", which was drawn from the others by their weights"
	if !o.others {
		words = ", which was drawn by the weights"
	}
	r := o.candidates[at].Redraw
	switch {
	case r == nil:
		return words
	case r.Low == 0 && r.High+1 == r.Size:
		return ", the only one that was left to draw"
	case r.Draw == nil:
		return words + fmt.Sprintf(" (draw %d, in its interval %d to %d of 0 to %d)", r.Number, r.Low, r.High, r.Size-1)
	}
	return words + fmt.Sprintf(" (draw %d: %d of 0 to %d, in its interval %d to %d)", r.Number, *r.Draw, r.Size-1, r.Low, r.High)
}

// tie says why the chosen one came before the next one that was equal by the measure of the ranking, if
// that is not known to have been unable to take the message.
func (o *order) tie(at int, equal func(*Candidate) bool) string {
	if o.forecast {
		return ""
	}
	chosen := &o.candidates[at]
	for i := at + 1; i < len(o.candidates); i++ {
		other := &o.candidates[i]
		switch {
		case !equal(other):
			return ""
		case other.cannot():
			continue
		case chosen.LastAssigned == nil && other.LastAssigned == nil:
			return ", the same as " + other.Channel + ", which the route lists later"
		}
		return ", the same as " + other.Channel + ", which got a message later"
	}
	return ""
}

// trouble says that the route's own scoring did not count.
func (t *teller) trouble(a *Attempt) {
	if a.Trouble != "" {
		t.say("The channels were scored by how they match the message, because %s.", because(troubleWords, a.Trouble))
	}
}

// expired tells of selectors that no longer counted when a channel was chosen.
func (t *teller) expired(a *Attempt) {
	keys := dispatch.ExpiredSelectors(&t.record.Message, a.ClaimedAt)
	if len(keys) == 0 || len(keys) == t.expiredTold {
		return
	}
	t.expiredTold = len(keys)
	verb := "selector on %s no longer counted"
	if len(keys) > 1 {
		verb = "selectors on %s no longer counted"
	}
	t.say("By then its "+verb+": the time that the message gave had passed.", some(keys))
}
