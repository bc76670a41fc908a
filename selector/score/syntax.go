package score

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
)

// SyntaxError says what is wrong with an expression and where.
type SyntaxError struct {
	Line, Column int // from 1, in characters
	Message      string
}

// Error gives position and message.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// errorAt makes a SyntaxError for the character at offset, from 0.
func errorAt(source string, offset int, message string) *SyntaxError {
	e := &SyntaxError{Line: 1, Column: 1, Message: message}
	for _, r := range source {
		if offset == 0 {
			break
		}
		offset--
		e.Column++
		if r == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	return e
}

// fromExpr translates an error of the expr language.
func fromExpr(err error) *SyntaxError {
	at, ok := errors.AsType[*file.Error](err)
	if !ok {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return &SyntaxError{Line: 1, Column: 1, Message: first}
	}
	message := at.Message
	switch {
	case strings.Contains(message, "maximum allowed nodes"):
		message = fmt.Sprintf("the expression has more than %d operators, names and values", maxNodes)
	case strings.Contains(message, "token EOF"):
		message = "the expression ends too early"
	case strings.Contains(message, "literal: strconv."):
		message = "this number is malformed or too large"
	}
	return &SyntaxError{Line: max(at.Line, 1), Column: at.Column + 1, Message: message}
}

// checkResult refuses an expression whose result is certainly not a number. The type of a label is
// not known before an evaluation.
func checkResult(root ast.Node) *SyntaxError {
	bad := &SyntaxError{Line: 1, Column: 1}
	kind := root.Type().Kind()
	switch {
	case root.Nature().Nil:
		bad.Message = "the result is nil, a score is a number"
	case kind == reflect.Bool:
		bad.Message = "the result is true or false, a score is a number: write CONDITION ? 1 : 0"
	case kind == reflect.String:
		bad.Message = "the result is a text, a score is a number"
	default:
		return nil
	}
	return bad
}
