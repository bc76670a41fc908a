// Package envelope reads what producers put on a lane's topic and writes what they
// read on the status topic.
//
// It is pure: bytes to [Message], [Status] to bytes. It knows neither Kafka nor
// routes, prices or segments; package consume feeds it records and package dispatch
// works with what comes out. The published form of both documents is JSON Schema, in
// docs/schema; tests hold the schema and this package to the same answers.
package envelope

import "time"

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
	// Tenant is on whose behalf the message goes out; may be empty.
	Tenant string
	// Labels and Selectors steer the choice of a channel.
	Labels    map[string]Value
	Selectors []Selector
	// SendAt is the earliest time to send and ExpiresAt the last; zero means unset.
	SendAt    time.Time
	ExpiresAt time.Time
	// MaxPrice is the most that the whole message may cost, in millionths of the
	// channel's currency; nil means any price.
	MaxPrice *int64
	// Metadata is echoed in every status event and otherwise not looked at.
	Metadata map[string]string
}

// Value is what a label or a selector holds: a text or a number. Two Values compare with ==.
type Value struct {
	Text     string  // set unless IsNumber
	Number   float64 // set if IsNumber; always finite
	IsNumber bool
}

// TextValue is a Value that holds a text.
func TextValue(s string) Value { return Value{Text: s} }

// NumberValue is a Value that holds a number, which must be finite.
func NumberValue(n float64) Value { return Value{Number: n, IsNumber: true} }

// Selector is a wish about a label of the channel.
type Selector struct {
	Key      string
	Operator Operator
	Value    Value
}

// Operator compares a channel's label with a selector's value.
type Operator string

// Operators of a selector.
const (
	Equal            Operator = "equal"
	NotEqual         Operator = "notEqual"
	GreaterThan      Operator = "greaterThan"
	GreaterThanEqual Operator = "greaterThanEqual"
	LessThan         Operator = "lessThan"
	LessThanEqual    Operator = "lessThanEqual"
)

// Valid reports whether the operator is one of those above.
func (o Operator) Valid() bool {
	switch o {
	case Equal, NotEqual, GreaterThan, GreaterThanEqual, LessThan, LessThanEqual:
		return true
	}
	return false
}
