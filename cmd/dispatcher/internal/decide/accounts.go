package decide

import (
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// Snapshot is what a claim knows, beside the locked rows, when it decides.
type Snapshot struct {
	// Unready has one entry per channel of the routing: why this process cannot send on it now,
	// empty when it can.
	Unready []string
	// Answers are what scoring functions said about due rows, by Message.Seq.
	Answers map[int64]RowScores
	// CommitLatency is how long it takes to make a decision durable: no attempt leaves before that.
	CommitLatency time.Duration
	Worker        admission.Worker
	// Instances is what all processes were doing a moment ago; nil knows of none but this one.
	Instances *Instances
	// Rooms has one entry per channel of the routing: what it may take in this process; nil bounds
	// none.
	Rooms []Room
}

// counters are those that one claim locked, as accounts.
type counters struct {
	index scopes
	own   [][]admission.Account // by channel: of its own limits; nil until it is asked for
	// narrower has the scopes that the claim locked, by their place in the index.
	narrower map[int]*ledger.ScopeState
}

// newCounters moves every counter of a claim on to its moment, and tells it what only the routing
// knows.
func newCounters(r *Routing, seen *ledger.Seen, m *admission.Moment) counters {
	b := counters{index: r.scopes(), own: make([][]admission.Account, len(r.Channels))}
	if len(seen.Scoped) == 0 {
		return b
	}
	b.narrower = make(map[int]*ledger.ScopeState, len(seen.Scoped))
	for i := range seen.Scoped {
		s := &seen.Scoped[i]
		place, known := b.index.place(s.ScopeRef)
		if !known {
			continue // the claim is of this version, so nobody asks for its counters either
		}
		b.narrower[place] = s
		for k := range s.Counters {
			CompleteCounter(&s.Counters[k], b.index.at(place).limits)
			m.Roll(&s.Counters[k])
		}
	}
	return b
}

// covers appends the places of the scopes that count the task, and tells whether the claim locked
// all of them.
func (b *counters) covers(dst []int, t *Task) (places []int, locked bool) {
	places = b.index.covering(dst, t)
	for _, place := range places {
		if b.narrower[place] == nil {
			return places, false
		}
	}
	return places, true
}

// accounts appends the limits that count a message on a channel: the channel's own, those of tenant
// and prefixes on it and, from position over on, those over all channels.
func (a *assigner) accounts(
	dst []admission.Account, t *Task, c int,
) (accounts []admission.Account, over int) {
	b := &a.counters
	if b.own[c] == nil {
		b.own[c] = a.ownAccounts(c)
	}
	dst = append(dst, b.own[c]...)
	if len(b.narrower) == 0 {
		return dst, len(dst)
	}
	var memory [8]int
	dst = b.add(
		dst, b.index.find(memory[:0], b.index.on[c], t.Row.Tenant, t.msg.To),
		a.states[c].Gate.Ease.RateAt(a.now),
	)
	over = len(dst)
	// One channel that was asked to slow down slows no other.
	return b.add(dst, b.index.find(memory[:0], b.index.over, t.Row.Tenant, t.msg.To), 1), over
}

// add appends the counters of scopes. They are divided among processes by no policy.
func (b *counters) add(dst []admission.Account, scopes []int, rate float64) []admission.Account {
	for _, place := range scopes {
		s := b.narrower[place]
		if s == nil {
			continue // nothing was locked: the channel's state was made up, for an explanation or an audit
		}
		for k := range s.Counters {
			dst = append(dst, admission.Account{Counter: &s.Counters[k], Rate: rate})
		}
	}
	return dst
}

// ownAccounts are those of the limits of a whole channel, divided by its policy. A prepaid budget
// is not: it has no history of windows.
func (a *assigner) ownAccounts(c int) []admission.Account {
	ch, gate := &a.routing.Channels[c], &a.states[c].Gate
	accounts, rate := make([]admission.Account, len(gate.Counters)), gate.Ease.RateAt(a.now)
	for i := range gate.Counters {
		accounts[i] = admission.Account{Counter: &gate.Counters[i], Rate: rate}
		if Divides(ch.Policy) && gate.Counters[i].Window != admission.Prepaid {
			state := a.snapshot.Instances.State(
				ch.Name, &gate.Counters[i], a.snapshot.Worker.Region,
			)
			accounts[i].Policy, accounts[i].Split = ch.Policy, ch.Policy.Split(&state)
		}
	}
	return accounts
}

// Divides reports whether a policy divides slots at all: exact leaves them to whoever comes first.
func Divides(p admission.Policy) bool {
	_, exact := p.(admission.Exact)
	return p != nil && !exact
}

// need is what the message wants of the limits when it goes to a channel.
func (a *assigner) need(t *Task, ch *Channel) admission.Need {
	parts := a.parts(t, ch)
	return admission.Need{Lane: t.Row.Lane, Segments: parts, Micros: t.Price(ch, parts)}
}

// fit looks for room for the task on channel c under all limits that count it.
func (a *assigner) fit(t *Task, c int) (opening, exclusion) {
	room := opening{need: a.need(t, &a.routing.Channels[c])}
	accounts, over := a.accounts(a.memory[:0], t, c)
	a.memory = accounts
	release, o := admission.Fit(&a.moment, accounts, &room.need)
	if o == nil {
		room.release = release
		return room, exclusion{}
	}
	excluded := exclusion{reason: exclusionReason(o), limit: o, cost: o.Counter.Cost(&room.need)}
	for i := over; i < len(accounts); i++ {
		excluded.over = excluded.over || accounts[i].Counter == o.Counter
	}
	return opening{}, excluded
}

// admit counts the message in the room that was found for it on channel c. It returns what goes
// back to limits in money if nothing is spent.
func (a *assigner) admit(t *Task, c int, room *opening) []ledger.Refund {
	accounts, over := a.accounts(a.memory[:0], t, c)
	a.memory = accounts
	refunds := a.refundable(accounts, over, c, &room.need)
	admission.Take(&a.moment, accounts, &room.need, room.release)
	return refunds
}

// refundable is what the message is about to take on channel c of each limit in money, and of what
// that counts apart. The accounts from position over on are of limits over all channels.
func (a *assigner) refundable(
	accounts []admission.Account, over, c int, need *admission.Need,
) (refunds []ledger.Refund) {
	if need.Micros == 0 {
		return nil
	}
	for i := range accounts {
		account := &accounts[i]
		if account.Unit != admission.Money {
			continue
		}
		r := ledger.Refund{
			Window: account.Window, Micros: need.Micros, Tallies: account.Tallies(&a.moment, need),
		}
		r.Scope = account.Scope
		if i < over {
			r.Channel = a.routing.Channels[c].Name
		}
		refunds = append(refunds, r)
	}
	return refunds
}

// ticket is the right of a retry to the active slot of the attempt before; nil when it has none on
// this channel.
func (a *assigner) ticket(t *Task, ch *Channel) *admission.Ticket {
	if t.Row.Pinned == ch.Name && t.Row.Ticket.Valid(a.now, ch.Active.Hold) {
		return t.Row.Ticket
	}
	return nil
}
