// Package provider is the vocabulary between the dispatcher and whatever carries an SMS: what is
// submitted, what came of it, and the two small interfaces that an adapter implements.
//
// It holds no network code. Each kind of gateway has a child package (provider/smpp, ...); package
// providertest holds the conformance suite that every one of them passes. Choosing a channel,
// limits and records are not its business: packages selector, admission and ledger do that.
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
	// Key is our reference of what is submitted: 32 lower-case hexadecimal digits that nobody else
	// uses. A second attempt under the same key is the same submission to a provider that
	// recognises keys, and receipts carry it where the provider allows for that. It is empty only
	// in tests.
	Key string
	// To is the recipient in E.164 form with its leading plus.
	To string
	// From is the sender id: alphanumeric, short code or E.164 number; may be empty
	// when the channel has a default of its own.
	From string
	// OwnSender reports whether From is the message's own sender and none that the routing document
	// has for this channel. Where it is not, a provider that refuses the sender would refuse it
	// with any message.
	OwnSender bool
	// Text is what the subscriber reads, in UTF-8, look-alikes already replaced.
	Text string
	// Reference ties the segments of one message together. Every attempt of a message carries the
	// same one, so that a handset can join parts that were accepted in different attempts. Adapters
	// with an 8-bit reference use its low byte.
	Reference uint16
	// Parts lists, ascending and from zero, the segments still to be sent; nil means all. It is set
	// when an earlier attempt on this channel got some of them accepted. An adapter that takes a
	// message as a whole has no parts: it refuses such a submission as Uncomposed.
	Parts []int
	// Cut is the Result.Cut of that earlier attempt. Whoever would cut the text otherwise refuses
	// the submission as Uncomposed: under its own cut Parts would be other words.
	Cut string
	// Validity is when the message loses its use, by the database's clock; zero leaves it to the
	// provider. Adapters that write a point in time write this one.
	Validity time.Time
	// Deadline is the same moment on this process's clock with its monotonic reading; zero does not
	// bound anything. From then on no byte leaves any more, and no further part of a message that
	// has begun: the result is Refused with the code DeadlinePassed.
	Deadline time.Time
	// Latest bounds when the message may begin, on this process's clock with its monotonic
	// reading; zero does not bound it. When no byte has left by then, none leaves any more, and
	// the result is Refused with the code Late. What has begun is finished: further parts follow
	// whenever they can.
	Latest time.Time
}

// Late is the Result.Code of a submission that was Refused because its Latest came before
// its first byte could leave. It says nothing about the channel's health.
const Late = "late"

// DeadlinePassed is the Result.Code of a submission, or of the rest of one, that was Refused
// because its Deadline had come. It says nothing about the channel's health.
const DeadlinePassed = "expired"

// Uncomposed is the Result.Code of a submission that was Refused because this channel cannot write
// such a message: no sender, too long for its vendor, the rest of a text that was cut otherwise.
// Another channel may, unless parts have been taken already. It says nothing about the channel's
// health.
const Uncomposed = "uncomposed"

// TooLate reports whether a submission of which no byte has left may not begin any more.
func (s *Submission) TooLate(
	now time.Time,
) bool {
	return !s.Latest.IsZero() && !now.Before(s.Latest)
}

// MaxReference is how long a provider's id of a message may be, in bytes, in an answer as in a
// receipt. It is several times what any provider gives, and fits an index of the ledger. By a
// longer one no receipt is found.
const MaxReference = 255

// Expired reports whether nothing of the submission may leave any more.
func (s *Submission) Expired(now time.Time) bool {
	return !s.Deadline.IsZero() && !now.Before(s.Deadline)
}

// Withheld is the code under which a submission of which no byte has left is refused now; empty
// when it may begin.
func (s *Submission) Withheld(now time.Time) string {
	switch {
	case s.Expired(now):
		return DeadlinePassed
	case s.TooLate(now):
		return Late
	}
	return ""
}

// Begins is the moment from which on a submission of which no byte has left is withheld; zero for
// never.
func (s *Submission) Begins() time.Time {
	if s.Latest.IsZero() || !s.Deadline.IsZero() && s.Deadline.Before(s.Latest) {
		return s.Deadline
	}
	return s.Latest
}

// Ends is when the message loses its use, to be compared with this process's clock. An adapter that
// passes on a span of time computes it from this right before it writes, because the message may
// have waited, and because this machine's wall clock may differ from the database's.
func (s *Submission) Ends() time.Time {
	if s.Deadline.IsZero() {
		return s.Validity
	}
	return s.Deadline
}

// Result is what came of one Submission. The zero Result is Unknown: an adapter that forgets to
// classify an answer never causes a second send.
type Result struct {
	Outcome Outcome
	// Unfit qualifies Refused: the provider works, and does not take this one message on this
	// channel, for its text, for where it goes, or for a sender of its own (Submission.OwnSender).
	// Another channel may take it, and this one takes others: alone it says nothing of the
	// channel's health, while a long row of such messages without one that is taken does, see
	// package breaker. A sender that is refused and is the channel's is the channel's fault.
	Unfit bool
	// Code is the provider's own word for it, bounded and free of numbers and texts of the message:
	// "0x00000058", "429/20003", "dial", "timeout".
	Code string
	// Reference is the provider's message id when the message had one part and was accepted.
	Reference string
	// Parts holds one entry per part that was tried, ascending by Index, for a
	// message of several segments; it is nil for a message of one.
	Parts []Part
	// Cut stands for all that decides what Parts counts: kind of provider, alphabet and tables,
	// header, the pieces themselves. See sms.Fingerprint. It is set with Parts, unless all were
	// accepted.
	Cut string
	// RetryAfter is the provider's own wish after Throttled; zero when it named none.
	RetryAfter time.Duration
	// Err explains anything but Accepted to a person. It never holds a phone number, a text or a
	// secret.
	Err error
}

// Part is the fate of one segment of a multi-segment message.
type Part struct {
	Index     int // from zero, the position in the whole message
	Outcome   Outcome
	Reference string // the provider's id of this part, when accepted
	Code      string
}

// Sender submits a message once. Send blocks until the provider has answered or ctx ends, is safe
// for concurrent use, and puts the message on the wire at most once whatever happens: it never
// retries by itself. After ctx has ended the result is Unknown if a byte may have left and Refused
// if none did. Whatever keeps it waiting before the first byte, it observes Submission.Latest and
// Submission.Deadline.
type Sender interface {
	Send(ctx context.Context, s Submission) Result
}

// Channel is a Sender with a life of its own: connections that come and go.
type Channel interface {
	Sender
	// Ready reports whether a submission would find a usable connection now. It does not block.
	// When it does not, it says why in one of the words that Unready knows; when only a single
	// submission is welcome, to see whether the channel has recovered, it is true and says Probing.
	Ready() (ok bool, why string)
	// Close stops taking submissions, waits for those under way until ctx ends, leaves the provider
	// politely and returns when everything has been released. It is idempotent.
	Close(ctx context.Context) error
}

// Words of Channel.Ready. They are stored with the choices that passed a channel over, and
// stand in metrics and in the sentences of explain, so that every adapter uses these and no others.
const (
	Connecting    = "connecting"    // no connection yet
	Unbound       = "unbound"       // there was one, it is lost
	BindRefused   = "bind_refused"  // the provider refuses the login
	Closed        = "closed"        // Close was called
	BreakerOpen   = "breaker_open"  // it failed so often that it is left alone for a while
	Misconfigured = "misconfigured" // its settings cannot be used on this machine
	// so much waits for it in this process that more would come too late
	Busy = "busy"

	// Probing stands beside true: one submission is welcome, to see whether the channel has
	// recovered.
	Probing = "probing"
)

// Unready reports whether the word is one that Channel.Ready may say beside false.
func Unready(word string) bool {
	switch word {
	case Connecting, Unbound, BindRefused, Closed, BreakerOpen, Misconfigured, Busy:
		return true
	}
	return false
}

// Outcome classifies an attempt by the one question that matters for the next step: may the message
// have been taken?
type Outcome uint8

const (
	// Unknown means that bytes may have left and no answer came. It is the zero value on purpose:
	// what nobody classified is never sent again by itself.
	Unknown Outcome = iota
	// Accepted means that the provider took the message and gave a reference.
	Accepted
	// Rejected means that the provider said no and the message is at fault; no other channel would
	// do better.
	Rejected
	// Refused means that the message was certainly not taken and the channel is at
	// fault: no connection, open breaker, "system error", or, as Result.Unfit says, a provider
	// that does not take this one message. Another channel may be tried.
	Refused
	// Throttled means that the provider asked to slow down. It says nothing about the channel's
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

// Combine folds the outcomes of the parts of one message into the outcome of the
// whole. Parts must not be empty.
//
// Any Unknown part makes the whole Unknown, because sending the rest again could repeat that part.
// Otherwise a Rejected part ends the message. Otherwise, as long as parts are missing, the whole is
// what the missing parts were: Throttled if any was, else Refused. Only when every part was
// Accepted is the whole Accepted.
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
