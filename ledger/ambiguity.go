package ledger

import (
	"time"

	"dispatcher/provider"
)

// Ambiguities stores the submissions that the provider may or may not have taken, and how each was
// resolved.
type Ambiguities struct{ *db }

// Step is a way to find out whether the provider took a submission that it did not answer.
type Step string

// Steps, the preferred ones first. With any of them, a receipt with the key resolves the ambiguity.
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
	NotTaken   ResolvedAs = "not_taken" // the provider certainly does not have it
	Resent     ResolvedAs = "resent"    // nobody knows; the message was sent once more, flagged
	Unresolved ResolvedAs = "final"     // nobody knows; it counts as possibly billable
)

// Ambiguity is a submission that the provider may or may not have taken.
type Ambiguity struct {
	// Key is its Submission.Key. All attempts under the same key are one ambiguity.
	Key  string
	Step Step
	// Until is when the search ends, by the database's clock.
	Until time.Time
	// Account identifies the settings of the channel: the provider knows the key only under the same
	// settings.
	Account string
	// NextAt is when the next try is due; ignored when ResolvedAs is set.
	NextAt time.Time
	// ResolvedAs is set when the ambiguity ends with this settlement.
	ResolvedAs ResolvedAs
	// Partly says that a part of the message is known to have been taken, by this attempt or an
	// earlier one.
	Partly bool
}

// OpenAmbiguity is an ambiguity to resolve, with its message and its latest attempt.
type OpenAmbiguity struct {
	Ambiguity
	Message  Message
	Attempt  Attempt // the latest one under its key
	First    int     // number of the first one
	OpenedAt time.Time
	Asked    int // tries so far
	// Answer is what a late answer or a receipt has told about the submission: a word of
	// audit.attempts.outcome, "unknown" for nothing. It is the outcome of the latest attempt under its
	// key if that is accepted or rejected, else the outcome of the first one.
	Answer string
	// Settled says that the outcome of the latest attempt is not unknown.
	Settled bool
	// Receipt is the receipt state of the first attempt; empty for none.
	Receipt State
	// Reference holds the provider's ids of the parts that the latest attempt got accepted before an
	// answer was missing. A provider may give none.
	Reference string
	// Await is how long receipts are awaited if the submission turns out to have been taken:
	// Settlement.Await of the latest attempt, by the routing under which it was sent.
	Await time.Duration
}

// Answered reports whether Answer tells what became of the submission. Accepted and rejected do. A
// first attempt that was refused, or never left, says nothing when another one has repeated it
// under the same key.
func (o *OpenAmbiguity) Answered() bool {
	switch o.Answer {
	case provider.Unknown.String():
		return false
	case provider.Accepted.String(), provider.Rejected.String():
		return true
	}
	return o.Attempt.Number == o.First
}

// Repeats reports whether the message waits to be submitted again under the key, or is being
// submitted.
func (o *OpenAmbiguity) Repeats() bool { return o.Message.SameKey == o.Key }

// Resolution ends an ambiguity.
type Resolution struct {
	Seq int64
	Key string
	As  ResolvedAs
	// Author and Note say who decided and why; empty for the dispatcher itself.
	Author, Note string
	Via          Via
	// Settlement settles the latest attempt with what was found out; nil when it stays unknown.
	Settlement *Settlement
	// Move changes the state of the message where Settlement does not; nil leaves that to Settlement.
	Move *Move
}

// Move is the new state of a message that is unknown, or that waits to be submitted again.
type Move struct {
	State             State // Unknown, Retry, Failed, Delivered or Undelivered
	Reason            string
	PossibleDuplicate bool
	Tried             bool // adds the attempt's channel to the row's Tried
	Notice            *Notice
}
