package decide

import (
	"strings"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// CodeOperator is that of an attempt about which an operator said what became of it, and CodeLookup
// of one about which the provider was asked afterwards: nobody answered either.
const (
	CodeOperator = "operator"
	CodeLookup   = "lookup"
)

// codeRepeated is that of an attempt that turned out to be the same submission as an earlier one
// that was answered.
const codeRepeated = "same_key"

// AnsweredLate ends an ambiguity whose first attempt was answered late, or proved by a receipt. The
// transaction that wrote the answer has also moved the message on, unless there were further
// attempts under the key: then the latest stands for all of them.
func AnsweredLate(o *ledger.OpenAmbiguity, now time.Time) *ledger.Resolution {
	verdict := ledger.NotTaken
	if o.Answer == provider.Accepted.String() {
		verdict = ledger.Taken
	}
	if o.Attempt.Number == o.First || o.Settled {
		return &ledger.Resolution{Seq: o.Message.Seq, Key: o.Key, As: verdict}
	}
	j := Resolve(o, verdict, codeRepeated, "", now)
	if verdict != ledger.Taken {
		return j
	}
	if o.Receipt != ledger.Delivered && o.Receipt != ledger.Undelivered {
		return j
	}
	j.Settlement.Await = 0 // they have come, for the first attempt
	f := RecordedAttempt(&o.Message, &o.Attempt, &Lane{})
	j.Settlement.Notice = nil // what the receipt said is the news
	s := ledger.Settlement{ID: o.Message.ID, Attempt: o.Attempt.Number, State: o.Receipt}
	n := statusOfSettlement(f, &s, now)
	j.Move = &ledger.Move{State: o.Receipt, Notice: &n}
	return j
}

// Resolve ends an ambiguity with what was found out late: Taken under the provider's reference,
// NotTaken, or Unresolved when nobody will know. code says who found out. Its receipts are awaited
// from then on, for as long as those of its channel were when it was sent. Whether the message goes
// on, and how, is decided as for any answer. It is pure.
func Resolve(
	o *ledger.OpenAmbiguity, verdict ledger.ResolvedAs, code, reference string, now time.Time,
) *ledger.Resolution {
	f := RecordedAttempt(&o.Message, &o.Attempt, &Lane{})
	f.RepeatUntil, f.Await = time.Time{}, o.Await
	j := &ledger.Resolution{Seq: f.Seq, Key: o.Key, As: verdict}
	switch verdict {
	case ledger.Taken:
		// The ledger adds the flag to the event where the message keeps it.
		f.duplicate = false
		all := strings.TrimSpace(
			o.Reference + " " + reference,
		) // of its parts, those that were known among them
		j.Settlement = truth(
			f, &provider.Result{Outcome: provider.Accepted, Code: code, Reference: all}, now,
		)
	case ledger.NotTaken:
		j.Settlement = truth(f, &provider.Result{Outcome: provider.Refused, Code: code}, now)
		if o.Repeats() { // it waits for a repeat on the same channel; a settlement skips such a row
			s := j.Settlement
			j.Move = &ledger.Move{
				State: s.State, Reason: s.Reason, Tried: s.Tried, Notice: s.Notice,
			}
		}
	case ledger.Unresolved, ledger.Resent:
		s := unresolved(o, f)
		s.State, s.Reason = ledger.Unknown, ReasonAmbiguous
		j.Move = moved(f, s, now)
	}
	return j
}

// truth is the settlement of a late answer, with its event.
func truth(f *Attempt, res *provider.Result, now time.Time) *ledger.Settlement {
	s := Settle(f, res, now)
	s.Ambiguity = nil                 // the resolution ends it
	s.Receipts, s.CutShort = 0, false // who found out knows no more of its parts than was known
	return &s
}

// unresolved is the settlement of an attempt of which nothing became known.
func unresolved(o *ledger.OpenAmbiguity, f *Attempt) *ledger.Settlement {
	return &ledger.Settlement{
		Seq: f.Seq, ID: f.Submission.ID, Attempt: o.Attempt.Number, Outcome: provider.Unknown,
		PossibleDuplicate: f.duplicate,
	}
}

// moved is where a message goes without anything having become known, with its event.
func moved(f *Attempt, s *ledger.Settlement, now time.Time) *ledger.Move {
	n := statusOfSettlement(f, s, now)
	return &ledger.Move{
		State: s.State, Reason: s.Reason, PossibleDuplicate: s.PossibleDuplicate, Tried: s.Tried,
		Notice: &n,
	}
}

// Conclude ends a search that found nothing about an attempt, as its lane does.
func Conclude(o *ledger.OpenAmbiguity, f *Attempt, now time.Time) *ledger.Resolution {
	s := unresolved(o, f)
	as := giveUp(f, o.Partly, s, now)
	return &ledger.Resolution{Seq: f.Seq, Key: o.Key, As: as, Move: moved(f, s, now)}
}
