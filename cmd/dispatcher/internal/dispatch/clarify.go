package dispatch

import (
	"slices"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// How it is tried to learn what became of a submission that nobody answered.
const (
	repeatPause     = time.Second      // before it is repeated under its key; doubles
	longestRepeat   = time.Minute      // between two repeats
	firstLookup     = 5 * time.Second  // before the provider is asked; an answer may still be on its way into its books
	longestLookup   = time.Minute      // between two questions
	ambiguityMargin = time.Second      // the search ends so long before the message's deadline
	receiptLook     = 15 * time.Second // a receipt that has come is looked at within this time
)

// Words of messages whose submission nobody answered.
const (
	reasonSameKey   = "same_key"        // it is submitted again under the same key
	reasonAmbiguous = "ambiguous_final" // nobody will know any more
)

// search is how a lane and a provider together clear up an ambiguity.
type search struct {
	steps      []ledger.Step // of the lane, in order
	within     time.Duration
	resendOnce bool

	can     provider.Capabilities
	account string // stands for the settings of the channel
	// begun is when the first attempt under the key was claimed, by the database's clock, and reach
	// how long after its claim an attempt may still leave: a key is good for as long as the
	// provider knows it, less the reach.
	begun time.Time
	reach time.Duration
	// received says that a receipt with our key came before the attempt had an outcome.
	received bool
}

// step is the first way that the provider offers. A message of which the provider takes several
// parts apart has one key for all of them, so it can only be waited for.
func (s *search) step(parts bool, now time.Time) ledger.Step {
	for _, step := range s.steps {
		switch step {
		case ledger.SameKey:
			if !parts && now.Before(s.keyEnds()) {
				return step
			}
		case ledger.Lookup:
			if !parts && s.can.Lookup {
				return step
			}
		case ledger.AwaitReceipt:
			if s.can.Receipts && s.can.KeyInReceipt {
				return step
			}
		case ledger.NoStep:
		}
	}
	return ledger.NoStep
}

// keyEnds is when the last attempt under the key must have been claimed.
func (s *search) keyEnds() time.Time { return s.begun.Add(s.can.SameKeyFor - s.reach) }

// until is when the search ends that begins now: with time enough for the message to be sent once
// more, if that is what the lane does then.
func (s *search) until(step ledger.Step, now, expires time.Time) time.Time {
	end := earlier(now.Add(s.within), expires.Add(-ambiguityMargin))
	if s.resendOnce {
		end = earlier(end, now.Add(expires.Sub(now)/2))
	}
	if step == ledger.SameKey {
		end = earlier(end, s.keyEnds())
	}
	return end
}

// clarify decides how to go on with a submission that nobody answered: repeat it under its key,
// look for it, wait, or give up. When a receipt with our key has come before, it proves that the
// provider took the submission: the ledger sees that with its next look at the receipt.
func clarify(f *attempt, res *provider.Result, s *ledger.Settlement, now time.Time) {
	if f.submission.Key == "" {
		giveUp(f, anyAccepted(res.Parts), s, now)
		return
	}
	d := &ledger.Ambiguity{
		Key: f.submission.Key, Account: f.search.account, Until: f.repeatUntil, Step: ledger.SameKey,
		Partly: anyAccepted(res.Parts) || len(f.submission.Parts) > 0,
	}
	if !f.repeats() {
		d.Step = f.search.step(res.Parts != nil || len(f.submission.Parts) > 0, now)
		d.Until = f.search.until(d.Step, now, f.expires)
	}
	if f.search.received && !f.repeats() {
		d.Step, d.Until = ledger.AwaitReceipt, now.Add(receiptLook)
	}
	s.Ambiguity = d
	switch {
	case d.Step == ledger.NoStep, !now.Before(d.Until):
		d.ResolvedAs = giveUp(f, anyAccepted(res.Parts), s, now)
	case d.Step == ledger.SameKey:
		repeat(f, d, res.RetryAfter, s, now)
	case d.Step == ledger.Lookup:
		d.NextAt = earlier(now.Add(firstLookup), d.Until)
	default:
		d.NextAt = d.Until
	}
}

// repeat lets the next attempt submit the same under the same key on the same channel, after pauses
// that double.
func repeat(f *attempt, d *ledger.Ambiguity, pause time.Duration, s *ledger.Settlement, now time.Time) {
	s.State, s.Reason, s.Pinned, s.Tried = ledger.Retry, reasonSameKey, f.channel, false
	s.NextAt = now.Add(max(min(pause, longestRetryAfter), min(repeatPause<<min(f.submission.Attempt-1, 10), longestRepeat)))
	d.NextAt = d.Until
}

// giveUp ends the search without a result: the message is sent once more and flagged, when its lane
// does that, its deadline has not passed and no part of it is known to have been taken; else it
// stays as it is.
func giveUp(f *attempt, partTaken bool, s *ledger.Settlement, now time.Time) ledger.ResolvedAs {
	if f.search.resendOnce && f.expires.After(now) && !f.duplicate && len(f.submission.Parts) == 0 && !partTaken {
		s.State, s.Reason, s.PossibleDuplicate, s.Tried, s.Pinned = ledger.Retry, reasonResend, true, true, ""
		return ledger.Resent
	}
	s.State, s.Reason = ledger.Unknown, reasonAmbiguous
	return ledger.Unresolved
}

// repeated judges what came of an attempt under the key of one that nobody had answered. A yes or
// no is about both, since the provider knows the key. What says nothing about the message says
// nothing about the one before either: the attempt is settled as unknown, too, so that all attempts
// under an open ambiguity are, and it costs what the submission may have cost.
func repeated(f *attempt, res *provider.Result, s *ledger.Settlement, now time.Time) {
	switch res.Outcome {
	case provider.Accepted:
		s.Ambiguity = &ledger.Ambiguity{Key: f.submission.Key, Step: ledger.SameKey, Until: f.repeatUntil, ResolvedAs: ledger.Taken}
	case provider.Rejected:
		s.Ambiguity = &ledger.Ambiguity{Key: f.submission.Key, Step: ledger.SameKey, Until: f.repeatUntil, ResolvedAs: ledger.NotTaken}
	case provider.Unknown: // clarify has seen to it
	case provider.Refused, provider.Throttled:
		s.Outcome, s.Segments, s.PriceMicros = provider.Unknown, f.segments, f.price
		s.Denied, s.DeniedParts = "", 0 // whether the submission was taken is not known
		s.State, s.Reason, s.NextAt, s.Tried = ledger.Unknown, "", time.Time{}, false
		clarify(f, res, s, now)
	}
	s.Refunds = f.refunds // the first attempt took what the submission costs
}

// pauseOfLookup is how long the provider is left alone after so many questions.
func pauseOfLookup(asked int) time.Duration {
	return min(firstLookup<<min(asked, 10), longestLookup)
}

// impeded reports whether a due row waits to be submitted again under its key when that must not
// happen any more, or would reach a provider that does not know the key. Whoever clears up
// ambiguities decides about it.
func (a *assigner) impeded(t *task) bool {
	if t.row.SameKey == "" {
		return false
	}
	at := a.routing.channel(t.row.Pinned)
	return !a.now.Before(t.row.SameKeyUntil) || !t.row.ExpiresAt.After(a.now) || at < 0 || a.routing.Channels[at].Account != t.row.SameKeyAccount
}

// untilResolved lets an impeded row wait: until the search ends, and for a moment if it has.
func (a *assigner) untilResolved(t *task) ledger.Decision {
	next := t.row.SameKeyUntil
	if soon := a.now.Add(ambiguityMargin); next.Before(soon) {
		next = soon
	}
	return ledger.Decision{State: ledger.Waiting, Reason: reasonSameKey, NextAt: next, Plan: t.row.Plan, WaitsFor: t.row.Pinned}
}

// clears reports whether a lane uses a step.
func (l *Lane) clears(step ledger.Step) bool { return slices.Contains(l.Clarify, step) }
