package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Document is a routing document: its text, and the routing that the text describes. It is read
// once; an edit (SetWeights, SetState, SetLimit, DropLimit) returns a new document.
type Document struct {
	Name    string // of its file or version, for error sentences
	Text    []byte
	Routing *Routing // without the effects of a version

	root *yaml.Node // the mapping of the document
}

// maxDocument bounds the document in bytes; a thousand channels need a fifth of it.
const maxDocument = 1 << 20

// ParseDocument reads a routing document in YAML or JSON. name is the file's, for error messages.
// It is strict: an unknown key is an error. The error joins all problems, one line each, as
// "file:line: key: what is wrong and what to do".
func ParseDocument(name string, text []byte) (*Document, error) {
	return parseDocument(name, text, false)
}

// ParseApplied reads a document that has been applied, or an edit of one. Rules that were added
// after it was applied are not checked, so that its channels can still be drained and decisions
// made with it can be derived again.
func ParseApplied(name string, text []byte) (*Document, error) {
	return parseDocument(name, text, true)
}

// ParseRouting is ParseDocument for callers that need the routing only.
func ParseRouting(name string, text []byte) (*Routing, error) {
	d, err := ParseDocument(name, text)
	if err != nil {
		return nil, err
	}
	return d.Routing, nil
}

func parseDocument(name string, text []byte, applied bool) (*Document, error) {
	r := &report{file: name}
	root, ok := parseYAML(r, text)
	if !ok {
		return nil, r.err()
	}
	routing := readRouting(root, applied)
	if err := r.err(); err != nil {
		return nil, err
	}
	return &Document{Name: name, Text: text, Routing: routing, root: root.node}, nil
}

// edited parses the text that an edit made of the document. It must describe the routing that want
// returns. want gets the parsed routing, from which it may copy values that follow from the rest of
// the document.
func (d *Document) edited(text []byte, want func(got *Routing) *Routing) (*Document, error) {
	got, err := ParseApplied(d.editName(), text)
	if err != nil {
		return nil, err
	}
	if unwanted := Diff(want(got.Routing), got.Routing); len(unwanted) > 0 {
		return nil, d.refuse(fmt.Errorf("the edit would also change %s; %s", unwanted[0].Path,
			byHand))
	}
	return got, nil
}

// editName is the name of the document in errors about an edit.
func (d *Document) editName() string { return d.Name + " with the change" }

// refuse is the error of an edit that cannot be made.
func (d *Document) refuse(err error) error { return fmt.Errorf("%s: %w", d.editName(), err) }
