package httpapi

import (
	"net/url"
	"slices"
)

// fields are the names and values of a query, a form or a header, in the order of their names.
type fields []field

type field struct {
	name  string
	value template
}

// encode writes the fields that have a value, percent-encoded (WHATWG URL, application/x-www-form-urlencoded).
func (f fields) encode(value func(part) string) string {
	list := url.Values{}
	for _, field := range f {
		if text, ok := field.value.expand(value, nil); ok {
			list.Set(field.name, text)
		}
	}
	return list.Encode()
}

// has reports whether any field has a placeholder of one of the names.
func (f fields) has(names ...string) bool {
	return slices.ContainsFunc(f, func(field field) bool { return field.value.has(names...) })
}
