package audit

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// message checks the row of the message against its attempts.
func (c *check) message() {
	row, attempts := &c.record.Message, c.record.Attempts
	c.sameNumber(0, whatNumber, int64(row.Attempts), int64(len(attempts)))
	if len(attempts) == 0 {
		return
	}
	if want := c.endsOtherwise(); want != "" && !rejectedByList(row) {
		last := attempts[len(attempts)-1].Outcome
		c.differs(
			0, whatOutcome, string(row.State)+" after "+orPending(last),
			string(row.State)+" after "+want,
		)
	}
	for i := range attempts {
		if attempts[i].Reason == ledger.ByResend && !row.PossibleDuplicate {
			c.differs(
				attempts[i].Number, whatReason, "resend",
				"a message that is flagged as a possible duplicate",
			)
		}
		if a := &attempts[i]; a.Reason == ledger.ByNoReceipt && !row.PossibleDuplicate &&
			(a.Outcome == "accepted" || a.Outcome == "unknown") {
			c.differs(a.Number, whatReason, string(a.Reason),
				"a message that is flagged as a possible duplicate")
		}
	}
}

// rejectedByList reports whether the message ended because its recipient had opted out or its
// number was blocked. That may follow any outcome after which it was to be sent again.
func rejectedByList(row *ledger.Message) bool {
	return row.State == ledger.Rejected &&
		(row.Reason == decide.ReasonOptedOut || envelope.Code(row.Reason).Rejects())
}

// endsOtherwise returns the outcomes that the state of the message requires, if its attempts have
// others, and "" if the state follows from them. The last attempt decides, with two exceptions for
// a message that was resent: a late answer to the earlier attempt can make it accepted, and it
// stays unknown if the resend was refused, because the first attempt may have been taken. States
// that are not listed here follow from any outcome.
func (c *check) endsOtherwise() string {
	attempts := c.record.Attempts
	last := attempts[len(attempts)-1].Outcome
	some := func(test func(*ledger.AttemptRecord) bool) bool {
		return slices.ContainsFunc(attempts, func(a ledger.AttemptRecord) bool { return test(&a) })
	}
	switch c.record.Message.State {
	case ledger.Sending:
		return unless(last == "", orPending(""))
	case ledger.Rejected:
		return unless(last == "rejected", "rejected")
	case ledger.Accepted: // or a receipt contradicts the provider's answer
		return unless(some(func(a *ledger.AttemptRecord) bool {
			return a.Outcome == "accepted" || !a.ContradictedAt.IsZero()
		}), "accepted")
	case ledger.Unknown:
		open := some(
			func(a *ledger.AttemptRecord) bool { return a.Outcome == "unknown" || late(a) },
		)
		return unless(
			open && last != "" && last != "accepted",
			"unknown, or a no after an attempt without answer",
		)
	case ledger.Scheduled, ledger.Waiting, ledger.Retry, ledger.Delivered, ledger.Undelivered,
		ledger.NoReceipt, ledger.Failed, ledger.Dead:
	}
	return ""
}

// interval checks the number of possible draws, and that the draw is in the interval of the first
// choice. That needs no key.
func (c *check) interval(t *decide.Task) {
	stored, table := &c.record.Message.Plan, t.Route.Table
	c.sameNumber(0, whatSize, stored.Size, int64(table.Size()))
	if stored.Draw >= 0 && stored.Draw < int64(table.Size()) {
		c.same(0, whatFirstChoice, stored.FirstChoice,
			table.Entry(table.Pick(uint64(stored.Draw))).Name)
	}
}

// unless returns otherwise if a state does not follow.
func unless(follows bool, otherwise string) string {
	if follows {
		return ""
	}
	return otherwise
}

func orPending(outcome string) string {
	if outcome == "" {
		return "no answer yet"
	}
	return outcome
}

// plan checks the plan, which was made before any shared state was read.
func (c *check) plan() error {
	stored := &c.record.Message.Plan
	e, err := c.under(0, stored.Version)
	if err != nil || e == nil {
		return err
	}
	if len(c.record.Attempts) == 0 {
		c.notPast(0, e, c.record.Message.ReceivedAt)
		c.notAhead(0, e, c.record.FinishedAt)
	}
	t := c.task(0, e, &progress{known: true}, nil)
	if t.Route == nil {
		return nil
	}
	c.planned = t
	derived := &t.Row.Plan
	c.same(0, whatRoute, stored.Route, derived.Route)
	c.sameNumber(0, whatSegments, int64(stored.Segments), int64(derived.Segments))
	c.same(0, whatAlphabet, stored.Alphabet, derived.Alphabet)
	if c.withoutPayload {
		c.segmentsFit(e, t)
	}
	if !t.Route.Draws() {
		c.sameNumber(0, whatSize, stored.Size, 0)
		c.same(0, whatFirstChoice, stored.FirstChoice, c.firstAttempt())
		return nil
	}
	if len(c.v.keys) == 0 && !t.Route.Sticky {
		c.withoutKey()
		c.interval(t)
		return nil
	}
	if !e.Draws(t.Route, stored.KeyID) {
		c.differs(0, whatDrawKey, stored.KeyID, "not in the key file")
		return nil
	}
	c.sameNumber(0, whatSize, stored.Size, derived.Size)
	c.sameNumber(0, whatDraw, stored.Draw, derived.Draw)
	c.same(0, whatFirstChoice, stored.FirstChoice, derived.FirstChoice)
	return nil
}

// firstAttempt is the channel of the first attempt. On a route that does not draw, that is the
// first choice.
func (c *check) firstAttempt() string {
	if len(c.record.Attempts) == 0 {
		return ""
	}
	return c.record.Attempts[0].Channel
}

// notPast checks that a version was still in force at a time. It does not check the zero time.
func (c *check) notPast(attempt int, e *edition, at time.Time) {
	if !at.IsZero() && !e.Until.IsZero() && at.After(e.Until.Add(e.Overlap+clockTolerance)) {
		c.differs(
			attempt, whatVersion, versionAt(e, at),
			"one in force then: this was until "+e.Until.Format(time.RFC3339Nano),
		)
	}
}

// notAhead checks that a version was already in force at a time. It does not check the zero time.
func (c *check) notAhead(attempt int, e *edition, at time.Time) {
	if !at.IsZero() && at.Before(e.From.Add(-clockTolerance)) {
		c.differs(
			attempt, whatVersion, versionAt(e, at),
			"one in force then: this was from "+e.From.Format(time.RFC3339Nano),
		)
	}
}

func versionAt(e *edition, at time.Time) string {
	return strconv.FormatInt(e.Routing.Version, 10) + " at " + at.Format(time.RFC3339Nano)
}

// times checks the time of an attempt's claim: after the message was received and the attempt
// before was claimed, and before the deadline and its own answer.
func (c *check) times(i int) {
	row, attempts := &c.record.Message, c.record.Attempts
	at := attempts[i].ClaimedAt
	after := func(moment time.Time, what string) {
		if !moment.IsZero() && at.Before(moment.Add(-clockTolerance)) {
			c.differs(
				attempts[i].Number, whatTime, at.Format(time.RFC3339Nano),
				fmt.Sprintf("after %s at %s", what, moment.Format(time.RFC3339Nano)),
			)
		}
	}
	before := func(moment time.Time, what string) {
		if !moment.IsZero() && at.After(moment.Add(clockTolerance)) {
			c.differs(
				attempts[i].Number, whatTime, at.Format(time.RFC3339Nano),
				fmt.Sprintf("before %s at %s", what, moment.Format(time.RFC3339Nano)),
			)
		}
	}
	after(row.ReceivedAt, "the message was received")
	if i > 0 {
		after(attempts[i-1].ClaimedAt, "the attempt before")
	}
	before(row.ExpiresAt, "its deadline")
	before(c.msg.ExpiresAt, "the deadline in its envelope")
	before(attempts[i].SettledAt, "its answer")
}
