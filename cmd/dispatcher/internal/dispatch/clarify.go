package dispatch

import (
	"slices"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// How it is tried to learn what became of a submission that nobody answered.
const (
	repeatPause   = time.Second     // before it is repeated under its key
	firstLookup   = 5 * time.Second // before the provider is asked; an answer may still be on its way into its books
	longestLookup = time.Minute     // between two questions
	doubtMargin   = time.Second     // the search ends so long before the message's deadline
)

// Words of messages whose submission nobody answered.
const (
	reasonSameKey   = "same_key"        // it is submitted again under the same key
	reasonAmbiguous = "ambiguous_final" // nobody will know any more
)

// search is how a lane and a provider together clear up a doubt.
type search struct {
	steps      []ledger.Step // of the lane, in order
	within     time.Duration
	can        provider.Capabilities
	resendOnce bool
}

// step is the first way that the provider offers. A message of which the provider takes several parts
// apart has one key for all of them, so it can only be waited for.
func (s *search) step(parts bool, age time.Duration) ledger.Step {
	for _, step := range s.steps {
		switch step {
		case ledger.SameKey:
			if !parts && age < s.can.SameKeyFor {
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

// until is when the search ends that begins now: with time enough for the message to be sent once more,
// if that is what the lane does then.
func (s *search) until(now, expires time.Time) time.Time {
	end := now.Add(s.within)
	left := expires.Add(-doubtMargin)
	if s.resendOnce {
		left = now.Add(expires.Sub(now) / 2)
	}
	if left.Before(end) {
		return left
	}
	return end
}

// clarify decides how to go on with a submission that nobody answered: repeat it under its key, look for it,
// wait, or give up.
func clarify(f *flight, res *provider.Result, s *ledger.Settlement, now time.Time) {
	if f.submission.Key == "" {
		giveUp(f, anyAccepted(res.Parts), s)
		return
	}
	d := &ledger.Doubt{Key: f.submission.Key, Until: f.repeatUntil, Step: ledger.SameKey}
	if !f.repeats() {
		d.Step, d.Until = f.search.step(res.Parts != nil || len(f.submission.Parts) > 0, 0), f.search.until(now, f.expires)
	}
	s.Doubt = d
	switch {
	case d.Step == ledger.NoStep, !now.Before(d.Until):
		d.Verdict = giveUp(f, anyAccepted(res.Parts), s)
	case d.Step == ledger.SameKey:
		repeat(f, d, res.RetryAfter, s, now)
	case d.Step == ledger.Lookup:
		d.NextAt = earlier(now.Add(firstLookup), d.Until)
	default:
		d.NextAt = d.Until
	}
}

// repeat lets the next attempt submit the same under the same key on the same channel.
func repeat(f *flight, d *ledger.Doubt, pause time.Duration, s *ledger.Settlement, now time.Time) {
	s.State, s.Reason, s.Pinned, s.Tried = ledger.Retry, reasonSameKey, f.channel, false
	s.NextAt = now.Add(max(min(pause, longestRetryAfter), repeatPause))
	d.NextAt = d.Until
}

// giveUp ends the search without a result: the message is sent once more and flagged, when its lane
// does that and no part of it is known to have been taken; else it stays as it is.
func giveUp(f *flight, partTaken bool, s *ledger.Settlement) ledger.Verdict {
	if f.search.resendOnce && !f.duplicate && len(f.submission.Parts) == 0 && !partTaken {
		s.State, s.Reason, s.PossibleDuplicate, s.Tried, s.Pinned = ledger.Retry, reasonResend, true, true, ""
		return ledger.Resent
	}
	s.State, s.Reason = ledger.Unknown, reasonAmbiguous
	return ledger.FinalWord
}

// repeated judges what came of an attempt under the key of one that nobody had answered. A yes or no is about
// both, since the provider knows the key. What says nothing about the message says nothing about the one before either.
func repeated(f *flight, res *provider.Result, s *ledger.Settlement, now time.Time) {
	switch res.Outcome {
	case provider.Accepted, provider.Rejected:
		s.Doubt = &ledger.Doubt{Key: f.submission.Key, Step: ledger.SameKey, Until: f.repeatUntil, Verdict: ledger.Taken}
		if res.Outcome == provider.Rejected {
			s.Doubt.Verdict = ledger.NotTaken
		}
	case provider.Unknown: // clarify has seen to it
	case provider.Refused, provider.Throttled:
		s.State, s.Reason, s.NextAt, s.Tried = ledger.Unknown, "", time.Time{}, false
		clarify(f, res, s, now)
	}
}

// pauseOfLookup is how long the provider is left alone after so many questions.
func pauseOfLookup(asked int) time.Duration {
	return min(firstLookup<<min(asked, 10), longestLookup)
}

// overdue reports whether a due row waits to be submitted again under its key at a time when that must not
// happen any more: then whoever clears up doubts decides about it.
func (t *task) overdue(now time.Time) bool {
	return t.row.SameKey != "" && (!now.Before(t.row.SameKeyUntil) || !t.row.ExpiresAt.After(now))
}

// clears reports whether a lane uses a step.
func (l *Lane) clears(step ledger.Step) bool { return slices.Contains(l.Clarify, step) }
