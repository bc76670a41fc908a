package ledger

import (
	"slices"
	"strings"
	"time"

	"dispatcher/provider"
)

// The rules for a message whose receipts contradict the answers of its providers. There is no I/O
// here.

// contradictions are the parts of an attempt that its provider denied and that a receipt says were
// delivered.
func (s *attemptStatus) contradictions() []part {
	if !s.isDenied() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.parts), func(p part) bool {
		return !s.contradictedBy(&p)
	})
}

// contradicts reports whether the attempt has a contradiction and had none before.
func (s *attemptStatus) contradicts() bool { return !s.contradicted && len(s.contradictions()) > 0 }

// contradictedAt is when the first contradiction came; the zero time unless contradicts is true.
func (s *attemptStatus) contradictedAt() (first time.Time) {
	if !s.contradicts() {
		return time.Time{}
	}
	for _, p := range s.contradictions() {
		if first.IsZero() || p.word.at.Before(first) {
			first = p.word.at
		}
	}
	return first
}

// deliveredAnyway reports whether receipts say that everything which the provider denied was
// delivered. A receipt that names an id of the answer and one that names none may be about the same
// part, so the counts are not added up.
func (s *attemptStatus) deliveredAnyway() bool {
	denied := s.denied
	if denied == 0 {
		denied = max(s.expected, 1)
	}
	named, others, whole := 0, 0, 0
	for _, p := range s.contradictions() {
		switch {
		case p.whole():
			whole++
		case slices.Contains(strings.Fields(s.reference), p.reference):
			named++
		default:
			others++
		}
	}
	return max(named, others, whole) >= denied
}

// deliveredAnyway is the new state of a message that has an attempt which was denied and delivered.
// It is Delivered when rest, the parts that were taken before, is delivered too. Otherwise it is
// what the receipts of these parts say, or Accepted while they are awaited, unless a later attempt
// was accepted (taken) and decides. by is nil when there is no such attempt, or nothing to change.
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
			copied = copied.with(t.countParts())
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

// possiblyTwice reports whether the message may have reached the subscriber twice: by an attempt
// that was denied and delivered, and by another one that was taken, may have been, or is in flight.
func (s *receiptStatus) possiblyTwice() bool {
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

// announced is the present state of the message, if a status event has announced it as the result
// of an attempt, with that attempt and what its receipts say. by is nil for none.
func (s *receiptStatus) announced() (is State, by *attemptStatus, says reported) {
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
	count := by.countParts()
	if says = count.word(); says.state != s.state {
		says = reported{}
	}
	return s.state, by, says
}

// otherID reports whether a receipt carries the key of the attempt, and another id than the
// provider's answer named.
func (s *attemptStatus) otherID(p *part) bool {
	if s.outcome != provider.Accepted.String() || !p.byKey || p.whole() || !p.final() ||
		s.reference == "" {
		return false
	}
	return !slices.Contains(strings.Fields(s.reference), p.reference)
}
