package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// place is the position of a value in an answer or a callback, written as kind:name.
type place struct {
	kind    string
	name    string         // of query, form and header
	pointer []string       // of json: the reference tokens of RFC 6901
	pattern *regexp.Regexp // of regexp: its first group is the value
}

// Kinds of places that an answer and a callback have.
var (
	inAnswers   = []string{"json", "regexp", "header"}
	inCallbacks = []string{"query", "form", "json", "regexp", "header"}
)

func parsePlace(text string, kinds []string) (*place, error) {
	kind, rest, ok := strings.Cut(text, ":")
	if !ok || !slices.Contains(kinds, kind) || rest == "" {
		return nil, fmt.Errorf("%q is no place; write KIND:NAME with one of %s", text,
			strings.Join(kinds, ", "))
	}
	p := &place{kind: kind, name: rest}
	var err error
	switch kind {
	case "json":
		p.pointer, err = parsePointer(rest)
	case "header":
		p.name = http.CanonicalHeaderKey(rest)
	case "regexp":
		p.pattern, err = regexp.Compile(rest)
		if err == nil && p.pattern.NumSubexp() < 1 {
			err = errors.New("has no group; put parentheses around what is wanted")
		}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// parsePointer reads a JSON pointer (RFC 6901).
func parsePointer(text string) ([]string, error) {
	if text == "/" {
		return nil, nil // for readers, as the whole document; the standard writes it as nothing
	}
	if !strings.HasPrefix(text, "/") {
		return nil, fmt.Errorf("%q is not a JSON pointer such as /messages/0/id", text)
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// document is an answer or a callback from which values are read.
type document struct {
	header map[string][]string
	query  url.Values
	form   url.Values
	body   []byte
	tree   any
}

// parseJSON reads the body; numbers keep their digits.
func (d *document) parseJSON() error {
	decoder := json.NewDecoder(bytes.NewReader(d.body))
	decoder.UseNumber()
	if err := decoder.Decode(&d.tree); err != nil {
		return errors.New("the body is not JSON")
	}
	if decoder.More() {
		return errors.New("the body holds more than one JSON value")
	}
	return nil
}

// find returns the value at a place; a nil place has none.
func (p *place) find(d *document) (string, bool) {
	if p == nil {
		return "", false
	}
	switch p.kind {
	case "query":
		return d.query.Get(p.name), d.query.Has(p.name)
	case "form":
		return d.form.Get(p.name), d.form.Has(p.name)
	case "header":
		values := d.header[p.name]
		if len(values) == 0 {
			return "", false
		}
		return values[0], true
	case "json":
		v, ok := walk(d.tree, p.pointer)
		if !ok {
			return "", false
		}
		return scalar(v)
	case "regexp":
		groups := p.pattern.FindSubmatch(d.body)
		if groups == nil {
			return "", false
		}
		return string(groups[1]), true
	}
	return "", false
}

// walk follows a pointer.
func walk(v any, pointer []string) (any, bool) {
	for _, token := range pointer {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[token]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}
