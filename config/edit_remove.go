package config

import (
	"bytes"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// removeItem takes a mapping out of the list under a key. An item that has its lines to itself goes with them; a comment
// above it stays.
func (e *editor) removeItem(key, list *yaml.Node, at int) error {
	s, err := e.extent(list.Content[at])
	if err != nil {
		return err
	}
	if list.Style&yaml.FlowStyle != 0 {
		return e.removeFlow(list, at, s)
	}
	start, end := e.lineStart(s.start), e.lineEnd(s.end)
	if !dashed.Match(e.text[start:s.start]) || !blockEnd.Match(e.text[s.end:end]) {
		return e.notInPlace(list.Content[at])
	}
	e.cutLines(start, end)
	if len(list.Content) == 1 { // nothing at all would look like a slip
		return e.fill(key, key.Value, "[]")
	}
	return nil
}

// comma is what stands between two items of a line.
var comma = regexp.MustCompile(`^[ \t]*,[ \t]*$`)

// removeFlow takes an item out from between brackets.
func (e *editor) removeFlow(list *yaml.Node, at int, s span) error {
	last := at == len(list.Content)-1
	start, end := e.lineStart(s.start), e.lineEnd(s.end)
	rest := flowEnd.FindSubmatchIndex(e.text[s.end:end])
	alone := rest != nil && len(bytes.Trim(e.text[start:s.start], " \t")) == 0
	if last && at > 0 {
		before, err := e.extent(list.Content[at-1])
		if err != nil {
			return err
		}
		if !alone && comma.Match(e.text[before.end:s.start]) {
			e.cut(before.end, s.end)
			return nil
		}
		if !alone || rest[2] == rest[3] { // what was the last but one has no comma any more
			e.cutComma(before.end)
		}
	}
	if alone {
		e.cutLines(start, end)
		return nil
	}
	if !last {
		after, err := e.extent(list.Content[at+1])
		if err != nil {
			return err
		}
		if comma.Match(e.text[s.end:after.start]) {
			e.cut(s.start, after.start)
			return nil
		}
		e.cutComma(s.end)
	}
	e.cut(s.start, s.end)
	return nil
}

// nextComma is a comma with what may stand before it.
var nextComma = regexp.MustCompile(`^[ \t\r\n]*,`)

// cutComma takes out the comma behind a place.
func (e *editor) cutComma(at int) {
	if c := nextComma.Find(e.text[at:]); c != nil {
		e.cut(at+len(c)-1, at+len(c))
	}
}

func (e *editor) cut(start, end int) { e.edits = append(e.edits, edit{at: start, length: end - start}) }

// cutLines takes out whole lines. The last line of a text has no break of its own, so the one before
// it goes.
func (e *editor) cutLines(start, end int) {
	if end < len(e.text) {
		e.cut(start, end+breakAt(e.text, end))
		return
	}
	for back := min(3, start); back > 0; back-- {
		if breakAt(e.text, start-back) == back {
			e.cut(start-back, end)
			return
		}
	}
	e.cut(start, end)
}
