package dispatch

import (
	"cmp"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// round is one claim: what was planned before it and what came out of it. It has no
// I/O of its own; the ledger calls decide inside the transaction.
type round struct {
	routing *Routing
	planner *planner
	unready []string
	answers *answers // about due rows
	jobs    []Job
	tasks   []task    // of jobs, then of due rows
	began   time.Time // this process's clock before the transaction

	// Filled in by decide.

	now       time.Time // the database's clock
	decisions []ledger.Decision
	fates     []ledger.Fate
	flights   []*flight
	unasked   []int          // due tasks left as they are, because a function must be asked about them first
	troubles  map[string]int // rankings whose scoring rule failed, by the word for it
}

// newRound plans the jobs.
func newRound(routing *Routing, p *planner, answers *answers, jobs []Job) *round {
	r := &round{routing: routing, planner: p, answers: answers, jobs: jobs, tasks: make([]task, len(jobs))}
	for i := range jobs {
		r.tasks[i] = p.plan(&jobs[i])
	}
	return r
}

// request is what the ledger is asked for: the planned rows, and the channels and cursors
// that their routes may use (all of them when due rows of unknown routes come along).
func (r *round) request(due int) ledger.Claim {
	req := ledger.Claim{Messages: make([]ledger.Message, len(r.tasks)), Due: due, Except: r.answers.open()}
	used := make(map[*Route]bool, len(r.routing.Routes))
	for i := range r.tasks {
		req.Messages[i] = r.tasks[i].row
		if r.tasks[i].wanted() {
			used[r.tasks[i].route] = true
		}
	}
	members := make([]bool, len(r.routing.Channels))
	for i := range r.routing.Routes {
		route := &r.routing.Routes[i]
		if !used[route] && due <= 0 {
			continue
		}
		for _, c := range route.Members {
			members[c] = true
		}
		if route.ranks(RoundRobin) {
			req.Cursors = append(req.Cursors, route.Name)
		}
	}
	for c := range members {
		if members[c] {
			req.Channels = append(req.Channels, r.routing.Channels[c].Name)
		}
	}
	slices.Sort(req.Channels)
	slices.Sort(req.Cursors)
	return req
}

// wanted is how many messages look for a channel.
func (r *round) wanted() int {
	n := 0
	for i := range r.tasks {
		if r.tasks[i].wanted() {
			n++
		}
	}
	return n
}

// decide is the ledger.Decide of this round.
func (r *round) decide(seen *ledger.Seen) (ledger.Decisions, error) {
	if seen.Version != r.routing.Version {
		return ledger.Decisions{}, errStaleRouting
	}
	r.now, r.fates = seen.Now, seen.Fates
	r.decisions = make([]ledger.Decision, len(seen.Messages))
	r.adopt(seen)
	a := newAssigner(r.routing, r.planner.keys, seen, r.unready)
	r.troubles = a.troubles
	for _, i := range r.order() {
		t, d := &r.tasks[i], &r.decisions[i]
		if r.fates[i] == ledger.Due && r.lacksAnswer(t) {
			r.unasked = append(r.unasked, i)
			continue
		}
		*d = a.decide(t)
		if d.State == ledger.Sending {
			r.flights = append(r.flights, newFlight(t, &d.Attempt, r.began))
		}
	}
	return ledger.Decisions{Each: r.decisions, Notices: r.notices()}, nil
}

// adopt brings the rows as the ledger has them together with what was planned.
func (r *round) adopt(seen *ledger.Seen) {
	r.flights, r.unasked = r.flights[:0], r.unasked[:0]
	r.tasks = r.tasks[:len(r.jobs)]
	for i := range r.tasks {
		r.tasks[i].row.Seq = seen.Messages[i].Seq
		r.tasks[i].row.ReceivedAt = seen.Messages[i].ReceivedAt
	}
	r.planner.now = seen.Now
	for _, row := range seen.Messages[len(r.jobs):] {
		r.tasks = append(r.tasks, r.planner.planDue(row))
	}
}

// lacksAnswer reports whether a function has to be asked about a due row before it can be
// decided upon. What was answered about it after an earlier claim is taken over.
func (r *round) lacksAnswer(t *task) bool {
	if t.route == nil || !t.route.asks() || t.problem != "" {
		return false
	}
	wishes := selector.Unexpired(t.msg.Selectors, r.now.Sub(t.row.ReceivedAt))
	t.scores = r.answers.find(t.row.Seq, r.routing.Version, len(wishes))
	return t.scores == nil
}

// order lists the tasks that want a channel: by lane, and older rows of a lane before new ones.
func (r *round) order() []int {
	order := make([]int, 0, len(r.tasks))
	for i := range r.tasks {
		if due := r.fates[i] == ledger.Due; due || (r.fates[i] == ledger.Fresh && r.tasks[i].wanted()) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(r.tasks[a].lane.Order, r.tasks[b].lane.Order),
			-cmp.Compare(r.fates[a], r.fates[b]), // Due sorts behind Fresh by value
		)
	})
	return order
}

// notices tells the outside what changed: a status for each change of state, a letter
// for each record that cannot be used.
func (r *round) notices() []ledger.Notice {
	notices := make([]ledger.Notice, 0, len(r.tasks))
	for i := range r.tasks {
		t, d := &r.tasks[i], &r.decisions[i]
		switch r.fates[i] {
		case ledger.Due:
			if d.State == "" {
				continue // it was left as it is
			}
		case ledger.Duplicate:
			continue
		case ledger.Conflict:
			notices = append(notices, *letter(&r.jobs[i], &envelope.Problem{
				Code: envelope.Conflict, Detail: "its id was used before for a message with other content",
			}))
			continue
		case ledger.Fresh:
		}
		if t.letter != nil {
			notices = append(notices, *t.letter)
			if t.msg.ID == "" {
				continue // nobody could tell which message the status is about
			}
		}
		if d.State != ledger.Waiting || t.was != ledger.Waiting {
			notices = append(notices, statusOfTask(t, d, r.now))
		}
	}
	return notices
}
