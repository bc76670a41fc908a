package smpptest

import (
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"dispatcher/provider/providertest"
	"dispatcher/provider/smpp/pdu"
)

// Behaviour is the script of a Server. The zero value accepts everything at once.
// Counts of "every n-th" begin when the behaviour is set and go over all connections.
type Behaviour struct {
	// Latency delays each answer to a submit; Jitter adds a random time up to that, so that answers
	// overtake each other.
	Latency, Jitter time.Duration
	// Throttle answers every submit ESME_RTHROTTLED.
	Throttle bool
	// Rate answers ESME_RTHROTTLED to submits beyond that many in a second of the wall clock; zero
	// sets no limit.
	Rate int
	// ErrorEvery answers every n-th submit ErrorStatus (ESME_RSYSERR unless set).
	ErrorEvery  int
	ErrorStatus pdu.Status
	// DropEvery accepts every n-th submit and never answers it.
	DropEvery int
	// CutAfter closes the connection on the n-th submit, once. That submit was read
	// and is logged, but not answered; nor are those whose answer was still delayed.
	CutAfter int
	// RefuseBinds answers binds with that status; zero accepts them.
	RefuseBinds pdu.Status
	// Silent answers nothing any more, like the peer of a half-open connection.
	Silent bool
	// IgnoreEnquireLink answers everything except enquire_link.
	IgnoreEnquireLink bool
	// Decide, if set, replaces everything above for each submit; the entry has no answer yet. It is
	// called from several goroutines.
	Decide func(Submit) Answer
	// MessageID makes the message_id of the n-th accepted submit, counted from 1 since the start of
	// the server. Unset, it is the number in hexadecimal.
	MessageID func(n uint64) string
	// Receipts sends a receipt for each accepted submit that asks for one, ReceiptDelay after its
	// answer, with state DELIVRD or what ReceiptState returns. ReceiptRatio is the part of them
	// that get one, evenly distributed; zero is all. An answer of Decide has priority.
	Receipts     bool
	ReceiptDelay time.Duration
	ReceiptRatio float64
	ReceiptState func(Submit) string
	// ReceiptForm is how receipts are written, unless a Receipt says otherwise.
	ReceiptForm ReceiptForm
	// Queries and Cancels answer query_sm and cancel_sm from the log; otherwise they are answered
	// generic_nack. QueryState is the state in answers to query_sm; unset, what the receipt said,
	// and ENROUTE before that.
	Queries, Cancels bool
	QueryState       func(Submit) string
	// Congestion is announced as congestion_state in each submit_sm_resp, as a peer of SMPP 5.0
	// does; zero announces none.
	Congestion byte
	// Trickle writes octet by octet with that pause between two.
	Trickle time.Duration
	// HalfPDU lets each connection write half of its next PDU, and nothing after that.
	HalfPDU bool
}

// Answer is one decision about a submit.
type Answer struct {
	Status pdu.Status
	State  AnswerState
	Delay  time.Duration
	// MessageID, when set, is the message_id of an accepted submit.
	MessageID string
	// Hold, if set, delays this answer until it is closed. The receipt's delay then counts from the
	// submit.
	Hold <-chan struct{}
	// Receipt, when set, says what receipt follows, if the submit is accepted and asks for one.
	Receipt *Receipt
}

// script is a behaviour with its state.
type script struct {
	Behaviour
	submits atomic.Uint64
	cut     atomic.Bool
	askers  atomic.Uint64 // accepted submits that asked for a receipt
	rate    providertest.Rate
}

func (s *script) decide(now time.Time, entry Submit) Answer {
	if s.Decide != nil {
		return s.Decide(entry)
	}
	n := s.submits.Add(1)
	a := Answer{Delay: s.Latency}
	if s.Jitter > 0 {
		a.Delay += rand.N(s.Jitter)
	}
	switch {
	case s.CutAfter > 0 && n >= uint64(s.CutAfter) && s.cut.CompareAndSwap(false, true):
		a.State = Cut
	case s.Silent:
		a.State = Dropped
	case s.Throttle, s.rate.Exceeds(s.Rate, now):
		a.Status = pdu.StatusThrottled
	case providertest.IsNth(n, s.ErrorEvery):
		a.Status = s.ErrorStatus
		if a.Status == pdu.StatusOK {
			a.Status = pdu.StatusSysErr
		}
	case providertest.IsNth(n, s.DropEvery):
		a.State = Dropped
	}
	return a
}

// receipt returns the receipt of an accepted submit that asks for one.
func (s *script) receipt(entry Submit, a Answer) Receipt {
	switch {
	case a.Receipt != nil:
		return *a.Receipt
	case !s.Receipts || !providertest.Within(&s.askers, s.ReceiptRatio):
		return Receipt{Never: true}
	case s.ReceiptState != nil:
		return Receipt{Delay: s.ReceiptDelay, State: s.ReceiptState(entry)}
	}
	return Receipt{Delay: s.ReceiptDelay}
}

func (s *script) messageID(n uint64) string {
	if s.MessageID != nil {
		return s.MessageID(n)
	}
	return strconv.FormatUint(n, 16)
}
