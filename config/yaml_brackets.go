package config

import "strings"

// unclosed finds the bracket or quote that a document with a YAML fault leaves open, or closes with
// the wrong one: its character and line, or 0 where all are closed. The YAML library names the place
// where it gave up, which may be far below. Quoted texts and comments are passed over.
func unclosed(doc []byte) (bracket byte, line int) {
	type opening struct {
		bracket byte
		line    int
	}
	var open []opening
	line = 1
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; c {
		case '\n':
			line++
		case '#':
			if i == 0 || strings.IndexByte(" \t\n", doc[i-1]) >= 0 {
				i = endOfLine(doc, i) - 1
			}
		case '"', '\'':
			if beginsValue(doc, i) {
				end, closed := endOfQuote(doc, i)
				if !closed {
					return c, line
				}
				line += strings.Count(string(doc[i:end]), "\n")
				i = end - 1
			}
		case '{', '[':
			if len(open) > 0 || beginsValue(doc, i) {
				open = append(open, opening{c, line})
			}
		case '}', ']':
			if len(open) == 0 {
				continue
			}
			last := open[len(open)-1]
			if last.bracket != c-2 { // in ASCII two before its closing one
				return last.bracket, last.line
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return 0, 0
	}
	return open[0].bracket, open[0].line
}

// endOfLine is the position of the line break behind i, or the end.
func endOfLine(doc []byte, i int) int {
	for i < len(doc) && doc[i] != '\n' {
		i++
	}
	return i
}

// endOfQuote is the position behind the quoted text that begins at i, and whether it is closed. A
// backslash escapes in double quotes; a single quote is written twice in single ones.
func endOfQuote(doc []byte, i int) (end int, closed bool) {
	quote := doc[i]
	for i++; i < len(doc); i++ {
		switch {
		case doc[i] == '\\' && quote == '"':
			i++
		case doc[i] == quote && quote == '\'' && i+1 < len(doc) && doc[i+1] == quote:
			i++
		case doc[i] == quote:
			return i + 1, true
		}
	}
	return len(doc), false
}

// beginsValue reports whether a quote or a bracket at i begins a value: within a plain text it is
// a character like any other.
func beginsValue(doc []byte, i int) bool {
	at := i - 1
	for at >= 0 && (doc[at] == ' ' || doc[at] == '\t') {
		at--
	}
	if at < 0 {
		return true
	}
	return strings.IndexByte("\n{[,", doc[at]) >= 0 || at < i-1 && strings.IndexByte(":-", doc[at]) >= 0
}
