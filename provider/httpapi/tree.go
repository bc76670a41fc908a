package httpapi

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"dispatcher/provider/settings"
)

// numberKey marks an object that becomes the number in its text.
const numberKey = "$number"

// node is a value of a JSON body. Texts are separate values, never pasted into JSON, so that no
// text can end one.
type node interface {
	// build returns the value for one submission; false leaves it out.
	build(value func(part) string) (any, bool, error)
	has(names ...string) bool
	secrets(names map[string]bool)
}

type (
	constant struct{ value any }
	text     struct{ template }
	number   struct{ template }
	array    []node
	member   struct {
		name  string
		value node
	}
	object []member
)

// parseTree reads a body as the routing document has it.
func parseTree(value any) (node, error) {
	if members, ok := settings.Map(value); ok {
		return parseObject(members)
	}
	switch v := value.(type) {
	case string:
		t, err := parseTemplate(v, anywhere)
		return text{t}, err
	case []any:
		list := make(array, 0, len(v))
		for i, entry := range v {
			n, err := parseTree(entry)
			if err != nil {
				return nil, fmt.Errorf("%d: %w", i, err)
			}
			list = append(list, n)
		}
		return list, nil
	case nil, bool, int, int64, uint64, float64:
		return constant{v}, nil
	}
	return nil, errors.New("has a value that JSON does not know")
}

func parseObject(members map[string]any) (node, error) {
	if digits, ok := members[numberKey]; ok {
		if len(members) != 1 {
			return nil, fmt.Errorf("%s stands beside other fields", numberKey)
		}
		t, err := parseTemplate(fmt.Sprint(digits), anywhere)
		return number{t}, err
	}
	list := make(object, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		n, err := parseTree(members[name])
		if err == nil {
			err = refuseLiteralSecret(name, n)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, member{name, n})
	}
	return list, nil
}

func (c constant) build(func(part) string) (any, bool, error) { return c.value, true, nil }

func (t text) build(value func(part) string) (any, bool, error) {
	s, ok := t.expand(value, nil)
	return s, ok, nil
}

func (n number) build(value func(part) string) (any, bool, error) {
	s, ok := n.expand(value, nil)
	if ok && (s == "" || strings.Trim(s, "0123456789") != "" || len(s) > 1 && s[0] == '0') {
		return nil, false, fmt.Errorf("a %s is not a whole number", numberKey)
	}
	return json.Number(s), ok, nil
}

func (a array) build(value func(part) string) (any, bool, error) {
	list := make([]any, 0, len(a))
	for _, n := range a {
		v, ok, err := n.build(value)
		if err != nil {
			return nil, false, err
		}
		if ok {
			list = append(list, v)
		}
	}
	return list, true, nil
}

func (o object) build(value func(part) string) (any, bool, error) {
	members := make(map[string]any, len(o))
	for _, m := range o {
		v, ok, err := m.value.build(value)
		if err != nil {
			return nil, false, err
		}
		if ok {
			members[m.name] = v
		}
	}
	return members, true, nil
}

func (constant) has(...string) bool { return false }

func (a array) has(names ...string) bool {
	return slices.ContainsFunc(a, func(n node) bool { return n.has(names...) })
}

func (o object) has(names ...string) bool {
	return slices.ContainsFunc(o, func(m member) bool { return m.value.has(names...) })
}

func (constant) secrets(map[string]bool) {}

func (a array) secrets(names map[string]bool) {
	for _, n := range a {
		n.secrets(names)
	}
}

func (o object) secrets(names map[string]bool) {
	for _, m := range o {
		m.value.secrets(names)
	}
}

// parseXML reads an XML body with placeholders in character data and in quoted attributes, where
// the output of escapeXML can only be text. Anywhere else a placeholder is refused.
func parseXML(body string) (template, error) {
	if strings.Contains(body, "<!") {
		return template{}, errors.New("has a comment, a CDATA section or a DOCTYPE")
	}
	t, err := parseTemplate(body, anywhere)
	if err != nil {
		return template{}, err
	}
	if strings.Contains(body, mark) {
		return template{}, errors.New("has a character of the private use area")
	}
	// A mark replaces each placeholder. Where the parser finds the mark, the value will be.
	sample, _ := t.expand(func(part) string { return mark }, nil)
	found, err := marks(sample)
	if err != nil {
		return template{}, err
	}
	if found != strings.Count(sample, mark) {
		return template{}, errors.New(
			"has a placeholder outside of character data and attribute values")
	}
	return t, nil
}

// mark is a character that is valid in XML but not in a name.
const mark = "\uE000"

// marks counts the marks in allowed places.
func marks(body string) (int, error) {
	decoder := xml.NewDecoder(strings.NewReader(body))
	n := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, errors.New("is not well-formed XML")
		}
		switch element := token.(type) {
		case xml.CharData:
			n += strings.Count(string(element), mark)
		case xml.StartElement:
			for _, a := range element.Attr {
				n += strings.Count(a.Value, mark)
			}
		}
	}
}

// escapeXML escapes a value as XML text (XML 1.0 section 2.4). Characters that XML does not allow
// become U+FFFD.
func escapeXML(value string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(value)) // a Builder does not fail
	return b.String()
}
