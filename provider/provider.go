// Package provider is the vocabulary between the dispatcher and its providers: submissions,
// results, and the two small interfaces that an adapter implements.
// It has no network code. Each kind of gateway has a child package (provider/smpp, ...); package
// providertest is the conformance suite that all of them pass. Packages selector, admission and
// ledger choose channels, apply limits and keep records.
package provider

import (
	"context"
	"fmt"
	"time"
)

// Submission is one attempt to hand one message to one channel.
type Submission struct {
	// ID is the producer's message id, 1 to 64 printable characters.
	ID string
	// Attempt counts the attempts of this message from 1.
	Attempt int
	// Key is our reference of the submission: 32 lower-case hexadecimal digits, unique. To a
	// provider that recognises keys, a second attempt with the same key is the same submission;
	// receipts carry it where the provider supports that. It is empty only in tests.
	Key string
	// To is the recipient in E.164 form with its leading plus.
	To string
	// From is the sender id: alphanumeric, short code or E.164 number; may be empty
	// when the channel has a default of its own.
	From string
	// OwnSender reports whether From was set by the message, not by the routing document for this
	// channel. A provider that refuses the channel's sender would refuse it with any message.
	OwnSender bool
	// Text is the text that the subscriber reads, in UTF-8, look-alikes already replaced.
	Text string
	// Reference ties the segments of one message together. Every attempt of a message has the same
	// one, so that a handset can join parts accepted in different attempts. Adapters with an 8-bit
	// reference use its low byte.
	Reference uint16
	// Parts lists the segments still to be sent, ascending from zero; nil means all. It is set when
	// an earlier attempt on this channel had some accepted. An adapter that sends whole texts
	// refuses such a submission as Uncomposed.
	Parts []int
	// Cut is the Result.Cut of that earlier attempt. An adapter that would split the text
	// differently refuses the submission as Uncomposed: its Parts would hold other words.
	Cut string
	// Validity is when the message expires, by the database's clock; zero leaves it to the
	// provider. Adapters that write an absolute time write this one.
	Validity time.Time
	// Deadline is the same moment on this process's clock, with its monotonic reading; zero sets no
	// bound. From then on no byte leaves, not even for further parts of a message that has started:
	// the result is Refused with the code DeadlinePassed.
	Deadline time.Time
	// Latest bounds when the message may start, on this process's clock with its monotonic reading;
	// zero sets no bound. If no byte has left by then, none leaves, and the result is Refused with
	// the code Late. A message that has started is finished.
	Latest time.Time
}

// Late is the Result.Code of a submission that was Refused because Latest passed before its first
// byte left. It does not count for the channel's health.
const Late = "late"

// DeadlinePassed is the Result.Code of a submission, or the rest of one, that was Refused because
// its Deadline passed. It does not count for the channel's health.
const DeadlinePassed = "expired"

// Uncomposed is the Result.Code of a submission that was Refused because this channel cannot write
// it: no sender, too long for the vendor, or the rest of a text that was split differently. Another
// channel may send it, unless parts were accepted. It does not count for the channel's health.
const Uncomposed = "uncomposed"

// TooLate reports whether a submission that has not started may no longer start.
func (s *Submission) TooLate(now time.Time) bool {
	return !s.Latest.IsZero() && !now.Before(s.Latest)
}

// MaxReference is the longest provider id of a message, in bytes, in an answer or a receipt. It is
// several times what any provider uses, and fits an index of the ledger. A longer id cannot be
// matched to receipts.
const MaxReference = 255

// Expired reports whether no further byte of the submission may leave.
func (s *Submission) Expired(now time.Time) bool {
	return !s.Deadline.IsZero() && !now.Before(s.Deadline)
}

// Withheld is the code with which a submission that has not started is refused now; empty if it may
// start.
func (s *Submission) Withheld(now time.Time) string {
	switch {
	case s.Expired(now):
		return DeadlinePassed
	case s.TooLate(now):
		return Late
	}
	return ""
}

// Begins is when a submission that has not started can no longer start; zero for never.
func (s *Submission) Begins() time.Time {
	if s.Latest.IsZero() || !s.Deadline.IsZero() && s.Deadline.Before(s.Latest) {
		return s.Deadline
	}
	return s.Latest
}

// Ends is when the message expires, by this process's clock. An adapter that sends a relative
// validity computes it right before it writes, because the message may have waited and this
// machine's wall clock may differ from the database's.
func (s *Submission) Ends() time.Time {
	if s.Deadline.IsZero() {
		return s.Validity
	}
	return s.Deadline
}

// Result is the result of one Submission. The zero Result is Unknown: an adapter that forgets to
// classify an answer never causes a second send.
type Result struct {
	Outcome Outcome
	// Unfit is set with Refused if the provider refused this message because of its text, its
	// destination, or its own sender (Submission.OwnSender), and would take others on this channel.
	// Another channel may take the message. One such refusal does not count against the channel's
	// health, but many in a row without an accepted message do, see package breaker. Unfit is not set
	// if the provider refused the sender of the channel: that is a fault of the channel.
	Unfit bool
	// Code is the provider's own code, bounded and free of numbers and texts of the message:
	// "0x00000058", "429/20003", "dial", "timeout".
	Code string
	// Reference is the provider's message id when the message had one part and was accepted.
	Reference string
	// Parts holds one entry per part that was tried, ascending by Index, for a message of several
	// segments; it is nil for a message of one.
	Parts []Part
	// Cut identifies how the text was split, and so which words each of Parts holds: kind of
	// provider, alphabet and tables, header, and the pieces themselves. See sms.Fingerprint. It is
	// set with Parts, unless all were accepted.
	Cut string
	// Receipts is how many receipts to expect if nobody answered and Parts is nil; zero as
	// Capabilities.PartReceipts says.
	Receipts int
	// RetryAfter is the pause that the provider asked for with Throttled; zero if it named none.
	RetryAfter time.Duration
	// Err explains anything but Accepted to a person. It never holds a phone number, a text or a
	// secret.
	Err error
}

// Part is the outcome of one segment of a multi-segment message.
type Part struct {
	Index     int // from zero, the position in the whole message
	Outcome   Outcome
	Reference string // the provider's id of this part, when accepted
	Code      string
}

// Sender submits a message once. Send blocks until the provider has answered or ctx ends, is safe
// for concurrent use, and never retries: the message is on the wire at most once. After ctx has
// ended the result is Unknown if a byte may have left and Refused if none did. All waiting before
// the first byte observes Submission.Latest and Submission.Deadline.
type Sender interface {
	Send(ctx context.Context, s Submission) Result
}

// Channel is a Sender that opens, keeps and closes its connections.
type Channel interface {
	Sender
	// Ready reports whether a submission would find a usable connection now. It does not block. If
	// not, why is one of the words that Unready accepts. If only a single submission is allowed, to
	// test whether the channel has recovered, ok is true and why is Probing.
	Ready() (ok bool, why string)
	// Close takes no more submissions, waits for those in flight until ctx ends, logs out of the
	// provider, and returns when everything has been released. It is idempotent.
	Close(ctx context.Context) error
}

// Words of Channel.Ready. They are stored with choices that skipped a channel, and appear in
// metrics and in the output of explain, so every adapter uses these and no others.
const (
	Connecting    = "connecting"    // no connection yet
	Unbound       = "unbound"       // there was one, it is lost
	BindRefused   = "bind_refused"  // the provider refuses the login
	Closed        = "closed"        // Close was called
	BreakerOpen   = "breaker_open"  // it failed so often that nothing is sent to it for a while
	Misconfigured = "misconfigured" // its settings cannot be used on this machine
	// Busy: its queue in this process is so long that a further message would leave too late.
	Busy = "busy"

	// Probing comes with true: a single submission is allowed, to test whether the channel has
	// recovered.
	Probing = "probing"
)

// Unready reports whether Channel.Ready may return the word with false.
func Unready(word string) bool {
	switch word {
	case Connecting, Unbound, BindRefused, Closed, BreakerOpen, Misconfigured, Busy:
		return true
	}
	return false
}

// Outcome classifies an attempt by whether the message may have been taken, which decides the next
// step.
type Outcome uint8

const (
	// Unknown means that bytes may have left and no answer came. It is the zero value on purpose:
	// an answer that no code classifies never leads to a second send.
	Unknown Outcome = iota
	// Accepted means that the provider took the message and gave a reference.
	Accepted
	// Rejected means that the provider refused and the message is at fault; no other channel would
	// succeed.
	Rejected
	// Refused means that the message was certainly not taken and the channel is at
	// fault: no connection, open breaker, "system error", or, as Result.Unfit says, a provider
	// that does not take this one message. Another channel may be tried.
	Refused
	// Throttled means that the provider asked to slow down. It does not count for the channel's
	// health.
	Throttled
)

var outcomeNames = [...]string{
	Unknown: "unknown", Accepted: "accepted", Rejected: "rejected", Refused: "refused",
	Throttled: "throttled",
}

// String returns the word used in the database, in metrics and in reports.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// ParseOutcome is the inverse of String.
func ParseOutcome(s string) (Outcome, error) {
	for o, name := range outcomeNames {
		if name == s {
			return Outcome(o), nil
		}
	}
	return Unknown, fmt.Errorf("outcome %q is none of %v", s, outcomeNames)
}

// Combine combines the outcomes of the parts of one message. Parts must not be empty.
//
// Any Unknown part makes the whole Unknown, because sending the rest again could repeat that part.
// Otherwise a Rejected part ends the message. Otherwise, while parts are missing, the whole is what
// the missing parts were: Throttled if any was, else Refused. Only if every part was Accepted is
// the whole Accepted.
func Combine(parts []Part) Outcome {
	var seen [Throttled + 1]bool
	for _, p := range parts {
		seen[p.Outcome] = true
	}
	switch {
	case seen[Unknown]:
		return Unknown
	case seen[Rejected]:
		return Rejected
	case seen[Throttled]:
		return Throttled
	case seen[Refused]:
		return Refused
	default:
		return Accepted
	}
}
