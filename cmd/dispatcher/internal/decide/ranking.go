package decide

import (
	"time"

	"dispatcher/selector"
)

// MaxRanked is how many candidates a stored ranking holds. A ranking that led to an attempt holds
// more when more were considered before the chosen one. If its order does not depend on state, it
// holds none after the chosen one.
const MaxRanked = 32

// ByWait is Ranking.By where a route held a message for its first choice and ranked no others.
const ByWait = "wait"

// Ranking is the compact record of the state behind a choice or a wait. Together with the routing
// version, the envelope and the draw key it determines which channel had to be chosen. What is
// stored, and how, depends on the ranker: see AppendRanking.
type Ranking struct {
	// Version is the routing version that the candidates come from.
	Version int64
	// By is the ranker, or "wait". On a route of mode weighted it ordered all but the first choice,
	// which stands first.
	By string
	// Attempts is how many were made before the choice.
	Attempts int
	// Cursor is the channel that had the last turn, for round robin; empty before the first.
	Cursor string
	// After is the place in configured order after which round robin continued; -1 is from the start.
	// It is the place of Cursor while that channel is a member of the route. Nil for other rankers.
	After *int
	// KeyID names the key that drew, for redraw.
	KeyID string
	// Scoring is the rule behind the scores of best worker: expression or function; empty for the
	// default.
	Scoring string
	// Trouble is why the route's scoring rule failed, so that the default rule scored.
	Trouble string
	// Candidates are in the order of consideration. The chosen one is the first without a reason;
	// those after it were not considered.
	Candidates []Ranked
	// More is how many members of the route follow that are not listed.
	More int
}

// Ranked is one candidate of a Ranking, as it was before the choice took its slot.
type Ranked struct {
	Channel string
	// Active and Capacity are set where the order depends on them. Capacity is 0 elsewhere, and for a
	// channel that is no longer a member.
	Active   int64
	Capacity int64
	// LastAssigned is when it last got an attempt before this one; it breaks ties of load and of
	// score.
	LastAssigned Micros
	// Score is set for best worker.
	Score *float64
	// Reason says why the candidate was passed over.
	Reason string
	// Limit names the limit without room, if that is the reason.
	Limit LimitName
}

// Micros is an instant in microseconds since 1970, the resolution of the database's clock; 0 is
// never.
type Micros int64

// microsOf is the inverse of Micros.Time.
func microsOf(t time.Time) Micros {
	if t.IsZero() {
		return 0
	}
	return Micros(t.UnixMicro())
}

// Time is the instant in UTC; the zero time for never.
func (m Micros) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}

// Candidate is the state by which the channel was compared; index is its place in the route.
func (r *Ranked) Candidate(index int) selector.Candidate {
	c := selector.Candidate{
		Index: index, Active: r.Active, Capacity: r.Capacity, LastAssigned: r.LastAssigned.Time(),
	}
	if r.Score != nil {
		c.Score = *r.Score
	}
	return c
}

// Chosen is the position of the candidate that was chosen; -1 when none was.
func (r *Ranking) Chosen() int {
	for i := range r.Candidates {
		if r.Candidates[i].Reason == "" {
			return i
		}
	}
	return -1
}
