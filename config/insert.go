package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// neighbour is the entry behind which new ones are inserted, and whose style they take.
type neighbour struct {
	key, value *yaml.Node
	at, ends   span   // of the key, of the value
	colon      string // between the two
}

// insert adds entries to a mapping behind the one whose key is at an index: on lines of
// their own where that one has a line of its own, else beside it.
func (e *editor) insert(mapping *yaml.Node, index int, pairs []pair) error {
	if len(pairs) == 0 {
		return nil
	}
	n, err := e.neighbour(mapping, index)
	if err != nil {
		return err
	}
	if mapping.Style&yaml.FlowStyle == 0 {
		return e.insertLines(n, pairs)
	}
	if e.insertFlowLines(n, pairs) {
		return nil
	}
	comma := ", "
	if n.colon == ":" {
		comma = ","
	}
	var text strings.Builder
	for _, p := range pairs {
		text.WriteString(comma + n.write(p))
	}
	e.edits = append(e.edits, edit{at: n.ends.end, text: text.String()})
	return nil
}

// between takes the spaces around a colon; a value on a line of its own is not imitated.
var between = regexp.MustCompile(`^[ \t]*:[ \t]*$`)

func (e *editor) neighbour(mapping *yaml.Node, index int) (neighbour, error) {
	n := neighbour{key: mapping.Content[index], value: mapping.Content[index+1], colon: ": "}
	name := resolve(n.key).Value
	var err error
	if n.at, err = e.find(n.key, name); err != nil {
		return n, err
	}
	if n.ends, err = e.find(n.value, name); err != nil {
		return n, err
	}
	if text := string(e.text[n.at.end:n.ends.start]); between.MatchString(text) {
		n.colon = text
	}
	return n, nil
}

// write is a new entry in the neighbour's style.
func (n *neighbour) write(p pair) string {
	if p.raw {
		return quotedKey(p.key, n.key.Style) + n.colon + p.value
	}
	return quotedKey(p.key, n.key.Style) + n.colon + quoted(p.value, n.value.Style)
}

// Ends of a line that an entry has to itself: a comment may follow, and between braces
// a comma.
var (
	blockEnd = regexp.MustCompile(`^[ \t]*([ \t]#.*)?$`)
	flowEnd  = regexp.MustCompile(`^[ \t]*(,?)[ \t]*([ \t]#.*)?$`)
)

// insertLines adds entries to a mapping in block style, below the neighbour's line and
// the comment that may stand behind it.
func (e *editor) insertLines(n neighbour, pairs []pair) error {
	end := e.lineEnd(n.ends.end)
	if !blockEnd.Match(e.text[n.ends.end:end]) {
		return fmt.Errorf("line %d: %s shares its line with something else; %s", n.value.Line, n.key.Value, byHand)
	}
	var text strings.Builder
	for _, p := range pairs {
		text.WriteString(e.lineBreak(end) + strings.Repeat(" ", n.key.Column-1) + n.write(p))
	}
	e.edits = append(e.edits, edit{at: end, text: text.String()})
	return nil
}

// insertFlowLines adds entries between braces if the neighbour has a line of its own
// there, and reports whether it has.
func (e *editor) insertFlowLines(n neighbour, pairs []pair) bool {
	indent := e.text[e.lineStart(n.at.start):n.at.start]
	end := e.lineEnd(n.ends.end)
	rest := flowEnd.FindSubmatch(e.text[n.ends.end:end])
	if len(bytes.Trim(indent, " \t")) > 0 || rest == nil {
		return false
	}
	hasComma := len(rest[1]) > 0
	var text strings.Builder
	for i, p := range pairs {
		text.WriteString(e.lineBreak(end) + string(indent) + n.write(p))
		if hasComma || i < len(pairs)-1 {
			text.WriteByte(',')
		}
	}
	if !hasComma {
		e.edits = append(e.edits, edit{at: n.ends.end, text: ","})
	}
	e.edits = append(e.edits, edit{at: end, text: text.String()})
	return true
}
