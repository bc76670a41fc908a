package score

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

const (
	maxLength = 1000 // characters of an expression
	maxNodes  = 200  // operators, names, numbers, texts and calls of an expression
)

// functions are what an expression may call: each takes time proportional to its arguments. Those
// of the expr language are builtins; see ownFunctions for the others.
var (
	functions = []string{
		"abs", "ceil", "floor", "round", "min", "max", "len", "lower", "upper", "int", "float",
	}
	builtins = []string{"abs", "ceil", "floor", "round", "min", "max", "lower", "upper", "float"}
)

// operators of two operands. Left out are .. (makes lists), matches (compiles patterns) and |
// (pipes).
var operators = []string{
	"+", "-", "*", "/", "%", "**", "^", "==", "!=", "<", "<=", ">", ">=",
	"and", "&&", "or", "||", "??", "in", "contains", "startsWith", "endsWith",
}

// inspect parses an expression, refuses whatever is not allowed in it and lists the names that it
// reads.
//
// It must run before any other pass. The parser lets one node stand in two places for a < b < c and
// a ?: b. When these are nested, a pass that does not notice takes time that doubles with each
// level.
func inspect(source string) ([]name, *SyntaxError) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, &SyntaxError{Line: 1, Column: 1, Message: "the expression is empty"}
	case !utf8.ValidString(source):
		return nil, &SyntaxError{Line: 1, Column: 1, Message: "the expression is not valid UTF-8"}
	case utf8.RuneCountInString(source) > maxLength:
		message := fmt.Sprintf("the expression is longer than %d characters", maxLength)
		return nil, &SyntaxError{Line: 1, Column: 1, Message: message}
	}
	tree, err := parser.Parse(source)
	if err != nil {
		return nil, fromExpr(err)
	}
	i := inspector{source: source, seen: make(map[ast.Node]bool)}
	i.node(tree.Node)
	return i.names, i.bad
}

// inspector walks a parsed expression and stops at the first thing to refuse.
type inspector struct {
	source string
	names  []name
	seen   map[ast.Node]bool
	bad    *SyntaxError
}

func (i *inspector) refuse(at ast.Node, format string, args ...any) {
	if i.bad == nil {
		i.bad = errorAt(i.source, at.Location().From, fmt.Sprintf(format, args...))
	}
}

func (i *inspector) node(node ast.Node) {
	if i.bad != nil || i.twice(node) {
		return
	}
	switch n := node.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode:
	case *ast.IdentifierNode, *ast.MemberNode:
		i.name(n)
	case *ast.UnaryNode:
		i.node(n.Node)
	case *ast.BinaryNode:
		i.binary(n)
	case *ast.ConditionalNode:
		i.all(n.Cond, n.Exp1, n.Exp2)
	case *ast.BuiltinNode:
		i.call(n, n.Name, n.Arguments)
	case *ast.CallNode:
		i.call(n, calleeOf(n), n.Arguments)
	default:
		i.refuse(n, "%s", refusal(n))
	}
}

// twice refuses a node that occurs in two places.
func (i *inspector) twice(node ast.Node) bool {
	if i.seen[node] {
		i.refuse(node, "comparisons cannot be chained and ?: needs a value on both sides: "+
			"write a < b && b < c, or a ?? b")
		return true
	}
	i.seen[node] = true
	return false
}

func (i *inspector) all(nodes ...ast.Node) {
	for _, n := range nodes {
		i.node(n)
	}
}

func (i *inspector) name(node ast.Node) {
	n, ok := nameOf(node)
	switch {
	case ok:
		i.names = add(i.names, n)
	case isIdentifier(node, "labels"), isChannelLabels(node):
		i.refuse(node, "name one label, such as labels.language")
	case isIdentifier(node, "channel"):
		i.refuse(node, "write channel.name or channel.labels.NAME")
	default:
		i.refuse(node, "unknown name: an expression reads %s", known)
	}
}

func (i *inspector) binary(n *ast.BinaryNode) {
	list, isList := n.Right.(*ast.ArrayNode)
	switch {
	case !slices.Contains(operators, n.Operator):
		i.refuse(n, "%s is not allowed in a scoring expression", n.Operator)
	case n.Operator == "in" && !isList:
		i.refuse(n, `in needs a list on its right, such as ["a", "b"]; `+
			"to ask for a label write labels.NAME != nil")
	case n.Operator == "in":
		i.node(n.Left)
		i.all(list.Nodes...)
	default:
		i.all(n.Left, n.Right)
	}
}

func (i *inspector) call(at ast.Node, function string, arguments []ast.Node) {
	if !slices.Contains(functions, function) {
		i.refuse(at, "no function of that name: an expression may call %s", strings.Join(functions, ", "))
		return
	}
	i.all(arguments...)
}

// calleeOf is the name of the function that is called, or nothing when it is not a name.
func calleeOf(n *ast.CallNode) string {
	if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
		return callee.Value
	}
	return ""
}

// refusal is the error message for a node that is not allowed.
func refusal(node ast.Node) string {
	switch node.(type) {
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		return "an expression is one formula: let and ; are not allowed"
	case *ast.ArrayNode:
		return "a list may only stand on the right of in"
	case *ast.ChainNode:
		return "?. is not needed: a missing label is nil"
	}
	return "this is not allowed in a scoring expression"
}
