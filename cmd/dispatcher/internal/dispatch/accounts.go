package dispatch

import (
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// standpoint is from where, and knowing what of the others, a claim decides.
type standpoint struct {
	// lead is how long it takes to make a decision durable: no attempt leaves before that.
	lead   time.Duration
	worker admission.Worker
	// fleet is what all processes were doing a moment ago; nil knows of none but this one.
	fleet *fleet
	// rooms has one entry per channel of the routing: what it may take in this process; nil bounds none.
	rooms []room
}

// books are the counters that one claim locked, as accounts.
type books struct {
	index *scopeIndex
	own   [][]admission.Account // by channel: of its own limits; nil until it is asked for
	// narrower has the scopes that the claim locked, by their place in the index.
	narrower map[int]*ledger.ScopeState

	// The rest is good until the next message or channel is looked at.

	open    []admission.Account // that count the message
	mine    int                 // how many of open, from the front, are the channel's and not over all channels
	covered []int               // places of scopes
}

// newBooks moves every counter of a claim on to its moment, and tells it what only the routing knows.
func newBooks(r *Routing, seen *ledger.Seen, m *admission.Moment) books {
	b := books{index: r.scopeIndex(), own: make([][]admission.Account, len(r.Channels))}
	if len(seen.Scoped) == 0 {
		return b
	}
	b.narrower = make(map[int]*ledger.ScopeState, len(seen.Scoped))
	for i := range seen.Scoped {
		s := &seen.Scoped[i]
		place, known := b.index.places[s.ScopeRef]
		if !known {
			continue // the claim is of this version, so nobody asks for its counters either
		}
		b.narrower[place] = s
		for k := range s.Counters {
			complete(&s.Counters[k], b.index.narrower[place].limits)
			m.Roll(&s.Counters[k])
		}
	}
	return b
}

// covers lists the places of the scopes that count the task, and tells whether the claim locked all of them. The list
// is good until the next call of anything.
func (b *books) covers(t *task) (places []int, locked bool) {
	b.covered = b.index.covering(b.covered[:0], t)
	for _, place := range b.covered {
		if b.narrower[place] == nil {
			return b.covered, false
		}
	}
	return b.covered, true
}

// accounts are the limits that count a message on a channel: the channel's own, those of tenant and
// prefixes on it, and those over all channels.
func (a *assigner) accounts(t *task, c int) []admission.Account {
	b := &a.books
	if b.own[c] == nil {
		b.own[c] = a.ownAccounts(c)
	}
	b.open = append(b.open[:0], b.own[c]...)
	b.covered = b.index.on[c].find(b.covered[:0], t.row.Tenant, t.msg.To)
	b.add(a.states[c].Gate.Ease.RateAt(a.now))
	b.mine = len(b.open)
	b.covered = b.index.over.find(b.covered[:0], t.row.Tenant, t.msg.To)
	b.add(1) // one channel that was asked to slow down slows no other
	return b.open
}

// add opens the counters of the covered scopes. They are divided among processes by no policy.
func (b *books) add(rate float64) {
	for _, place := range b.covered {
		s := b.narrower[place]
		if s == nil {
			continue // nothing was locked: the channel's state was made up, for an explanation or an audit
		}
		for k := range s.Counters {
			b.open = append(b.open, admission.Account{Counter: &s.Counters[k], Rate: rate})
		}
	}
}

// ownAccounts are those of the limits of a whole channel, divided by its policy.
func (a *assigner) ownAccounts(c int) []admission.Account {
	ch, gate := &a.routing.Channels[c], &a.states[c].Gate
	accounts, rate := make([]admission.Account, len(gate.Counters)), gate.Ease.RateAt(a.now)
	for i := range gate.Counters {
		accounts[i] = admission.Account{Counter: &gate.Counters[i], Rate: rate}
		if divides(ch.Policy) {
			state := a.stand.fleet.state(ch.Name, &gate.Counters[i], a.stand.worker.Region)
			accounts[i].Policy, accounts[i].Split = ch.Policy, ch.Policy.Split(&state)
		}
	}
	return accounts
}

// divides reports whether a policy divides slots at all: exact leaves them to whoever comes first.
func divides(p admission.Policy) bool {
	_, exact := p.(admission.Exact)
	return p != nil && !exact
}

// need is what the message wants of the limits when it goes to a channel.
func (a *assigner) need(t *task, ch *Channel) admission.Need {
	parts := a.parts(t, ch)
	return admission.Need{Lane: t.row.Lane, Segments: parts, Micros: t.price(ch, parts)}
}

// fitting is the place that was found for a message on a channel. It is good until another is looked for.
type fitting struct {
	task    *task
	channel int
	need    admission.Need
	place   admission.Release
}

// blockage is what keeps a message from a channel for the time being; the zero value is a reason
// that no counter knows of.
type blockage struct {
	counter *admission.Counter
	why     admission.Why
	// when it may be over, zero for never; cost is what the message takes of the counter.
	when time.Time
	cost int64
	// over is set for a limit over all channels.
	over bool
}

// fit looks for a place for the task on channel c under all limits that count it. The word is empty
// when there is one.
func (a *assigner) fit(t *task, c int) (word string) {
	f := &a.fitting
	f.task, f.channel, f.need = t, c, a.need(t, &a.routing.Channels[c])
	accounts := a.accounts(t, c)
	var o *admission.Exclusion
	if f.place, o = admission.Fit(&a.moment, accounts, &f.need); o == nil {
		return ""
	}
	f.task = nil
	a.blockage = blockage{counter: o.Counter, why: o.Why, when: o.When, cost: o.Counter.Cost(&f.need)}
	for i := a.books.mine; i < len(accounts); i++ {
		a.blockage.over = a.blockage.over || accounts[i].Counter == o.Counter
	}
	return obstacleWord(o)
}

// admit counts the message at the place that was found for it on channel c. It returns what goes
// back to limits in money if nothing is spent.
func (a *assigner) admit(t *task, c int) []ledger.Refund {
	f := &a.fitting
	if f.task != t || f.channel != c {
		if a.fit(t, c) != "" {
			panic("dispatch: a message is given to a channel that has no place for it")
		}
	}
	refunds := a.refundable(c)
	admission.Take(&a.moment, a.books.open, &f.need, f.place)
	f.task = nil // it is taken
	return refunds
}

// refundable is what the message is about to take on channel c of each limit in money that is open, and of what that counts apart.
func (a *assigner) refundable(c int) (refunds []ledger.Refund) {
	f := &a.fitting
	if f.need.Micros == 0 {
		return nil
	}
	for i := range a.books.open {
		account := &a.books.open[i]
		if account.Unit != admission.Money {
			continue
		}
		r := ledger.Refund{Window: account.Window, Micros: f.need.Micros, Tallies: account.Tallies(&a.moment, &f.need)}
		r.Scope = account.Scope
		if i < a.books.mine {
			r.Channel = a.routing.Channels[c].Name
		}
		refunds = append(refunds, r)
	}
	return refunds
}

// ticket is the right of a retry to the active slot of the attempt before; nil when it has none on
// this channel.
func (a *assigner) ticket(t *task, ch *Channel) *admission.Ticket {
	if t.row.Pinned == ch.Name && t.row.Ticket.Valid(a.now, ch.Active.Hold) {
		return t.row.Ticket
	}
	return nil
}
