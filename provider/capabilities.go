package provider

import (
	"context"
	"time"
)

// Capabilities are what a provider offers besides taking messages. They decide what the dispatcher
// can do after a submission without an answer. The zero value offers nothing.
type Capabilities struct {
	// SameKeyFor is how long a second submission with the same Submission.Key is recognised and not
	// sent again; zero for never.
	SameKeyFor time.Duration
	// LookupFor is how long after its claim a submission can be looked up, for a channel that is a
	// Finder. Later the provider may no longer show it, so that its absence proves nothing. Zero for
	// never.
	LookupFor time.Duration
	// KeyInReceipt says that receipts carry Submission.Key. A receipt can then resolve a submission
	// without an answer.
	KeyInReceipt bool
	// Receipts says that receipts come, as the channel is configured.
	Receipts bool
	// PartReceipts says that each part of a text has its own receipts, all with the same
	// Submission.Key. It tells how many receipts to expect for a submission without an answer, unless
	// Result.Parts or Result.Receipts does.
	PartReceipts bool
}

// Capable is a channel that describes what its provider offers.
type Capable interface {
	Capabilities() Capabilities
}

// Finder is a channel whose provider can look up a submission by our key.
type Finder interface {
	// Find makes one request. It is called at the earliest some seconds after a submission without
	// an answer.
	Find(ctx context.Context, key string) LookupResult
}

// LookupResult is what a provider knows about a submission.
type LookupResult struct {
	State LookupState
	// Reference is the provider's id of the submission, if it has it.
	Reference string
	// Code is the Result.Code that a submission with this answer would have, for LookupRejected.
	Code string
	// Err explains Unanswered to a person. It never holds a phone number, a text or a secret.
	Err error
}

// LookupState is whether a provider has a submission.
type LookupState uint8

const (
	// Unanswered means that there was no usable answer; the lookup may be repeated. It is the zero
	// value on purpose.
	Unanswered LookupState = iota
	// Taken means that the provider has the submission.
	Taken
	// NotTaken means that the provider is certain not to have it.
	NotTaken
	// LookupRejected means that the provider did not take it, and that the message is at fault, as for
	// the outcome Rejected.
	LookupRejected
)
