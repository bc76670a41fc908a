package decide

import (
	"slices"
	"time"

	"dispatcher/ledger"
)

// Cancel composes the changes that end a message which an operator cancels. If it cannot be
// cancelled, c is nil and why completes the sentence "message ID ...". It is pure.
func Cancel(r *ledger.Record, now time.Time) (c *ledger.Cancellation, why string) {
	m := &r.Message
	if why := uncancellable(r); why != "" {
		return nil, why
	}
	a := RecordedAttempt(m, &ledger.Attempt{Segments: m.Plan.Segments}, &Lane{})
	s := ledger.Settlement{
		ID: m.ID, Attempt: m.Attempts, State: ledger.Failed, Reason: ledger.ReasonCancelled,
		PossibleDuplicate: m.PossibleDuplicate,
	}
	return &ledger.Cancellation{
		Seq: m.Seq, State: m.State, Attempts: m.Attempts, Notice: new(events).ofSettlement(a, &s, now),
	}, ""
}

// uncancellable says why a message cannot be cancelled.
func uncancellable(r *ledger.Record) string {
	m, channel := &r.Message, "a channel"
	if n := len(r.Attempts); n > 0 {
		channel = r.Attempts[n-1].Channel
	}
	switch m.State {
	case ledger.Sending:
		return "is on its way to " + channel + " just now: it cannot be stopped any more"
	case ledger.Accepted, ledger.Delivered, ledger.Undelivered, ledger.NoReceipt:
		return "has been taken by " + channel + ": it is " + string(m.State)
	case ledger.Unknown:
		return "may have been taken by " + channel + ": it is not sent again by itself; see " +
			`"dispatcher ambiguous settle"`
	case ledger.Failed:
		if m.Reason == ledger.ReasonCancelled {
			return "has been cancelled already"
		}
		return "has ended: it has failed"
	case ledger.Rejected, ledger.Dead:
		return "has ended: it is " + string(m.State)
	case ledger.Scheduled, ledger.Waiting, ledger.Retry:
	}
	switch {
	case m.PartsCut != "" || m.PartsLeft != nil:
		return "has been taken by " + m.Pinned + " in part: the rest is sent, or given up at its " +
			"deadline"
	case m.SameKey != "" || slices.ContainsFunc(r.Attempts, func(a ledger.AttemptRecord) bool {
		return a.Outcome == "" || a.Outcome == "unknown" || a.Outcome == "accepted"
	}):
		return "may have been taken by " + channel + `; see "dispatcher explain" and ` +
			`"dispatcher ambiguous settle"`
	}
	return ""
}
