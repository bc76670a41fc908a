package dispatch

import (
	"errors"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// ErrStaleRouting says that the routing changed between plan and claim.
var ErrStaleRouting = errors.New("the routing changed while the batch was planned")

// MaxNeeded bounds how many scopes of due rows a claim remembers for the next ones.
const MaxNeeded = 1024

// Plan is the jobs of one claim, planned before its transaction: with all that needs no shared
// state. Whoever claims fewer of them calls keep before.
type Plan struct {
	routing *Routing
	jobs    []Job
	tasks   []task    // one for each job
	now     time.Time // the database's clock as it was known when the jobs were planned

	planner *planner
	scopes  *scopeIndex
}

// Decided is what was decided about one claim.
type Decided struct {
	now       time.Time // the database's clock
	tasks     []task    // of jobs, then of due rows
	intakes   []ledger.Intake
	decisions []ledger.Decision
	attempts  []attempt
	// full counts, by channel, the messages that found no room on it; nil for none.
	full []int
	// unasked are due tasks left as they are, because a function must be asked about them first.
	unasked []int
	// unlocked tells that due tasks were left as they are, because limits that count them were not
	// locked: they are to be claimed once more at once.
	unlocked bool
	// needed are scopes that claims to come will need: first those of the tasks left for that.
	needed []ledger.ScopeRef
	// troubles counts the rankings whose scoring rule failed, by the word for it.
	troubles map[string]int

	plan *Plan
}

// newPlan plans the jobs. now is the database's clock as this process knows it.
func newPlan(routing *Routing, keys []selector.Key, now time.Time, jobs []Job) *Plan {
	p := &planner{routing: routing, keys: newDrawers(keys), now: now}
	r := &Plan{routing: routing, jobs: jobs, now: now, planner: p, scopes: routing.scopeIndex()}
	r.tasks = make([]task, len(jobs))
	for i := range jobs {
		r.tasks[i] = p.plan(&jobs[i])
	}
	return r
}

// request is what the ledger is asked for: the planned rows, the channels and cursors
// that their routes may use (all of them when due rows of unknown routes come along), and the
// scopes with limits that count them. Those of due rows are known from the claims before.
func (r *Plan) request(due int, dueScopes []ledger.ScopeRef) ledger.Claim {
	req := ledger.Claim{Messages: make([]ledger.Message, len(r.tasks)), Due: due}
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
	req.Scopes = r.touched(due, dueScopes)
	if due > 0 {
		req.Lanes = r.routing.rankedLanes()
	}
	return req
}

// touched are the scopes that the claim locks, in their order.
func (r *Plan) touched(due int, dueScopes []ledger.ScopeRef) []ledger.ScopeRef {
	if len(r.scopes.narrower) == 0 {
		return nil
	}
	var places []int
	if due > 0 {
		for _, ref := range dueScopes {
			if place, known := r.scopes.places[ref]; known {
				places = append(places, place)
			}
		}
	}
	for i := range r.tasks {
		if r.tasks[i].wanted() {
			places = r.scopes.covering(places, &r.tasks[i])
		}
	}
	slices.Sort(places)
	places = slices.Compact(places)
	refs := make([]ledger.ScopeRef, len(places))
	for i, place := range places {
		refs[i] = r.scopes.narrower[place].ScopeRef
	}
	return refs
}

// wanted is how many messages look for a channel.
func (r *Plan) wanted() int {
	n := 0
	for i := range r.tasks {
		if r.tasks[i].wanted() {
			n++
		}
	}
	return n
}

// Batch decides about all messages of a claim, in turn: each sees the state that the one before
// left. It is pure, but that it counts in seen what it takes, and fills in the rows of the plan.
func Batch(r *Plan, seen *ledger.Seen, state *snapshot) (*Decided, error) {
	if seen.Version != r.routing.Version {
		return nil, ErrStaleRouting
	}
	a := newAssigner(r.routing, r.planner.keys, seen, state.unready, *state)
	b := &Decided{
		now: seen.Now, intakes: seen.Intakes, tasks: r.adopt(seen), plan: r,
		decisions: make([]ledger.Decision, len(seen.Messages)), troubles: a.troubles,
	}
	order := turns(b.tasks, b.intakes, b.now)
	b.attempts = make([]attempt, 0, len(order))
	var lately, left, covered []int // scopes that due rows go on needing, and those of one task
	locked := false
	for _, i := range order {
		t := &b.tasks[i]
		if b.intakes[i] == ledger.Due {
			covered, locked = a.counters.covers(covered[:0], t)
			if !locked && !t.barred {
				b.unlocked, b.decisions[i].Unlocked = true, true
				left = remembered(left, covered)
				continue
			}
			lately = remembered(lately, covered)
			if r.lacksAnswer(t, b.now, state.answers) {
				b.unasked = append(b.unasked, i)
				continue
			}
		}
		d := a.decide(t)
		b.decisions[i] = d.Decision
		if d.State == ledger.Sending {
			b.attempts = append(b.attempts, newAttempt(t, &d))
		}
	}
	for _, place := range remembered(left, lately) {
		b.needed = append(b.needed, r.scopes.narrower[place].ScopeRef)
	}
	b.full = a.full.messages
	return b, nil
}

// remembered adds scopes while there is room for any.
func remembered(all, covered []int) []int {
	if len(all) >= MaxNeeded {
		return all
	}
	return append(all, covered...)
}

// adopt brings the rows as the ledger has them together with what was planned, and plans the due
// ones.
func (r *Plan) adopt(seen *ledger.Seen) []task {
	tasks := r.tasks[:len(r.jobs)]
	for i := range tasks {
		tasks[i].row.Seq = seen.Messages[i].Seq
		tasks[i].row.ReceivedAt = seen.Messages[i].ReceivedAt
	}
	r.planner.now = seen.Now
	for _, row := range seen.Messages[len(r.jobs):] {
		tasks = append(tasks, r.planner.planDue(row))
	}
	excludeOptedOut(tasks, seen)
	return tasks
}

// excludeOptedOut marks the tasks whose recipient has opted out. What has begun is finished: the
// rest of a message of several parts, and a submission that is repeated under its own key.
func excludeOptedOut(tasks []task, seen *ledger.Seen) {
	for i := range tasks {
		t := &tasks[i]
		t.barred = seen.IsOptedOut(i) && !t.lane.IgnoreOptOut && len(t.row.PartsLeft) == 0 && t.row.SameKey == ""
	}
}

// RowScores is what a scoring function said about a due row, and what its question depended on. All
// else about a question follows from the row and the routing, which do not change.
type RowScores struct {
	version   int64 // of the routing
	selectors int   // that counted: they expire in a fixed order, so the number says which
	scores    *Scores
}

// lacksAnswer reports whether a function has to be asked about a due row before it can be decided
// upon. answers has, by row, what was answered after earlier claims; it is good for the question of
// now only if no selector has expired in between.
func (r *Plan) lacksAnswer(t *task, now time.Time, answers map[int64]RowScores) bool {
	if t.route == nil || !t.route.asks() || t.problem != "" || t.barred {
		return false
	}
	selectors := selector.Unexpired(t.msg.Selectors, now.Sub(t.row.ReceivedAt))
	answer, known := answers[t.row.Seq]
	if !known || answer.version != r.routing.Version || answer.selectors != len(selectors) {
		t.scores = nil
		return true
	}
	t.scores = answer.scores
	return false
}

// taken is how many parts of the message were accepted, if that is certain: the channel that
// accepted them still cuts the text as it did.
func (r *Plan) taken(t *task) int {
	at := r.routing.channel(t.row.Pinned)
	if len(t.row.PartsLeft) == 0 || at < 0 || t.route == nil {
		return 0
	}
	if ch := &r.routing.Channels[at]; !t.recut(ch) {
		return t.segments(ch) - len(t.row.PartsLeft)
	}
	return 0
}

// notices tells the outside what changed: a status for each change of state, a letter
// for each record that cannot be used.
func (r *Decided) notices() []ledger.Notice {
	notices := make([]ledger.Notice, 0, len(r.tasks))
	for i := range r.tasks {
		t, d := &r.tasks[i], &r.decisions[i]
		switch r.intakes[i] {
		case ledger.Due:
			if d.State == "" {
				continue // it was left as it is
			}
		case ledger.Duplicate:
			continue
		case ledger.Conflict:
			problem := &envelope.Problem{Code: envelope.Conflict, Detail: "the id was used before for a message with other content"}
			notices = append(notices, *letter(&r.plan.jobs[i], problem),
				statusOfConflict(&r.plan.jobs[i], problem, r.now))
			continue
		case ledger.Fresh:
		}
		if t.letter != nil {
			notices = append(notices, *t.letter)
		}
		if d.State != ledger.Waiting || t.was != ledger.Waiting {
			notices = append(notices, statusOfTask(t, d, r.plan.taken(t), r.now))
		}
	}
	return notices
}
