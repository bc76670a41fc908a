package audit

import (
	"slices"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// progress is the state that the attempts so far left for the next one, as far as it can be derived
// from their recorded outcomes.
type progress struct {
	attempts int
	// pinned is the only channel that the message may go to, empty for any. left is how many of its
	// parts are still to be sent; 0 for all.
	pinned string
	left   int
	// guessed is set when left is at least 1 but not known exactly, because the text is gone and the
	// channel counts segments in its own way.
	guessed bool
	// tried are the channels that an attempt leaves as already tried, in order.
	tried []tried
	// ambiguous is set when one of the attempts is still without an answer.
	ambiguous bool
	// accepted is set when one of the attempts was accepted by its first answer.
	accepted bool
	// sameKey is set when the next attempt repeats the last one under its key.
	sameKey bool
	// known is false once a late answer replaced an unknown one, because it is not recorded whether
	// that was before or after the next attempt. Then pinned and left are not known.
	known bool
}

// tried is a channel that counts as already tried in its round.
type tried struct {
	channel string
	attempt int  // from 0
	certain bool // false when a late answer replaced the first one
}

// partsLeft is a placeholder for the parts still to be sent: only its length matters.
func (p *progress) partsLeft() []int {
	if p.left == 0 {
		return nil
	}
	return make([]int, p.left)
}

// late reports whether a late answer replaced an unknown one.
func late(a *ledger.AttemptRecord) bool { return a.Answers > 1 }

// after adds an attempt. pinned is the channel that it was pinned to, hold whether its route keeps
// throttled messages for their channel, and parts how many parts it was to submit.
func (p *progress) after(a *ledger.AttemptRecord, pinned string, hold bool, parts int) {
	at := p.attempts
	p.attempts++
	p.sameKey = false
	if pinned == "" {
		p.left = 0
	}
	p.pinned = pinned
	further := a.Reason == ledger.ByNoReceipt
	switch a.Outcome {
	case "accepted":
		if !late(a) { // a next attempt can only follow because no receipt came
			p.pinned, p.left, p.accepted = "", 0, true
			p.tried = append(p.tried, tried{a.Channel, at, true})
		}
	case "refused":
		// a missed release time changes nothing else
		if !p.partly(a, parts) && a.Code != decide.CodeLate {
			p.pinned = ""
			if !decide.UnsentCode(a.Code) && !late(a) {
				// not certain if only parts may have been left to send
				p.tried = append(p.tried, tried{a.Channel, at, p.known})
			}
		}
	case "throttled":
		if !p.partly(a, parts) && hold && !further {
			p.pinned = a.Channel
		}
	case "unknown":
		// A resend goes to another channel. For a repeat under the same key, see repeat.
		p.ambiguous, p.pinned = true, ""
		p.tried = append(p.tried, tried{a.Channel, at, true})
	}
	if late(a) {
		p.known, p.pinned, p.left = false, "", 0
		p.tried = append(p.tried, tried{a.Channel, at, false}) // before its late answer, at least
	}
}

// repeat adds an attempt that the next one repeats under the same key. Both are one submission, so
// the channel does not count as tried and nothing counts as sent twice.
func (p *progress) repeat(channel string) {
	p.attempts++
	p.pinned, p.left, p.sameKey = channel, 0, true
}

// partly reports whether only some parts are left to send. If the attempt has accepted parts, it
// sets pinned and left.
func (p *progress) partly(a *ledger.AttemptRecord, parts int) bool {
	if a.Segments > 0 {
		p.pinned, p.left = a.Channel, max(parts-a.Segments, 0)
	}
	return p.left > 0
}

// refusedBy reports whether the channel was tried by the attempt with this number, from 0, or a
// later one.
func (p *progress) refusedBy(channel string, from int) bool {
	return slices.ContainsFunc(
		p.tried, func(t tried) bool { return t.channel == channel && t.attempt >= from },
	)
}

// certainly is the last attempt, from 0, that certainly tried the channel; -1 if none did.
func (p *progress) certainly(channel string) int {
	last := -1
	for _, t := range p.tried {
		if t.channel == channel && t.certain {
			last = t.attempt
		}
	}
	return last
}
