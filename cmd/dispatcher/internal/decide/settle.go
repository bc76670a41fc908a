package decide

import (
	"errors"
	"slices"
	"strings"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// How long a message that was not taken whole waits before its channel is tried again.
const (
	pauseAfterPart    = time.Second
	PauseWhenUntimed  = 250 * time.Millisecond // throttled without a Retry-After
	LongestRetryAfter = 5 * time.Minute        // a longer Retry-After counts as this
)

// Codes of attempts that this process stopped before any byte left. They say nothing about the
// channel, so it stays a candidate.
const (
	CodeStopping = "stopping" // the process or the channel is being stopped
	CodeStale    = "stale"    // the send deadline passed before it could be submitted
	// CodeExpired: the message's deadline passed before it could be submitted.
	CodeExpired = provider.DeadlinePassed
	// CodeLate: its release time passed, or the channel paused, before it could be submitted.
	CodeLate = provider.Late
)

// CodeLost is the code of an attempt whose instance was lost before it had an answer.
const CodeLost = "instance_lost"

// NotSent is the result of an attempt that this process stopped.
func NotSent(code string) provider.Result {
	r := provider.Result{Outcome: provider.Refused, Code: code}
	switch code {
	case CodeStopping:
		r.Err = errors.New("the dispatcher is stopping; another instance takes the message")
	case CodeExpired:
		r.Err = errors.New("its deadline passed before its turn came")
	case CodeLate:
		r.Err = errors.New("its release time passed; it gets another")
	default:
		r.Err = errors.New("its turn did not come before the send deadline")
	}
	return r
}

// Settle decides the next state of the message after an outcome, and composes the status event. It
// is pure; now is the database's clock as this process knows it.
func Settle(a *Attempt, res *provider.Result, now time.Time) ledger.Settlement {
	return NewSettling(1, now).Settle(a, res)
}

// Settling settles a batch of attempts. It allocates their events together.
type Settling struct {
	now     time.Time
	events  events
	notices []ledger.Notice
}

// NewSettling begins a batch; attempts is its size.
func NewSettling(attempts int, now time.Time) *Settling {
	return &Settling{
		now: now, events: events{ahead: attempts}, notices: make([]ledger.Notice, 0, attempts),
	}
}

// Settle is the function Settle for an attempt of the batch.
func (b *Settling) Settle(a *Attempt, res *provider.Result) ledger.Settlement {
	s := settle(a, res, b.now)
	if a.further && s.Reason == "" {
		return s // the message is accepted as before
	}
	b.notices = append(b.notices, b.events.ofSettlement(a, &s, b.now))
	s.Notice = &b.notices[len(b.notices)-1]
	return s
}

// SettleLost treats an attempt of a lost instance like one whose answer never came.
func SettleLost(a *Attempt, now time.Time) ledger.Settlement {
	return Settle(a, &provider.Result{Outcome: provider.Unknown, Code: CodeLost}, now)
}

// settle is Settle without the event.
//
//	Accepted   accepted
//	Rejected   rejected
//	Unknown    unknown while the dispatcher finds out more (see clarify), then for good, or one
//	           flagged resend on a lane that allows it
//	Refused    retry at once, this channel excluded unless this process stopped the attempt
//	Throttled  retry at once elsewhere, or later here when the route holds throttled messages
//
// A channel may hold its active slot until the receipt: then the slot stays taken after Accepted.
// It may hold the slot for retries: then the slot stays taken when the message is to come back to
// this channel.
//
// When some parts of a message were accepted, no other channel may send the rest. The message stays
// on its channel until the deadline, and is sent only while the channel splits the text as before
// (see recut).
func settle(a *Attempt, res *provider.Result, now time.Time) ledger.Settlement {
	s := ledger.Settlement{
		Seq: a.Seq, ID: a.Submission.ID, Attempt: a.Submission.Attempt,
		Outcome: res.Outcome, Unfit: res.Unfit, Code: res.Code, Await: a.Await,
		Pinned: a.pinned, PartsLeft: a.Submission.Parts, PartsCut: a.Submission.Cut,
		PossibleDuplicate: a.duplicate,
	}
	left := bill(a, res, &s)
	s.Refunds = unspent(a, &s)
	switch res.Outcome {
	case provider.Accepted:
		s.State, s.Pinned, s.PartsLeft = ledger.Accepted, "", nil
		if a.untilReceipt {
			s.Hold = a.hold
		}
		a.await(&s, now)
	case provider.Rejected:
		s.State, s.Reason = ledger.Rejected, res.Code
	case provider.Unknown:
		s.State = ledger.Unknown
		if !a.further {
			clarify(a, res, &s, now)
		}
	case provider.Refused, provider.Throttled:
		again(a, res, left, &s, now)
	}
	if a.Repeats() {
		repeated(a, res, &s, now)
	}
	setExpectedReceipts(a, res, &s)
	switch {
	case s.State == ledger.Retry && s.Reason == reasonSameKey: // it ends when the search does
	case s.State == ledger.Retry && (!a.Expires.After(now) || res.Code == CodeExpired && Unsent(res)):
		s.State, s.Reason = ledger.Failed, reasonExpired
	case s.State == ledger.Retry && s.Pinned == a.Channel:
		s.Hold = a.hold
	}
	switch {
	case a.further:
		stayAccepted(&s, now)
	case a.mayBeTaken && (s.State == ledger.Rejected || s.State == ledger.Failed):
		s.State, s.Reason = ledger.Unknown, ReasonAmbiguous // an earlier attempt may have been taken
	}
	return s
}

// unspent is what goes back to the limits in money: the part of the price that is not billed.
func unspent(a *Attempt, s *ledger.Settlement) []ledger.Refund {
	if s.Segments >= a.Segments || len(a.refunds) == 0 {
		return nil
	}
	out := slices.Clone(a.refunds)
	for i := range out {
		out[i].Micros -= out[i].Micros / int64(a.Segments) * int64(s.Segments)
	}
	return out
}

// Unsent reports whether this process stopped the attempt itself. Such a result says nothing about
// the channel.
func Unsent(res *provider.Result) bool {
	return res.Outcome == provider.Refused && UnsentCode(res.Code)
}

// UnsentCode reports whether a refused attempt with this code was stopped by its own process.
func UnsentCode(code string) bool {
	switch code {
	case CodeStopping, CodeStale, CodeLate, CodeExpired:
		return true
	}
	return false
}

// AnyAccepted reports whether the provider certainly has a part. Then no other channel may send the
// message.
func AnyAccepted(parts []provider.Part) bool {
	return slices.ContainsFunc(
		parts, func(p provider.Part) bool { return p.Outcome == provider.Accepted },
	)
}

// again schedules the next try of a message that was not taken, or not whole.
func again(a *Attempt, res *provider.Result, left []int, s *ledger.Settlement, now time.Time) {
	s.State, s.Reason = ledger.Retry, res.Outcome.String()
	pause := min(res.RetryAfter, LongestRetryAfter)
	if res.Outcome == provider.Throttled {
		s.Slow = &ledger.Slow{RetryAfter: max(pause, 0)}
	}
	switch {
	case res.Code == CodeLate && Unsent(res): // the attempt only missed its time
		s.Reason = CodeLate
	case len(left) > 0:
		s.Pinned, s.PartsLeft, s.PartsCut = a.Channel, left, res.Cut
		s.NextAt = now.Add(max(pause, pauseAfterPart))
	case len(s.PartsLeft) > 0:
		s.NextAt = now.Add(max(pause, pauseAfterPart))
	case res.Outcome == provider.Refused:
		s.Pinned = "" // it was pinned to this channel, which refused it
		s.Tried = !Unsent(res)
	case a.holdThrottled:
		s.Pinned = a.Channel
		s.NextAt = now.Add(max(pause, PauseWhenUntimed))
	}
}

// bill fills in references, segments and price: of what was accepted, or for Unknown of what may
// have been. Ids of parts that were not taken are recorded apart. It returns the parts still to be
// sent when some, not all, were accepted.
func bill(a *Attempt, res *provider.Result, s *ledger.Settlement) (left []int) {
	if res.Parts == nil {
		if res.Outcome != provider.Accepted && res.Outcome != provider.Unknown {
			s.Denied = res.Reference
			return nil
		}
		s.Reference, s.Segments, s.PriceMicros = res.Reference, a.Segments, a.Price
		return nil
	}
	var denied []string
	references := make([]string, 0, len(res.Parts))
	for _, part := range res.Parts {
		switch part.Outcome {
		case provider.Accepted:
			references = append(references, part.Reference)
			s.Segments++
		case provider.Unknown:
			s.Segments++
		case provider.Refused, provider.Throttled, provider.Rejected:
			left, denied = append(left, part.Index), append(denied, part.Reference)
			s.DeniedParts++
		}
	}
	s.Reference = strings.Join(references, " ")
	s.Denied = strings.Join(
		slices.DeleteFunc(denied, func(id string) bool { return id == "" }), " ",
	)
	if s.Outcome == provider.Unknown {
		s.Denied, s.DeniedParts = "", 0 // whether the message was taken is not known
	}
	s.PriceMicros = a.Price / int64(a.Segments) * int64(s.Segments)
	if s.Segments == 0 {
		return nil
	}
	return left
}
