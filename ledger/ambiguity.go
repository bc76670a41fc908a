package ledger

import (
	"time"

	"dispatcher/provider"
)

// Ambiguities are the submissions of which nobody knows whether the provider took them, and what is
// done to find out.
type Ambiguities struct{ *db }

// Step is how it is tried to learn what became of a submission that nobody answered.
type Step string

// Steps, in the order in which they are thought of. A receipt counts under all of them.
const (
	SameKey      Step = "same_key" // submit again under the same key, which the provider recognises
	Lookup       Step = "lookup"   // ask the provider for the key
	AwaitReceipt Step = "receipt"  // wait for a receipt that carries the key
	NoStep       Step = "none"     // the provider offers nothing
)

// ResolvedAs is how an ambiguity ended.
type ResolvedAs string

// Resolutions.
const (
	Taken      ResolvedAs = "taken"     // the provider has it
	NotTaken   ResolvedAs = "not_taken" // it is certain that it does not
	Resent     ResolvedAs = "resent"    // nobody knows; the message was sent once more, flagged
	Unresolved ResolvedAs = "final"     // nobody knows; booked as possibly billable
)

// Ambiguity is about a submission of which nobody knows whether the provider took it.
type Ambiguity struct {
	// Key is its Submission.Key. Attempts that repeat it under the same key are the same ambiguity.
	Key  string
	Step Step
	// Until is when the search ends, by the database's clock.
	Until time.Time
	// Account stands for the settings of the channel: only under the same ones does the provider
	// know the key.
	Account string
	// NextAt is when the next try is due; not used with a ResolvedAs.
	NextAt time.Time
	// ResolvedAs is set when the ambiguity ends with this settlement.
	ResolvedAs ResolvedAs
	// Partly says that a part of the message is known to have been taken, by this attempt or an
	// earlier one.
	Partly bool
}

// OpenAmbiguity is an ambiguity that is due.
type OpenAmbiguity struct {
	Ambiguity
	Message  Message
	Attempt  Attempt // the latest one under its key
	First    int     // number of the first one
	OpenedAt time.Time
	Asked    int // tries so far
	// Answer is what became known of the submission meanwhile, by a late answer or a receipt: a
	// word of audit.attempts.outcome, "unknown" as long as nothing is. It is the yes or no to the
	// latest attempt under its key, which is Settled then, or what is known of the first one.
	// Receipt is Delivered or Undelivered when a receipt has said so.
	Answer  string
	Settled bool
	Receipt State
	// Reference holds the provider's ids of the parts that the latest attempt got accepted before
	// it got no answer. A provider may give none.
	Reference string
	// Await is for how long receipts are awaited once the submission turns out to have been taken:
	// Settlement.Await of the latest attempt, by the routing that it was sent under.
	Await time.Duration
}

// Answered reports whether what became known of the first attempt tells of the submission. A yes or
// no does. That the first attempt was refused, or never left, tells nothing once another has
// repeated it under the same key.
func (o *OpenAmbiguity) Answered() bool {
	switch o.Answer {
	case provider.Unknown.String():
		return false
	case provider.Accepted.String(), provider.Rejected.String():
		return true
	}
	return o.Attempt.Number == o.First
}

// Repeats reports whether the message waits to be submitted again under the key, or is being so.
func (o *OpenAmbiguity) Repeats() bool { return o.Message.SameKey == o.Key }

// Resolution ends an ambiguity.
type Resolution struct {
	Seq int64
	Key string
	As  ResolvedAs
	// Author and Note say who decided and why; empty for the dispatcher itself.
	Author, Note string
	// Settlement settles the latest attempt with what was found out late; nil when it stays
	// unknown.
	Settlement *Settlement
	// Move takes the message on where Settlement does not; nil leaves that to Settlement.
	Move *Move
}

// Move takes a message on of which nobody knows whether it was taken, or that waits to be submitted
// again.
type Move struct {
	State             State // Unknown, Retry, Failed, Delivered or Undelivered
	Reason            string
	PossibleDuplicate bool
	Tried             bool // adds the attempt's channel to the row's Tried
	Notice            *Notice
}
