package score

import (
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
)

// Every number of an expression is a float64. The expr language would compute whole numbers as int,
// which overflows silently and differs in size between machines. A float64 behaves the same
// everywhere, and an overflow becomes infinite, which is refused. So literals are converted to
// floats, and functions that would return an integer are replaced here.

// remainder is the function that computes %. An expression cannot call it: inspect refuses every
// function that is not listed.
const remainder = "remainder"

// largestWhole is the largest amount up to which a float64 holds every whole number.
const largestWhole = 1 << 53

// ownFunctions replace builtins of the same name, and %.
func ownFunctions() []expr.Option {
	return []expr.Option{
		expr.Function("int", one(whole), new(func(float64) float64), new(func(string) float64)),
		expr.Function("len", one(length), new(func(string) float64)),
		expr.Function(remainder,
			func(args ...any) (any, error) { return modulo(args[0], args[1]) },
			new(func(float64, float64) float64)),
	}
}

// one makes a one-argument function callable by the expr language. The compiler has checked the
// number of arguments.
func one(f func(any) (float64, error)) func(...any) (any, error) {
	return func(args ...any) (any, error) { return f(args[0]) }
}

// errOperand gives no details, because failed drops them: the value of a label must not be shown.
var errOperand = errors.New("not a value to compute with")

// whole is a number without its decimals. It is an error beyond largestWhole, where a float64 does
// not hold every whole number.
func whole(value any) (float64, error) {
	var n float64
	switch v := value.(type) {
	case float64:
		n = math.Trunc(v)
	case string:
		i, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0, errOperand
		}
		n = float64(i)
	default:
		return 0, errOperand
	}
	if !(math.Abs(n) <= largestWhole) { // also when n is NaN
		return 0, errOperand
	}
	return n, nil
}

// length is the number of characters of a text.
func length(value any) (float64, error) {
	text, ok := value.(string)
	if !ok {
		return 0, errOperand
	}
	return float64(utf8.RuneCountInString(text)), nil
}

// modulo is the remainder of a division, with the sign of the dividend. Dividing by 0 is an error.
func modulo(dividend, divisor any) (float64, error) {
	a, ok := dividend.(float64)
	b, too := divisor.(float64)
	if !ok || !too || b == 0 {
		return 0, errOperand
	}
	return math.Mod(a, b), nil
}

// floats turns the integers of a parsed expression into floats.
type floats struct{}

// Visit is called for each node after its children.
func (floats) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IntegerNode:
		ast.Patch(node, &ast.FloatNode{Value: float64(n.Value)})
	case *ast.BinaryNode:
		if n.Operator == "%" {
			callee := &ast.IdentifierNode{Value: remainder}
			ast.Patch(node, &ast.CallNode{Callee: callee, Arguments: []ast.Node{n.Left, n.Right}})
		}
	}
}
