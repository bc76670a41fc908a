// Package score compiles and evaluates the scoring expressions of a route: sandboxed
// arithmetic over what a message and a candidate channel are labelled with. It does no
// I/O, and the same expression gives the same score for the same input.
//
// An expression is one formula of the expr language (github.com/expr-lang/expr) that
// yields a number:
//
//	(channel.labels.quality ?? 0) / 10 - load_ratio
//	labels.language == channel.labels.language ? 1 : 0.2
//	lane == "otp" ? 1 - load_ratio : -price
//
// It reads the names of Input, computes with + - * / % ** and ^, compares, asks with
// ?: or if/else, tests with in, contains, startsWith and endsWith, and calls abs, ceil,
// floor, round, min, max, len, lower, upper, int and float. There is nothing that loops,
// repeats, remembers or reaches out: the time of an evaluation is bounded by the length
// of the expression and of the labels that it names.
//
// Every number is a float64, so nothing wraps around: what is too large for one is infinite, and
// an infinite result is an error. int(x) cuts the decimals off and is an error beyond 2^53, where
// a float64 no longer holds every whole number; x % 0 is one too.
//
// A label is a text or a number. A label that is missing is nil, so
// channel.labels.quality ?? 0 gives it a value, and labels.vip == nil asks for it. To
// compute with a nil or with a text is an error, and the ranking falls back to default
// scoring. Labels are read by a fixed name, in dots or in brackets: labels["a-b"].
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

// Input is what one candidate is scored on. The names in brackets are those of an expression.
type Input struct {
	Labels        map[string]selector.Value // of the message [labels]
	Lane          string                    // of the message [lane]
	Priority      int                       // how many lanes come after the message's own [priority]
	Channel       string                    // the candidate's name [channel.name]
	ChannelLabels map[string]selector.Value // [channel.labels]
	LoadRatio     float64                   // consumed share of the capacity [load_ratio]
	// of one segment to the message's number, in units of its currency [price]
	Price float64
}

// Expression is a compiled scoring expression, safe for concurrent use.
type Expression struct {
	source  string
	program *vm.Program
	names   []name
	benches sync.Pool // of *bench
}

// bench is where one evaluation works. It is reused, so that an evaluation allocates no
// more than the values it reads.
type bench struct {
	machine vm.VM
	values  map[string]any
}

// ReadsPrice reports whether the expression reads the price.
func (e *Expression) ReadsPrice() bool {
	return slices.ContainsFunc(e.names, func(n name) bool { return n.field == price })
}

// Compile checks and compiles an expression. The error of a bad one is a *SyntaxError.
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

// options is the sandbox as the compiler knows it; inspect has refused beforehand
// whatever it does not know. Nothing is folded or rearranged, so the evaluation does
// what the text says.
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

// Score evaluates the expression for one candidate. The result is finite; a result that
// is no finite number is an error, as is an operation on a missing label or on one of
// another type. The error shows no value of a label.
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

// failed says where an evaluation stopped. What the machine says of it may quote a
// label, so it is left out.
func failed(err error) error {
	if at, ok := errors.AsType[*file.Error](err); ok {
		return fmt.Errorf("line %d, column %d: a value is missing, out of range or "+
			"of another type than is computed with here", at.Line, at.Column+1)
	}
	return errors.New("a value is missing, out of range or of another type than is computed with")
}

// finite is the score that an evaluation came to.
func finite(result any) (float64, error) {
	score, ok := result.(float64)
	if !ok {
		return 0, errors.New("the result is no number")
	}
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return 0, errors.New("the result is not finite")
	}
	return score, nil
}
