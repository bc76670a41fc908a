package decide

import (
	"time"

	"dispatcher/ledger"
)

// A route with no_receipt sends a message that was accepted on to the next channel when no receipt
// came in time. The message stays accepted, whatever becomes of the further attempts.

// reasonNoReceipt is that of a message which another channel has accepted as well.
const reasonNoReceipt = string(ledger.ByNoReceipt)

// bookingTolerance is how much earlier than the route's time after the booking of an answer a
// message goes on: its time counts from the answer.
const bookingTolerance = time.Second

// goesOn is how long after a channel accepts the message it goes on without a receipt; 0 for never.
// A message that is sent once more after a missing answer does not: it could arrive three times.
// One whose rest is sent does not either, nor one that is repeated under its key.
func (t *Task) goesOn(c *Channel) time.Duration {
	n := t.Route.NoReceipt
	if n == nil || c.AwaitReceipts <= n.After || !t.whole() ||
		t.Row.PossibleDuplicate && t.was != ledger.Accepted {
		return 0
	}
	return n.After
}

// await lets an accepted message go on later, unless its deadline has passed by then.
func (f *Attempt) await(s *ledger.Settlement, now time.Time) {
	if at := now.Add(f.goesOn); f.goesOn > 0 && at.Before(f.Expires) {
		s.NextAt, s.Tried = at, true
	}
}

// stayAccepted keeps a message accepted that an earlier attempt got taken. It goes on at once when
// the channel of this attempt certainly has nothing of it. The reason is empty for no news.
func stayAccepted(s *ledger.Settlement, now time.Time) {
	was := s.State
	s.State, s.Reason, s.Pinned, s.PartsLeft, s.PartsCut = ledger.Accepted, "", "", nil, ""
	switch {
	case was == ledger.Accepted:
		s.Reason, s.PossibleDuplicate = reasonNoReceipt, true
	case was == ledger.Unknown || s.Segments > 0:
		s.Reason, s.PossibleDuplicate, s.NextAt = ReasonAmbiguous, true, time.Time{}
	case was == ledger.Retry:
		s.NextAt = later(s.NextAt, now)
	default:
		s.NextAt = time.Time{}
	}
}

// goOn decides about an accepted message that has come due: it goes on to a channel that has not
// had it, waits for one, or stays as it is for good.
func (a *assigner) goOn(t *Task) decision {
	stay := decision{Decision: ledger.Decision{State: ledger.Accepted, Plan: t.Row.Plan}}
	if t.Row.ReceiptCame || t.Route == nil || t.Route.NoReceipt == nil {
		return stay
	}
	at := t.Row.TakenAt.Add(t.Route.NoReceipt.After - bookingTolerance)
	if a.now.Before(at) { // the route waits longer by now
		stay.NextAt = at
		return stay
	}
	switch d := a.choose(t); {
	case d.State == ledger.Sending:
		return d
	case d.State == ledger.Waiting && !d.NewRound:
		stay.NextAt = d.NextAt
		if d.Reason == reasonPaused { // whoever resumes wakes only what waits
			stay.NextAt = Earlier(d.NextAt, a.now.Add(lookForRoute))
		}
	}
	return stay
}
