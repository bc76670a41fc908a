package sandbox

import (
	"errors"
	"fmt"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Profile is how a carrier behaves. Ratios are parts of 1; they are kept evenly, not by chance, so that a short
// trial comes out as a long one does.
type Profile struct {
	// Latency delays each answer; Jitter adds up to that much by chance.
	Latency, Jitter time.Duration
	// Rate throttles what is above that many submits in a second; 0 sets no limit.
	Rate int
	// Reject, Refuse, Throttle, Lose and Cut are parts of the submits: a no because of the message, a no
	// because of the provider, "slow down", no answer at all, and a connection that is dropped. What is lost or
	// cut was not taken.
	Reject, Refuse, Throttle, Lose, Cut float64
	// Receipts is the part of the accepted submits that get a receipt, ReceiptDelay after the answer.
	Receipts     float64
	ReceiptDelay time.Duration
	// Delivered is the part of the receipts that say so; the others say that it never will be.
	Delivered float64
	// Early is the part of the receipts that come before the answer to the submit, and Duplicates the
	// part that come twice.
	Early, Duplicates float64
}

// Usual is a quick carrier that delivers nearly everything.
func Usual() Profile {
	return Profile{
		Latency: 20 * time.Millisecond, Jitter: 20 * time.Millisecond,
		Receipts: 1, ReceiptDelay: 500 * time.Millisecond, Delivered: 0.97,
	}
}

// Validate reports everything that makes no sense, each fault under its key.
func (p *Profile) Validate() error { return p.Check(func(key string) string { return key }) }

// Check is Validate for a profile whose values were not given under their keys: written says how each was.
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
			faults = append(faults, fmt.Errorf("%s: %v is not between 0 and 1", written(r.key), r.ratio))
		}
	}
	if sum := p.Reject + p.Refuse + p.Throttle + p.Lose + p.Cut; len(faults) == 0 && sum > 1 {
		faults = append(faults, fmt.Errorf("%s, %s, %s, %s and %s are %v together, more than all",
			written("reject"), written("refuse"), written("throttle"), written("lose"), written("cut"), sum))
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

// verdict is the fate of the n-th submit, counted from 1.
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

// news is what is told later of a submit that was accepted.
type news struct {
	none         bool
	state        provider.ReceiptState
	early, twice bool
}

// news of the n-th submit, counted from 1.
func (p *Profile) news(n uint64) news {
	if spread(n, forReceipts) >= p.Receipts {
		return news{none: true}
	}
	state := provider.Undelivered
	if spread(n, forDelivered) < p.Delivered {
		state = provider.Delivered
	}
	return news{state: state, early: spread(n, forEarly) < p.Early, twice: spread(n, forDuplicates) < p.Duplicates}
}
