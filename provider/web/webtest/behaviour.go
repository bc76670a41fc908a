package webtest

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Behaviour is the script of a Carrier. The zero value accepts everything at once and sends no
// receipts. Counts of "every n-th" begin when the behaviour is set.
type Behaviour struct {
	// Latency delays each answer; Jitter adds a random time up to that.
	Latency, Jitter time.Duration
	// Throttle answers every submit with a request to slow down, with RetryAfter if that is set.
	Throttle   bool
	RetryAfter time.Duration
	// Rate throttles submits beyond that many in a second of the wall clock; zero sets no limit.
	Rate int
	// RejectEvery and RefuseEvery refuse every n-th submit: the message is at fault, or the
	// provider is.
	RejectEvery, RefuseEvery int
	// DropEvery accepts every n-th submit and never answers it.
	DropEvery int
	// CutEvery reads every n-th submit and drops the connection.
	CutEvery int
	// Decide, if set, replaces everything above; n counts from 0.
	Decide func(n int, s Submit) providertest.Answer

	// Receipts sends a receipt for each accepted submit that wants one, ReceiptDelay after its answer:
	// that it was delivered, or what ReceiptFor returns. ReceiptRatio is the part of these submits
	// that get a receipt, evenly spread; zero is all. DeliveryRatio is the part of the receipts that
	// say delivered, the others say undelivered; zero is all.
	Receipts      bool
	ReceiptDelay  time.Duration
	ReceiptRatio  float64
	DeliveryRatio float64
	ReceiptFor    func(Submit) []Receipt
}

// script is a behaviour with its state.
type script struct {
	Behaviour
	submits   atomic.Uint64
	asked     atomic.Uint64 // accepted submits
	delivered atomic.Uint64 // receipts
	rate      providertest.Rate
}

func (s *script) decide(now time.Time, entry Submit) providertest.Answer {
	n := s.submits.Add(1)
	if s.Decide != nil {
		return s.Decide(int(n-1), entry) //nolint:gosec // Counts submits of one test.
	}
	switch {
	case s.Throttle, s.rate.Exceeds(s.Rate, now):
		return providertest.Answer{Reply: providertest.Throttle, RetryAfter: s.RetryAfter}
	case providertest.IsNth(n, s.RejectEvery):
		return providertest.Answer{Reply: providertest.Reject}
	case providertest.IsNth(n, s.RefuseEvery):
		return providertest.Answer{Reply: providertest.Refuse}
	case providertest.IsNth(n, s.DropEvery):
		return providertest.Answer{Reply: providertest.Lose}
	case providertest.IsNth(n, s.CutEvery):
		return providertest.Answer{Reply: providertest.Cut}
	}
	return providertest.Answer{}
}

// delay is how long an answer waits.
func (s *script) delay() time.Duration {
	if s.Jitter > 0 {
		return s.Latency + rand.N(s.Jitter)
	}
	return s.Latency
}

// receipts returns the receipts of an accepted submit.
func (s *script) receipts(entry Submit) []Receipt {
	switch {
	case s.ReceiptFor != nil:
		return s.ReceiptFor(entry)
	case !s.Receipts || !providertest.Within(&s.asked, s.ReceiptRatio):
		return nil
	case !providertest.Within(&s.delivered, s.DeliveryRatio):
		return []Receipt{{State: provider.Undelivered}}
	}
	return []Receipt{{State: provider.Delivered}}
}
