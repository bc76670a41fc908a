package decide

import (
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// Times of the search for what became of a submission that nobody answered.
const (
	repeatPause     = time.Second      // before it is repeated under its key; doubles each time
	longestRepeat   = time.Minute      // between two repeats
	FirstLookup     = 5 * time.Second  // before the first lookup: the provider may not have it yet
	longestLookup   = time.Minute      // between two lookups
	ambiguityMargin = time.Second      // from the end of the search to the message's deadline
	ReceiptLook     = 15 * time.Second // a receipt that has come is looked at within this time
)

// Reasons of messages whose submission nobody answered.
const (
	reasonSameKey   = "same_key"        // it is submitted again under the same key
	ReasonAmbiguous = "ambiguous_final" // what became of it will stay unknown
)

// search is how to resolve an ambiguity, given what lane and provider offer.
type search struct {
	steps      []string // of the lane, in order: words of ledger.Step
	within     time.Duration
	resendOnce bool

	Can     provider.Capabilities
	account string // identifies the settings of the channel
	// Begun is when the first attempt under the key was claimed, by the database's clock. reach is how
	// long after its claim an attempt may still leave. So the last attempt under the key must be
	// claimed reach before the provider no longer recognises it.
	Begun time.Time
	reach time.Duration
	// Received says that a receipt with our key came before the attempt had an outcome.
	Received bool
}

// step is the first step of the lane that the provider supports. A message whose parts are
// submitted separately has one key for all of them, so only waiting for receipts is possible.
func (s *search) step(parts bool, now time.Time) ledger.Step {
	for _, word := range s.steps {
		switch step := ledger.Step(word); step {
		case ledger.SameKey:
			if !parts && now.Before(s.keyEnds()) {
				return step
			}
		case ledger.Lookup:
			if !parts && now.Before(s.lookupEnds()) {
				return step
			}
		case ledger.AwaitReceipt:
			if s.Can.Receipts && s.Can.KeyInReceipt {
				return step
			}
		case ledger.NoStep:
		}
	}
	return ledger.NoStep
}

// keyEnds is when the last attempt under the key must have been claimed.
func (s *search) keyEnds() time.Time { return s.Begun.Add(s.Can.SameKeyFor - s.reach) }

// lookupEnds is when the provider may no longer show a submission that it has taken.
func (s *search) lookupEnds() time.Time { return s.Begun.Add(s.Can.LookupFor) }

// until is when a search that begins now ends. On a lane that resends, it leaves enough time to
// send the message once more.
func (s *search) until(step ledger.Step, now, expires time.Time) time.Time {
	end := Earlier(now.Add(s.within), expires.Add(-ambiguityMargin))
	if s.resendOnce {
		end = Earlier(end, now.Add(expires.Sub(now)/2))
	}
	switch step {
	case ledger.SameKey:
		end = Earlier(end, s.keyEnds())
	case ledger.Lookup:
		end = Earlier(end, s.lookupEnds())
	case ledger.AwaitReceipt, ledger.NoStep:
	}
	return end
}

// clarify decides what to do about a submission that nobody answered: repeat it under its key, look
// it up, wait, or give up. A receipt with our key that came before proves that the provider took
// the submission; the ledger resolves that when it next looks at the receipt.
func clarify(a *Attempt, res *provider.Result, s *ledger.Settlement, now time.Time) {
	if a.Submission.Key == "" {
		giveUp(a, AnyAccepted(res.Parts), s, now)
		return
	}
	ambiguity := &ledger.Ambiguity{
		Key: a.Submission.Key, Account: a.Search.account, Until: a.RepeatUntil, Step: ledger.SameKey,
		Partly: AnyAccepted(res.Parts) || len(a.Submission.Parts) > 0,
	}
	if !a.Repeats() {
		ambiguity.Step = a.Search.step(res.Parts != nil || len(a.Submission.Parts) > 0, now)
		ambiguity.Until = a.Search.until(ambiguity.Step, now, a.Expires)
	}
	if a.Search.Received && !a.Repeats() {
		ambiguity.Step, ambiguity.Until = ledger.AwaitReceipt, now.Add(ReceiptLook)
	}
	s.Ambiguity = ambiguity
	switch {
	case ambiguity.Step == ledger.NoStep, !now.Before(ambiguity.Until):
		ambiguity.ResolvedAs = giveUp(a, AnyAccepted(res.Parts), s, now)
	case ambiguity.Step == ledger.SameKey:
		repeat(a, ambiguity, res.RetryAfter, s, now)
	case ambiguity.Step == ledger.Lookup:
		ambiguity.NextAt = Earlier(now.Add(FirstLookup), ambiguity.Until)
	default:
		ambiguity.NextAt = ambiguity.Until
	}
}

// repeat makes the next attempt submit the same under the same key on the same channel. The pauses
// double.
func repeat(
	a *Attempt, ambiguity *ledger.Ambiguity, pause time.Duration, s *ledger.Settlement, now time.Time,
) {
	s.State, s.Reason, s.Pinned, s.Tried = ledger.Retry, reasonSameKey, a.Channel, false
	doubled := min(repeatPause<<min(a.Submission.Attempt-1, 10), longestRepeat)
	s.NextAt = now.Add(max(min(pause, LongestRetryAfter), doubled))
	ambiguity.NextAt = ambiguity.Until
}

// giveUp ends the search without a result. The message is sent once more, flagged, if its lane
// resends, its deadline has not passed and no part of it is known to have been taken. Otherwise it
// stays unknown.
func giveUp(a *Attempt, partTaken bool, s *ledger.Settlement, now time.Time) ledger.ResolvedAs {
	if a.Search.resendOnce && a.Expires.After(now) && !a.duplicate &&
		len(a.Submission.Parts) == 0 && !partTaken {
		s.State, s.Reason, s.Pinned = ledger.Retry, reasonResend, ""
		s.PossibleDuplicate, s.Tried = true, true
		return ledger.Resent
	}
	s.State, s.Reason = ledger.Unknown, ReasonAmbiguous
	return ledger.Unresolved
}

// repeated settles an attempt that was submitted under the key of an earlier attempt without an
// answer. If the provider accepts or rejects it, that holds for both attempts, because it
// recognises the key. If the provider refuses or throttles it, whether it took the earlier attempt
// is still not known. This attempt is then settled as unknown, too, at the full price that the
// submission may have cost.
func repeated(a *Attempt, res *provider.Result, s *ledger.Settlement, now time.Time) {
	switch res.Outcome {
	case provider.Accepted:
		s.Ambiguity = &ledger.Ambiguity{
			Key: a.Submission.Key, Step: ledger.SameKey, Until: a.RepeatUntil,
			ResolvedAs: ledger.Taken,
		}
	case provider.Rejected:
		s.Ambiguity = &ledger.Ambiguity{
			Key: a.Submission.Key, Step: ledger.SameKey, Until: a.RepeatUntil,
			ResolvedAs: ledger.NotTaken,
		}
	case provider.Unknown: // clarify has handled it
	case provider.Refused, provider.Throttled:
		s.Outcome, s.Segments, s.PriceMicros = provider.Unknown, a.Segments, a.Price
		s.Denied, s.DeniedParts = "", 0 // whether the submission was taken is not known
		s.State, s.Reason, s.NextAt, s.Tried = ledger.Unknown, "", time.Time{}, false
		clarify(a, res, s, now)
	}
	// The attempt before it was charged for the submission. The ledger knows how much: the price may
	// have changed since.
	s.Refunds, s.Repeats = a.refunds, true
}

// PauseOfLookup is the pause before the next lookup; asked is how many there have been.
func PauseOfLookup(asked int) time.Duration {
	return min(FirstLookup<<min(asked, 10), longestLookup)
}

// cannotRepeat reports whether a due row waits to be submitted again under its key but must not be:
// the time for that is over, the channel is gone, or it may use another account now, at which the
// provider does not recognise the key. The resolution of ambiguities decides about such a row.
func (a *assigner) cannotRepeat(t *Task) bool {
	if t.Row.SameKey == "" {
		return false
	}
	at := a.routing.Channel(t.Row.Pinned)
	return !a.now.Before(t.Row.SameKeyUntil) || !t.Row.ExpiresAt.After(a.now) || at < 0 ||
		t.Row.SameKeyAccount == "" || a.routing.Channels[at].Account != t.Row.SameKeyAccount
}

// untilResolved makes a row that cannot be repeated wait until the search ends, or for a short time
// if it has ended.
func (a *assigner) untilResolved(t *Task) ledger.Decision {
	next := t.Row.SameKeyUntil
	if soon := a.now.Add(ambiguityMargin); next.Before(soon) {
		next = soon
	}
	return ledger.Decision{
		State: ledger.Waiting, Reason: reasonSameKey, NextAt: next, Plan: t.Row.Plan,
		WaitsFor: t.Row.Pinned,
	}
}
