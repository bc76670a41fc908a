package config

import (
	"bytes"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// layout is the text of a document with the places where its lines begin. Lines are
// those of YAML 1.1, as its library counts them: they end with CR LF, CR, LF, NEL
// (U+0085), LS (U+2028) or PS (U+2029).
type layout struct {
	text  []byte
	lines []int
}

// byteOrderMark may begin a document and belongs to no line.
const byteOrderMark = "\uFEFF"

func newLayout(text []byte) layout {
	l := layout{text: text, lines: []int{0}}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		l.lines[0] = len(byteOrderMark)
	}
	for at := 0; at < len(text); {
		if n := breakAt(text, at); n > 0 {
			at += n
			l.lines = append(l.lines, at)
			continue
		}
		_, n := utf8.DecodeRune(text[at:])
		at += n
	}
	return l
}

// breakAt is the length of the line break at a place; 0 when there is none.
func breakAt(text []byte, at int) int {
	for _, b := range []string{"\r\n", "\r", "\n", "\u0085", "\u2028", "\u2029"} {
		if bytes.HasPrefix(text[at:], []byte(b)) {
			return len(b)
		}
	}
	return 0
}

// lineStart is where the line of a place begins.
func (l *layout) lineStart(at int) int {
	start := 0
	for _, line := range l.lines {
		if line > at {
			break
		}
		start = line
	}
	return start
}

// lineEnd is where the line of a place ends, before its break.
func (l *layout) lineEnd(at int) int {
	for at < len(l.text) && breakAt(l.text, at) == 0 {
		at++
	}
	return at
}

// lineBreak is the break at a place, or the document's first one when the place is its end.
func (l *layout) lineBreak(at int) string {
	if at == len(l.text) {
		at = l.lineEnd(0)
	}
	if at == len(l.text) {
		return "\n"
	}
	return string(l.text[at : at+breakAt(l.text, at)])
}

// span is a stretch of the text, end excluded.
type span struct{ start, end int }

// span finds the text of a scalar, quotes included, and checks that it stands there. It
// reports false for a scalar that is more than its text: with an anchor or a tag, in a
// block, or over several lines.
func (l *layout) span(n *yaml.Node) (span, bool) {
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || n.Style&(yaml.TaggedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return span{}, false
	}
	start, ok := l.offset(n.Line, n.Column)
	if !ok {
		return span{}, false
	}
	rest := l.text[start:]
	length := 0
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		length = quotedLength(rest, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		length = quotedLength(rest, '\'')
	case bytes.HasPrefix(rest, []byte(n.Value)):
		length = len(n.Value)
	}
	return span{start, start + length}, length > 0
}

// offset turns a line and a column, both from 1 and counted in characters, into a place.
func (l *layout) offset(line, column int) (int, bool) {
	if line < 1 || line > len(l.lines) {
		return 0, false
	}
	at := l.lines[line-1]
	for range column - 1 {
		if at >= len(l.text) {
			return 0, false
		}
		_, n := utf8.DecodeRune(l.text[at:])
		at += n
	}
	return at, at < len(l.text)
}

// quotedLength is how long a quoted scalar at the beginning of a text is; 0 when there is
// none. Double quotes escape with a backslash, single ones by doubling.
func quotedLength(text []byte, quote byte) int {
	if text[0] != quote {
		return 0
	}
	for at := 1; at < len(text); at++ {
		switch {
		case text[at] == '\\' && quote == '"':
			at++
		case text[at] != quote:
		case quote == '\'' && at+1 < len(text) && text[at+1] == quote:
			at++
		default:
			return at + 1
		}
	}
	return 0
}
