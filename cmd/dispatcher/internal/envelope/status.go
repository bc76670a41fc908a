package envelope

import (
	"bytes"
	"strconv"
	"time"
)

// Status is one event on the status topic: a message has reached a state. Its form is
// docs/schema/status.schema.json; the record's key is the message id.
type Status struct {
	// ID is the id of the message. It is empty for a record whose id cannot be read, or is the id of
	// another message; such an event has a Position.
	ID    string
	State string // of the message, such as accepted; or dead
	// At is approximately when the state was reached, by the database's clock; written in UTC with
	// microseconds. Stamp replaces it.
	At   time.Time
	Lane string

	// The rest is left out when empty, zero, nil or false.

	Tenant    string
	Route     string
	Channel   string
	Attempt   int    // number of the attempt that led here, from 1
	Reason    string // bounded word: why it waits, failed or is dead
	Detail    string // a sentence about why it is dead; never a number or a text
	Cause     string // bounded word, the same for all providers: why it was not delivered
	Code      string // the provider's own word
	Reference string // the provider's ids of the accepted parts, else of those not taken
	Segments  int
	// PartsAccepted is how many parts the provider has accepted in all, of a message that was not
	// accepted whole. They are billed.
	PartsAccepted int
	// PossibleDuplicate says that an earlier attempt may have reached the subscriber as well.
	PossibleDuplicate bool
	// ConflictingID is the id of a record that was used before for another message. The event is not
	// about that other message.
	ConflictingID string
	// Position is where a dead record was read.
	Position *Position
	// Metadata is copied from the envelope.
	Metadata map[string]string
}

// Position is where a record was read in Kafka.
type Position struct {
	Topic     string
	Partition int32
	Offset    int64
}

// appendTime appends a time in UTC with microseconds, as in 2026-11-28T15:04:05.000001Z. The
// package time has a fast path for RFC 3339, but not with six digits.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	dst = t.AppendFormat(dst, time.RFC3339)
	end := len(dst) - 1 // of the seconds
	const second = int64(time.Second / time.Microsecond)
	dst = strconv.AppendInt(dst[:end], second+int64(t.Nanosecond()/1000), 10)
	dst[end] = '.' // in place of the digit of second
	return append(dst, 'Z')
}

// beforeAt precedes the time of an event. Inside a string its quotes would be escaped, and
// AppendStatus writes no object before it, so its first occurrence is the field.
const beforeAt = `,"at":"`

// Stamp appends an event written by AppendStatus to dst, with its final number and time: it adds
// field seq and replaces at. Both are known only once the event has been written to the ledger,
// after the row of its message was locked. An event without a time is appended unchanged.
func Stamp(dst, event []byte, seq int64, at time.Time) []byte {
	before, after, found := bytes.Cut(event, []byte(beforeAt))
	end := bytes.IndexByte(after, '"')
	if !found || end < 0 {
		return append(dst, event...)
	}
	dst = append(append(dst, before...), `,"seq":`...)
	dst = append(strconv.AppendInt(dst, seq, 10), beforeAt...)
	return append(appendTime(dst, at), after[end:]...)
}

// AppendStatus writes the event as JSON. It allocates only room in dst and, with more than 16
// metadata entries, a slice to sort their keys.
func AppendStatus(dst []byte, s Status) []byte {
	o := object{buf: append(dst, '{'), open: true}
	o.optional("id", s.ID)
	o.text("state", s.State)
	o.key("at")
	o.buf = append(appendTime(append(o.buf, '"'), s.At), '"')
	o.text("lane", s.Lane)
	o.optional("tenant", s.Tenant)
	o.optional("route", s.Route)
	o.optional("channel", s.Channel)
	o.count("attempt", s.Attempt)
	o.optional("reason", s.Reason)
	o.optional("detail", s.Detail)
	o.optional("cause", s.Cause)
	o.optional("code", s.Code)
	o.optional("reference", s.Reference)
	o.count("segments", s.Segments)
	o.count("parts_accepted", s.PartsAccepted)
	if s.PossibleDuplicate {
		o.key("possible_duplicate")
		o.buf = append(o.buf, "true"...)
	}
	o.optional("conflicting_id", s.ConflictingID)
	if s.Position != nil {
		o.text("topic", s.Position.Topic)
		o.key("partition")
		o.buf = strconv.AppendInt(o.buf, int64(s.Position.Partition), 10)
		o.key("offset")
		o.buf = strconv.AppendInt(o.buf, s.Position.Offset, 10)
	}
	o.texts("metadata", s.Metadata)
	return append(o.buf, '}')
}
