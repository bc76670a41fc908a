package provider

import (
	"errors"
	"fmt"
	"time"
)

// Receipt is the provider's later report on a submission that it accepted. It holds no phone number
// and no text.
// Receipts arrive in any order, more than once, and sometimes before the answer to the submission.
// Each part of a message has its own receipts.
type Receipt struct {
	// Reference is the provider's id of the message or part, as Result.Reference and
	// Part.Reference have it. It may be empty when Key is not.
	Reference string
	// Key is the Submission.Key that the receipt carries; empty when the provider returns none.
	Key   string
	State ReceiptState
	// Cause says why the message was not delivered, in the same words for all providers;
	// Unspecified otherwise.
	Cause Cause
	// Code is the provider's own word for the state, bounded and free of numbers and texts of the
	// message: "UNDELIV/012". It is empty when there was none that can be shown.
	Code string
	// At is when the receipt arrived, on this machine's clock. Times within receipts name no zone.
	At time.Time
}

// ReceiptState is what a receipt says about the message.
type ReceiptState uint8

const (
	// Pending means that the state is not final, and another receipt may follow. It is the zero
	// value on purpose: an unclassified state never counts as final.
	Pending ReceiptState = iota
	// Delivered means that the handset got the message.
	Delivered
	// Undelivered means that it did not and never will: expired, rejected, deleted, undeliverable.
	Undelivered
)

var receiptStateNames = [...]string{
	Pending: "pending", Delivered: "delivered", Undelivered: "undelivered",
}

// String returns the word used in the database, in logs and in metrics.
func (s ReceiptState) String() string {
	if int(s) < len(receiptStateNames) {
		return receiptStateNames[s]
	}
	return fmt.Sprintf("ReceiptState(%d)", uint8(s))
}

// Final reports whether the provider regards the state as final.
func (s ReceiptState) Final() bool { return s == Delivered || s == Undelivered }

// Cause is why a message was not delivered, in words that are the same for all providers.
type Cause string

// Causes of Undelivered. The words appear in the database, in status events and in metrics.
const (
	Unspecified   Cause = ""               // no reason given, or one with no common word
	Expired       Cause = "expired"        // its validity ended before the handset could be reached
	UnknownNumber Cause = "unknown_number" // the number is not assigned
	Absent        Cause = "absent"         // the handset was off or out of reach
	NotMobile     Cause = "not_mobile"     // the number takes no SMS
	Blocked       Cause = "blocked"        // the recipient or the operator bars messages
	Spam          Cause = "spam"           // a filter classified it as spam
	OptedOut      Cause = "opted_out"      // the recipient told the provider to stop
	BadSender     Cause = "bad_sender"     // the sender id is not allowed there
	NoCredit      Cause = "no_credit"      // the account has no money or is suspended
	Deleted       Cause = "deleted"        // it was cancelled or deleted
	NetworkError  Cause = "network_error"  // no route, or a fault at the operator
)

// Causes lists all but Unspecified.
var Causes = []Cause{
	Expired, UnknownNumber, Absent, NotMobile, Blocked, Spam, OptedOut, BadSender, NoCredit,
	Deleted, NetworkError,
}

// Inbound is a message that a subscriber sent to one of our numbers.
type Inbound struct {
	// Reference is the provider's id of the message; with an empty one, a repeated message cannot be
	// distinguished from a new one.
	Reference string
	// From is the subscriber and To our number or short code. Numbers are E.164 with plus.
	From, To string
	Text     string
	// Part, from zero, and Parts say which of how many segments this is, and Group is the same for
	// all of them; Parts is 0 or 1 for a whole message. Providers with an HTTP API join segments
	// themselves. The texts of parts are joined by sms.JoinParts.
	Group       uint16
	Part, Parts int
	// At is when the message arrived, on this machine's clock.
	At time.Time
	// SentAt is when the subscriber's message reached the provider, on the provider's clock, if
	// that time is signed or received over our own connection. It is zero if unknown, as with SMPP,
	// whose deliver_sm has no time. A channel sets it for all of its messages or for none, because
	// these times are only compared with one another.
	SentAt time.Time
}

// Callback is one HTTP request of a provider to our receipts listener. It is plain data, so that
// reading it is a pure function that can be fuzzed.
type Callback struct {
	Method string
	// URL is the address as the provider called it: the configured public URL with the path and the
	// query of the request, undecoded. Some providers sign it.
	URL string
	// Header holds the request's header fields under their canonical names (textproto).
	Header map[string][]string
	// Body is at most MaxCallback bytes long.
	Body []byte
	// Certificate reports whether the caller presented a client certificate that the listener
	// verified.
	Certificate bool
	// At is when it arrived, on this machine's clock. ErrStale is relative to it.
	At time.Time
}

// MaxCallback bounds the body of a callback, in bytes.
const MaxCallback = 1 << 20

// Get returns the first value of a header field, by its canonical name; empty when there is none.
func (c *Callback) Get(name string) string {
	if values := c.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// CallbackContent is the content of a callback.
type CallbackContent struct {
	Receipts []Receipt
	Inbound  []Inbound
	// ReplayID identifies this callback among all genuine ones while it is not stale: a nonce, or
	// the signature. Empty if the provider's scheme has none.
	ReplayID string
	// Answer is the body of the answer, with its content type; empty means an empty 200.
	Answer, AnswerType string
}

// CallbackReader is a channel whose provider calls back. ReadCallback is pure: it verifies the
// sender in constant time before it reads anything else, and changes nothing.
type CallbackReader interface {
	// ReadCallback returns the content of a callback. Its error wraps ErrForged, ErrStale or
	// ErrMalformed and shows no number, text or secret. A genuine callback without meaning for the
	// dispatcher is an empty CallbackContent.
	ReadCallback(c *Callback) (CallbackContent, error)
}

// Why a callback is refused. Its content is then ignored.
var (
	// ErrForged: its signature, secret or certificate is missing or wrong. Answered 403.
	ErrForged = errors.New("not signed by the provider")
	// ErrStale: it is signed, but too old or from the future. Answered 503, because a retry may be
	// signed anew.
	ErrStale = errors.New("its time is too far from now")
	// ErrMalformed: it is signed and cannot be read. Answered 400.
	ErrMalformed = errors.New("cannot be read")
)
