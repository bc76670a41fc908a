// Package decide chooses the channel of a message, makes it wait or ends it, and decides the step
// after an outcome. It is pure: no I/O, no clock, no lock. Everything a decision depends on is
// passed in, so the same values give the same decision in a claim, in an explanation and in an
// audit.
//
//	NewPlan   what needs no shared state: route, segments, draw, first choice
//	Batch     all messages of a claim under the state that it locked
//	Settle    the step after an outcome; Resolve after an answer that came late
//	Explain   what a claim would decide about one message
//	Replay    decides a recorded message again, for package audit
//
// The members of a route are ordered (candidate_order.go, rank.go). Each has an exclusion or room
// (exclusion.go, accounts.go, room.go). The first with room gets the message (assign.go). If none
// has room, the message waits (wait.go).
package decide

import (
	"errors"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// ErrStaleRouting says that between plan and claim the routing changed, or the hours of a route
// began or ended.
var ErrStaleRouting = errors.New(
	"the routing changed, or the hours of a route began or ended, while the batch was planned",
)

// MaxNeeded bounds how many scopes of due rows a claim remembers for the next ones.
const MaxNeeded = 1024

// Plan holds the jobs of one claim with everything that needs no shared state, worked out before
// its transaction. To claim fewer of them, call Keep first.
type Plan struct {
	Routing *Routing
	Jobs    []Job
	Tasks   []Task    // one for each job
	Now     time.Time // the database's clock as it was known when the jobs were planned

	planner *planner
	scopes  scopes
}

// Decided is what was decided about one claim.
type Decided struct {
	Now       time.Time // the database's clock
	Tasks     []Task    // of jobs, then of due rows
	Intakes   []ledger.Intake
	Decisions []ledger.Decision
	Attempts  []Attempt
	// Full counts, by channel, the messages that found no room on it; nil for none.
	Full []int
	// Unasked are the due tasks about which nothing was decided, because a scoring function must be
	// asked about them first.
	Unasked []int
	// Unlocked is true if nothing was decided about some due tasks, because the claim had not locked
	// all limits that count them. The caller must claim these rows again at once.
	Unlocked bool
	// Needed are scopes that later claims should lock, first those that the claim had not locked.
	Needed []ledger.ScopeRef
	// Troubles counts the rankings whose scoring rule failed, by the word for it.
	Troubles map[string]int

	plan *Plan
}

// Received calls count with the number of each new message that has a first choice.
func (dec *Decided) Received(count func(number string)) {
	for i, intake := range dec.Intakes {
		t, chosen := &dec.Tasks[i], dec.Decisions[i].Plan.FirstChoice != ""
		if intake == ledger.Fresh && (t.First >= 0 || chosen) {
			count(t.msg.To)
		}
	}
}

// NewPlan plans the jobs. now is the database's clock as this process knows it.
func NewPlan(routing *Routing, keys []selector.Key, now time.Time, jobs []Job) *Plan {
	p := &planner{routing: routing, keys: newDrawers(keys), now: now}
	plan := &Plan{Routing: routing, Jobs: jobs, Now: now, planner: p, scopes: routing.scopes()}
	plan.Tasks = make([]Task, len(jobs))
	for i := range jobs {
		plan.Tasks[i] = p.plan(&jobs[i])
	}
	return plan
}

// Request is what the ledger is asked for: the planned rows, the channels and cursors that their
// routes may use, and the scopes with limits that count them. With due rows, whose routes are not
// known yet, it asks for all channels and cursors; the scopes of due rows are known from earlier
// claims.
func (p *Plan) Request(due int, dueScopes []ledger.ScopeRef) ledger.Claim {
	req := ledger.Claim{Messages: make([]ledger.Message, len(p.Tasks)), Due: due}
	used := make(map[*Route]bool, len(p.Routing.Routes))
	for i := range p.Tasks {
		req.Messages[i] = p.Tasks[i].Row
		if p.Tasks[i].Wanted() {
			used[p.Tasks[i].Route] = true
		}
	}
	members := make([]bool, len(p.Routing.Channels))
	for i := range p.Routing.Routes {
		route := &p.Routing.Routes[i]
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
			req.Channels = append(req.Channels, p.Routing.Channels[c].Name)
		}
	}
	slices.Sort(req.Channels)
	slices.Sort(req.Cursors)
	req.Scopes = p.touched(due, dueScopes)
	req.EachTenant = p.scopes.each != nil && len(req.Scopes) > 0
	if due > 0 {
		req.Lanes = p.Routing.rankedLanes()
	}
	return req
}

// touched are the scopes that the claim locks, in lock order.
func (p *Plan) touched(due int, dueScopes []ledger.ScopeRef) []ledger.ScopeRef {
	if len(p.scopes.narrower) == 0 {
		return nil
	}
	var places []int
	if due > 0 {
		for _, ref := range dueScopes {
			if place, known := p.scopes.place(ref); known {
				places = append(places, place)
			}
		}
	}
	for i := range p.Tasks {
		if p.Tasks[i].Wanted() {
			places = p.scopes.covering(places, &p.Tasks[i])
		}
	}
	places = p.scopes.inOrder(places)
	refs := make([]ledger.ScopeRef, len(places))
	for i, place := range places {
		refs[i] = p.scopes.at(place).ScopeRef
	}
	return refs
}

// Wanted is how many messages look for a channel.
func (p *Plan) Wanted() int {
	n := 0
	for i := range p.Tasks {
		if p.Tasks[i].Wanted() {
			n++
		}
	}
	return n
}

// Batch decides about all messages of a claim, one after the other: each sees the state that the
// one before left. It is pure, except that it counts in seen what it takes and fills in the rows of
// the plan.
func Batch(p *Plan, seen *ledger.Seen, snapshot *Snapshot) (*Decided, error) {
	if seen.Version != p.Routing.Version || p.pastHours(seen) {
		return nil, ErrStaleRouting
	}
	a := newAssigner(p.Routing, p.planner.keys, seen, *snapshot)
	decided := &Decided{
		Now: seen.Now, Intakes: seen.Intakes, Tasks: p.adopt(seen), plan: p,
		Decisions: make([]ledger.Decision, len(seen.Messages)), Troubles: a.troubles,
	}
	order := ordered(decided.Tasks, decided.Intakes, decided.Now)
	decided.Attempts = make([]Attempt, 0, len(order))
	// Places of the scopes that count due rows: of the rows whose scopes are all locked, of the other
	// rows, and of one row.
	var used, missed, ofOne []int
	locked := false
	for _, i := range order {
		t := &decided.Tasks[i]
		if decided.Intakes[i] == ledger.Due {
			ofOne, locked = a.counters.covers(ofOne[:0], t)
			if !locked && !t.optedOut {
				decided.Unlocked, decided.Decisions[i].Unlocked = true, true
				missed = remembered(missed, ofOne)
				continue
			}
			used = remembered(used, ofOne)
			if p.lacksAnswer(t, decided.Now, snapshot.Answers) {
				decided.Unasked = append(decided.Unasked, i)
				continue
			}
		}
		d := a.decide(t)
		decided.Decisions[i] = d.Decision
		if d.State == ledger.Sending {
			decided.Attempts = append(decided.Attempts, newAttempt(t, &d))
		}
	}
	for _, place := range remembered(missed, used) {
		decided.Needed = append(decided.Needed, a.counters.index.at(place).ScopeRef)
	}
	decided.Full = a.full.messages
	return decided, nil
}

// remembered adds scopes until MaxNeeded is reached.
func remembered(all, covered []int) []int {
	if len(all) >= MaxNeeded {
		return all
	}
	return append(all, covered...)
}

// adopt copies what the ledger assigned into the planned tasks, and plans the due rows.
func (p *Plan) adopt(seen *ledger.Seen) []Task {
	tasks := p.Tasks[:len(p.Jobs)]
	for i := range tasks {
		tasks[i].Row.Seq = seen.Messages[i].Seq
		tasks[i].Row.ReceivedAt = seen.Messages[i].ReceivedAt
	}
	p.planner.now = seen.Now
	for _, row := range seen.Messages[len(p.Jobs):] {
		tasks = append(tasks, p.planner.planDue(row))
	}
	excludeOptedOut(tasks, seen)
	for i := range seen.CancelledBefore {
		tasks[i].cancelledBefore = tasks[i].Route != nil // else it is dead or rejected as it is
	}
	return tasks
}

// excludeOptedOut marks the tasks whose recipient has opted out. The rest of a message of several
// parts, and a submission repeated under its key, are still sent.
func excludeOptedOut(tasks []Task, seen *ledger.Seen) {
	for i := range tasks {
		t := &tasks[i]
		t.optedOut = seen.IsOptedOut(i) && !t.Lane.IgnoreOptOut && t.whole()
	}
}

// RowScores is what a scoring function said about a due row, and what its question depended on.
// Everything else in a question follows from the row and the routing, which do not change.
type RowScores struct {
	Version   int64 // of the routing
	Selectors int   // how many counted: they expire in a fixed order, so the count identifies them
	Scores    *Scores
}

// lacksAnswer reports whether a function has to be asked before a due row can be decided. answers
// holds, by row, the answers after earlier claims. Such an answer is valid only under the same
// routing and if no selector has expired since.
func (p *Plan) lacksAnswer(t *Task, now time.Time, answers map[int64]RowScores) bool {
	if t.Route == nil || !t.Route.Asks() || t.problem != "" || t.optedOut {
		return false
	}
	selectors := selector.Unexpired(t.msg.Selectors, now.Sub(t.Row.ReceivedAt))
	answer, known := answers[t.Row.Seq]
	if !known || answer.Version != p.Routing.Version || answer.Selectors != len(selectors) {
		t.Scores = nil
		return true
	}
	t.Scores = answer.Scores
	return false
}

// taken is how many parts of the message were accepted; 0 when the channel that accepted them would
// split the text differently now, so that the count is not certain.
func (p *Plan) taken(t *Task) int {
	at := p.Routing.Channel(t.Row.Pinned)
	if len(t.Row.PartsLeft) == 0 || at < 0 || t.Route == nil {
		return 0
	}
	if ch := &p.Routing.Channels[at]; !t.recut(ch) {
		return t.segments(ch) - len(t.Row.PartsLeft)
	}
	return 0
}

// Notices are the events of the claim: a status for each change of state, and a dead letter for
// each record that cannot be used.
func (dec *Decided) Notices() []ledger.Notice {
	notices, events := make([]ledger.Notice, 0, len(dec.Tasks)), events{ahead: len(dec.Tasks)}
	for i := range dec.Tasks {
		t, d := &dec.Tasks[i], &dec.Decisions[i]
		switch dec.Intakes[i] {
		case ledger.Due:
			if d.State == "" || t.was == ledger.Accepted {
				continue // it was left unchanged, or stays accepted, so there is nothing to report
			}
		case ledger.Duplicate:
			continue
		case ledger.Conflict:
			problem := &envelope.Problem{
				Code:   envelope.Conflict,
				Detail: "the id was used before for a message with other content",
			}
			notices = append(notices, *letter(&dec.plan.Jobs[i], problem),
				events.ofConflict(&dec.plan.Jobs[i], problem, dec.Now))
			continue
		case ledger.Fresh:
		}
		if t.letter != nil {
			notices = append(notices, *t.letter)
		}
		if d.State != ledger.Waiting || t.was != ledger.Waiting {
			notices = append(notices, events.ofTask(t, d, dec.plan.taken(t), dec.Now))
		}
	}
	return notices
}
