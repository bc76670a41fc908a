package dispatch

import (
	"slices"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

// Reasons why a candidate was passed over. They are stored with the choice and stand
// in metrics, so the list is closed; channels add breaker_open and the words of provider.Channel.Ready.
const (
	noSlot       = "no_slot"
	noActive     = "no_active"
	draining     = "draining"
	disabled     = "disabled"
	alreadyTried = "already_tried"
	unfit        = "selector"
	priceCap     = "price_cap"
	throttled    = "throttled"
	pinnedAway   = "pinned_elsewhere"
	removed      = "removed"
	breaker      = "breaker_open"
)

// Reasons of a message that waits or has failed.
const (
	reasonExpired   = "expired"
	reasonNoChannel = "no_channel"
	reasonNoRoute   = "no_route"
	reasonTried     = "all_tried"
	reasonResend    = "resend"
	reasonAttempts  = "too_many_attempts"
)

// maxAttempts ends a message that is throttled or refused again and again.
const maxAttempts = 1000

// Times between looks at a message that no window's end tells when to try.
const (
	lookAgain     = time.Second            // no channel is ready
	lookForActive = 200 * time.Millisecond // only the active count is in the way
	lookForRoute  = 30 * time.Second       // its route is gone or all of it is switched off
	longestRound  = time.Minute            // between rounds over channels that all refused
)

// assigner gives the messages of one claim to channels. It sees the shared state under
// lock and takes slots in it at once, so each next message sees exact load ratios.
// It does no I/O: the same state and the same task always give the same decision.
type assigner struct {
	routing *Routing
	now     time.Time // the database's
	// states has one entry per channel of routing; nil where the claim did not lock it.
	states []*ledger.ChannelState
	// unready has one entry per channel of routing: why this process cannot send on
	// it now, empty when it can.
	unready []string
	// stamp is the time given to the last assignment; strictly ascending.
	stamp time.Time
	// queued counts, per channel, the messages of this claim that wait for a slot.
	queued []int64
	// probed marks the channels that this claim gave a message; a channel that is
	// only probed gets no second one.
	probed []bool
	ranked []selector.Candidate // scratch
}

func newAssigner(routing *Routing, seen *ledger.Seen, unready []string) *assigner {
	a := &assigner{
		routing: routing, now: seen.Now, stamp: seen.Now, unready: unready,
		states: make([]*ledger.ChannelState, len(routing.Channels)),
		queued: make([]int64, len(routing.Channels)), probed: make([]bool, len(routing.Channels)),
	}
	for i := range seen.Channels {
		state := &seen.Channels[i]
		state.Gate.Roll(seen.Now, routing.Zone)
		if state.LastAssigned.After(a.stamp) {
			a.stamp = state.LastAssigned
		}
		if at := routing.channel(state.Name); at >= 0 {
			a.states[at] = state
		}
	}
	return a
}

// decide finds a channel for a message: its first choice if that has a slot and is
// ready, else the first of the ranked others that has, else a wait.
func (a *assigner) decide(t *task) ledger.Decision {
	switch {
	case !t.row.ExpiresAt.After(a.now):
		return ledger.Decision{State: ledger.Failed, Reason: reasonExpired, Plan: t.row.Plan}
	case t.row.Attempts >= maxAttempts:
		return ledger.Decision{State: ledger.Failed, Reason: reasonAttempts, Plan: t.row.Plan}
	case t.problem != "":
		return ledger.Decision{State: ledger.Failed, Reason: string(t.problem), Plan: t.row.Plan}
	case t.route == nil:
		return a.wait(t, reasonNoRoute, a.now.Add(lookForRoute), nil)
	}
	first := a.routing.channel(t.row.Plan.FirstChoice)
	why := removed
	if first >= 0 && slices.Contains(t.route.Members, first) {
		if why = a.obstacle(t, first); why == "" {
			return a.take(t, first, nil)
		}
		if until, ok := a.holdForFirst(t, first, why); ok {
			return a.wait(t, why, until, &Ranking{Version: a.routing.Version, By: "wait", Candidates: []Ranked{a.record(first, why)}})
		}
	}
	return a.fallBack(t, first, why)
}

// fallBack ranks the route's other members and takes the first without an obstacle.
func (a *assigner) fallBack(t *task, first int, why string) ledger.Decision {
	ranking := &Ranking{Version: a.routing.Version, By: "load_ratio"}
	if first >= 0 {
		ranking.Candidates = append(ranking.Candidates, a.record(first, why))
	}
	for _, c := range a.others(t, first) {
		reason := a.obstacle(t, c.Index)
		ranking.Candidates = append(ranking.Candidates, a.record(c.Index, reason))
		if reason == "" {
			return a.take(t, c.Index, ranking)
		}
	}
	return a.nobody(t, ranking)
}

// others ranks the route's members but for the first choice. The list is good until the
// next call.
func (a *assigner) others(t *task, first int) []selector.Candidate {
	a.ranked = a.ranked[:0]
	for _, c := range t.route.Members {
		if c != first {
			a.ranked = append(a.ranked, a.candidate(c))
		}
	}
	selector.ByLoadRatio(a.ranked)
	return a.ranked
}

// nobody decides for a message that no member of its route can take now.
func (a *assigner) nobody(t *task, ranking *Ranking) ledger.Decision {
	reasons := make(map[string]bool, len(ranking.Candidates))
	for _, c := range ranking.Candidates {
		reasons[c.Reason] = true
	}
	switch {
	case onlyReasons(reasons, unfit, priceCap):
		return ledger.Decision{State: ledger.Failed, Reason: reasonNoChannel, Plan: t.row.Plan, Seen: ranking.encode()}
	case onlyReasons(reasons, unfit, priceCap, alreadyTried):
		d := a.wait(t, reasonTried, a.now.Add(roundPause(t.row.Rounds)), ranking)
		d.NewRound = true
		return d
	case onlyReasons(reasons, unfit, priceCap, alreadyTried, draining, disabled, removed):
		return a.wait(t, disabled, a.now.Add(lookForRoute), ranking)
	}
	at, why := a.earliest(t, ranking)
	return a.wait(t, why, at, ranking)
}

// onlyReasons reports whether every reason seen is one of those allowed.
func onlyReasons(seen map[string]bool, allowed ...string) bool {
	for reason := range seen {
		if !slices.Contains(allowed, reason) {
			return false
		}
	}
	return true
}

// roundPause doubles from a second between rounds over channels that all refused.
func roundPause(rounds int) time.Duration {
	return min(time.Second<<min(rounds, 10), longestRound)
}

// earliest is when the first of the considered channels may have room again, and what
// that one lacks. A channel that is not ready may be at any moment, so it is looked at again soon.
func (a *assigner) earliest(t *task, ranking *Ranking) (at time.Time, why string) {
	chosen := -1
	for _, c := range ranking.Candidates {
		next, index := a.now.Add(lookAgain), -1
		switch c.Reason {
		case noSlot:
			index = a.routing.channel(c.Channel)
			next = a.whenFree(t, index)
		case noActive:
			next = a.now.Add(lookForActive)
		case alreadyTried, unfit, priceCap, draining, disabled, removed, pinnedAway:
			continue // waiting does not help with these
		}
		if why == "" || next.Before(at) {
			at, why, chosen = next, c.Reason, index
		}
	}
	if chosen >= 0 {
		a.queued[chosen]++
	}
	if why == "" {
		return a.now.Add(lookForRoute), ranking.Candidates[0].Reason
	}
	return at, why
}

// whenFree estimates when a channel without a slot has one for this message. Those
// that wait for the same channel are spread over the windows to come, so that a long
// queue is not looked at again in full at the start of each window.
func (a *assigner) whenFree(t *task, c int) time.Time {
	gate, parts := &a.states[c].Gate, a.parts(t, &a.routing.Channels[c])
	at := gate.Next(a.now, a.routing.Zone, parts)
	var spread time.Duration
	for i := range gate.Counters {
		if counter := &gate.Counters[i]; counter.Free() < counter.Cost(parts) && counter.Limit.Max > 0 {
			spread = max(spread, time.Duration(a.queued[c]*counter.Cost(parts)/counter.Limit.Max)*time.Duration(counter.Window))
		}
	}
	return at.Add(spread)
}

// holdForFirst reports whether the route lets the message wait for its first choice,
// and until when. Only obstacles that pass by themselves are waited for.
func (a *assigner) holdForFirst(t *task, first int, why string) (time.Time, bool) {
	end := t.row.ReceivedAt.Add(t.route.Wait)
	if t.route.Wait == 0 || !end.After(a.now) || (why != noSlot && why != noActive && why != throttled) {
		return time.Time{}, false
	}
	at := a.now.Add(lookForActive)
	if why == noSlot {
		at = a.whenFree(t, first)
		a.queued[first]++
	}
	if at.After(end) {
		at = end
	}
	return at, true
}

// obstacle is why channel c cannot take the message now; empty when it can.
func (a *assigner) obstacle(t *task, c int) string {
	ch, state := &a.routing.Channels[c], a.states[c]
	switch {
	case t.row.Pinned != "" && t.row.Pinned != ch.Name:
		return pinnedAway
	case slices.Contains(t.row.Tried, ch.Name):
		return alreadyTried
	case ch.State == Disabled:
		return disabled
	case ch.State == Draining:
		return draining
	case !t.route.BypassSelectors && !selector.SatisfiesAll(t.msg.Selectors, ch.Labels):
		return unfit
	case t.msg.MaxPrice != nil && ch.Price.Segment(t.msg.To)*int64(t.segments(ch)) > *t.msg.MaxPrice:
		return priceCap
	case a.unready[c] == provider.Probing:
		if a.probed[c] {
			return breaker
		}
	case a.unready[c] != "":
		return a.unready[c]
	}
	switch {
	case state == nil:
		return removed
	case !state.Gate.Active.Free():
		return noActive
	case !state.Gate.Admits(a.parts(t, ch)):
		return noSlot
	}
	return ""
}

// parts is how many segments an attempt on this channel would submit.
func (a *assigner) parts(t *task, ch *Channel) int {
	if t.row.Pinned == ch.Name && len(t.row.PartsLeft) > 0 {
		return len(t.row.PartsLeft)
	}
	return t.segments(ch)
}

// take gives the message to channel c.
func (a *assigner) take(t *task, c int, ranking *Ranking) ledger.Decision {
	ch, state := &a.routing.Channels[c], a.states[c]
	parts := a.parts(t, ch)
	a.probed[c] = true
	state.Gate.Take(parts)
	a.stamp = a.stamp.Add(time.Microsecond) // the resolution of the database's clock
	state.LastAssigned = a.stamp
	attempt := ledger.Attempt{
		Number: t.row.Attempts + 1, Channel: ch.Name, Reason: attemptReason(t, ch.Name),
		Segments: parts, PriceMicros: int64(parts) * ch.Price.Segment(t.msg.To), Currency: ch.Price.Currency,
	}
	if ranking != nil {
		attempt.Ranking = ranking.encode()
	}
	return ledger.Decision{State: ledger.Sending, Plan: t.row.Plan, Attempt: attempt}
}

func attemptReason(t *task, channel string) ledger.AttemptReason {
	switch {
	case t.row.PossibleDuplicate:
		return ledger.ByResend
	case t.row.Attempts > 0 && (channel == t.row.Plan.FirstChoice || channel == t.row.Pinned):
		return ledger.ByRetry
	case channel == t.row.Plan.FirstChoice:
		return ledger.ByFirstChoice
	}
	return ledger.ByFallback
}

// wait keeps the message until at, but never beyond its deadline.
func (a *assigner) wait(t *task, reason string, at time.Time, ranking *Ranking) ledger.Decision {
	if at.After(t.row.ExpiresAt) {
		at = t.row.ExpiresAt
	}
	d := ledger.Decision{State: ledger.Waiting, Reason: reason, NextAt: at, Plan: t.row.Plan}
	if ranking != nil {
		d.Seen = ranking.encode()
	}
	return d
}

func (a *assigner) candidate(c int) selector.Candidate {
	ch := &a.routing.Channels[c]
	candidate := selector.Candidate{Index: c, Capacity: ch.Capacity}
	if state := a.states[c]; state != nil {
		candidate.Active, candidate.LastAssigned = state.Gate.Active.Count, state.LastAssigned
	}
	return candidate
}

func (a *assigner) record(c int, reason string) Ranked {
	seen := a.candidate(c)
	r := Ranked{Channel: a.routing.Channels[c].Name, Active: seen.Active, Capacity: seen.Capacity, Reason: reason}
	if !seen.LastAssigned.IsZero() {
		r.LastAssigned = &seen.LastAssigned
	}
	return r
}
