package decide

import (
	"time"

	"dispatcher/admission"
)

// Snapshot is what a claim knows when it decides, apart from the rows that it locked.
type Snapshot struct {
	// Unready has one entry per channel of the routing: why this process cannot send on it now,
	// empty when it can.
	Unready []string
	// Answers are what scoring functions said about due rows, by Message.Seq.
	Answers map[int64]RowScores
	// CommitLatency is how long the commit of a decision takes. Release times begin that much later.
	CommitLatency time.Duration
	Worker        admission.Worker
	// Instances is what all processes granted a moment ago; nil means only this process.
	Instances *Instances
	// ReceiptsSince is since when receipts have been able to come in: before that there was no process
	// or no database. The zero time means always.
	ReceiptsSince time.Time
	// Rooms has one entry per channel of the routing: how much this process may have in flight on it.
	// Nil means no bound.
	Rooms []Room
}
