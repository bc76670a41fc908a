package decide

import (
	"slices"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Replay plans recorded messages again, and decides about them, under one version of the routing.
// It takes every channel as ready and with room, so it finds only those exclusions that follow from
// the version. It has scratch space: use it from one goroutine at a time.
type Replay struct {
	a       *assigner
	keyless bool // no key is known
}

// NewReplay returns a Replay of a version, which it prepares. keys are those of the key file, in
// any order. Without keys, recorded draws are trusted.
func NewReplay(version *Routing, keys []selector.Key) *Replay {
	keyless := len(keys) == 0
	if keyless {
		keys = []selector.Key{{}} // a key whose id no draw has
	}
	routing := *version
	routing.Prepare()
	idle := &ledger.Seen{Channels: make([]ledger.ChannelState, len(routing.Channels))}
	for i := range routing.Channels {
		idle.Channels[i].Name = routing.Channels[i].Name
	}
	ready := make([]string, len(routing.Channels))
	return &Replay{newAssigner(&routing, newDrawers(keys), idle, Snapshot{Unready: ready}), keyless}
}

// Version is the prepared routing.
func (r *Replay) Version() *Routing { return r.a.routing }

// HasKey reports whether the key of that id is known, so that its draws can be repeated.
func (r *Replay) HasKey(id string) bool { return !r.keyless && r.a.keys.has(id) }

// Draws reports whether the draws of a route under the key of that id can be repeated. Sticky draws
// need no key, and a route that does not draw has none to repeat.
func (r *Replay) Draws(route *Route, keyID string) bool {
	return !route.Draws() || route.Sticky || r.HasKey(keyID)
}

// Plan plans a message from its row as it was before an attempt. begun says that an earlier attempt
// was made, so that no block stops the message any more. The route of the task is nil when no route
// takes it.
func (r *Replay) Plan(row *ledger.Message, msg *envelope.Message, begun bool) *Task {
	t := &Task{Row: *row, msg: *msg, Lane: r.a.routing.Lane(row.Lane), First: -1}
	// The zero clock of this planner is before every deadline.
	p := &planner{routing: r.a.routing, keys: r.a.keys, begun: begun}
	if p.choose(t) != nil {
		t.Route = nil
		return t
	}
	// A draw that cannot be repeated is trusted.
	if row.Attempts > 0 || !r.Draws(t.Route, row.Plan.KeyID) {
		t.First = r.a.routing.MemberIndex(t.Route, row.Plan.FirstChoice)
	}
	p.unpinIfGone(t)
	return t
}

// Drawn is the task with a channel as its first choice, if a known key draws that; else the task
// itself. Without keys, any member of its route may have been drawn.
func (r *Replay) Drawn(t *Task, channel string) *Task {
	if place := r.a.routing.MemberIndex(t.Route, channel); r.keyless && !t.Route.Sticky && place >= 0 {
		other := *t
		other.First = place
		return &other
	}
	table := t.Route.Table
	for i := range r.a.keys.keys {
		place := table.Pick(t.draw(r.a.keys.at(i)))
		if table.Entry(place).Name == channel {
			other := *t
			other.First = place
			return &other
		}
	}
	return t
}

// Exclusion is why the version excludes channel c; empty when it does not.
func (r *Replay) Exclusion(t *Task, selectors []selector.Selector, c int) string {
	_, excluded := r.a.exclusionOf(t, selectors, c)
	return excluded.reason
}

// ExclusionForAnySender is Exclusion where every channel can write every sender. Builds before
// Channel.Writes chose so, and left the refusal to the adapter.
func (r *Replay) ExclusionForAnySender(t *Task, selectors []selector.Selector, c int) string {
	t.anySender = true
	defer func() { t.anySender = false }()
	return r.Exclusion(t, selectors, c)
}

// Parts is how many segments an attempt on this channel would submit.
func (r *Replay) Parts(t *Task, ch *Channel) int { return r.a.parts(t, ch) }

// CountingLimit is a limit that counts a message on a channel. Over is set for one over all
// channels.
type CountingLimit struct {
	admission.Limit
	Over bool
}

// Limits lists the limits of the version that count a message on channel c. If its payload is gone,
// it lists those that may count it.
func (r *Replay) Limits(t *Task, c int) (all []CountingLimit) {
	s := &r.a.counters.index
	add := func(limits []admission.Limit, over bool) {
		for i := range limits {
			all = append(all, CountingLimit{limits[i], over})
		}
	}
	add(s.own[c], false)
	if t.withoutPayload {
		for i := range s.narrower {
			n := &s.narrower[i]
			may, _ := begins(t.Row.CallingCode, n.Scope.Prefix)
			if (n.channel == c || n.channel < 0) && may &&
				(n.Scope.Tenant == "" || n.Scope.Tenant == t.Row.Tenant) {
				add(n.limits, n.channel < 0)
			}
		}
		for _, place := range s.madeFor(nil, c, t.Row.Tenant) {
			add(s.at(place).limits, s.at(place).Channel == "")
		}
		return all
	}
	for _, table := range [...]*scopeTable{s.on[c], s.over} {
		for _, place := range s.find(nil, table, t.Row.Tenant, t.msg.To) {
			add(s.at(place).limits, table == s.over)
		}
	}
	return all
}

// Closed reports whether a limit of the version has, or may have, no room for the message on
// channel c in any window. Then the message does not wait for its first choice. cut is as in
// MayMisfit.
func (r *Replay) Closed(t *Task, c int, cut bool) bool {
	need := r.a.need(t, &r.a.routing.Channels[c])
	if t.withoutPayload {
		need = r.mostNeeded(t, &r.a.routing.Channels[c], cut)
	}
	return slices.ContainsFunc(r.Limits(t, c), func(l CountingLimit) bool {
		empty := admission.Counter{Limit: l.Limit, Max: l.Max}
		_, e := admission.Fit(&r.a.moment, []admission.Account{{Counter: &empty, Rate: 1}}, &need)
		return e != nil && e.When.IsZero()
	})
}

// Rank puts candidates into the order of a stored ranking: all but the first choice of a route that
// draws. The candidates must have the fields that the order depends on.
func (r *Replay) Rank(t *Task, stored *Ranking, candidates []selector.Candidate) {
	b := basis{}
	switch Ranker(stored.By) {
	case RoundRobin:
		b.after = *stored.After
	case BestWorker:
		b.ascending = lowestFirst(&t.Route.Scoring, stored.Trouble)
	case Redraw:
		first := -1
		if t.Route.Draws() {
			first = t.First
		}
		b.drawn = t.Route.Table.Redraw(r.a.keys.of(stored.KeyID), t.Row.ID, first)
	case LoadRatio, InOrder:
	}
	// Rankers expect configured order.
	slices.SortFunc(candidates, func(x, y selector.Candidate) int { return x.Index - y.Index })
	order(Ranker(stored.By), candidates, b)
}

// Score fills in the scores of candidates by the rule of the task's route; see Ranking.Scoring and
// Ranking.Trouble. answer is what its function said.
func (r *Replay) Score(
	t *Task, answer *Scores, selectors []selector.Selector, candidates []selector.Candidate,
) (scoring, trouble string) {
	scored := *t
	scored.Scores = answer
	return r.a.routing.scored(&scored, selectors, candidates)
}
