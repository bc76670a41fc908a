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
	// Part.Reference have it. It is not empty.
	Reference string
	State     ReceiptState
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

// String returns the word used in logs and metrics.
func (s ReceiptState) String() string {
	if int(s) < len(receiptStateNames) {
		return receiptStateNames[s]
	}
	return fmt.Sprintf("ReceiptState(%d)", uint8(s))
}

// Final reports whether no other state can follow.
func (s ReceiptState) Final() bool { return s == Delivered || s == Undelivered }
