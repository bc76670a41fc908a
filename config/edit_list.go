package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// extent is where a node stands, its brackets included.
func (e *editor) extent(n *yaml.Node) (span, error) {
	if n.Kind == yaml.ScalarNode {
		return e.find(n, n.Value)
	}
	start, ok := e.offset(n.Line, n.Column)
	if _, err := e.own(n, "a list or mapping"); err != nil {
		return span{}, err
	}
	flow := n.Style&yaml.FlowStyle != 0
	end := start
	if flow {
		end++ // the opening bracket
	}
	if ok && len(n.Content) > 0 {
		last, err := e.extent(n.Content[len(n.Content)-1])
		if err != nil {
			return span{}, err
		}
		end = last.end
	}
	if !flow {
		return span{start, end}, nil
	}
	end = e.skip(end)
	if !ok || end >= len(e.text) || e.text[end] != ']' && e.text[end] != '}' {
		return span{}, e.notInPlace(n)
	}
	return span{start, end + 1}, nil
}

func (e *editor) notInPlace(n *yaml.Node) error {
	return fmt.Errorf("line %d: this is written in a way that cannot be edited in place; %s", n.Line, byHand)
}

// skip goes over what may stand between the last member and the bracket behind it.
func (e *editor) skip(at int) int {
	for at < len(e.text) {
		switch n := breakAt(e.text, at); {
		case n > 0:
			at += n
		case e.text[at] == ' ', e.text[at] == '\t', e.text[at] == ',':
			at++
		case e.text[at] == '#':
			at = e.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// flowMapping writes entries between braces. Values have their quotes already.
func flowMapping(pairs []pair, style yaml.Style) string {
	texts := make([]string, len(pairs))
	for i, p := range pairs {
		texts[i] = quotedKey(p.key, style) + ": " + p.value
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// dashed is the beginning of the line of an item in block style.
var dashed = regexp.MustCompile(`^[ \t]*-[ \t]+$`)

// appendItem adds a mapping behind the last one of a list, in its style: on a line of its own
// where that one has a line of its own, else beside it.
func (e *editor) appendItem(list *yaml.Node, pairs []pair) error {
	last := list.Content[len(list.Content)-1]
	s, err := e.extent(last)
	if err != nil {
		return err
	}
	style := styleOf(list)
	before, end := e.text[e.lineStart(s.start):s.start], e.lineEnd(s.end)
	behind := e.text[s.end:end]
	if list.Style&yaml.FlowStyle != 0 {
		e.appendFlow(s, string(before), flowMapping(pairs, style))
		return nil
	}
	if !dashed.Match(before) || !blockEnd.Match(behind) {
		return e.notInPlace(last)
	}
	text := flowMapping(pairs, style)
	if last.Style&yaml.FlowStyle == 0 {
		lines := make([]string, len(pairs))
		for i, p := range pairs {
			lines[i] = quotedKey(p.key, style) + ": " + p.value
		}
		text = strings.Join(lines, e.lineBreak(end)+strings.Repeat(" ", len(before)))
	}
	e.edits = append(e.edits, edit{at: end, text: e.lineBreak(end) + string(before) + text})
	return nil
}

// appendFlow adds an item between brackets behind the one at s.
func (e *editor) appendFlow(s span, before, item string) {
	end := e.lineEnd(s.end)
	rest := flowEnd.FindSubmatch(e.text[s.end:end])
	if strings.Trim(before, " \t") != "" || rest == nil {
		e.edits = append(e.edits, edit{at: s.end, text: ", " + item})
		return
	}
	if len(rest[1]) > 0 {
		item += ","
	} else {
		e.edits = append(e.edits, edit{at: s.end, text: ","})
	}
	e.edits = append(e.edits, edit{at: end, text: e.lineBreak(end) + before + item})
}

// fillList writes the first item of the list under a key: into its brackets, or a list where
// there is no value.
func (e *editor) fillList(key, list *yaml.Node, item string) error {
	if isBare(list) {
		return e.fill(key, key.Value, "["+item+"]")
	}
	s, err := e.extent(list)
	if err != nil {
		return err
	}
	if list.Kind == yaml.SequenceNode {
		e.edits = append(e.edits, edit{at: s.start + 1, text: item})
		return nil
	}
	e.edits = append(e.edits, edit{at: s.start, length: s.end - s.start, text: "[" + item + "]"})
	return nil
}

// addKey adds a key with a raw value to the document itself: at its end, or in front between braces.
func (e *editor) addKey(root *yaml.Node, key, value string) error {
	first := root.Content[0]
	text := quotedKey(key, first.Style) + ": " + value
	if root.Style&yaml.FlowStyle == 0 {
		br := e.lineBreak(e.lineEnd(0))
		if !endsLine(e.text) {
			text = br + text
		}
		e.edits = append(e.edits, edit{at: len(e.text), text: text + br})
		return nil
	}
	s, err := e.find(first, first.Value)
	if err != nil {
		return err
	}
	between := " "
	if line := e.lineStart(s.start); line > 0 && len(bytes.Trim(e.text[line:s.start], " \t")) == 0 {
		between = e.lineBreak(e.lineEnd(0)) + string(e.text[line:s.start])
	}
	e.edits = append(e.edits, edit{at: s.start, text: text + "," + between})
	return nil
}

// endsLine reports whether a text ends with a line break.
func endsLine(text []byte) bool {
	for back := 1; back <= 3 && back <= len(text); back++ {
		if breakAt(text, len(text)-back) == back {
			return true
		}
	}
	return false
}
