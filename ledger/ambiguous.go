package ledger

import (
	"time"
)

// Step is how it is tried to learn what became of a submission that nobody answered.
type Step string

// Steps, in the order in which they are thought of. A receipt is heeded under all of them.
const (
	SameKey      Step = "same_key" // submit again under the same key: the provider knows whether it is a second one
	Lookup       Step = "lookup"   // ask the provider for the key
	AwaitReceipt Step = "receipt"  // wait for a receipt that carries the key
	NoStep       Step = "none"     // the provider offers nothing
)

// Verdict is how a doubt ended.
type Verdict string

// Verdicts.
const (
	Taken     Verdict = "taken"     // the provider has it
	NotTaken  Verdict = "not_taken" // it is certain that it does not
	Resent    Verdict = "resent"    // nobody knows; the message was sent once more, flagged
	FinalWord Verdict = "final"     // nobody knows; booked as possibly billable
)

// Doubt is about a submission of which nobody knows whether the provider took it.
type Doubt struct {
	// Key is its Submission.Key. Attempts that repeat it under the same key are the same doubt.
	Key  string
	Step Step
	// Until is when the search ends, by the database's clock.
	Until time.Time
	// NextAt is when the next try is due; not used with a Verdict.
	NextAt time.Time
	// Verdict is set when the doubt ends with this settlement.
	Verdict Verdict
}

// OpenDoubt is a doubt that is due.
type OpenDoubt struct {
	Doubt
	Message  Message
	Attempt  Attempt // the first one under its key
	Last     int     // number of the latest one
	OpenedAt time.Time
	Asked    int // tries so far
}

// DoubtRecord is a doubt for people to look at. It holds no number and no text.
type DoubtRecord struct {
	ID, Lane, Tenant, Channel string
	Attempt                   int
	Segments                  int
	PriceMicros               int64
	Currency                  string
	Code                      string // why there was no answer
	Step                      Step
	OpenedAt, Until           time.Time
	Asked                     int
	Verdict                   Verdict // empty while it is open
	Author, Note              string
}

// Judgement ends a doubt.
type Judgement struct {
	Seq     int64
	Key     string
	Verdict Verdict
	// Author and Note say who decided and why; empty for the dispatcher itself.
	Author, Note string
	// Settlement takes the message on. For Resent its State is Retry, for FinalWord it stays Unknown; for Taken and NotTaken
	// it is the late truth about the attempt.
	Settlement Settlement
}
