package sandbox

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Profile is how a carrier behaves. Ratios are parts of 1. They are met evenly and not at random,
// so that a short trial has the same result as a long one.
type Profile struct {
	// Latency delays each answer; Jitter adds a random time up to that much.
	Latency, Jitter time.Duration
	// Rate throttles submits above that many per second; 0 sets no limit.
	Rate int
	// Reject, Refuse, Throttle, Lose and Cut are parts of the submits: rejected because of the
	// message, refused because of the provider, throttled, not answered, and the connection cut.
	// Lost and cut submits were not taken.
	Reject, Refuse, Throttle, Lose, Cut float64
	// Receipts is the part of the accepted submits that get a receipt, ReceiptDelay after the
	// answer.
	Receipts     float64
	ReceiptDelay time.Duration
	// Delivered is the part of the receipts that say delivered; the others say undelivered.
	Delivered float64
	// Early is the part of the receipts that precede the answer to the submit, and Duplicates the part
	// that are sent twice.
	Early, Duplicates float64
}

// Usual is a fast carrier that delivers nearly everything.
func Usual() Profile {
	return Profile{
		Latency: 20 * time.Millisecond, Jitter: 20 * time.Millisecond,
		Receipts: 1, ReceiptDelay: 500 * time.Millisecond, Delivered: 0.97,
	}
}

// Validate reports everything that is wrong with the profile, each fault with its key.
func (p *Profile) Validate() error { return p.Check(func(key string) string { return key }) }

// Check is Validate for a profile whose values were given under other names: written returns the
// name of each key.
func (p *Profile) Check(written func(key string) string) error {
	var faults []error
	for _, r := range []struct {
		key   string
		ratio float64
	}{
		{"reject", p.Reject},
		{"refuse", p.Refuse},
		{"throttle", p.Throttle},
		{"lose", p.Lose},
		{"cut", p.Cut},
		{"receipts", p.Receipts},
		{"delivered", p.Delivered},
		{"early", p.Early},
		{"duplicates", p.Duplicates},
	} {
		if !(r.ratio >= 0 && r.ratio <= 1) {
			faults = append(faults,
				fmt.Errorf("%s: %v is not between 0 and 1", written(r.key), r.ratio))
		}
	}
	if sum := p.Reject + p.Refuse + p.Throttle + p.Lose + p.Cut; len(faults) == 0 && sum > 1 {
		faults = append(faults, fmt.Errorf("%s, %s, %s, %s and %s are %v together, more than all",
			written("reject"), written("refuse"), written("throttle"), written("lose"),
			written("cut"), sum))
	}
	for _, n := range []struct {
		key      string
		negative bool
	}{
		{"latency", p.Latency < 0},
		{"jitter", p.Jitter < 0},
		{"receipt_delay", p.ReceiptDelay < 0},
		{"rate", p.Rate < 0},
	} {
		if n.negative {
			faults = append(faults, fmt.Errorf("%s: cannot be negative", written(n.key)))
		}
	}
	return errors.Join(faults...)
}

// verdict decides about the n-th submit, counted from 1.
func (p *Profile) verdict(n uint64) providertest.Reply {
	at := spread(n, forVerdict)
	for _, part := range []struct {
		ratio   float64
		verdict providertest.Reply
	}{
		{p.Reject, providertest.Reject},
		{p.Refuse, providertest.Refuse},
		{p.Throttle, providertest.Throttle},
		{p.Lose, providertest.Lose},
		{p.Cut, providertest.Cut},
	} {
		if at < part.ratio {
			return part.verdict
		}
		at -= part.ratio
	}
	return providertest.Accept
}

// receiptPlan says which receipts an accepted submit gets.
type receiptPlan struct {
	none         bool
	state        provider.ReceiptState
	early, twice bool
}

// receiptPlan plans the receipts of the n-th submit, counted from 1.
func (p *Profile) receiptPlan(n uint64) receiptPlan {
	if spread(n, forReceipts) >= p.Receipts {
		return receiptPlan{none: true}
	}
	state := provider.Undelivered
	if spread(n, forDelivered) < p.Delivered {
		state = provider.Delivered
	}
	return receiptPlan{
		state: state,
		early: spread(n, forEarly) < p.Early,
		twice: spread(n, forDuplicates) < p.Duplicates,
	}
}

// Multipliers of spread, one for each decision. They are fractional parts of square roots that are
// linearly independent over the rational numbers, so that the decisions are independent.
const (
	forVerdict    = math.Sqrt2 - 1
	forReceipts   = 0.7320508075688772 // of 3
	forDelivered  = 0.2360679774997897 // of 5
	forEarly      = 0.6457513110645907 // of 7
	forDuplicates = 0.3166247903553998 // of 11
)

// spread maps n to [0, 1), evenly for successive numbers: the sequence of H. Weyl (Über die
// Gleichverteilung von Zahlen mod. Eins, 1916).
func spread(n uint64, multiplier float64) float64 {
	x := float64(n) * multiplier
	return x - math.Floor(x)
}

// rate counts submits per second of the wall clock, as a provider does.
type rate struct {
	max int // 0 sets no limit

	mu     sync.Mutex
	second int64 // guarded by mu
	taken  int   // in that second; guarded by mu
}

// over counts one submit and reports whether it exceeds the rate.
func (r *rate) over(now time.Time) bool {
	if r.max == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if second := now.Unix(); second != r.second {
		r.second, r.taken = second, 0
	}
	r.taken++
	return r.taken > r.max
}
