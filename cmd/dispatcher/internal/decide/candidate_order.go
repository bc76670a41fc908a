package decide

import (
	"dispatcher/ledger"
	"dispatcher/selector"
)

// candidateOrder is the members of a route in the order in which they are considered for a message,
// and what that order depends on.
type candidateOrder struct {
	by         Ranker
	selectors  []selector.Selector  // of the message, not expired
	candidates []selector.Candidate // Index is the place among the route's members
	// exclusions say why each considered candidate was passed over. The exclusion of the chosen one is
	// empty.
	exclusions []exclusion
	// drawn is set when the first candidate is the first choice of a draw; only those after it are
	// ranked.
	drawn bool
	// lost names a first choice that is no longer a member of the route.
	lost string

	cursor           string // round robin: the channel that had the last turn
	after            int    // round robin: its place
	keyID            string // redraw: the key that drew
	scoring, trouble string // best worker
}

// newOrder is an empty candidateOrder, in reused memory if there is any.
func (a *assigner) newOrder() *candidateOrder {
	l := a.spare
	if l == nil {
		return &candidateOrder{}
	}
	a.spare = nil
	*l = candidateOrder{candidates: l.candidates[:0], exclusions: l.exclusions[:0]}
	return l
}

// reuse gives the memory of an order to the next one.
func (a *assigner) reuse(l *candidateOrder) { a.spare = l }

// orderCandidates orders the members of the task's route.
//
// On a route that draws, the first choice comes first and the others follow in the order of the
// route's fallback. Any other route orders all members: by its mode for the first attempt, by its
// fallback for later ones.
func (a *assigner) orderCandidates(t *Task, selectors []selector.Selector) *candidateOrder {
	l := a.newOrder()
	l.by, l.selectors = t.Route.Ranker(t.Row.Attempts), selectors
	first := -1
	if t.Route.Draws() {
		if first = t.First; first < 0 {
			l.lost = t.Row.Plan.FirstChoice
		}
	}
	if first >= 0 {
		l.drawn = true
		l.candidates = append(l.candidates, a.candidate(t.Route, first))
	}
	for place := range t.Route.Members {
		if place != first {
			l.candidates = append(l.candidates, a.candidate(t.Route, place))
		}
	}
	others := l.candidates
	if l.drawn {
		others = others[1:]
	}
	order(l.by, others, a.basis(t, l, first))
	return l
}

// candidate is the state of the member at a place of the route.
func (a *assigner) candidate(route *Route, place int) selector.Candidate {
	c := route.Members[place]
	candidate := selector.Candidate{Index: place, Capacity: a.routing.Channels[c].Capacity}
	if state := a.states[c]; state != nil {
		candidate.Active, candidate.LastAssigned = state.Gate.Active.Count, state.LastAssigned
	}
	return candidate
}

// basis works out what the ranker depends on, and records it in the order.
func (a *assigner) basis(t *Task, l *candidateOrder, first int) basis {
	switch l.by {
	case RoundRobin:
		if cursor := a.cursors[t.Route.Name]; cursor != nil {
			l.cursor = cursor.Channel
			l.after = turnAfter(a.routing.MemberIndex(t.Route, cursor.Channel), cursor)
		} else {
			l.after = -1
		}
		return basis{after: l.after}
	case BestWorker:
		l.scoring, l.trouble = a.routing.scored(t, l.selectors, l.candidates)
		return basis{ascending: lowestFirst(&t.Route.Scoring, l.trouble)}
	case Redraw:
		drawer := a.keys.of(t.Row.Plan.KeyID)
		l.keyID = drawer.KeyID()
		return basis{drawn: t.Route.Table.Redraw(drawer, t.Row.ID, first)}
	case LoadRatio, InOrder:
	}
	return basis{}
}

// turnAfter is the index after which round robin continues: that of the channel that had the last
// turn. If that channel is no longer a member (place -1), it is the index before its former one,
// since the next channel has moved up.
func turnAfter(place int, cursor *ledger.Cursor) int {
	if place >= 0 || cursor.Channel == "" {
		return place
	}
	return max(cursor.Position-1, -1)
}

// undrawable reports whether the candidate at position i is one that no redraw picks.
func (l *candidateOrder) undrawable(route *Route, i int) bool {
	ranked := i > 0 || !l.drawn
	return ranked && l.by == Redraw && route.Table.Entry(l.candidates[i].Index).Weight.IsZero()
}

// turned reports whether the chosen channel had its turn in the round robin. The first choice of a
// draw did not, nor did the channel that a message was pinned to.
func (l *candidateOrder) turned(t *Task) bool {
	ranked := len(l.exclusions) > 1 || !l.drawn
	return ranked && l.by == RoundRobin && t.Row.Pinned == ""
}

// Sizes of the memory that the records of a claim share, in bytes.
const (
	recordMemory = 16 << 10
	rankedLength = 80 // of a candidate's text, generously
)

// record writes the order as it is stored; see AppendRanking.
//
// The records of a claim are released together, so they are written one after the other into memory
// that is allocated in large pieces.
func (a *assigner) record(t *Task, l *candidateOrder) []byte {
	n := l.stored()
	if need := rankedLength * (n + 2); cap(a.records)-len(a.records) < need {
		a.records = make([]byte, 0, max(recordMemory, need))
	}
	from := len(a.records)
	r := Ranking{
		Version: a.routing.Version, By: string(l.by), Attempts: t.Row.Attempts, Cursor: l.cursor,
		KeyID:   l.keyID,
		Scoring: l.scoring, Trouble: l.trouble, More: len(t.Route.Members) - n,
	}
	if l.by == RoundRobin {
		r.After = &l.after
	}
	w := newCandidateWriter(&r)
	w.latest, w.scores = microsOf(a.stamp), &a.scores // no channel was assigned later than the stamp
	dst := w.appendHead(a.records, &r)
	if l.lost != "" {
		dst = w.append(dst, &Ranked{Channel: l.lost, Reason: Removed})
	}
	for i := range l.candidates[:n] {
		one := a.ranked(t, l, i)
		dst = w.append(dst, &one)
	}
	a.records = appendTail(dst, r.More)
	return a.records[from:len(a.records):len(a.records)]
}

// stored is how many candidates are stored: all up to the chosen one, and the others up to
// MaxRanked in all. If the order does not depend on the channels' state, none after the chosen one
// is stored: an order by turn, by draw or by list can be derived again.
func (l *candidateOrder) stored() int {
	n := min(len(l.candidates), MaxRanked)
	if considered := len(l.exclusions); considered > 0 && l.exclusions[considered-1].reason == "" &&
		(considered > n || l.by == RoundRobin || l.by == Redraw || l.by == InOrder) {
		return considered
	}
	return n
}

// ranked is the candidate at position i as it is stored.
func (a *assigner) ranked(t *Task, l *candidateOrder, i int) Ranked {
	c := &l.candidates[i]
	r := Ranked{
		Channel: a.routing.Channels[t.Route.Members[c.Index]].Name, Active: c.Active,
		Capacity:     c.Capacity,
		LastAssigned: microsOf(c.LastAssigned),
	}
	if l.by == BestWorker {
		r.Score = &c.Score
	}
	if i < len(l.exclusions) {
		r.Reason, r.Limit = l.exclusions[i].reason, l.exclusions[i].limitName()
	}
	return r
}
