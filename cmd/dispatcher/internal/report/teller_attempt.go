package report

import (
	"fmt"

	"dispatcher/ledger"
)

// attempt tells where an attempt went, why there, and what came of it.
func (t *teller) attempt(i int) {
	a := &t.story.Attempts[i]
	number := fmt.Sprintf("Attempt %d", a.Attempt)
	t.expired(a)
	t.trouble(a)
	switch ledger.AttemptReason(a.Reason) {
	case ledger.ByFirstChoice:
		t.ranked(a, number)
	case ledger.ByRetry:
		t.say("%s went to %s again %s.", number, a.Channel, t.at(a.ClaimedAt))
	case ledger.ByResend:
		t.say("Lane %s allows one more try after a missing answer: attempt %d went to %s %s.",
			t.record.Message.Lane, a.Attempt, a.Channel, t.at(a.ClaimedAt))
	case ledger.ByFallback:
		t.ranked(a, number)
	default:
		t.say("%s went to %s %s.", number, a.Channel, t.at(a.ClaimedAt))
	}
	t.outcome(a)
	t.contradicted(a)
}

// ranked names why this channel came next, and those that were passed over before it.
func (t *teller) ranked(a *Attempt, number string) {
	passed := passedOver(a.Candidates)
	switch {
	case len(a.Candidates) == 0 && ledger.AttemptReason(a.Reason) == ledger.ByFallback:
		t.say("%s went to %s as a fallback %s.", number, a.Channel, t.at(a.ClaimedAt))
	case len(a.Candidates) == 0:
		t.say("%s went to %s %s.", number, a.Channel, t.at(a.ClaimedAt))
	case len(passed) == 0:
		t.say("%s went to %s%s, %s.", number, a.Channel, t.merit(a), t.at(a.ClaimedAt))
	default:
		t.say("%s went to %s%s, %s, because %s.", number, a.Channel, t.merit(a), t.at(a.ClaimedAt), reasons(passed))
	}
}

// Words of audit.attempts.outcome.
const (
	outcomeAccepted  = "accepted"
	outcomeRejected  = "rejected"
	outcomeRefused   = "refused"
	outcomeThrottled = "throttled"
	outcomeUnknown   = "unknown"
)

// outcome tells what the provider made of it.
func (t *teller) outcome(a *Attempt) {
	took := ""
	if a.SettledAt != nil {
		took = " after " + span(a.SettledAt.Sub(a.ClaimedAt))
	}
	if foundOut[a.Code] != "" {
		t.foundOut(a, took)
		return
	}
	switch a.Outcome {
	case "":
		t.say("No answer has come yet.")
	case outcomeAccepted:
		t.say("%s accepted it%s%s%s.", a.Channel, took, bill(a), t.underOther(a))
	case outcomeRejected:
		if a.Segments > 0 {
			t.say("%s accepted %d of %s%s and rejected the rest for good%s%s: the message itself was at fault, so no other channel was tried. What it accepted is billed, and the subscriber may have it.",
				a.Channel, a.Segments, plural(t.record.Message.Plan.Segments, "segment"), price(a), took, code(a.Code))
			return
		}
		t.say("%s rejected it for good%s%s: the message itself was at fault, so no other channel was tried.", a.Channel, took, code(a.Code))
	case outcomeUnknown:
		t.say("%s gave no answer%s: it may have taken the message%s.", a.Channel, code(a.Code), bill(a))
	case outcomeRefused:
		t.notTaken(a, "did not take it", "did not take the rest")
		t.unfit(a)
	case outcomeThrottled:
		t.notTaken(a, "asked to slow down", "asked to slow down before the rest")
	default:
		t.say("Its outcome was %s.", a.Outcome)
	}
}

// notTaken tells of an attempt after which the message went on, whole or in part.
func (t *teller) notTaken(a *Attempt, whole, rest string) {
	switch {
	case a.Segments > 0:
		t.say("%s accepted %d of %s%s and %s%s. The rest had to stay with it.", a.Channel, a.Segments,
			plural(t.record.Message.Plan.Segments, "segment"), price(a), rest, code(a.Code))
	case a.Code == "late":
		t.say("It never left: when its turn came, its place in the limits of %s had passed or %s was pausing, so it was put back at once%s.",
			a.Channel, a.Channel, code(a.Code))
	case a.Code == "expired":
		t.say("It never left: the message's deadline passed before its turn came%s.", code(a.Code))
	case a.Code == "stopping" || a.Code == "stale":
		t.say("It never left: it was held back in time%s.", code(a.Code))
	default:
		t.say("%s %s%s.", a.Channel, whole, code(a.Code))
	}
}

// unfit tells that a refusal is about the one message.
func (t *teller) unfit(a *Attempt) {
	if a.Unfit {
		t.say("That was for its text, its sender or where it goes, and is no fault of %s.", a.Channel)
	}
}

// bill says what an attempt costs, and the provider's own ids of it.
func bill(a *Attempt) string {
	s := ""
	if a.Reference != "" {
		s = ", reference " + a.Reference
	}
	if a.Segments > 0 {
		s += ", " + plural(a.Segments, "segment") + price(a)
	}
	return s
}

func price(a *Attempt) string {
	if a.Currency == "" {
		return ""
	}
	return " for " + Money(a.CostMicros) + " " + a.Currency
}
