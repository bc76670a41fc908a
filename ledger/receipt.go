package ledger

import (
	"time"

	"dispatcher/provider"
)

// Receipt is a provider's later word on a part of a message.
type Receipt struct {
	Channel string
	// Reference is the provider's id of the part; it may be empty when Seq is set.
	Reference string
	// Seq and Attempt name the submission when the receipt carries our own key; both are 0 when it does not. The
	// caller vouches for them.
	Seq     int64
	Attempt int
	State   provider.ReceiptState
	// Cause and Code are stored as they are; both are bounded and show no number and no text.
	Cause provider.Cause
	Code  string
	// At is when it arrived, on this machine's clock; the zero time is now.
	At time.Time
}

// Received is what became of receipts. Each counts once.
type Received struct {
	Matched  int // those that said something new about a known attempt
	Early    int // those that are kept because nobody knows their attempt, or not yet
	Repeated int // those that changed nothing; also what is pending for an attempt that nobody knows
	// Contradictory are those that cannot be true together with what is booked, and change no message: by their key an attempt
	// was delivered that its provider had not taken, or a reference belongs to another message than the first one that
	// it was known to belong to.
	Contradictory int
	// Freed is how many active slots they gave back.
	Freed int64
}

// add sums up.
func (r *Received) add(more Received) {
	r.Matched += more.Matched
	r.Early += more.Early
	r.Repeated += more.Repeated
	r.Contradictory += more.Contradictory
	r.Freed += more.Freed
}

// Swept is what came of looking at what was due.
type Swept struct {
	Closed int // messages that came to another state
	// Contradictory is how many receipts turned out to be so when their attempt was settled, see Received.
	Contradictory int
}

// Closing is a message that a receipt, or the want of one, brings to a state: Accepted, Delivered, Undelivered or
// NoReceipt. It has what a status event needs.
type Closing struct {
	Seq               int64
	ID                string
	Lane, Tenant      string
	Route             string // empty when none matched
	Segments          int
	PossibleDuplicate bool
	// Envelope is the record's value as it was received.
	Envelope []byte

	State State
	// Channel and Attempt are those that the receipts are about, and Reference the provider's ids of that attempt.
	Channel   string
	Attempt   int
	Reference string
	// Cause and Code are those of the receipt that decided; empty with NoReceipt.
	Cause provider.Cause
	Code  string
	// At is when the state was reached, by the database's clock.
	At time.Time
}

// Tell composes the status event of a message that a receipt brings to a state, or returns nil for
// none. It is called while rows are locked: it must be quick and must not use the ledger. When
// the transaction has to be made again, it is called again.
type Tell func(*Closing) *Notice
