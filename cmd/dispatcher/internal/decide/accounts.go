package decide

import (
	"dispatcher/admission"
	"dispatcher/ledger"
)

// counters holds the limit counters that one claim locked, as accounts.
type counters struct {
	index scopes
	own   [][]admission.Account // by channel: the accounts of its own limits; nil until first used
	// narrower has the locked scopes of tenants and prefixes, by their place in the index.
	narrower map[int]*ledger.ScopeState
}

// newCounters rolls every counter forward to the moment of the claim and fills in the settings that
// only the routing knows.
func newCounters(r *Routing, seen *ledger.Seen, m *admission.Moment) counters {
	c := counters{index: r.scopes(), own: make([][]admission.Account, len(r.Channels))}
	if len(seen.Scoped) == 0 {
		return c
	}
	c.narrower = make(map[int]*ledger.ScopeState, len(seen.Scoped))
	for i := range seen.Scoped {
		s := &seen.Scoped[i]
		place, known := c.index.place(s.ScopeRef)
		if !known {
			continue // no limit of this routing version uses it
		}
		c.narrower[place] = s
		for k := range s.Counters {
			CompleteCounter(&s.Counters[k], c.index.at(place).limits)
			m.Roll(&s.Counters[k])
		}
	}
	return c
}

// covers appends the places of the scopes that count the task, and reports whether the claim locked
// all of them.
func (c *counters) covers(dst []int, t *Task) (places []int, locked bool) {
	places = c.index.covering(dst, t)
	for _, place := range places {
		if c.narrower[place] == nil {
			return places, false
		}
	}
	return places, true
}

// accounts appends the limits that count a message on a channel: the channel's own, then those of
// tenant and prefixes on the channel, then, from position over on, those over all channels.
func (a *assigner) accounts(
	dst []admission.Account, t *Task, c int,
) (accounts []admission.Account, over int) {
	counters := &a.counters
	if counters.own[c] == nil {
		counters.own[c] = a.ownAccounts(c)
	}
	dst = append(dst, counters.own[c]...)
	if len(counters.narrower) == 0 {
		return dst, len(dst)
	}
	var memory [8]int
	dst = counters.add(
		dst, counters.index.find(memory[:0], counters.index.on[c], t.Row.Tenant, t.msg.To),
		a.states[c].Gate.Ease.RateAt(a.now),
	)
	over = len(dst)
	// Throttling of one channel does not reduce the limits over all channels.
	overAll := counters.index.find(memory[:0], counters.index.over, t.Row.Tenant, t.msg.To)
	return counters.add(dst, overAll, 1), over
}

// add appends the counters of scopes. No policy divides them among processes.
func (c *counters) add(dst []admission.Account, scopes []int, rate float64) []admission.Account {
	for _, place := range scopes {
		s := c.narrower[place]
		if s == nil {
			continue // not locked: this state was made up for an explanation or an audit
		}
		for k := range s.Counters {
			dst = append(dst, admission.Account{Counter: &s.Counters[k], Rate: rate})
		}
	}
	return dst
}

// ownAccounts are the limits of a whole channel, divided by its policy. A prepaid budget is not
// divided, because it has no history of windows.
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

// Divides reports whether a policy divides slots. Exact does not: the first to claim a slot gets
// it.
func Divides(p admission.Policy) bool {
	_, exact := p.(admission.Exact)
	return p != nil && !exact
}

// need is what the message takes of the limits when it goes to a channel.
func (a *assigner) need(t *Task, ch *Channel) admission.Need {
	parts := a.parts(t, ch)
	return admission.Need{
		Lane: t.Row.Lane, Segments: parts, Micros: t.Price(ch, parts), Expires: t.Row.ExpiresAt,
	}
}

// refundable lists, for each limit in money, what the message takes of it and of its separate
// tallies. The accounts from position over on are limits over all channels.
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

// ticket is the retry's right to the active slot of its previous attempt; nil when it has none on
// this channel.
func (a *assigner) ticket(t *Task, ch *Channel) *admission.Ticket {
	if t.Row.Pinned == ch.Name && t.Row.Ticket.Valid(a.now, ch.Active.Hold) {
		return t.Row.Ticket
	}
	return nil
}
