package decide

import (
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// How it is tried to learn what became of a submission that nobody answered.
const (
	repeatPause     = time.Second      // before it is repeated under its key; doubles
	longestRepeat   = time.Minute      // between two repeats
	FirstLookup     = 5 * time.Second  // before the first lookup: the provider may not have it yet
	longestLookup   = time.Minute      // between two questions
	ambiguityMargin = time.Second      // the search ends so long before the message's deadline
	ReceiptLook     = 15 * time.Second // a receipt that has come is looked at within this time
)

// Words of messages whose submission nobody answered.
const (
	reasonSameKey   = "same_key"        // it is submitted again under the same key
	ReasonAmbiguous = "ambiguous_final" // nobody will know any more
)

// search is how a lane and a provider together clear up an ambiguity.
type search struct {
	steps      []string // of the lane, in order: words of ledger.Step
	within     time.Duration
	resendOnce bool

	Can     provider.Capabilities
	account string // stands for the settings of the channel
	// Begun is when the first attempt under the key was claimed, by the database's clock, and reach
	// how long after its claim an attempt may still leave: a key is good for as long as the
	// provider knows it, less the reach.
	Begun time.Time
	reach time.Duration
	// Received says that a receipt with our key came before the attempt had an outcome.
	Received bool
}

// step is the first way that the provider offers. A message of which the provider takes several
// parts apart has one key for all of them, so it can only be waited for.
func (s *search) step(parts bool, now time.Time) ledger.Step {
	for _, word := range s.steps {
		switch step := ledger.Step(word); step {
		case ledger.SameKey:
			if !parts && now.Before(s.keyEnds()) {
				return step
			}
		case ledger.Lookup:
			if !parts && s.Can.Lookup {
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

// until is when the search ends that begins now: with time enough for the message to be sent once
// more, if that is what the lane does then.
func (s *search) until(step ledger.Step, now, expires time.Time) time.Time {
	end := Earlier(now.Add(s.within), expires.Add(-ambiguityMargin))
	if s.resendOnce {
		end = Earlier(end, now.Add(expires.Sub(now)/2))
	}
	if step == ledger.SameKey {
		end = Earlier(end, s.keyEnds())
	}
	return end
}

// clarify decides how to go on with a submission that nobody answered: repeat it under its key,
// look for it, wait, or give up. When a receipt with our key has come before, it proves that the
// provider took the submission: the ledger sees that with its next look at the receipt.
func clarify(f *Attempt, res *provider.Result, s *ledger.Settlement, now time.Time) {
	if f.Submission.Key == "" {
		giveUp(f, AnyAccepted(res.Parts), s, now)
		return
	}
	d := &ledger.Ambiguity{
		Key: f.Submission.Key, Account: f.Search.account, Until: f.RepeatUntil, Step: ledger.SameKey,
		Partly: AnyAccepted(res.Parts) || len(f.Submission.Parts) > 0,
	}
	if !f.Repeats() {
		d.Step = f.Search.step(res.Parts != nil || len(f.Submission.Parts) > 0, now)
		d.Until = f.Search.until(d.Step, now, f.Expires)
	}
	if f.Search.Received && !f.Repeats() {
		d.Step, d.Until = ledger.AwaitReceipt, now.Add(ReceiptLook)
	}
	s.Ambiguity = d
	switch {
	case d.Step == ledger.NoStep, !now.Before(d.Until):
		d.ResolvedAs = giveUp(f, AnyAccepted(res.Parts), s, now)
	case d.Step == ledger.SameKey:
		repeat(f, d, res.RetryAfter, s, now)
	case d.Step == ledger.Lookup:
		d.NextAt = Earlier(now.Add(FirstLookup), d.Until)
	default:
		d.NextAt = d.Until
	}
}

// repeat lets the next attempt submit the same under the same key on the same channel, after pauses
// that double.
func repeat(
	f *Attempt, d *ledger.Ambiguity, pause time.Duration, s *ledger.Settlement, now time.Time,
) {
	s.State, s.Reason, s.Pinned, s.Tried = ledger.Retry, reasonSameKey, f.Channel, false
	s.NextAt = now.Add(
		max(
			min(pause, LongestRetryAfter),
			min(repeatPause<<min(f.Submission.Attempt-1, 10), longestRepeat),
		),
	)
	d.NextAt = d.Until
}

// giveUp ends the search without a result: the message is sent once more and flagged, when its lane
// does that, its deadline has not passed and no part of it is known to have been taken; else it
// stays as it is.
func giveUp(f *Attempt, partTaken bool, s *ledger.Settlement, now time.Time) ledger.ResolvedAs {
	if f.Search.resendOnce && f.Expires.After(now) && !f.duplicate &&
		len(f.Submission.Parts) == 0 &&
		!partTaken {
		s.State, s.Reason, s.Pinned = ledger.Retry, reasonResend, ""
		s.PossibleDuplicate, s.Tried = true, true
		return ledger.Resent
	}
	s.State, s.Reason = ledger.Unknown, ReasonAmbiguous
	return ledger.Unresolved
}

// repeated judges what came of an attempt under the key of one that nobody had answered. A yes or
// no is about both, since the provider knows the key. What says nothing about the message says
// nothing about the one before either: the attempt is settled as unknown, too, so that all attempts
// under an open ambiguity are, and it costs what the submission may have cost.
func repeated(f *Attempt, res *provider.Result, s *ledger.Settlement, now time.Time) {
	switch res.Outcome {
	case provider.Accepted:
		s.Ambiguity = &ledger.Ambiguity{
			Key: f.Submission.Key, Step: ledger.SameKey, Until: f.RepeatUntil,
			ResolvedAs: ledger.Taken,
		}
	case provider.Rejected:
		s.Ambiguity = &ledger.Ambiguity{
			Key: f.Submission.Key, Step: ledger.SameKey, Until: f.RepeatUntil,
			ResolvedAs: ledger.NotTaken,
		}
	case provider.Unknown: // clarify has seen to it
	case provider.Refused, provider.Throttled:
		s.Outcome, s.Segments, s.PriceMicros = provider.Unknown, f.Segments, f.Price
		s.Denied, s.DeniedParts = "", 0 // whether the submission was taken is not known
		s.State, s.Reason, s.NextAt, s.Tried = ledger.Unknown, "", time.Time{}, false
		clarify(f, res, s, now)
	}
	s.Refunds = f.refunds // the first attempt took what the submission costs
}

// PauseOfLookup is how long the provider is left alone after so many questions.
func PauseOfLookup(asked int) time.Duration {
	return min(FirstLookup<<min(asked, 10), longestLookup)
}

// impeded reports whether a due row waits to be submitted again under its key when that must not
// happen any more, or would reach a provider that does not know the key. Whoever clears up
// ambiguities decides about it.
func (a *assigner) impeded(t *Task) bool {
	if t.Row.SameKey == "" {
		return false
	}
	at := a.routing.Channel(t.Row.Pinned)
	return !a.now.Before(t.Row.SameKeyUntil) || !t.Row.ExpiresAt.After(a.now) || at < 0 ||
		a.routing.Channels[at].Account != t.Row.SameKeyAccount
}

// untilResolved lets an impeded row wait: until the search ends, and for a moment if it has.
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
