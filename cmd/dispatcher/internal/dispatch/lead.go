package dispatch

import (
	"sync/atomic"
	"time"
)

// longestLead bounds the lead: a database that answers in seconds must not push all places out of
// their windows.
const longestLead = 300 * time.Millisecond

// leadFade is the part of the lead, one in so many, that it loses with each quicker claim.
const leadFade = 16

// lead is how long the write half of a claim takes, from the decision until it is durable, by the slower ones of
// late. Places begin that much later: an attempt cannot leave before it is durable, and one that came
// late would use the place of the next.
type lead struct{ nanos atomic.Int64 }

// took notes the write half of a claim.
func (l *lead) took(d time.Duration) {
	before := l.nanos.Load()
	// Of two claims that end at the same time one may be forgotten: the next ones tell the same.
	l.nanos.Store(max(int64(min(d, longestLead)), before-before/leadFade))
}

// get is the lead of the next claim.
func (l *lead) get() time.Duration { return time.Duration(l.nanos.Load()) }
