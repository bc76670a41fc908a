package audit

import (
	"slices"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// progress is what some attempts at a message left behind for the next one: what settle and the
// ledger's row kept, as far as outcomes on record tell it.
type progress struct {
	attempts int
	// pinned is the channel that the message is held for, and left how many of its parts are still
	// to be sent, if not all.
	pinned string
	left   int
	// guessed is set when left is at least 1 and nobody knows how many: the text is gone, and its
	// channel counts segments in its own way.
	guessed bool
	// tried are the channels that refused it, or that never answered, in their order.
	tried []tried
	// ambiguous is set when one of the attempts never got an answer.
	ambiguous bool
	// accepted is set when one of the attempts was accepted by its first answer.
	accepted bool
	// sameKey is set when the next attempt repeats the last one under its key.
	sameKey bool
	// known is false once a late answer replaced an unknown one: whether it came before or
	// after the message went on is not on record. Then pinned and left are not known.
	known bool
}

// tried is a channel that may be no candidate any more in this round.
type tried struct {
	channel string
	attempt int  // from 0
	certain bool // false when a late answer replaced the first one
}

// partsLeft stands for the parts still to be sent: only their number counts.
func (s *progress) partsLeft() []int {
	if s.left == 0 {
		return nil
	}
	return make([]int, s.left)
}

// late reports whether an answer replaced an unknown one.
func late(a *ledger.AttemptRecord) bool { return a.Answers > 1 }

// after takes an attempt into account. pinned is the channel that it was held for, hold whether
// its route keeps throttled messages for their channel, and parts how many it was to submit.
func (s *progress) after(a *ledger.AttemptRecord, pinned string, hold bool, parts int) {
	at := s.attempts
	s.attempts++
	s.sameKey = false
	if pinned == "" {
		s.left = 0
	}
	s.pinned = pinned
	further := a.Reason == ledger.ByNoReceipt
	switch a.Outcome {
	case "accepted":
		if !late(a) { // it goes on without a receipt, if at all
			s.pinned, s.left, s.accepted = "", 0, true
			s.tried = append(s.tried, tried{a.Channel, at, true})
		}
	case "refused":
		if !s.partly(a, parts) &&
			a.Code != decide.CodeLate { // after that nothing has changed but the time
			s.pinned = ""
			if a.Code != decide.CodeStopping && a.Code != decide.CodeStale &&
				a.Code != decide.CodeExpired &&
				!late(a) {
				s.tried = append(
					s.tried, tried{a.Channel, at, s.known},
				) // not, where parts of it may have been left
			}
		}
	case "throttled":
		if !s.partly(a, parts) && hold && !further {
			s.pinned = a.Channel
		}
	case "unknown":
		// a resend tries the others; a repeat under its key is pinned later
		s.ambiguous, s.pinned = true, ""
		s.tried = append(s.tried, tried{a.Channel, at, true})
	}
	if late(a) {
		s.known, s.pinned, s.left = false, "", 0
		s.tried = append(s.tried, tried{a.Channel, at, false}) // if only as one that never answers
	}
}

// repeat takes an attempt into account that the next one repeats under its key: on the same
// channel, as the same submission, so that the channel was not tried in vain and nothing is sent
// twice.
func (s *progress) repeat(channel string) {
	s.attempts++
	s.pinned, s.left, s.sameKey = channel, 0, true
}

// partly reports whether only a part of the message is to be sent yet, and keeps which.
func (s *progress) partly(a *ledger.AttemptRecord, parts int) bool {
	if a.Segments > 0 {
		s.pinned, s.left = a.Channel, max(parts-a.Segments, 0)
	}
	return s.left > 0
}

// refusedBy reports whether the channel was tried in the attempts from one on.
func (s *progress) refusedBy(channel string, from int) bool {
	return slices.ContainsFunc(
		s.tried, func(t tried) bool { return t.channel == channel && t.attempt >= from },
	)
}

// certainly is the last attempt, from 0, in which the channel was tried for certain; -1 if in none.
func (s *progress) certainly(channel string) int {
	last := -1
	for _, t := range s.tried {
		if t.channel == channel && t.certain {
			last = t.attempt
		}
	}
	return last
}
