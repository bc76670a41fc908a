package score

import (
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
)

// Every number of an expression is a float64. The language would compute with whole numbers in
// the machine's own integers, which wrap around without a word and are of another size on another
// machine; what becomes of a float64 is the same everywhere, and too much becomes infinite, which
// is refused. So literals are turned into floats, and what would make an integer is done here.

// remainder is the name under which % is computed. Nobody can call it: inspect has
// refused every function that is not listed.
const remainder = "remainder"

// largestWhole is the largest amount up to which a float64 holds every whole number.
const largestWhole = 1 << 53

// ownFunctions stand in for builtins of the same name, and for %.
func ownFunctions() []expr.Option {
	return []expr.Option{
		expr.Function("int", one(whole), new(func(float64) float64), new(func(string) float64)),
		expr.Function("len", one(length), new(func(string) float64)),
		expr.Function(remainder,
			func(args ...any) (any, error) { return modulo(args[0], args[1]) },
			new(func(float64, float64) float64)),
	}
}

// one makes a function of the language of one that takes a single argument. The compiler has
// checked how many there are.
func one(f func(any) (float64, error)) func(...any) (any, error) {
	return func(args ...any) (any, error) { return f(args[0]) }
}

// errOperand says no more, because failed leaves it out: a value may not be shown.
var errOperand = errors.New("not a value to compute with")

// whole is a number without its decimals. Beyond largestWhole nobody could tell which whole
// number is meant.
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
	if !(math.Abs(n) <= largestWhole) { // also when it is NaN
		return 0, errOperand
	}
	return n, nil
}

// length is how many characters a text has.
func length(value any) (float64, error) {
	text, ok := value.(string)
	if !ok {
		return 0, errOperand
	}
	return float64(utf8.RuneCountInString(text)), nil
}

// modulo is what is left of a division, with the sign of the dividend. There is no dividing by 0.
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
