package provider

import "time"

// Inbound is a message that a subscriber sent to one of our numbers.
type Inbound struct {
	// Reference is the provider's id of the message; with an empty one, a repeated message
	// cannot be told from a new one.
	Reference string
	// From is the subscriber and To our number or short code, E.164 with plus where they are such.
	From, To string
	Text     string
	// Part, from zero, and Parts say which of how many segments this is, and Group ties them
	// together; Parts is 0 or 1 for a message that is whole. Providers with an HTTP API join segments themselves.
	Group       uint16
	Part, Parts int
	// At is when the message arrived, on this machine's clock.
	At time.Time
	// SentAt is when the subscriber's message reached the provider, on the provider's clock, where the provider vouches for
	// it: by a signature over it, or over a connection of ours. It is zero when it is not known, as with SMPP,
	// whose deliver_sm names no time. A channel gives it for all of its messages or for none, because its times are
	// compared only with one another.
	SentAt time.Time
}
