package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// parser reads a JSON document into values.
type parser struct {
	raw []byte
	d   *json.Decoder
	all *problems
}

// parse reads one JSON value; nothing may follow it.
func parse(raw []byte, all *problems) (value, error) {
	p := parser{raw: raw, d: json.NewDecoder(bytes.NewReader(raw)), all: all}
	p.d.UseNumber()
	root, err := p.value("")
	if err == nil && p.d.More() {
		err = errors.New("more follows behind the scenario")
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		err = fmt.Errorf("this is not JSON: %w", syntax)
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the document ends too early: it must be one JSON object")
	}
	if err != nil {
		return value{}, fmt.Errorf("%s:%d: %w", all.name, p.line(), err)
	}
	return root, nil
}

// line is the line of what was read last.
func (p *parser) line() int {
	return 1 + bytes.Count(p.raw[:min(int(p.d.InputOffset()), len(p.raw))], []byte{'\n'})
}

// value reads the next value, whose path is known.
func (p *parser) value(path string) (value, error) {
	token, err := p.d.Token()
	if err != nil {
		return value{}, err
	}
	v := value{path: path, line: p.line(), all: p.all}
	kind, isDelim := token.(json.Delim)
	if !isDelim {
		v.plain = token
		return v, nil
	}
	v.kind = kind
	for p.d.More() {
		if kind == '{' {
			err = p.member(&v)
		} else {
			var item value
			item, err = p.value(fmt.Sprintf("%s[%d]", path, len(v.items)))
			v.items = append(v.items, item)
		}
		if err != nil {
			return value{}, err
		}
	}
	_, err = p.d.Token() // the end of the object or list
	return v, err
}

// member reads a key of an object and its value.
func (p *parser) member(object *value) error {
	token, err := p.d.Token()
	if err != nil {
		return err
	}
	key, _ := token.(string) // the decoder accepts no other key
	if slices.ContainsFunc(object.members, func(m member) bool { return m.key == key }) {
		return fmt.Errorf("key %q stands twice in one object", key)
	}
	v, err := p.value(strings.TrimPrefix(object.path+"."+key, "."))
	object.members = append(object.members, member{key, v})
	return err
}
