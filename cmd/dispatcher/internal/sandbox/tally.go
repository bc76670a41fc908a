package sandbox

import (
	"sync"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Count is what one carrier has seen and told.
type Count struct {
	Channel   string `json:"channel"`
	Provider  string `json:"provider"`
	Submitted int    `json:"submitted"`
	Accepted  int    `json:"accepted"`
	Rejected  int    `json:"rejected"`
	Refused   int    `json:"refused"`
	Throttled int    `json:"throttled"`
	Lost      int    `json:"lost"` // never answered, or the connection was dropped
	// Receipts are counted once, however often they are sent, and whether or not the dispatcher takes them.
	Delivered   int `json:"delivered"`
	Undelivered int `json:"undelivered"`
	WithoutWord int `json:"without_receipt"` // accepted, and no receipt follows
	// CallsRefused are calls and deliver_sm with receipts that the dispatcher did not take, each time that they were
	// sent: nobody listens there, or it refused them.
	CallsRefused int `json:"calls_refused"`
	// Unread are requests that the carrier did not understand: nothing but a fault of the adapter, or of an account.
	Unread int `json:"unread"`
}

// tally keeps the counts of one carrier. It is safe for concurrent use.
type tally struct {
	mu    sync.Mutex
	count Count // guarded by mu
}

// submitted counts a submit by its verdict.
func (t *tally) submitted(v providertest.Reply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count.Submitted++
	switch v {
	case providertest.Accept:
		t.count.Accepted++
	case providertest.Reject:
		t.count.Rejected++
	case providertest.Refuse:
		t.count.Refused++
	case providertest.Throttle:
		t.count.Throttled++
	case providertest.Lose, providertest.Cut:
		t.count.Lost++
	}
}

// told counts what an accepted submit gets later.
func (t *tally) told(n news) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case n.none:
		t.count.WithoutWord++
	case n.state == provider.Delivered:
		t.count.Delivered++
	default:
		t.count.Undelivered++
	}
}

func (t *tally) now() Count {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}
