// Package envelope reads what producers put on the topics of lanes and of control records, and
// writes what they read on the topics of status events and of inbound messages.
//
// It is pure: bytes to [Message] and [Control], [Status] and [Inbound] to bytes. It knows neither
// Kafka nor routes, prices or segments; package kafka passes it records and package decide uses the
// messages. JSON Schemas in docs/schema describe the documents; tests check that the schemas and
// this package agree.
package envelope

import (
	"time"

	"dispatcher/selector"
)

// MaxBytes is the largest envelope that is read: 64 KiB, counted before decoding.
const MaxBytes = 64 << 10

// Message is one SMS as its producer asked for it.
type Message struct {
	// ID is the producer's own, 1 to 64 printable characters, unique for ever.
	ID string
	// To is the recipient in E.164 form with its leading plus.
	To string
	// From is the sender id, at most 20 printable characters; empty leaves it to the channel.
	From string
	// Text is what the subscriber reads; never empty.
	Text string
	// Tenant is on whose behalf the message is sent; may be empty.
	Tenant string
	// Labels and Selectors affect the choice of a channel.
	Labels    map[string]Value
	Selectors []Selector
	// SendAt is the earliest time to send and ExpiresAt the last; zero means unset.
	SendAt    time.Time
	ExpiresAt time.Time
	// MaxPrice is the most that the whole message may cost, in millionths of the base currency of the
	// routing document or, without rates, of the channel's currency; nil means any price.
	MaxPrice *int64
	// Metadata is copied into every status event and not used otherwise.
	Metadata map[string]string
	// Traceparent is the trace that the message belongs to, in the form of the W3C Trace Context
	// header; empty for none. It is not part of the message's content: a redelivery with another one
	// is the same message.
	Traceparent string
}

// Labels and selectors are the vocabulary of package selector, which evaluates them.
type (
	// Value is what a label or a selector holds: a text or a number.
	Value = selector.Value
	// Selector is a condition on a label of the channel.
	Selector = selector.Selector
	// Operator compares a channel's label with a selector's value.
	Operator = selector.Operator
)
