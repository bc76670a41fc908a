// Package score compiles and evaluates the scoring expressions of a route: sandboxed
// arithmetic over what a message and a candidate channel are labelled with. It does no I/O.
package score

import "dispatcher/selector"

// Input is what one candidate is scored on. The names in brackets are those of an expression.
type Input struct {
	Labels        map[string]selector.Value // of the message [labels]
	Lane          string                    // of the message [lane]
	Priority      int                       // how many lanes come after the message's own [priority]
	Channel       string                    // the candidate's name [channel.name]
	ChannelLabels map[string]selector.Value // [channel.labels]
	LoadRatio     float64                   // consumed share of the capacity [load_ratio]
	Price         float64                   // of one segment to the message's number, in whole units of currency [price]
}

// Expression is a compiled scoring expression, safe for concurrent use.
type Expression struct{ source string }

// String is the expression as it was written.
func (e *Expression) String() string { return e.source }

// Compile checks and compiles an expression. The error of a bad one is a *SyntaxError.
func Compile(source string) (*Expression, error) { return &Expression{source: source}, nil }

// SyntaxError says what is wrong with an expression and where.
type SyntaxError struct {
	Line, Column int // from 1
	Message      string
}

// Error gives position and message.
func (e *SyntaxError) Error() string { return e.Message }

// Score evaluates the expression for one candidate. The result is finite; a result that
// is no finite number is an error.
func (e *Expression) Score(*Input) (float64, error) { return 0, nil }
