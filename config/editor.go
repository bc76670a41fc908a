package config

import (
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// byHand is the way out where a place cannot be edited.
const byHand = `edit the file and use "dispatcher routing apply"`

// editor changes scalars of a document by their positions and adds entries to its
// mappings. Edits are collected and applied together, so positions stay those of the
// original.
type editor struct {
	layout
	edits []edit
}

// edit replaces length bytes at a position by a text.
type edit struct {
	at, length int
	text       string
}

// pair is a new entry of a mapping. Key and value are plain words or numbers, but a raw value is
// written as it is.
type pair struct {
	key, value string
	raw        bool
}

func newEditor(document []byte) *editor { return &editor{layout: newLayout(document)} }

func (e *editor) apply() []byte {
	slices.SortStableFunc(e.edits, func(a, b edit) int { return a.at - b.at })
	var out []byte
	at := 0
	for _, c := range e.edits {
		out = append(out, e.text[at:c.at]...)
		out = append(out, c.text...)
		at = c.at + c.length
	}
	return append(out, e.text[at:]...)
}

// keyOf is the index of a key in the content of a mapping, its value's is one more; -1
// when the key is not there.
func keyOf(mapping *yaml.Node, name string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if resolve(mapping.Content[i]).Value == name {
			return i
		}
	}
	return -1
}

// step goes from a mapping to the value of a key. An anchor on the way would spread the
// edit to other places, or bring it there from them.
func (e *editor) step(mapping *yaml.Node, name string) (*yaml.Node, error) {
	return e.own(mapping.Content[keyOf(mapping, name)+1], name)
}

// item goes from the list of routes to one of them.
func (e *editor) item(routes *yaml.Node, name string) (*yaml.Node, error) {
	for _, n := range routes.Content {
		route := resolve(n)
		if at := keyOf(route, "name"); at >= 0 && resolve(route.Content[at+1]).Value == name {
			return e.own(n, name)
		}
	}
	return nil, fmt.Errorf("route %s is not in the list of routes; %s", name, byHand)
}

// own takes a node that is written at its place and nowhere else.
func (e *editor) own(n *yaml.Node, name string) (*yaml.Node, error) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return nil, fmt.Errorf("line %d: %s is shared by an anchor; %s", n.Line, name, byHand)
	}
	return n, nil
}

// find is where a scalar stands, quotes included.
func (e *editor) find(n *yaml.Node, name string) (span, error) {
	if _, err := e.own(n, name); err != nil {
		return span{}, err
	}
	s, ok := e.span(n)
	if !ok {
		return span{}, fmt.Errorf("line %d: %s is written in a way that cannot be edited in place; %s", n.Line, name, byHand)
	}
	return s, nil
}

// replace writes another scalar as the value of the key at an index. Quotes stay as they
// are; a key without a value gets one.
func (e *editor) replace(mapping *yaml.Node, at int, text string) error {
	key, value := mapping.Content[at], mapping.Content[at+1]
	name := resolve(key).Value
	if isBare(value) {
		return e.fill(key, name, quoted(text, key.Style))
	}
	s, err := e.find(value, name)
	if err != nil {
		return err
	}
	if value.Tag == "!!null" { // such as null or ~, which has no quotes of its own
		text = quoted(text, key.Style)
	} else {
		text = quoted(text, value.Style)
	}
	e.edits = append(e.edits, edit{at: s.start, length: s.end - s.start, text: text})
	return nil
}

// isBare reports whether a key has no value at all, not even the word null.
func isBare(value *yaml.Node) bool {
	return value.Tag == "!!null" && value.Value == "" && value.Kind == yaml.ScalarNode && value.Style == 0 && value.Anchor == ""
}

// colon is what stands between a key and its value.
var colon = regexp.MustCompile(`^[ \t]*:`)

// fill gives a key its first value, quotes included.
func (e *editor) fill(key *yaml.Node, name, text string) error {
	s, err := e.find(key, name)
	if err != nil {
		return err
	}
	c := colon.FindIndex(e.text[s.end:])
	if c == nil {
		return fmt.Errorf("line %d: %s is written in a way that cannot be edited in place; %s", key.Line, name, byHand)
	}
	e.edits = append(e.edits, edit{at: s.end + c[1], text: " " + text})
	return nil
}

// quoted writes a word or a number in the quotes of a style.
func quoted(text string, style yaml.Style) string {
	switch {
	case style&yaml.DoubleQuotedStyle != 0:
		return `"` + text + `"`
	case style&yaml.SingleQuotedStyle != 0:
		return "'" + text + "'"
	}
	return text
}

// quotedKey is quoted, and puts a name into quotes that would begin something else.
func quotedKey(name string, style yaml.Style) string {
	if q := quoted(name, style); q != name || (name[0] != '-' && name[0] != '.') {
		return q
	}
	return `"` + name + `"`
}
