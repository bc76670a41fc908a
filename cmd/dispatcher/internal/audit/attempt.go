package audit

import (
	"fmt"
	"slices"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// attempt checks the channel, time and price of an attempt, and then adds the attempt to p for the
// next one.
func (c *check) attempt(i int, p *progress) error {
	stored := &c.record.Attempts[i]
	c.sameNumber(stored.Number, whatNumber, int64(stored.Number), int64(i+1))
	c.times(i)
	c.follows(i)
	version, ranking := c.record.Message.Plan.Version, c.read(stored.Number, stored.Ranking)
	if ranking != nil {
		version = ranking.Version
	}
	if i == 0 {
		c.sameNumber(stored.Number, whatVersion, version, c.record.Message.Plan.Version)
	}
	e, err := c.under(stored.Number, version)
	if err != nil {
		return err
	}
	if e == nil {
		c.lose(stored, p)
		return nil
	}
	c.notAhead(stored.Number, e, stored.ClaimedAt)
	c.notPast(stored.Number, e, stored.ClaimedAt)
	t := c.task(stored.Number, e, p, ranking)
	if t.Route == nil {
		c.lose(stored, p)
		return nil
	}
	t.At = stored.ClaimedAt // decides which price list is used
	c.quiet(e, t, p, i)
	if ranking != nil {
		c.ranking(
			e,
			t,
			p,
			&choice{
				ranking: ranking, attempt: stored.Number, channel: stored.Channel,
				at: stored.ClaimedAt,
			},
		)
	} else if stored.Ranking == nil {
		c.withoutRanking(e, t, p, i)
	}
	c.reason(e, t, p, i)
	parts, guessed := c.bill(e, t, p, i)
	if c.repeated(e, i) {
		p.repeat(stored.Channel)
	} else {
		p.after(stored, t.Row.Pinned, t.Route.HoldThrottled, parts)
	}
	p.guessed = guessed && p.left > 0
	return nil
}

// lose adds to p an attempt whose version is unusable or has no route for the message. After it, p
// does not know what is left to send, nor the channel that the message is pinned to.
func (c *check) lose(stored *ledger.AttemptRecord, p *progress) {
	p.after(stored, "", false, 0)
	p.known, p.pinned, p.left = false, "", 0
}

// follows checks that the attempt before left something to send.
func (c *check) follows(i int) {
	if i == 0 {
		return
	}
	before := &c.record.Attempts[i-1]
	switch before.Outcome {
	case "", "accepted", "rejected":
		if before.Outcome == "accepted" && c.record.Attempts[i].Reason == ledger.ByNoReceipt {
			return // see withoutReceipt
		}
		if !late(before) { // a late answer may come after the next attempt
			c.differs(
				before.Number, whatOutcome, orPending(before.Outcome),
				"an answer after which it is sent again",
			)
		}
	}
}

// withoutRanking checks an attempt without a ranking: it must be a drawn first choice without an
// exclusion, at the first attempt.
func (c *check) withoutRanking(e *edition, t *decide.Task, p *progress, i int) {
	stored := &c.record.Attempts[i]
	if i > 0 || !t.Route.Draws() {
		c.differs(stored.Number, whatRanking, "none", "one of route "+t.Route.Name)
		return
	}
	c.same(stored.Number, whatChannel, stored.Channel, c.record.Message.Plan.FirstChoice)
	if place := e.Routing.MemberIndex(t.Route, stored.Channel); place >= 0 {
		ch := &choice{
			attempt: stored.Number, channel: stored.Channel, at: stored.ClaimedAt,
			ranking: &decide.Ranking{},
		}
		c.exclusions(e, t, p, ch, []decide.Ranked{{Channel: stored.Channel}}, []int{place})
	}
}

// reason checks the reason of an attempt: first choice, fallback, retry and so on.
func (c *check) reason(e *edition, t *decide.Task, p *progress, i int) {
	stored := &c.record.Attempts[i]
	before := c.record.Attempts[:i]
	replaced := slices.ContainsFunc(before, func(a ledger.AttemptRecord) bool { return late(&a) })
	then := t.Row
	then.PossibleDuplicate = p.ambiguous
	want := decide.AttemptReason(&then, c.firstChoice(t, i), stored.Channel)
	if p.accepted {
		want = ledger.ByNoReceipt
	}
	switch {
	case stored.Reason == ledger.ByNoReceipt:
		c.withoutReceipt(t, i)
	case stored.Reason == want:
	case stored.Reason == ledger.ByResend && replaced: // the late answer came after the resend
	case stored.Reason == ledger.ByRetry && !p.known && want == ledger.ByFallback &&
		slices.ContainsFunc(before, func(a ledger.AttemptRecord) bool {
			return a.Channel == stored.Channel
		}):
	default:
		c.differs(stored.Number, whatReason, string(stored.Reason), string(want))
	}
	c.resent(e, i)
}

// firstChoice is the first choice by which the reasons of attempts are derived.
func (c *check) firstChoice(t *decide.Task, i int) string {
	if i == 0 && !t.Route.Draws() {
		return c.record.Attempts[0].Channel
	}
	return c.record.Message.Plan.FirstChoice
}

// resent checks a message that was sent again after an attempt without an answer: its lane allows
// that, and it happened once. It does not check the lane for attempts of a lost instance, because
// they are resolved under a version that is not recorded.
func (c *check) resent(e *edition, i int) {
	a := &c.record.Attempts[i]
	if a.Outcome != "unknown" || i+1 == len(c.record.Attempts) || c.repeated(e, i) {
		return
	}
	if lane, named := e.Routing.Lanes[c.record.Message.Lane]; named && !lane.ResendOnce() &&
		a.Code != decide.CodeLost {
		c.differs(
			a.Number+1, whatReason, "resend",
			"none: lane "+lane.Name+" does not send again what may have been sent",
		)
	}
	for before := range i {
		if c.record.Attempts[before].Outcome == "unknown" && !c.repeated(e, before) {
			c.differs(a.Number+1, whatReason, "resend", "none: it was sent again before")
		}
	}
}

// repeated reports whether the next attempt repeats this one, which has no answer, under the same
// key, as the lane allows. The provider takes and bills the two as one. The repeat of a resend has
// the reason resend.
func (c *check) repeated(e *edition, i int) bool {
	return c.record.Attempts[i].Outcome == "unknown" && c.continued(e, i)
}

// continued is like repeated but ignores the outcome, which may have become known later. It is also
// true after the last attempt, if the message waited to be repeated: then its channel was not
// excluded as already tried.
func (c *check) continued(e *edition, i int) bool {
	lane, named := e.Routing.Lanes[c.record.Message.Lane]
	if named && !lane.Clears(ledger.SameKey) {
		return false
	}
	this := &c.record.Attempts[i]
	if i+1 == len(c.record.Attempts) {
		return c.seen != nil && c.seen.Attempts == i+1 &&
			waitsForRepeat(c.seen.Candidates, this.Channel)
	}
	next := &c.record.Attempts[i+1]
	again := next.Reason == ledger.ByRetry ||
		next.Reason == ledger.ByResend && this.Reason == ledger.ByResend
	return next.Channel == this.Channel && again
}

// waitsForRepeat reports whether a message waited to be submitted again to this channel only: it
// was not excluded as already tried, and all others were excluded because the message was pinned.
func waitsForRepeat(candidates []decide.Ranked, channel string) bool {
	waits := false
	for i := range candidates {
		switch r := &candidates[i]; {
		case r.Reason == decide.Removed: // a first choice that is no longer a member of the route
		case r.Channel == channel:
			waits = r.Reason != decide.AlreadyTried
		case r.Reason != decide.PinnedElsewhere:
			return false
		}
	}
	return waits
}

// bill checks what was billed: the price of the version, for as many segments as were accepted or
// may have been. It returns how many parts the attempt was to submit; guessed is set when the text
// is gone and parts is only a lower bound.
func (c *check) bill(
	e *edition, t *decide.Task, p *progress, i int,
) (parts int, guessed bool) {
	stored := &c.record.Attempts[i]
	place := e.Routing.MemberIndex(t.Route, stored.Channel)
	if place < 0 {
		c.differs(stored.Number, whatChannel, stored.Channel, "a member of route "+t.Route.Name)
		return 0, false
	}
	ch := &e.Routing.Channels[t.Route.Members[place]]
	c.price(e, t, ch, stored)
	c.same(stored.Number, whatCurrency, stored.Currency, ch.Price.Currency)
	if c.cutsOtherwise(t, ch) || p.guessed {
		return c.partsOf(stored)
	}
	parts = e.Parts(t, ch)
	least, most := billable(stored.Outcome, parts)
	switch {
	case (late(stored) || stored.Outcome == "unknown") && c.continued(e, i):
		least = 0
	case !p.known, late(stored): // some parts may be known not to have been taken
		least = min(least, 1)
	}
	if stored.Segments < least || stored.Segments > most {
		c.differs(
			stored.Number, whatSegments,
			fmt.Sprintf("%d %s", stored.Segments, orPending(stored.Outcome)),
			fmt.Sprintf("%d to %d of %d", least, most, parts),
		)
	}
	return parts, false
}

// billable is how many of the submitted parts may be billed after an outcome, at least and at most:
// those that were accepted or may have been. A pending attempt has the full cost.
func billable(outcome string, parts int) (least, most int) {
	switch outcome {
	case "", "accepted":
		return parts, parts
	case "unknown":
		return 1, parts
	}
	return 0, max(parts-1, 0)
}
