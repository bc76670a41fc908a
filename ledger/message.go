package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dispatcher/admission"
)

// State is the state of a message, in the words of audit.messages.state and of the status topic.
type State string

// States of a message. Scheduled, Waiting and Retry rows have a next_at, and any instance picks
// them up. A Sending row has an attempt without outcome, or its only attempt was accepted and the
// view message_states reads the state from it. Accepted waits for a receipt where one is expected;
// it has a next_at if the message goes on to another channel without one. The others are final,
// though a late answer or receipt may still replace one, see DESIGN.md.
const (
	Scheduled   State = "scheduled"   // send_at is in the future
	Waiting     State = "waiting"     // no channel could take it yet
	Retry       State = "retry"       // an attempt ended without the message being taken
	Sending     State = "sending"     // an attempt is in flight
	Accepted    State = "accepted"    // a provider took it
	Delivered   State = "delivered"   // a receipt said so
	Undelivered State = "undelivered" // a receipt said that it never will be
	NoReceipt   State = "no_receipt"  // no receipt came in time
	Rejected    State = "rejected"    // a provider said that the message is at fault
	Failed      State = "failed"      // no provider took it before its deadline
	Unknown     State = "unknown"     // it may have been taken; never sent again by itself
	Dead        State = "dead"        // the record could not be used
)

// Final reports whether a message in this state changes no more by itself.
func (s State) Final() bool {
	switch s {
	case Scheduled, Waiting, Retry, Sending, Accepted:
		return false
	case Delivered, Undelivered, NoReceipt, Rejected, Failed, Unknown, Dead:
		return true
	}
	return false
}

// Message is the ledger's row of one message.
type Message struct {
	// Seq is the ledger's own number, ascending; zero until the row exists.
	Seq int64
	// ID is the producer's id, unique for ever.
	ID     string
	Lane   string
	Tenant string
	// Recipient is a hash of the number that the message goes to, see function Recipient; 0 for a
	// record that names none. It is not read back from the ledger.
	Recipient int64
	// Origin is the Kafka position that the message was first read from.
	Origin Origin
	// Envelope is the record's value as it was received; nil when its payload is gone.
	Envelope []byte
	// Digest identifies the content: equal for a redelivery, different for a second message under the
	// same id. It is not read back from the ledger.
	Digest int64
	// NumberHMAC is a keyed hash of the number, and CallingCode its country code by E.164, such as 44.
	// Both are 0 for a record that could not be used. EnvelopeHMAC is a hash of Salt and Envelope.
	// They stay when the payload is dropped, but Salt is dropped with it: it is zero then, and in
	// payloads that an earlier release stored. Only Messages reads them back, except NumberHMAC.
	NumberHMAC, EnvelopeHMAC int64
	CallingCode              int16
	Salt                     [SaltSize]byte
	// Sender is the sender id of the message if it is a name or a short code, the word long_code if it
	// is a number, empty for none. Only Messages reads it back.
	Sender string

	// State, Reason and NextAt are what the row is inserted with: Sending when the claim is to find a
	// channel, Scheduled with NextAt, or Dead or Failed with a bounded Reason.
	State  State
	Reason string
	// Detail is why it is Dead, a sentence without number and text. Only Record reads it back.
	Detail    string
	NextAt    time.Time
	ExpiresAt time.Time // the deadline; never zero for a usable message

	Plan Plan

	// The rest is set only for messages that come back from the ledger.

	ReceivedAt time.Time
	Attempts   int      // attempts made so far
	Tried      []string // channels that refused it in this round
	Rounds     int      // how many rounds have ended because no untried channel could take it soon
	Pinned     string   // channel that accepted some of its parts
	PartsLeft  []int    // parts that are still to be sent, when Pinned
	// PartsCut is how the text was split into parts when some of them were accepted, see
	// provider.Result.Cut; empty when none was.
	PartsCut          string
	PossibleDuplicate bool
	// MayBeTaken says, for a due row that is or was resent, that it is still not known whether an
	// earlier attempt was taken.
	MayBeTaken bool
	// TakenAt, for a due row that is Accepted, is when the last answer that accepted it was recorded.
	// ReceiptCame says that a final receipt for a part of it has come since.
	TakenAt     time.Time
	ReceiptCame bool
	// SameKey is the Submission.Key of the last attempt, if the next one is to use the same key, until
	// SameKeyUntil; empty otherwise.
	SameKey      string
	SameKeyUntil time.Time
	// SameKeyAccount is Ambiguity.Account of that submission.
	SameKeyAccount string
	// Ticket is the ticket of the last attempt, if it still holds an active slot on Pinned; nil
	// otherwise.
	Ticket *admission.Ticket
	// Waits are the earlier waits. WaitingSince and WaitsFor are about the present one; zero when the
	// message does not wait.
	Waits        []Wait
	WaitingSince time.Time
	WaitsFor     string
}

// SaltSize is the length of a payload's salt in bytes.
const SaltSize = 16

// Origin is a position in Kafka.
type Origin struct {
	Topic     string
	Partition int32
	Offset    int64
}

// String is the position as topic/partition/offset, which also names records without an id.
func (o Origin) String() string { return fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset) }

// ParseOrigin parses what String returns.
func ParseOrigin(text string) (o Origin, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return o, false
	}
	partition, err := strconv.ParseInt(parts[1], 10, 32)
	offset, err2 := strconv.ParseInt(parts[2], 10, 64)
	o = Origin{Topic: parts[0], Partition: int32(partition), Offset: offset}
	return o, err == nil && err2 == nil && parts[0] != ""
}

// Plan is the part of a choice that is fixed before any shared state is read. It can be derived
// again from the routing document of Version and the draw key.
type Plan struct {
	Route       string // name of the route; empty when none matched
	Version     int64  // routing version
	Draw        int64  // in [0, Size)
	Size        int64  // N of the interval table
	KeyID       string // of the draw key
	FirstChoice string // channel the draw picked
	Segments    int
	Alphabet    string // gsm7 or ucs2
}

// Recipient is a hash of a number, for each tenant that writes to it: the first 64 bits of SHA-256
// over tenant, a zero byte and number, as a signed big-endian integer. Leading plus signs are left
// out, because some providers leave them out. It is never 0, which stands for no recipient.
//
// Tables and claims use it in place of the number. It does not protect the number from somebody who
// has the table and tries all numbers: there are too few. Function dispatcher.recipient of the
// schema computes the same.
func Recipient(tenant, number string) int64 {
	var space [96]byte
	text := append(append(append(space[:0], tenant...), 0), strings.TrimLeft(number, "+")...)
	sum := sha256.Sum256(text)
	if n := int64(binary.BigEndian.Uint64(sum[:8])); n != 0 {
		return n
	}
	return 1
}
