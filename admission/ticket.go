package admission

import "time"

// Ticket is the right of an admitted message to its active slot on one channel. While it is valid,
// a retry on the channel keeps the slot and needs no other. The retry still takes a slot of every
// rate window, because the provider counts each submit. An expired ticket counts as none.
type Ticket struct {
	Bucket      time.Time // start of the minute in which it was given
	AcceptedAt  time.Time
	LastCheckIn time.Time // time of its last attempt
}

// NewTicket is the ticket of a message admitted now.
func NewTicket(now time.Time) Ticket {
	return Ticket{Bucket: Minute.Start(now, time.UTC), AcceptedAt: now, LastCheckIn: now}
}

// Valid reports whether the ticket still holds its slot. It does so for hold after its last
// check-in.
func (t *Ticket) Valid(now time.Time, hold time.Duration) bool {
	return t != nil && now.Before(t.LastCheckIn.Add(hold))
}

// CheckIn is the ticket of the next attempt.
func (t *Ticket) CheckIn(now time.Time) Ticket {
	return Ticket{Bucket: t.Bucket, AcceptedAt: t.AcceptedAt, LastCheckIn: now}
}
