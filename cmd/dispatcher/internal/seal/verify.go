package seal

import (
	"slices"
	"time"

	"dispatcher/ledger"
)

// Values of Fault.What, which "audit verify" prints.
const (
	Deleted  = "deleted"  // the log has it, the tables do not
	Inserted = "inserted" // the tables have it, the log does not
	Changed  = "changed"  // a part was changed after it was final
	Outcome  = "outcome"  // its state does not follow from the one before
)

// Fault is a change of a row that the dispatcher did not make.
type Fault struct {
	Seq  int64
	ID   string // empty for a deleted row
	What string
	// Part is the part that differs, for Changed.
	Part string
	// From and To are the states, for Outcome.
	From, To ledger.State
}

// Verify compares the leaves of a row in the log, oldest first, with what the tables have now, nil
// for nothing. sealedAt is the time of the last seal of the row. The dispatcher gives each change a
// time, so a part that differs from its last leaf must have a time after sealedAt.
func Verify(sealed []Leaf, now *ledger.Evidence, sealedAt time.Time) []Fault {
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
	if last.State == ledger.NotSent || now.State == ledger.NotSent ||
		!now.LaterAt.Before(sealedAt.Add(-ledger.LateCommit)) {
		return faults
	}
	// Nothing changed since the last seal, by the times of the row.
	for p := ledger.PartPlan; p <= ledger.PartLater; p++ {
		if mayChange := p == ledger.PartLater || last.Open; mayChange && last.Parts[p] != now.Parts[p] {
			faults = append(faults, Fault{
				Seq: now.Seq, ID: now.ID, What: Changed, Part: ledger.PartNames[p],
			})
		}
	}
	return faults
}

// follow returns the faults between two successive leaves of a row.
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

// later lists, for each final state, the states that late answers and receipts may lead to,
// directly or through others; see dispatcher.legal. From any other state all states are possible.
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
