package envelope

import (
	"encoding/json"
	"iter"
	"strings"
)

// The functions of this file cut a JSON text into pieces. They require that json.Valid has accepted
// the whole text, so none of them meets a syntax error, and encoding/json alone defines what valid
// JSON is.
//
// Unmarshalling into a struct is not enough for an envelope. encoding/json takes "ID" for "id",
// null for any value and the last of two equal keys, and reports unknown fields only through a
// Decoder. Producers could then send what the schema forbids.

// members yields the keys of an object, unquoted, with the text of their values. A value's text
// keeps its quotes or brackets.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for at := next(object, 1); object[at] != '}'; {
			if object[at] == ',' {
				at = next(object, at+1)
			}
			keyEnd := end(object, at)
			from := next(object, next(object, keyEnd)+1) // after the colon
			to := end(object, from)
			if !yield(unquote(object[at:keyEnd]), object[from:to]) {
				return
			}
			at = next(object, to)
		}
	}
}

// elements yields the texts of an array's values.
func elements(array string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := next(array, 1); array[at] != ']'; {
			if array[at] == ',' {
				at = next(array, at+1)
			}
			to := end(array, at)
			if !yield(array[at:to]) {
				return
			}
			at = next(array, to)
		}
	}
}

// next is the position of the first byte from at on that is not white space.
func next(s string, at int) int {
	for s[at] == ' ' || s[at] == '\n' || s[at] == '\t' || s[at] == '\r' {
		at++
	}
	return at
}

// end is the position after the value that begins at at.
func end(s string, at int) int {
	switch s[at] {
	case '"':
		return stringEnd(s, at)
	case '{', '[':
		return nestEnd(s, at)
	}
	for at < len(s) && strings.IndexByte(",]} \n\t\r", s[at]) < 0 {
		at++
	}
	return at
}

// stringEnd is the position after the string whose opening quote is at at.
func stringEnd(s string, at int) int {
	for at++; s[at] != '"'; at++ {
		if s[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// nestEnd is the position after the object or array that opens at at. It counts levels and does not
// recurse, so that deep nesting costs no stack.
func nestEnd(s string, at int) int {
	for depth := 0; ; at++ {
		switch s[at] {
		case '"':
			at = stringEnd(s, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
}

// unquote is the content of a string's text. Without escapes it shares the memory of the text.
func unquote(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1]
	}
	var s string
	// The text is valid JSON, so there is no error to handle. At worst a lone surrogate becomes
	// U+FFFD, as in every other Go program.
	_ = json.Unmarshal([]byte(text), &s)
	return s
}
