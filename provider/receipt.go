package provider

import (
	"fmt"
	"time"
)

// Receipt is the provider's later word on a submission that it accepted. It holds no phone
// number and no text.
//
// Receipts come in any order, more than once, and sometimes before the answer to the submission
// itself. Each part of a message has receipts of its own.
type Receipt struct {
	// Reference is the provider's id of the message or part, as Result.Reference and
	// Part.Reference have it. It may be empty when Key is not.
	Reference string
	// Key is the Submission.Key that the receipt carries; empty when the provider returns none.
	Key   string
	State ReceiptState
	// Cause says why the message was not delivered, in the same words for all providers; Unspecified
	// otherwise.
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
	// Pending means that nothing is certain yet, and another receipt may follow. It is the zero value
	// on purpose: a state that nobody classified never counts as an end.
	Pending ReceiptState = iota
	// Delivered means that the handset got the message.
	Delivered
	// Undelivered means that it did not and never will: expired, rejected, deleted, undeliverable.
	Undelivered
)

var receiptStateNames = [...]string{Pending: "pending", Delivered: "delivered", Undelivered: "undelivered"}

// String returns the word used in the database, in logs and in metrics.
func (s ReceiptState) String() string {
	if int(s) < len(receiptStateNames) {
		return receiptStateNames[s]
	}
	return fmt.Sprintf("ReceiptState(%d)", uint8(s))
}

// Final reports whether no other state can follow.
func (s ReceiptState) Final() bool { return s == Delivered || s == Undelivered }

// Cause is why a message was not delivered, in words that are the same for all providers.
type Cause string

// Causes of Undelivered. The words stand in the database, in status events and in metrics.
const (
	Unspecified   Cause = ""               // the provider did not say, or in a way of its own
	Expired       Cause = "expired"        // its validity ended before the handset could be reached
	UnknownNumber Cause = "unknown_number" // nobody has this number
	Absent        Cause = "absent"         // the handset was off or out of reach
	NotMobile     Cause = "not_mobile"     // the number takes no SMS
	Blocked       Cause = "blocked"        // the recipient or the operator bars messages
	Spam          Cause = "spam"           // a filter took it for spam
	OptedOut      Cause = "opted_out"      // the recipient told the provider to stop
	BadSender     Cause = "bad_sender"     // the sender id is not allowed there
	NoCredit      Cause = "no_credit"      // the account has no money or is suspended
	Deleted       Cause = "deleted"        // it was cancelled or deleted
	NetworkError  Cause = "network_error"  // no route, or a fault at the operator
)

// Causes lists all but Unspecified.
var Causes = []Cause{
	Expired, UnknownNumber, Absent, NotMobile, Blocked, Spam, OptedOut, BadSender, NoCredit, Deleted, NetworkError,
}
