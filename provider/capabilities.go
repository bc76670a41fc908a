package provider

import (
	"context"
	"time"
)

// Capabilities are what a provider promises beyond taking messages: what the dispatcher can do
// after it got no answer, and what it must not ask for. The zero value promises nothing.
type Capabilities struct {
	// SameKeyFor is for how long a second submission under the same Submission.Key is
	// recognised and not sent again; zero: never.
	SameKeyFor time.Duration
	// Lookup says that the channel is a Finder.
	Lookup bool
	// KeyInReceipt says that receipts carry Submission.Key, so that a receipt can tell
	// what became of a submission that nobody answered.
	KeyInReceipt bool
	// Receipts says that receipts come at all as the channel is configured.
	Receipts bool
	// PartReceipts says that each part of a text has receipts of its own, all with the same
	// Submission.Key. It tells how many there are of a submission that nobody answered;
	// Result.Parts tells it of the others.
	PartReceipts bool
	// LongestValidity bounds Submission.Validity; an adapter shortens what is longer. Zero: the
	// provider takes no validity.
	LongestValidity time.Duration
	// Batch is how many messages one call can carry at most; the dispatcher sends one.
	Batch int
}

// Capable is a channel that says what its provider promises.
type Capable interface {
	Capabilities() Capabilities
}

// Finder is a channel whose provider can be asked what became of a submission, by our key.
type Finder interface {
	// Find asks once. It is called when the answer to the submission never came, at the earliest
	// some seconds after it.
	Find(ctx context.Context, key string) LookupResult
}

// LookupResult is what a provider knows of a submission.
type LookupResult struct {
	State LookupState
	// Reference is the provider's id of what it has taken.
	Reference string
	// Err explains Unanswered to a person. It never holds a phone number, a text or a secret.
	Err error
}

// LookupState is whether a provider has a submission.
type LookupState uint8

const (
	// Unanswered means that the question was not answered; it may be asked again. It is the zero
	// value on purpose.
	Unanswered LookupState = iota
	// Taken means that the provider has the submission.
	Taken
	// NotTaken means that the provider is certain not to have it.
	NotTaken
)
