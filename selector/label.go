package selector

import (
	"strconv"
	"time"
)

// Value is a label's value: a text or a number. The zero Value is the empty text.
type Value struct {
	Text     string
	Number   float64
	IsNumber bool
}

// TextValue is a text as a Value.
func TextValue(s string) Value { return Value{Text: s} }

// NumberValue is a number, which must be finite, as a Value.
func NumberValue(f float64) Value { return Value{Number: f, IsNumber: true} }

// String is the value as it would be written in the routing document.
func (v Value) String() string {
	if v.IsNumber {
		return strconv.FormatFloat(v.Number, 'g', -1, 64)
	}
	return v.Text
}

// Operator compares a channel's label with a selector's value. Its text is the word used in the
// envelope.
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

// Selector is a condition of a message: the channel's label Key compared with Value.
type Selector struct {
	Key      string
	Operator Operator
	Value    Value
	// ExpiresAfter is how long after its message was received the selector applies; 0 is for ever.
	ExpiresAfter time.Duration
}

// Satisfied reports whether labels meet the selector. A missing label meets only
// NotEqual; a text never meets an operator that compares magnitudes.
func (s Selector) Satisfied(labels map[string]Value) bool {
	label, found := labels[s.Key]
	switch s.Operator {
	case Equal:
		return found && label == s.Value
	case NotEqual:
		return !found || label != s.Value
	case GreaterThan, GreaterThanEqual, LessThan, LessThanEqual:
		if !found || !label.IsNumber || !s.Value.IsNumber {
			return false
		}
	}
	switch s.Operator {
	case GreaterThan:
		return label.Number > s.Value.Number
	case GreaterThanEqual:
		return label.Number >= s.Value.Number
	case LessThan:
		return label.Number < s.Value.Number
	case LessThanEqual:
		return label.Number <= s.Value.Number
	case Equal, NotEqual:
	}
	return false
}
