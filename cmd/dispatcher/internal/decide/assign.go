package decide

import (
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Reasons of a message that waits or has failed.
const (
	reasonExpired   = "expired"
	reasonNoChannel = "no_channel"
	reasonNoRoute   = "no_route"
	reasonTried     = "all_tried"
	reasonPaused    = ledger.ReasonPaused
	reasonResend    = "resend"
	reasonAttempts  = "too_many_attempts"
	ReasonOptedOut  = "opted_out"
	reasonRejected  = "rejected" // a provider rejected it, and none has taken it
)

// maxAttempts ends a message that is throttled or refused again and again. It does not end a
// message whose last attempt was late, because no provider saw that attempt.
const maxAttempts = 1000

// assigner gives the messages of one claim to channels. It sees the shared state under lock and
// takes slots in it at once, so the next message sees exact load ratios. It does no I/O: the same
// state and the same task always give the same decision.
type assigner struct {
	routing  *Routing
	keys     *drawers
	snapshot Snapshot
	now      time.Time // the database's
	moment   admission.Moment
	counters counters
	// states has one entry per channel of routing; nil where the claim did not lock it.
	states []*ledger.ChannelState
	// cursors are those that the claim locked, by route.
	cursors map[string]*ledger.Cursor
	// stamp is the time given to the last assignment; strictly ascending.
	stamp time.Time
	// queued counts, per counter, the units that messages of this claim wait for, and queuedOn the
	// attempts per channel.
	queued   map[*admission.Counter]int64
	queuedOn []int64
	// probed marks the channels that this claim gave a message to. A channel in probing state gets
	// only one.
	probed []bool
	full   fullChannels
	// troubles counts the rankings whose scoring rule failed, by the word for it.
	troubles map[string]int

	// Scratch memory, reused for the next message.

	spare   *candidateOrder // free to use, see newOrder
	memory  []admission.Account
	records []byte // holds the stored orders of this claim
	scores  scoreTexts
}

// decision is what was decided about one message and, when it is sent, what its attempt needs.
type decision struct {
	ledger.Decision
	channel *Channel // the chosen channel; nil unless the message is sent
	release admission.Release
	refunds []ledger.Refund // what goes back to limits in money if nothing is spent
}

func newAssigner(
	routing *Routing, keys *drawers, seen *ledger.Seen, snapshot Snapshot,
) *assigner {
	a := &assigner{
		routing: routing, keys: keys, snapshot: snapshot, now: seen.Now, stamp: seen.Now,
		states:  make([]*ledger.ChannelState, len(routing.Channels)),
		cursors: make(map[string]*ledger.Cursor, len(seen.Cursors)),
		queued:  map[*admission.Counter]int64{}, queuedOn: make([]int64, len(routing.Channels)),
		probed: make([]bool, len(routing.Channels)), troubles: map[string]int{},
	}
	a.moment = admission.Moment{
		Now: seen.Now, Earliest: seen.Now.Add(snapshot.CommitLatency), Zone: routing.Zone,
		Worker: snapshot.Worker,
	}
	a.counters = newCounters(routing, seen, &a.moment)
	index := make(map[string]int, len(routing.Channels))
	for i := range routing.Channels {
		index[routing.Channels[i].Name] = i
	}
	for i := range seen.Channels {
		state := &seen.Channels[i]
		if state.LastAssigned.After(a.stamp) {
			a.stamp = state.LastAssigned
		}
		at, ok := index[state.Name]
		if !ok {
			continue
		}
		a.states[at] = state
		for k := range state.Gate.Counters {
			CompleteCounter(&state.Gate.Counters[k], a.counters.index.own[at])
			a.moment.Roll(&state.Gate.Counters[k])
		}
	}
	for i := range seen.Cursors {
		a.cursors[seen.Cursors[i].Route] = &seen.Cursors[i]
	}
	return a
}

// endOf is the final state of a message that a problem stops.
func endOf(problem envelope.Code) ledger.State {
	if problem.Rejects() {
		return ledger.Rejected
	}
	return ledger.Failed
}

// decide finds a channel for a message, or makes it wait. It also adds the wait that has just ended
// to the message's record of waits.
func (a *assigner) decide(t *Task) decision {
	t.At = a.now
	if t.was == ledger.Accepted {
		if stay, now := a.goesOnNow(t); !now {
			return stay
		}
	}
	d, done := a.withoutChannel(t)
	if !done {
		d = a.assign(t)
	}
	if t.was == ledger.Accepted {
		return a.goOn(t, d)
	}
	if t.Row.MayBeTaken && (d.State == ledger.Failed || d.State == ledger.Rejected) {
		d.State, d.Reason = ledger.Unknown, ReasonAmbiguous // an earlier attempt may have been taken
	}
	if t.was == ledger.Waiting && !t.Row.WaitingSince.IsZero() {
		d.Waits = addWait(t.Row.Waits, ledger.Wait{
			Reason: t.waitedWhy, On: t.Row.WaitsFor, For: a.now.Sub(t.Row.WaitingSince),
		})
	}
	return d
}

// withoutChannel decides about messages that need no choice of a channel: those that end, and those
// that wait whatever the state of the channels. done is false for all others. A message that is
// repeated under its key may have been sent before, so no reason found here fails it.
func (a *assigner) withoutChannel(t *Task) (d decision, done bool) {
	switch {
	case t.cancelledBefore:
		d.Decision = ended(t, ledger.Failed, ledger.ReasonCancelled)
	case a.cannotRepeat(t):
		d.Decision = a.untilResolved(t)
	case t.was == ledger.Retry && t.waitedWhy == reasonRejected:
		d.Decision = ended(t, ledger.Rejected, reasonRejected)
	case !t.Row.ExpiresAt.After(a.now):
		d.Decision = ended(t, ledger.Failed, t.lapse())
	case t.optedOut:
		d.Decision = ended(t, ledger.Rejected, ReasonOptedOut)
	case t.Row.Attempts >= maxAttempts && t.waitedWhy != CodeLate && t.Row.SameKey == "":
		d.Decision = ended(t, ledger.Failed, reasonAttempts)
	case t.problem != "" && t.Row.SameKey == "":
		d.Decision = ended(t, endOf(t.problem), string(t.problem))
	case t.Route == nil:
		d.Decision = a.wait(t, delay{at: a.now.Add(lookForRoute), why: reasonNoRoute}, nil)
	case t.whole() && a.routing.Paused.Holds(t.Row.Lane, t.Row.Tenant, t.Route.Name, t.msg.To):
		d.Decision = a.wait(t, delay{at: a.now.Add(lookWhenPaused), why: reasonPaused}, nil)
	case t.Route.Quiet != nil && t.quiet(a.now):
		d.Decision = a.wait(t, t.quietEnds(a.now), nil)
	default:
		return d, false
	}
	return d, true
}

// ended is the decision to send the message no more.
func ended(t *Task, state ledger.State, reason string) ledger.Decision {
	return ledger.Decision{State: state, Reason: reason, Plan: t.Row.Plan}
}

// assign gives the message to the first candidate that is not excluded; if all are, the message
// waits or fails (see noMember). A first choice taken at the first attempt needs no order and no
// record: draw and weights explain it.
func (a *assigner) assign(t *Task) decision {
	selectors := selector.Unexpired(t.msg.Selectors, a.now.Sub(t.Row.ReceivedAt))
	if t.Route.Draws() && t.First >= 0 {
		room, excluded := a.exclusionOf(t, selectors, t.Route.Members[t.First])
		if excluded.reason == "" && t.Row.Attempts == 0 {
			return a.take(t, t.First, &room, nil)
		}
		if until, ok := a.holdForFirst(t, &excluded); ok {
			return decision{Decision: a.wait(t, until, a.held(t, &excluded))}
		}
	}
	l := a.orderCandidates(t, selectors)
	defer a.reuse(l)
	if l.trouble != "" {
		a.troubles[l.trouble]++
	}
	for i := range l.candidates {
		place, room := l.candidates[i].Index, opening{}
		excluded := exclusion{reason: WeightZero}
		if !l.undrawable(t.Route, i) {
			room, excluded = a.exclusionOf(t, selectors, t.Route.Members[place])
		}
		l.exclusions = append(l.exclusions, excluded)
		if excluded.reason == "" {
			return a.take(t, place, &room, l)
		}
	}
	return decision{Decision: a.noMember(t, l)}
}

// take assigns the message to the member at a place of the route, which has room for it, and counts
// it in the limits there. l is nil for a first choice that needs no record.
func (a *assigner) take(t *Task, place int, room *opening, l *candidateOrder) decision {
	c := t.Route.Members[place]
	ch, state := &a.routing.Channels[c], a.states[c]
	d := decision{
		Decision: ledger.Decision{State: ledger.Sending, Plan: t.Row.Plan}, channel: ch,
		release: room.release,
	}
	if t.Row.Attempts == 0 && !t.Route.Draws() {
		d.Plan.FirstChoice = ch.Name
	}
	d.Attempt = ledger.Attempt{
		Number: t.Row.Attempts + 1, Channel: ch.Name,
		Reason:   t.reason(d.Plan.FirstChoice, ch.Name),
		Segments: room.need.Segments, PriceMicros: room.need.Micros, Currency: ch.Price.Currency,
		LeavesAt: a.leavesAt(&room.release),
	}
	if l != nil {
		d.Attempt.Ranking = a.record(t, l)
		if cursor := a.cursors[t.Route.Name]; cursor != nil && l.turned(t) {
			cursor.Channel, cursor.Position = ch.Name, place
		}
	}
	a.probed[c] = true
	accounts, over := a.accounts(a.memory[:0], t, c)
	a.memory = accounts
	d.refunds = a.refundable(accounts, over, c, &room.need)
	admission.Take(&a.moment, accounts, &room.need, room.release)
	if held := a.ticket(t, ch); held != nil {
		next := held.CheckIn(a.now)
		d.Attempt.Ticket = &next
	} else {
		state.Gate.Active.Count++
	}
	a.stamp = a.stamp.Add(time.Microsecond) // the resolution of the database's clock
	state.LastAssigned = a.stamp
	if a.snapshot.Rooms != nil {
		a.snapshot.Rooms[c].Take(t.Lane.Order == 0)
	}
	return d
}

// leavesAt is the release time to be stored: zero for an attempt that leaves at once and counts in
// the second of its claim. A release time within a millisecond is at once for the worker, too.
func (a *assigner) leavesAt(r *admission.Release) time.Time {
	if r.Counted.Sub(a.now) < time.Millisecond &&
		admission.Second.Start(r.Counted, nil).Equal(admission.Second.Start(a.now, nil)) {
		return time.Time{}
	}
	return r.Counted
}

// reason is why the attempt goes to a channel.
func (t *Task) reason(firstChoice, channel string) ledger.AttemptReason {
	if t.was == ledger.Accepted {
		return ledger.ByNoReceipt
	}
	return AttemptReason(&t.Row, firstChoice, channel)
}

// AttemptReason tells apart first choices, fallbacks, retries and resends. Only a message's first
// attempt can be a first choice; a retry goes to the first choice again, or to the channel that the
// message is pinned to.
func AttemptReason(row *ledger.Message, firstChoice, channel string) ledger.AttemptReason {
	switch {
	case row.PossibleDuplicate:
		return ledger.ByResend
	case row.Attempts > 0 && (channel == firstChoice || channel == row.Pinned):
		return ledger.ByRetry
	case channel == firstChoice:
		return ledger.ByFirstChoice
	}
	return ledger.ByFallback
}
