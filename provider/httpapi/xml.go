package httpapi

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// parseXML reads a body that is XML with placeholders in character data and in quoted attributes: there, what
// escapeXML writes can be nothing but text. Everywhere else a placeholder is refused.
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
	// A mark takes the place of each placeholder; where it turns up says where the value would stand.
	sample, _ := t.expand(func(part) string { return mark }, nil)
	found, err := marks(sample)
	if err != nil {
		return template{}, err
	}
	if found != strings.Count(sample, mark) {
		return template{}, errors.New("has a placeholder outside of character data and attribute values")
	}
	return t, nil
}

// mark is a character that XML may have and no name in it can.
const mark = "\uE000"

// marks counts them in the places where they may stand.
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

// escapeXML makes text of a value (XML 1.0 section 2.4); characters that XML cannot have become U+FFFD.
func escapeXML(value string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(value)) // a Builder does not fail
	return b.String()
}
