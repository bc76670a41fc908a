package decide

import (
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// ExplainInput is a message together with a state of the channels: the input to what a claim would
// decide.
type ExplainInput struct {
	Routing *Routing
	// Keys are the keys of the key file. New draws use the first.
	Keys []selector.Key
	// Scores is what the scoring function of the route says, see Function; nil counts as unreachable.
	Scores *Scores
	Job    Job
	// Now is the time that the database's clock shows.
	Now time.Time
	// Channels is the shared state. A channel that is left out has nothing in flight, has never been
	// used and has no limits of its own.
	Channels []ledger.ChannelState
	// Scoped is the shared state of the limits of tenants and prefixes. One that is left out has no
	// slot taken.
	Scoped []ledger.ScopeState
	// Cursors are the round robin positions; a route that is left out has had no turn.
	Cursors []ledger.Cursor
	// Unready says in one word why a channel cannot send; one that is left out can.
	Unready map[string]string
}

// Explanation is what a claim would decide. Nothing is stored and nothing is sent.
type Explanation struct {
	Plan ledger.Plan
	// Country is the country of the message's number; empty when the number has no known country, and
	// nil when the routing has no lookup of countries.
	Country *string
	// Problem says why the message would be a dead letter. Then only what could be planned is filled
	// in.
	Problem *envelope.Problem
	// By is the ranker that ordered the candidates. A drawn first choice stands before them.
	By Ranker
	// Cursor is the channel that had the last turn, for round robin; empty before the first.
	Cursor string
	// Scoring is the rule behind the scores, expression or function; empty for the default.
	Scoring string
	// Trouble is why the route's scoring rule failed, so that the default rule scored.
	Trouble string
	// Candidates are all members of the route in the order in which they are considered.
	Candidates []Candidate
	Decision   ledger.Decision
}

// Candidate is one channel of an Explanation.
type Candidate struct {
	Channel string
	// Score is nil unless best worker ranks.
	Score     *float64
	LoadRatio float64
	// Reason says why the channel cannot take the message; empty when it can.
	Reason string
	// Segments is how many billed parts the message has on the channel, and Micros what they cost,
	// in Currency.
	Segments int
	Micros   int64
	Currency string
	// Replaced is set when the channel replaces the message's sender by one of its own.
	Replaced bool
	// Limit names the limit that has no room, as admission.Key.On; empty when none does.
	Limit string
	// Never is set when that limit can never have room for the message: it is 0, or less than the
	// message takes.
	Never bool
}

// Function is the scoring function that has to be asked first, and its question; nil when none has.
func (q *ExplainInput) Function() (*Function, *ScoreQuestion) {
	p := &planner{routing: q.Routing, keys: newDrawers(q.Keys), now: q.Now}
	t := p.plan(&q.Job)
	if t.Route == nil || !t.Route.Asks() {
		return nil, nil
	}
	t.Row.ReceivedAt = q.Now
	question := newQuestion(q.Routing, &t, q.Now)
	return t.Route.Scoring.Function, &question
}

// Explain decides about one message with the same functions that decide claims.
func Explain(q *ExplainInput) Explanation {
	answer := explain(q)
	if q.Routing.Country != nil && q.Job.Problem == nil {
		answer.Country = new(q.Routing.Country(q.Job.Message.To))
	}
	return answer
}

func explain(q *ExplainInput) Explanation {
	keys := newDrawers(q.Keys)
	p := &planner{routing: q.Routing, keys: keys, now: q.Now}
	t := p.plan(&q.Job)
	if t.letter != nil {
		return Explanation{Plan: t.Row.Plan, Problem: problemOf(&t)}
	}
	if t.Row.State == ledger.Rejected {
		return Explanation{
			Plan:     t.Row.Plan,
			Decision: ledger.Decision{State: t.Row.State, Reason: t.Row.Reason, Plan: t.Row.Plan},
		}
	}
	t.Row.ReceivedAt = q.Now
	if t.Route.Asks() {
		if q.Scores != nil {
			scores := q.Scores.Checked(len(t.Route.Members))
			t.Scores = &scores
		}
	}
	seen := &ledger.Seen{
		Now: q.Now, Channels: q.states(), Cursors: slices.Clone(q.Cursors), Scoped: q.scoped(),
	}
	a := newAssigner(q.Routing, keys, seen, Snapshot{Unready: q.unready()})
	answer := a.explainOrder(&t)
	if t.Row.State == ledger.Scheduled {
		answer.Decision = ledger.Decision{
			State: ledger.Scheduled, NextAt: t.Row.NextAt, Plan: t.Row.Plan,
		}
		return answer
	}
	answer.Decision = a.decide(&t).Decision
	return answer
}

// problemOf reads from the dead letter of a task why it is dead.
func problemOf(t *Task) *envelope.Problem {
	problem := &envelope.Problem{Code: envelope.Code(t.Row.Reason)}
	for _, h := range t.letter.Headers {
		if h.Key == "detail" {
			problem.Detail = h.Value
		}
	}
	return problem
}

// states completes the shared state with idle channels. Gates are copied, because a decision takes
// slots in them.
func (q *ExplainInput) states() []ledger.ChannelState {
	states := make([]ledger.ChannelState, len(q.Routing.Channels))
	for i := range q.Routing.Channels {
		states[i].Name = q.Routing.Channels[i].Name
		for _, given := range q.Channels {
			if given.Name == states[i].Name {
				states[i] = given
				states[i].Gate.Counters = append([]admission.Counter(nil), given.Gate.Counters...)
			}
		}
	}
	return states
}

// scoped completes the state of the limits of tenants and prefixes with unused ones. Counters are
// copied, too.
func (q *ExplainInput) scoped() []ledger.ScopeState {
	s := q.Routing.scopes()
	for c := range q.Routing.Channels {
		s.madeFor(nil, c, q.Job.Message.Tenant)
	}
	var states []ledger.ScopeState
	for place := range len(s.narrower) + len(s.made) {
		n := s.at(place)
		state := ledger.ScopeState{ScopeRef: n.ScopeRef}
		for _, given := range q.Scoped {
			if given.ScopeRef == n.ScopeRef {
				state.Counters = slices.Clone(given.Counters)
			}
		}
		for _, limit := range n.limits {
			if !slices.ContainsFunc(state.Counters, func(c admission.Counter) bool {
				return c.Key() == limit.Key()
			}) {
				state.Counters = append(state.Counters, limit.Unused())
			}
		}
		states = append(states, state)
	}
	return states
}

// unready has one entry per channel of the routing.
func (q *ExplainInput) unready() []string {
	reasons := make([]string, len(q.Routing.Channels))
	for i := range q.Routing.Channels {
		reasons[i] = q.Unready[q.Routing.Channels[i].Name]
	}
	return reasons
}

// explainOrder describes the order of a task's candidates, and why each is excluded.
func (a *assigner) explainOrder(t *Task) Explanation {
	selectors := selector.Unexpired(t.msg.Selectors, a.now.Sub(t.Row.ReceivedAt))
	l := a.orderCandidates(t, selectors)
	answer := Explanation{
		Plan: t.Row.Plan, By: l.by, Cursor: l.cursor, Scoring: l.scoring, Trouble: l.trouble,
		Candidates: make([]Candidate, len(l.candidates)),
	}
	for i, c := range l.candidates {
		excluded := exclusion{reason: WeightZero}
		if !l.undrawable(t.Route, i) {
			_, excluded = a.exclusionOf(t, selectors, t.Route.Members[c.Index])
		}
		one, ch := &answer.Candidates[i], &a.routing.Channels[t.Route.Members[c.Index]]
		*one = Candidate{
			Channel: ch.Name, LoadRatio: c.LoadRatio(), Reason: excluded.reason,
			Segments: t.segments(ch), Currency: ch.Price.Currency, Replaced: t.replaces(ch),
		}
		one.Micros = t.Price(ch, one.Segments)
		if excluded.limit != nil {
			one.Limit, one.Never = excluded.on(one.Channel), excluded.never()
		}
		if l.by == BestWorker {
			answer.Candidates[i].Score = &c.Score
		}
	}
	return answer
}
