package dispatch

import (
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// claim is what was planned before a transaction and what came out of it.
type claim struct {
	routing   *Routing
	planner   *planner
	unready   []string
	snapshot  snapshot
	answers   *answers // about due rows
	dueScopes []int    // places of the scopes that count due rows, as the claims before have found
	scopes    *scopeIndex
	jobs      []Job
	began     time.Time // this process's clock before the transaction
	due       int       // how many due rows it had slots for

	batch // its tasks before the transaction, all of it afterwards
}

// batch is what was decided about one claim.
type batch struct {
	now       time.Time // the database's clock
	tasks     []task    // of jobs, then of due rows
	intakes   []ledger.Intake
	decisions []ledger.Decision
	attempts  []*openAttempt
	full      []int          // by channel: messages that found no room on it; nil for none
	unasked   []int          // due tasks left as they are, because a function must be asked about them first
	unlocked  bool           // whether due tasks were left as they are, because limits that count them were not locked
	needed    []int          // places of scopes that claims to come will need: first those of the tasks left for that
	troubles  map[string]int // rankings whose scoring rule failed, by the word for it
}

// newClaim plans the jobs.
func newClaim(routing *Routing, p *planner, answers *answers, needs []int, jobs []Job) *claim {
	r := &claim{routing: routing, planner: p, answers: answers, dueScopes: needs, scopes: routing.scopeIndex(), jobs: jobs}
	r.tasks = make([]task, len(jobs))
	for i := range jobs {
		r.tasks[i] = p.plan(&jobs[i])
	}
	return r
}

// request is what the ledger is asked for: the planned rows, the channels and cursors
// that their routes may use (all of them when due rows of unknown routes come along), and the
// scopes with limits that count them. Those of due rows are known from the claims before.
func (r *claim) request(due int) ledger.Claim {
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
	req.Scopes = r.touched(due)
	if due > 0 {
		req.Lanes = r.routing.rankedLanes()
	}
	return req
}

// touched are the scopes that the claim locks, in their order.
func (r *claim) touched(due int) []ledger.ScopeRef {
	if len(r.scopes.narrower) == 0 {
		return nil
	}
	var places []int
	if due > 0 {
		places = slices.Clone(r.dueScopes)
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
func (r *claim) wanted() int {
	n := 0
	for i := range r.tasks {
		if r.tasks[i].wanted() {
			n++
		}
	}
	return n
}

// decide decides about what the claim shows. It does no I/O.
func (r *claim) decide(seen *ledger.Seen) (batch, error) {
	if seen.Version != r.routing.Version {
		return batch{}, errStaleRouting
	}
	a := newAssigner(r.routing, r.planner.keys, seen, r.unready, r.snapshot)
	b := batch{
		now: seen.Now, intakes: seen.Intakes, tasks: r.adopt(seen), decisions: make([]ledger.Decision, len(seen.Messages)), troubles: a.troubles,
	}
	var lately, covered []int // scopes that due rows go on needing, and those of one task
	locked := false
	for _, i := range turns(b.tasks, b.intakes, b.now) {
		t := &b.tasks[i]
		due := b.intakes[i] == ledger.Due
		if due {
			covered, locked = a.counters.covers(covered[:0], t)
			if !locked && !t.barred {
				b.unlocked, b.needed, b.decisions[i].Unlocked = true, remembered(b.needed, covered), true
				continue
			}
			lately = remembered(lately, covered)
			if r.lacksAnswer(t, b.now) {
				b.unasked = append(b.unasked, i)
				continue
			}
		}
		d := a.decide(t)
		b.decisions[i] = d.Decision
		if d.State == ledger.Sending {
			b.attempts = append(b.attempts, newOpenAttempt(t, &d, r.began))
		}
	}
	b.needed, b.full = remembered(b.needed, lately), a.full.messages
	return b, nil
}

// remembered adds the scopes of one task while there is room for any.
func remembered(all, covered []int) []int {
	if len(all) >= maxNeeded {
		return all
	}
	return append(all, covered...)
}

// again reports whether due rows were left that are to be claimed once more at once, because the
// next claim locks the limits that count them.
func (b *batch) again() bool { return b.unlocked }

// adopt brings the rows as the ledger has them together with what was planned, and plans the due
// ones.
func (r *claim) adopt(seen *ledger.Seen) []task {
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

// lacksAnswer reports whether a function has to be asked about a due row before it can be
// decided upon. What was answered about it after an earlier claim is taken over.
func (r *claim) lacksAnswer(t *task, now time.Time) bool {
	if t.route == nil || !t.route.asks() || t.problem != "" || t.barred {
		return false
	}
	selectors := selector.Unexpired(t.msg.Selectors, now.Sub(t.row.ReceivedAt))
	t.scores = r.answers.find(t.row.Seq, r.routing.Version, len(selectors))
	return t.scores == nil
}

// taken is how many parts of the message were accepted, if that is certain: the channel that
// accepted them still cuts the text as it did.
func (r *claim) taken(t *task) int {
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
func (r *claim) notices() []ledger.Notice {
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
			notices = append(notices, *letter(&r.jobs[i], problem), statusOfConflict(&r.jobs[i], problem, r.now))
			continue
		case ledger.Fresh:
		}
		if t.letter != nil {
			notices = append(notices, *t.letter)
		}
		if d.State != ledger.Waiting || t.was != ledger.Waiting {
			notices = append(notices, statusOfTask(t, d, r.taken(t), r.now))
		}
	}
	return notices
}
