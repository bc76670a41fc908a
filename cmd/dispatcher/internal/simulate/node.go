package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// node is a value of a JSON document with the line on which it ends, for complaints. Exactly one
// of its fields is set; none for null.
type node struct {
	line   int
	object []member
	array  []node
	plain  any // string, json.Number or bool
	isList bool
	isMap  bool
}

// member is one key of an object.
type member struct {
	key   string
	value node
}

// document reads JSON, which must be all there is.
type document struct {
	raw []byte
	d   *json.Decoder
}

func parse(raw []byte) (node, error) {
	doc := document{raw: raw, d: json.NewDecoder(bytes.NewReader(raw))}
	doc.d.UseNumber()
	root, err := doc.value()
	if err == nil && doc.d.More() {
		err = errors.New("more follows behind the scenario")
	}
	if err != nil {
		return node{}, fmt.Errorf("%d: %w", doc.line(), cause(err))
	}
	return root, nil
}

func cause(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the document ends too early: it must be one JSON object")
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("this is no JSON: %w", syntax)
	}
	return err
}

// line is that of what was read last.
func (doc *document) line() int {
	return 1 + bytes.Count(doc.raw[:min(int(doc.d.InputOffset()), len(doc.raw))], []byte{'\n'})
}

func (doc *document) value() (node, error) {
	token, err := doc.d.Token()
	if err != nil {
		return node{}, err
	}
	n := node{line: doc.line(), plain: token}
	switch token {
	case json.Delim('{'):
		n.plain, n.isMap = nil, true
		n.object, err = doc.members()
	case json.Delim('['):
		n.plain, n.isList = nil, true
		n.array, err = doc.items()
	}
	return n, err
}

func (doc *document) members() (all []member, err error) {
	for doc.d.More() {
		key, err := doc.d.Token()
		if err != nil {
			return nil, err
		}
		m := member{}
		if m.key, err = stringOf(key); err != nil {
			return nil, err
		}
		if m.value, err = doc.value(); err != nil {
			return nil, err
		}
		for _, before := range all {
			if before.key == m.key {
				return nil, fmt.Errorf("key %q stands twice in one object", m.key)
			}
		}
		all = append(all, m)
	}
	_, err = doc.d.Token()
	return all, err
}

// stringOf is a key as text: the decoder lets no other through.
func stringOf(token json.Token) (string, error) {
	if s, ok := token.(string); ok {
		return s, nil
	}
	return "", fmt.Errorf("a key is no text: %v", token)
}

func (doc *document) items() (all []node, err error) {
	for doc.d.More() {
		item, err := doc.value()
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	_, err = doc.d.Token()
	return all, err
}
