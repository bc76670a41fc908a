package ledger

import (
	"slices"
	"strings"
	"time"

	"dispatcher/provider"
)

// What becomes of a message when receipts and answers contradict each other is decided here,
// without a database.

// contradictions are the parts of an attempt that its provider denied, and that a receipt calls
// delivered.
func (t *attemptStatus) contradictions() []part {
	return slices.DeleteFunc(slices.Clone(t.parts), func(p part) bool {
		return !t.contradictedBy(&p)
	})
}

// contradicts reports whether the first contradiction is new.
func (t *attemptStatus) contradicts() bool { return !t.contradicted && len(t.contradictions()) > 0 }

// contradictedAt is when the first contradiction came, if that is new; else the zero time.
func (t *attemptStatus) contradictedAt() (first time.Time) {
	if !t.contradicts() {
		return time.Time{}
	}
	for _, p := range t.contradictions() {
		if first.IsZero() || p.word.at.Before(first) {
			first = p.word.at
		}
	}
	return first
}

// deliveredAnyway reports whether receipts say of everything that the provider denied that it was
// delivered. A receipt that names none of the ids of the answer may be about the same part as one
// that does, so the two are not added up.
func (t *attemptStatus) deliveredAnyway() bool {
	denied := t.denied
	if denied == 0 {
		denied = max(t.owed, 1)
	}
	named, others, whole := 0, 0, 0
	for _, p := range t.contradictions() {
		switch {
		case p.whole():
			whole++
		case slices.Contains(strings.Fields(t.reference), p.reference):
			named++
		default:
			others++
		}
	}
	return max(named, others, whole) >= denied
}

// deliveredAnyway is the state that the message comes to by an attempt that was denied and
// delivered: Delivered, together with rest, the parts that were taken before. Where these are not
// delivered it is what they come to, and Accepted while they are awaited, unless the latest attempt
// was taken and tells more. by is nil when there is no such attempt, or nothing to change.
func (s *receiptStatus) deliveredAnyway(
	rest partCount, taken bool,
) (to State, by *attemptStatus, says reported) {
	for i := range s.tries {
		t := &s.tries[i]
		if !t.deliveredAnyway() {
			continue
		}
		copied := rest.with(partCount{parts: t.contradictions(), cut: t.cut})
		if t.outcome == provider.Rejected.String() {
			copied = copied.with(t.tally())
		}
		switch came := copied.word(); {
		case came.state == Delivered:
			return Delivered, t, came
		case by != nil || taken || !s.concludable():
		case rank(came.state) > s.rank():
			to, by, says = came.state, t, came
		case s.state == Retry || s.state == Waiting:
			to, by = Accepted, t
		}
	}
	return to, by, says
}

// twice reports whether the message may have reached the subscriber by an attempt whose answer
// denied it, and by another one: one that was taken, or may have been, or is under way.
func (s *receiptStatus) twice() bool {
	denied, others := 0, 0
	for i := range s.tries {
		t := &s.tries[i]
		switch {
		case !t.isDenied():
			others++
		case len(t.contradictions()) > 0:
			denied++
		}
	}
	return denied > 1 || denied > 0 && others > 0
}

// stands is the state that the message has, if that has been told as the end of an attempt, and the
// attempt that it came by; nil for none.
func (s *receiptStatus) stands() (is State, by *attemptStatus, says reported) {
	switch s.state {
	case Accepted, Delivered, Undelivered, NoReceipt, Unknown:
	case Scheduled, Waiting, Retry, Sending, Rejected, Failed, Dead:
		return "", nil, reported{}
	}
	for i := range s.tries {
		if t := &s.tries[i]; !t.isDenied() && (by == nil || t.receipt == s.state ||
			by.receipt != s.state) {
			by = t
		}
	}
	if by == nil {
		return "", nil, reported{}
	}
	count := by.tally()
	if says = count.word(); says.state != s.state {
		says = reported{}
	}
	return s.state, by, says
}

// otherID reports whether a receipt names the attempt, which it proves by our key, otherwise than
// the provider's answer did.
func (t *attemptStatus) otherID(p *part) bool {
	if t.outcome != provider.Accepted.String() || !p.byKey || p.whole() || !p.final() ||
		t.reference == "" {
		return false
	}
	return !slices.Contains(strings.Fields(t.reference), p.reference)
}
