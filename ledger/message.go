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

// State is where a message stands. The words are those of audit.messages.state and of the status
// topic.
type State string

// States of a message. Scheduled, Waiting and Retry rows have a next_at and are
// picked up by any instance; Sending rows have an attempt without outcome; Accepted
// waits for a receipt where one is expected, and has a next_at if it goes on to another channel
// without one; the rest is final, though a late word of the provider
// may still replace NoReceipt, Undelivered and Unknown.
const (
	Scheduled   State = "scheduled"   // send_at lies ahead
	Waiting     State = "waiting"     // no channel could take it yet
	Retry       State = "retry"       // an attempt ended without the message being taken
	Sending     State = "sending"     // an attempt is under way
	Accepted    State = "accepted"    // a provider took it
	Delivered   State = "delivered"   // a receipt said so
	Undelivered State = "undelivered" // a receipt said that it never will be
	NoReceipt   State = "no_receipt"  // none came in time: nobody knows
	Rejected    State = "rejected"    // a provider said that the message is at fault
	Failed      State = "failed"      // no provider took it before its deadline
	Unknown     State = "unknown"     // it may have been taken; never sent again by itself
	Dead        State = "dead"        // the record could not be used
)

// Final reports whether nothing more happens to a message in this state by itself.
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
	// Recipient stands for the number that the message goes to, see Recipient; 0 for a record that
	// names none. It is not read back from the ledger.
	Recipient int64
	// Origin is the Kafka position that the message was first read from.
	Origin Origin
	// Envelope is the record's value as it was received; nil when its payload is gone.
	Envelope []byte
	// Digest identifies the content: equal for a redelivery, different for a second
	// message under the same id. It is not read back from the ledger.
	Digest int64
	// NumberHMAC and EnvelopeHMAC stay when the payload goes: keyed hashes of the number and of the
	// content. CallingCode is that of the number by E.164, such as 44. All are 0 for a record that
	// could not be used, and all but NumberHMAC are read back by Messages alone.
	NumberHMAC, EnvelopeHMAC int64
	CallingCode              int16
	// Sender is the sender id that it came with where that is a name or a short code, the word
	// long_code for a number, empty for none. Read back as those are.
	Sender string

	// State, Reason and NextAt are what the row is inserted with: Sending when the
	// claim is to find a channel, Scheduled with NextAt, or Dead or Failed with a
	// bounded Reason.
	State  State
	Reason string
	// why it is Dead, in a sentence without number and text; read back by Record alone
	Detail    string
	NextAt    time.Time
	ExpiresAt time.Time // the deadline; never zero for a usable message

	Plan Plan

	// The rest is set only for messages that come back from the ledger.

	ReceivedAt time.Time
	Attempts   int      // attempts made so far
	Tried      []string // channels that refused it in this round
	Rounds     int      // how often every channel has refused it
	Pinned     string   // channel that accepted some of its parts
	PartsLeft  []int    // parts that are still to be sent, when Pinned
	// how the text was cut when others of its parts were accepted, see provider.Result.Cut; empty
	// when none was
	PartsCut          string
	PossibleDuplicate bool
	// MayBeTaken says of a due row that is sent once more, or was, that an earlier attempt may have
	// been taken as far as anybody knows by now.
	MayBeTaken bool
	// TakenAt says of a due row that is Accepted when the last answer was booked by which a
	// provider took it, and ReceiptCame that a receipt has said since what became of a part of it.
	TakenAt     time.Time
	ReceiptCame bool
	// SameKey is the Submission.Key of the last attempt when the next one repeats it, until
	// SameKeyUntil; empty otherwise.
	SameKey      string
	SameKeyUntil time.Time
	// SameKeyAccount is Ambiguity.Account of that submission.
	SameKeyAccount string
	// Ticket is that of the last attempt, if it still holds an active slot on Pinned; nil
	// otherwise.
	Ticket *admission.Ticket
	// Waits are those before the present one, and WaitingSince and WaitsFor tell about the present
	// one; zero when the message does not wait.
	Waits        []Wait
	WaitingSince time.Time
	WaitsFor     string
}

// Origin is a position in Kafka.
type Origin struct {
	Topic     string
	Partition int32
	Offset    int64
}

// String is the position as records without an id are named: topic/partition/offset.
func (o Origin) String() string { return fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset) }

// ParseOrigin reads what String writes.
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

// Plan is the part of a choice that is fixed before any shared state is seen.
// Together with the routing document of Version and the draw key it can be derived again.
type Plan struct {
	Route       string // name of the route; empty when none matched
	Version     int64  // routing version
	Draw        int64  // in [0, Size)
	Size        int64  // N of the interval table
	KeyID       string // which draw key
	FirstChoice string // channel the draw picked
	Segments    int
	Alphabet    string // gsm7 or ucs2
}

// Recipient stands for a number among those that a tenant writes to: the first 64 bits of SHA-256
// over tenant, a zero byte and number, as a signed integer, big-endian. A leading plus makes no
// difference, because some providers leave it out. It is never 0, which stands for no recipient.
//
// It spares tables and claims the number. It does not hide it from somebody who has the table and
// tries all numbers: there are too few of them. Function dispatcher.recipient of the schema is the
// same.
func Recipient(tenant, number string) int64 {
	var space [96]byte
	text := append(append(append(space[:0], tenant...), 0), strings.TrimLeft(number, "+")...)
	sum := sha256.Sum256(text)
	if n := int64(binary.BigEndian.Uint64(sum[:8])); n != 0 {
		return n
	}
	return 1
}
