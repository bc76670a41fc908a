package smpptest

import (
	"fmt"
	"sync"
	"time"

	"dispatcher/provider/smpp/pdu"
)

// AnswerState is whether a submit got its answer.
type AnswerState uint8

const (
	// Answered submits got their status.
	Answered AnswerState = iota
	// Dropped submits were taken and got no answer.
	Dropped
	// Cut submits were read on a connection that ended before the answer.
	Cut
)

// String returns the word for output.
func (s AnswerState) String() string {
	switch s {
	case Answered:
		return "answered"
	case Dropped:
		return "dropped"
	case Cut:
		return "cut"
	}
	return fmt.Sprintf("AnswerState(%d)", uint8(s))
}

// Submit is one submit_sm or data_sm that the server read.
type Submit struct {
	At          time.Time
	Connection  int // numbered from 1 in the order of arrival
	SystemID    string
	Sequence    uint32
	From, To    string // addresses as on the wire
	Source      pdu.Address
	Dest        pdu.Address
	DataCoding  byte
	ESMClass    byte
	ProtocolID  byte
	Priority    byte
	ServiceType string
	Schedule    string // schedule_delivery_time as on the wire
	Validity    string // validity_period as on the wire
	Echo        string // the parameter that ReceiptForm.Echo names
	// Reference is shared by the parts of a message, from the user data header or sar_msg_ref_num.
	// Part counts from 1 to Parts; Parts is 1 for a whole message.
	Reference   uint16
	Part, Parts int
	Text        string // decoded
	Status      pdu.Status
	AnswerState AnswerState
	MessageID   string    // when accepted
	Receipt     bool      // a receipt was requested
	ReceiptAt   time.Time // when its receipt was first sent; zero if it was not
	State       string    // of its last receipt
	Cancelled   bool      // by cancel_sm
}

// Accepted reports whether the server took the message, answered or not.
func (s Submit) Accepted() bool { return s.Status == pdu.StatusOK }

// journal keeps the last submits and counts. The zero value keeps nothing.
type journal struct {
	keep int // entries; below zero all

	mu      sync.Mutex
	entries []Submit // a ring once it is full; guarded by mu
	total   int      // submits ever written; guarded by mu
}

// write returns the number under which the entry can be amended.
func (j *journal) write(s Submit) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	number := j.total
	j.total++
	switch {
	case j.keep == 0:
	case j.keep < 0 || len(j.entries) < j.keep:
		j.entries = append(j.entries, s)
	default:
		j.entries[number%j.keep] = s
	}
	return number
}

// cut records that the answer to an entry was not sent.
func (j *journal) cut(number int) {
	j.amend(number, func(s *Submit) { s.AnswerState = Cut })
}

// receipt records that a receipt of an entry is sent.
func (j *journal) receipt(number int, state string, at time.Time) {
	j.amend(number, func(s *Submit) {
		s.State = state
		if s.ReceiptAt.IsZero() {
			s.ReceiptAt = at
		}
	})
}

// get returns an entry, if it is kept.
func (j *journal) get(number int) (entry Submit, ok bool) {
	j.amend(number, func(s *Submit) { entry, ok = *s, true })
	return entry, ok
}

// amend changes an entry, if it is kept.
func (j *journal) amend(number int, change func(*Submit)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case number < 0 || j.keep == 0 || j.keep > 0 && number < j.total-j.keep:
	case j.keep < 0:
		change(&j.entries[number])
	default:
		change(&j.entries[number%j.keep])
	}
}

// find returns the number of the accepted submit with that message_id; -1 when it is not kept.
func (j *journal) find(messageID string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	for back := 1; back <= len(j.entries); back++ {
		number := j.total - back
		at := number
		if j.keep > 0 {
			at = number % j.keep
		}
		if j.entries[at].MessageID == messageID {
			return number
		}
	}
	return -1
}

// list returns a copy, oldest first.
func (j *journal) list() []Submit {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]Submit, 0, len(j.entries))
	if j.keep > 0 && j.total > j.keep {
		at := j.total % j.keep
		return append(append(out, j.entries[at:]...), j.entries[:at]...)
	}
	return append(out, j.entries...)
}
