package decide

import (
	"strings"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// Codes of attempts that nobody answered and that were resolved later: CodeOperator by an operator,
// CodeLookup by asking the provider.
const (
	CodeOperator = "operator"
	CodeLookup   = "lookup"
)

// codeRepeated is the code of an attempt that proved to be the same submission as an earlier,
// answered one.
const codeRepeated = "same_key"

// AnsweredLate ends an ambiguity whose first attempt was answered late, or proved by a receipt. The
// transaction that wrote the answer has also moved the message on, unless there were further
// attempts under the key: then the latest of them represents the submission.
func AnsweredLate(o *ledger.OpenAmbiguity, now time.Time) *ledger.Resolution {
	as := ledger.NotTaken
	if o.Answer == provider.Accepted.String() {
		as = ledger.Taken
	}
	if o.Attempt.Number == o.First || o.Settled {
		return &ledger.Resolution{Seq: o.Message.Seq, Key: o.Key, As: as}
	}
	r := Resolve(o, as, codeRepeated, "", now)
	if as != ledger.Taken {
		return r
	}
	if o.Receipt != ledger.Delivered && o.Receipt != ledger.Undelivered {
		return r
	}
	r.Settlement.Await = 0 // the receipts came, for the first attempt
	a := RecordedAttempt(&o.Message, &o.Attempt, &Lane{})
	r.Settlement.Notice = nil // the event reports what the receipt said
	s := ledger.Settlement{ID: o.Message.ID, Attempt: o.Attempt.Number, State: o.Receipt}
	n := new(events).ofSettlement(a, &s, now)
	r.Move = &ledger.Move{State: o.Receipt, Notice: &n}
	return r
}

// Resolve ends an ambiguity with what was found out late: Taken under the provider's reference,
// NotTaken, or Unresolved when it will stay unknown. code says who found out. Receipts are awaited
// from now on, for the time that the channel had when the attempt was sent. Whether and how the
// message goes on is decided as for any answer. It is pure.
func Resolve(
	o *ledger.OpenAmbiguity, as ledger.ResolvedAs, code, reference string, now time.Time,
) *ledger.Resolution {
	a := lateAttempt(o)
	r := &ledger.Resolution{Seq: a.Seq, Key: o.Key, As: as}
	switch as {
	case ledger.Taken:
		// The ledger sets possible_duplicate in the event if the message keeps it.
		a.duplicate = false
		all := strings.TrimSpace(o.Reference + " " + reference) // of all its parts
		r.Settlement = settleLate(a, &provider.Result{
			Outcome: provider.Accepted, Code: code, Reference: all,
		}, now)
	case ledger.NotTaken:
		r.Settlement = settleLate(a, &provider.Result{Outcome: provider.Refused, Code: code}, now)
		if o.Repeats() { // it waits for a repeat on the same channel; a settlement skips such a row
			s := r.Settlement
			r.Move = &ledger.Move{
				State: s.State, Reason: s.Reason, Tried: s.Tried, Notice: s.Notice,
			}
		}
	case ledger.Unresolved, ledger.Resent:
		s := unresolved(o, a)
		s.State, s.Reason = ledger.Unknown, ReasonAmbiguous
		r.Move = moved(a, s, now)
	}
	return r
}

// ResolveRejected ends an ambiguity whose submission the provider has rejected, with its code. No
// other channel would take the message.
func ResolveRejected(o *ledger.OpenAmbiguity, code string, now time.Time) *ledger.Resolution {
	a := lateAttempt(o)
	res := provider.Result{Outcome: provider.Rejected, Code: code}
	return &ledger.Resolution{
		Seq: a.Seq, Key: o.Key, As: ledger.NotTaken, Settlement: settleLate(a, &res, now),
	}
}

// lateAttempt is the latest attempt of an ambiguity, to be settled with a late answer.
func lateAttempt(o *ledger.OpenAmbiguity) *Attempt {
	a := RecordedAttempt(&o.Message, &o.Attempt, &Lane{})
	a.RepeatUntil, a.Await = time.Time{}, o.Await
	return a
}

// settleLate is the settlement of a late answer, with its event.
func settleLate(a *Attempt, res *provider.Result, now time.Time) *ledger.Settlement {
	s := Settle(a, res, now)
	s.Ambiguity = nil                 // the resolution ends it
	s.Receipts, s.CutShort = 0, false // a late answer says nothing about parts
	return &s
}

// unresolved is the settlement of an attempt whose result stays unknown.
func unresolved(o *ledger.OpenAmbiguity, a *Attempt) *ledger.Settlement {
	return &ledger.Settlement{
		Seq: a.Seq, ID: a.Submission.ID, Attempt: o.Attempt.Number, Outcome: provider.Unknown,
		PossibleDuplicate: a.duplicate,
	}
}

// moved is the next state of a message whose attempt stays unknown, with its event.
func moved(a *Attempt, s *ledger.Settlement, now time.Time) *ledger.Move {
	n := new(events).ofSettlement(a, s, now)
	return &ledger.Move{
		State: s.State, Reason: s.Reason, PossibleDuplicate: s.PossibleDuplicate, Tried: s.Tried,
		Notice: &n,
	}
}

// EndSearch ends a search that found nothing, in the way that the lane is configured.
func EndSearch(o *ledger.OpenAmbiguity, a *Attempt, now time.Time) *ledger.Resolution {
	s := unresolved(o, a)
	as := giveUp(a, o.Partly, s, now)
	return &ledger.Resolution{Seq: a.Seq, Key: o.Key, As: as, Move: moved(a, s, now)}
}
