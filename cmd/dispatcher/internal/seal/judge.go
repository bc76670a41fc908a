package seal

import (
	"slices"
	"time"

	"dispatcher/ledger"
)

// Words for what was found about a message. They are those of audit verify.
const (
	Deleted  = "deleted"  // the log has it, the tables have not
	Inserted = "inserted" // the tables have it, the log has not
	Changed  = "changed"  // a part is not what it was when it was final
	Outcome  = "outcome"  // its state does not follow from the one before
)

// Fault is something about a message that the dispatcher did not do.
type Fault struct {
	Seq  int64
	ID   string // empty for a message that is gone
	What string
	// Part is the part that differs, for Changed.
	Part string
	// From and To are the states, for Outcome.
	From, To ledger.State
}

// lateBooking bounds how long after it came a receipt is written.
const lateBooking = time.Minute

// Judge compares what the log says of a message, oldest first, with what the tables have of it now,
// nil for nothing. What may have changed since the last look, at the time looked, need not be in
// the log yet, but then it brings a time after it.
func Judge(sealed []Leaf, now *ledger.Evidence, looked time.Time) []Fault {
	switch {
	case now == nil:
		return []Fault{{Seq: sealed[0].Seq, What: Deleted}}
	case len(sealed) == 0:
		return []Fault{{Seq: now.Seq, ID: now.ID, What: Inserted}}
	}
	var faults []Fault
	for i := range sealed[1:] {
		faults = append(faults, follow(&sealed[i], &sealed[i+1], now)...)
	}
	current := NewLeaf(now)
	last := &sealed[len(sealed)-1]
	faults = append(faults, follow(last, &current, now)...)
	if !last.Open && last.Parts[ledger.PartLater] != now.Parts[ledger.PartLater] &&
		now.LaterAt.Before(looked.Add(-lateBooking)) {
		faults = append(faults, Fault{
			Seq: now.Seq, ID: now.ID, What: Changed, Part: ledger.PartNames[ledger.PartLater],
		})
	}
	return faults
}

// follow says what is wrong with a leaf that follows another one of the same message.
func follow(before, after *Leaf, now *ledger.Evidence) (faults []Fault) {
	for p := range before.Parts[:ledger.PartLater] {
		final := p == ledger.PartIntake || !before.Open
		if final && before.Parts[p] != after.Parts[p] {
			faults = append(faults, Fault{
				Seq: now.Seq, ID: now.ID, What: Changed, Part: ledger.PartNames[p],
			})
		}
	}
	if !mayBecome(before.State, after.State) {
		faults = append(faults, Fault{
			Seq: now.Seq, ID: now.ID, What: Outcome, From: before.State, To: after.State,
		})
	}
	return faults
}

// later are the states that may follow those that are final in some way, directly or through
// others; see dispatcher.legal.
var later = map[ledger.State][]ledger.State{
	ledger.Accepted:    {ledger.NoReceipt, ledger.Undelivered, ledger.Delivered},
	ledger.NoReceipt:   {ledger.Undelivered, ledger.Delivered},
	ledger.Undelivered: {ledger.Delivered},
	ledger.Rejected:    {ledger.Delivered},
	ledger.Failed:      {ledger.Delivered},
	ledger.Delivered:   {},
	ledger.Dead:        {},
}

func mayBecome(was, becomes ledger.State) bool {
	next, final := later[was]
	return !final || was == becomes || slices.Contains(next, becomes)
}
