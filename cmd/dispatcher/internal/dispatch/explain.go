package dispatch

import (
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Question is a message together with a state of the channels, to ask what a claim
// would decide.
type Question struct {
	Routing *Routing
	Key     selector.Key
	Job     Job
	// Now stands for the database's clock.
	Now time.Time
	// Channels is the shared state. A channel that is left out carries nothing, has never
	// been used and has no limits.
	Channels []ledger.ChannelState
	// Unready says in one word why a channel has no connection; one that is left out has.
	Unready map[string]string
}

// Answer is what a claim would decide. Nothing is stored and nothing is sent.
type Answer struct {
	Plan ledger.Plan
	// Problem says why the message would be a dead letter; the rest is empty then,
	// but for what could be planned.
	Problem *envelope.Problem
	// Candidates are all members of the route in the order in which they are considered:
	// the first choice, then the others as the fallback ranks them.
	Candidates []Candidate
	Decision   ledger.Decision
}

// Candidate is one channel of an Answer.
type Candidate struct {
	Channel   string
	LoadRatio float64
	// Reason says why the channel cannot take the message; empty when it can.
	Reason string
}

// Explain runs plan and assign, the very functions of the pipeline, on one message.
func Explain(q *Question) Answer {
	p := &planner{routing: q.Routing, drawer: selector.NewDrawer(q.Key), now: q.Now}
	t := p.plan(&q.Job)
	if t.letter != nil {
		return Answer{Plan: t.row.Plan, Problem: problemOf(&t)}
	}
	t.row.ReceivedAt = q.Now
	a := newAssigner(q.Routing, &ledger.Seen{Now: q.Now, Channels: q.states()}, q.unready())
	answer := Answer{Plan: t.row.Plan, Candidates: a.candidates(&t)}
	if t.row.State == ledger.Scheduled {
		answer.Decision = ledger.Decision{State: ledger.Scheduled, NextAt: t.row.NextAt, Plan: t.row.Plan}
		return answer
	}
	answer.Decision = a.decide(&t)
	return answer
}

// problemOf finds why a task was buried in its letter.
func problemOf(t *task) *envelope.Problem {
	problem := &envelope.Problem{Code: envelope.Code(t.row.Reason)}
	for _, h := range t.letter.Headers {
		if h.Key == "detail" {
			problem.Detail = h.Value
		}
	}
	return problem
}

// states completes the shared state with idle channels. Gates are copied, because a
// decision takes slots.
func (q *Question) states() []ledger.ChannelState {
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

// unready has one entry per channel of the routing.
func (q *Question) unready() []string {
	reasons := make([]string, len(q.Routing.Channels))
	for i := range q.Routing.Channels {
		reasons[i] = q.Unready[q.Routing.Channels[i].Name]
	}
	return reasons
}

// candidates lists the members of the task's route in the order of consideration.
func (a *assigner) candidates(t *task) []Candidate {
	order := make([]selector.Candidate, 0, len(t.route.Members))
	first := a.routing.channel(t.row.Plan.FirstChoice)
	if first >= 0 {
		order = append(order, a.candidate(first))
	}
	order = append(order, a.others(t, first)...)
	out := make([]Candidate, len(order))
	for i, c := range order {
		out[i] = Candidate{
			Channel:   a.routing.Channels[c.Index].Name,
			LoadRatio: c.LoadRatio(),
			Reason:    a.obstacle(t, c.Index),
		}
	}
	return out
}
