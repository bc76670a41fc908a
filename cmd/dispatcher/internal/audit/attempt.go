package audit

import (
	"fmt"
	"slices"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// attempt checks why an attempt went to its channel, when, and what it was to cost. It then
// takes it into account for the next one.
func (c *check) attempt(i int, s *progress) error {
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
		c.lose(stored, s)
		return nil
	}
	c.notAhead(stored.Number, e, stored.ClaimedAt)
	c.notPast(stored.Number, e, stored.ClaimedAt)
	t := c.task(stored.Number, e, s, ranking)
	if t.Route == nil {
		c.lose(stored, s)
		return nil
	}
	t.At = stored.ClaimedAt // by which it was priced
	c.quiet(e, t, s, i)
	if ranking != nil {
		c.ranking(
			e,
			t,
			s,
			&choice{
				ranking: ranking, attempt: stored.Number, channel: stored.Channel,
				at: stored.ClaimedAt,
			},
		)
	} else if stored.Ranking == nil {
		c.withoutRanking(e, t, s, i)
	}
	c.reason(e, t, s, i)
	parts, guessed := c.bill(e, t, s, i)
	if c.repeated(e, i) {
		s.repeat(stored.Channel)
	} else {
		s.after(stored, t.Row.Pinned, t.Route.HoldThrottled, parts)
	}
	s.guessed = guessed && s.left > 0
	return nil
}

// lose takes an attempt into account whose version tells nothing: what it left behind is not known.
func (c *check) lose(stored *ledger.AttemptRecord, s *progress) {
	s.after(stored, "", false, 0)
	s.known, s.pinned, s.left = false, "", 0
}

// follows checks that the attempt before left anything to be sent.
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
		if !late(before) { // a late answer may find the message on its way again
			c.differs(
				before.Number, whatOutcome, orPending(before.Outcome),
				"an answer after which it is sent again",
			)
		}
	}
}

// withoutRanking: only a first choice that was drawn and went through needs no record of others.
func (c *check) withoutRanking(e *edition, t *decide.Task, s *progress, i int) {
	stored := &c.record.Attempts[i]
	if i > 0 || !t.Route.Draws() {
		c.differs(stored.Number, whatRanking, "none", "one of route "+t.Route.Name)
		return
	}
	c.same(stored.Number, whatChannel, stored.Channel, c.record.Message.Plan.FirstChoice)
	if place := e.Routing.Place(t.Route, stored.Channel); place >= 0 {
		ch := &choice{
			attempt: stored.Number, channel: stored.Channel, at: stored.ClaimedAt,
			ranking: &decide.Ranking{},
		}
		c.exclusions(e, t, s, ch, []decide.Ranked{{Channel: stored.Channel}}, []int{place})
	}
}

// reason checks the word that tells first choices from fallbacks, retries and resends.
func (c *check) reason(e *edition, t *decide.Task, s *progress, i int) {
	stored := &c.record.Attempts[i]
	before := c.record.Attempts[:i]
	replaced := slices.ContainsFunc(before, func(a ledger.AttemptRecord) bool { return late(&a) })
	then := t.Row
	then.PossibleDuplicate = s.ambiguous
	want := decide.AttemptReason(&then, c.firstChoice(t, i), stored.Channel)
	if s.accepted {
		want = ledger.ByNoReceipt
	}
	switch {
	case stored.Reason == ledger.ByNoReceipt:
		c.withoutReceipt(t, i)
	case stored.Reason == want:
	case stored.Reason == ledger.ByResend && replaced: // it had no answer when it was sent again
	case stored.Reason == ledger.ByRetry && !s.known && want == ledger.ByFallback &&
		slices.ContainsFunc(before, func(a ledger.AttemptRecord) bool {
			return a.Channel == stored.Channel
		}):
	default:
		c.differs(stored.Number, whatReason, string(stored.Reason), string(want))
	}
	c.resent(e, i)
}

// firstChoice is what the reasons of attempts go by.
func (c *check) firstChoice(t *decide.Task, i int) string {
	if i == 0 && !t.Route.Draws() {
		return c.record.Attempts[0].Channel
	}
	return c.record.Message.Plan.FirstChoice
}

// resent checks that a lane allows it, when a message went on without an answer, and that it did so
// once. What a lost instance left is resolved by whoever recovers it, under a version that is not
// on record.
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

// repeated reports whether the attempt after this one repeats it under the same key, as its lane
// allows: that is no second message, and the provider bills the two once. The repeat of a resend
// counts as a resend.
func (c *check) repeated(e *edition, i int) bool {
	return c.record.Attempts[i].Outcome == "unknown" && c.continued(e, i)
}

// continued is repeated for whatever became known of the attempt later. A message may also have
// waited for its repeat until the search ended: then its channel was not passed over as tried.
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

// waitsForRepeat reports whether a message waited to be submitted once more to the channel, and to
// no other: it was not passed over as tried, and all others were because the message was pinned.
func waitsForRepeat(candidates []decide.Ranked, channel string) bool {
	waits := false
	for i := range candidates {
		switch r := &candidates[i]; {
		case r.Reason == decide.Removed: // the first choice of an earlier version, which is no member
		case r.Channel == channel:
			waits = r.Reason != decide.AlreadyTried
		case r.Reason != decide.PinnedElsewhere:
			return false
		}
	}
	return waits
}

// bill checks what was billed: the price of the version for as many segments as the answer
// accepted, or may have. It returns how many the attempt was to submit; guessed is set when that is
// only known to be more than were billed.
func (c *check) bill(
	e *edition, t *decide.Task, s *progress, i int,
) (parts int, guessed bool) {
	stored := &c.record.Attempts[i]
	place := e.Routing.Place(t.Route, stored.Channel)
	if place < 0 {
		c.differs(stored.Number, whatChannel, stored.Channel, "a member of route "+t.Route.Name)
		return 0, false
	}
	ch := &e.Routing.Channels[t.Route.Members[place]]
	c.price(e, t, ch, stored)
	c.same(stored.Number, whatCurrency, stored.Currency, ch.Price.Currency)
	if c.cutsOtherwise(t, ch) || s.guessed {
		return c.partsOf(stored)
	}
	parts = e.Parts(t, ch)
	least, most := billable(stored.Outcome, parts)
	switch {
	case (late(stored) || stored.Outcome == "unknown") && c.continued(e, i):
		least = 0
	case !s.known, late(stored): // of some parts it may have been known that they were not taken
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

// billable is how many of the parts that were to be submitted an outcome leaves on the bill: all
// that were accepted, or that may have been. A pending attempt holds what it is to cost.
func billable(outcome string, parts int) (least, most int) {
	switch outcome {
	case "", "accepted":
		return parts, parts
	case "unknown":
		return 1, parts
	}
	return 0, max(parts-1, 0)
}
