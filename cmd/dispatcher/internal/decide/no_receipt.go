package decide

import (
	"time"

	"dispatcher/ledger"
)

// A route with no_receipt sends an accepted message to the next channel when no receipt came in
// time. The message stays accepted, whatever the outcome of further attempts.

// reasonNoReceipt is the reason of a message that a further channel has accepted.
const reasonNoReceipt = string(ledger.ByNoReceipt)

// settleTolerance is subtracted from the route's time: a message comes due that long after the
// answer, and TakenAt, when the answer was recorded, is a little later.
const settleTolerance = time.Second

// goesOn is how long after a channel accepts the message it is sent on without a receipt; 0 for
// never. It is 0 for a resend after a missing answer, because the message could arrive three times,
// for the rest of a message in parts, and for a message repeated under its key.
func (t *Task) goesOn(c *Channel) time.Duration {
	n := t.Route.NoReceipt
	if n == nil || c.AwaitReceipts <= n.After || !t.whole() ||
		t.Row.PossibleDuplicate && t.was != ledger.Accepted {
		return 0
	}
	return n.After
}

// await schedules an accepted message to go on later, unless its deadline passes before, or no
// receipt can come: the caller sets Await to 0 when the adapter gives none.
func (a *Attempt) await(s *ledger.Settlement, now time.Time) {
	if at := now.Add(a.goesOn); a.goesOn > 0 && a.Await > 0 && at.Before(a.Expires) {
		s.NextAt, s.Tried = at, true
	}
}

// stayAccepted keeps the message accepted, because an earlier attempt was. It goes on at once when
// the channel of this attempt certainly has nothing of it. The reason is empty when there is
// nothing to report.
func stayAccepted(s *ledger.Settlement, now time.Time) {
	was := s.State
	s.State, s.Reason, s.Pinned, s.PartsLeft, s.PartsCut = ledger.Accepted, "", "", nil, ""
	switch {
	case was == ledger.Accepted:
		s.Reason, s.PossibleDuplicate = reasonNoReceipt, true
	case was == ledger.Unknown || s.Segments > 0:
		s.Reason, s.PossibleDuplicate, s.NextAt = ReasonAmbiguous, true, time.Time{}
	case was == ledger.Retry: // on another channel, so a slot that is held would not be used
		s.NextAt, s.Hold = later(s.NextAt, now), 0
	default:
		s.NextAt = time.Time{}
	}
}

// goesOnNow reports whether an accepted message that has come due is to be sent to a channel that
// has not had it yet. If not, stay keeps it accepted: for good, or until its route has waited.
func (a *assigner) goesOnNow(t *Task) (stay decision, now bool) {
	stay.Decision = ledger.Decision{State: ledger.Accepted, Plan: t.Row.Plan}
	if t.Row.ReceiptCame || t.Route == nil || t.Route.NoReceipt == nil {
		return stay, false
	}
	at := later(t.Row.TakenAt, a.snapshot.ReceiptsSince).
		Add(t.Route.NoReceipt.After - settleTolerance)
	if a.now.Before(at) { // the route waits longer now, or receipts could not come in for a while
		stay.NextAt = at
		return stay, false
	}
	return stay, true
}

// goOn turns the decision about an accepted message that goes on now into one that keeps it
// accepted, unless d sends it: it waits for a channel, or stays accepted for good.
func (a *assigner) goOn(t *Task, d decision) decision {
	stay := decision{Decision: ledger.Decision{State: ledger.Accepted, Plan: t.Row.Plan}}
	switch {
	case d.State == ledger.Sending:
		return d
	case d.State == ledger.Waiting && !d.NewRound:
		soon := a.now.Add(lookForRoute)
		stay.NextAt = later(d.NextAt, soon)
		switch {
		case d.Reason == reasonPaused: // resuming wakes no accepted message without WaitsFor
			stay.NextAt = Earlier(d.NextAt, soon)
		case d.NextAt.After(soon): // for a limit: raising it wakes the message
			stay.WaitsFor = d.WaitsFor
		}
	}
	return stay
}
