package decide

import (
	"slices"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Replay plans recorded messages again, and decides about them, under one version of the routing.
// Every channel has room and is ready: what it finds in a message's way is what the version alone
// puts there. It keeps scratch space: one goroutine at a time.
type Replay struct {
	a       *assigner
	keyless bool // no key is at hand
}

// NewReplay returns a Replay of a version, which is prepared for it. keys are those of the key
// file, in any order; without any, draws are taken as they are.
func NewReplay(version *Routing, keys []selector.Key) *Replay {
	keyless := len(keys) == 0
	if keyless {
		keys = []selector.Key{{}} // under which nothing was drawn
	}
	routing := *version
	routing.Prepare()
	idle := &ledger.Seen{Channels: make([]ledger.ChannelState, len(routing.Channels))}
	for i := range routing.Channels {
		idle.Channels[i].Name = routing.Channels[i].Name
	}
	ready := make([]string, len(routing.Channels))
	return &Replay{newAssigner(&routing, newDrawers(keys), idle, ready, Snapshot{}), keyless}
}

// Version is the prepared routing.
func (r *Replay) Version() *Routing { return r.a.routing }

// HasKey reports whether the key of that id is at hand, so that its draws can be repeated.
func (r *Replay) HasKey(id string) bool { return !r.keyless && r.a.keys.has(id) }

// Draws reports whether the draws of a route that were made under the key of that id can be
// repeated. Sticky ones need no key, and there is nothing to repeat where nothing is drawn.
func (r *Replay) Draws(route *Route, keyID string) bool {
	return !route.Draws() || route.Sticky || r.HasKey(keyID)
}

// Plan plans a message as its row stood before an attempt. begun says that it was on its way
// already, so that no block stops it any more. The route of the task is nil when none takes it.
func (r *Replay) Plan(row *ledger.Message, msg *envelope.Message, begun bool) *Task {
	t := &Task{Row: *row, msg: *msg, Lane: r.a.routing.Lane(row.Lane), First: -1}
	// Its clock stands before every deadline.
	p := &planner{routing: r.a.routing, keys: r.a.keys, begun: begun}
	if p.choose(t) != nil {
		t.Route = nil
		return t
	}
	// A draw that cannot be repeated is taken as it is.
	if row.Attempts > 0 || !r.Draws(t.Route, row.Plan.KeyID) {
		t.First = r.a.routing.Place(t.Route, row.Plan.FirstChoice)
	}
	p.release(t)
	return t
}

// Drawn is the task with a channel as its first choice, if a key at hand draws that for it; else
// the task itself. Without keys any of its channels may have been drawn.
func (r *Replay) Drawn(t *Task, channel string) *Task {
	if place := r.a.routing.Place(t.Route, channel); r.keyless && !t.Route.Sticky && place >= 0 {
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

// Parts is how many segments an attempt on this channel would submit.
func (r *Replay) Parts(t *Task, ch *Channel) int { return r.a.parts(t, ch) }

// Limits lists the limits of the version that count a message on channel c, or may count it, if its
// payload is gone.
func (r *Replay) Limits(t *Task, c int) []admission.Limit {
	x := &r.a.counters.index
	all := slices.Clone(x.own[c])
	if t.withoutPayload {
		for i := range x.narrower {
			n := &x.narrower[i]
			may, _ := begins(t.Row.CallingCode, n.Scope.Prefix)
			if (n.channel == c || n.channel < 0) && may &&
				(n.Scope.Tenant == "" || n.Scope.Tenant == t.Row.Tenant) {
				all = append(all, n.limits...)
			}
		}
		for _, place := range x.madeFor(nil, c, t.Row.Tenant) {
			all = append(all, x.at(place).limits...)
		}
		return all
	}
	onChannel := x.find(nil, x.on[c], t.Row.Tenant, t.msg.To)
	for _, place := range x.find(onChannel, x.over, t.Row.Tenant, t.msg.To) {
		all = append(all, x.at(place).limits...)
	}
	return all
}

// Closed reports whether a limit of the version leaves the message no room on channel c in any
// window, or may leave it none: a first choice is not waited for then. cut is that of MayMisfit.
func (r *Replay) Closed(t *Task, c int, cut bool) bool {
	need := r.a.need(t, &r.a.routing.Channels[c])
	if t.withoutPayload {
		need = r.mostNeeded(t, &r.a.routing.Channels[c], cut)
	}
	return slices.ContainsFunc(r.Limits(t, c), func(l admission.Limit) bool {
		empty := admission.Counter{Limit: l, Max: l.Max}
		_, o := admission.Fit(&r.a.moment, []admission.Account{{Counter: &empty, Rate: 1}}, &need)
		return o != nil && o.When.IsZero()
	})
}

// Rank puts candidates into the order that a stored ranking was made in: all but the first choice
// of a route that draws. They must have what the order depends on.
func (r *Replay) Rank(t *Task, k *Ranking, candidates []selector.Candidate) {
	b := basis{}
	switch Ranker(k.By) {
	case RoundRobin:
		b.after = *k.After
	case BestWorker:
		b.ascending = lowestFirst(&t.Route.Scoring, k.Trouble)
	case Redraw:
		first := -1
		if t.Route.Draws() {
			first = t.First
		}
		b.drawn = t.Route.Table.Redraw(r.a.keys.of(k.KeyID), t.Row.ID, first)
	case LoadRatio, InOrder:
	}
	// A ranker takes them in configured order.
	slices.SortFunc(candidates, func(x, y selector.Candidate) int { return x.Index - y.Index })
	order(Ranker(k.By), candidates, b)
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
