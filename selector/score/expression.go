// Package score compiles and evaluates the scoring expressions of a route: sandboxed arithmetic
// over the labels of a message and of a candidate channel. It does no I/O, and the same expression
// gives the same score for the same input.
//
// An expression is one formula of the expr language (github.com/expr-lang/expr) that
// yields a number:
//
//	(channel.labels.quality ?? 0) / 10 - load_ratio
//	labels.language == channel.labels.language ? 1 : 0.2
//	lane == "otp" ? 1 - load_ratio : -price
//
// It reads the names of Input, computes with + - * / % ** and ^, compares, decides with ?: or
// if/else, tests with in, contains, startsWith and endsWith, and calls abs, ceil, floor, round,
// min, max, len, lower, upper, int and float. Loops, assignments and I/O do not exist, so the
// length of the expression and of the labels that it names bounds the time of an evaluation.
//
// Every number is a float64, so nothing overflows silently: a number too large becomes infinite,
// and an infinite result is an error. int(x) cuts the decimals off and is an error beyond 2^53,
// where a float64 no longer holds every whole number. x % 0 is an error too.
//
// A label is a text or a number. A missing label is nil: channel.labels.quality ?? 0 replaces it by
// a value, and labels.vip == nil tests for it. Computing with nil or with a text is an error, and
// the ranking falls back to default scoring. Labels are read by a fixed name, with a dot or in
// brackets: labels["a-b"].
package score

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"dispatcher/selector"
)

// Input is what one candidate is scored on. The names in brackets are those used in an expression.
type Input struct {
	Labels        map[string]selector.Value // of the message [labels]
	Lane          string                    // of the message [lane]
	Priority      int                       // how many lanes come after the message's own [priority]
	Channel       string                    // the candidate's name [channel.name]
	ChannelLabels map[string]selector.Value // [channel.labels]
	LoadRatio     float64                   // used share of the capacity [load_ratio]
	// Price is the price of one segment to the message's number, in units of its currency [price].
	Price float64
}

// Expression is a compiled scoring expression, safe for concurrent use.
type Expression struct {
	source  string
	program *vm.Program
	names   []name
	benches sync.Pool // of *bench
}

// bench is the memory of one evaluation. It is reused, so that an evaluation allocates nothing but
// the values that it reads.
type bench struct {
	machine vm.VM
	values  map[string]any
}

// ReadsPrice reports whether the expression reads the price.
func (e *Expression) ReadsPrice() bool {
	return slices.ContainsFunc(e.names, func(n name) bool { return n.field == price })
}

// Compile checks and compiles an expression. The error is a *SyntaxError.
func Compile(source string) (*Expression, error) {
	names, bad := inspect(source)
	if bad != nil {
		return nil, bad
	}
	program, err := expr.Compile(source, options(names)...)
	if err != nil {
		return nil, fromExpr(err)
	}
	if bad := checkResult(program.Node()); bad != nil {
		return nil, bad
	}
	e := &Expression{source: source, program: program, names: names}
	e.benches.New = func() any { return &bench{values: make(map[string]any, len(names))} }
	return e, nil
}

// options configures the sandbox of the compiler; inspect has already refused whatever is not
// allowed. No optimisation folds or rearranges anything, so the evaluation does exactly what the
// text says.
func options(names []name) []expr.Option {
	out := []expr.Option{
		expr.Env(types(names)),
		expr.Patch(flatten{}),
		expr.Patch(floats{}),
		expr.MaxNodes(maxNodes),
		expr.Optimize(false),
		expr.DisableAllBuiltins(),
	}
	for _, f := range builtins {
		out = append(out, expr.EnableBuiltin(f))
	}
	return append(out, ownFunctions()...)
}

// String is the expression as it was written.
func (e *Expression) String() string { return e.source }

// Score evaluates the expression for one candidate. The result is finite. A result that is not a
// finite number is an error, and so is an operation on a missing label or on one of the wrong type.
// The error shows no value of a label.
func (e *Expression) Score(in *Input) (float64, error) {
	b := e.benches.Get().(*bench)
	defer e.benches.Put(b)
	for _, n := range e.names {
		b.values[n.text] = n.value(in)
	}
	result, err := b.machine.Run(e.program, b.values)
	if err != nil {
		return 0, failed(err)
	}
	return finite(result)
}

// failed says where an evaluation stopped. The message of the expr machine is dropped, because it
// may quote a label.
func failed(err error) error {
	if at, ok := errors.AsType[*file.Error](err); ok {
		return fmt.Errorf("line %d, column %d: a value is missing, out of range or "+
			"of another type than is computed with here", at.Line, at.Column+1)
	}
	return errors.New("a value is missing, out of range or of another type than is computed with")
}

// finite is the result as a score, or an error.
func finite(result any) (float64, error) {
	score, ok := result.(float64)
	if !ok {
		return 0, errors.New("the result is not a number")
	}
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return 0, errors.New("the result is not finite")
	}
	return score, nil
}
