package reconcile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// xmlScanner reads the elements of an XML document in UTF-8. encoding/xml takes five times as long,
// which is most of what a spreadsheet of a million rows takes. Namespaces are ignored.
type xmlScanner struct {
	in *bufio.Reader
	// After next, the tag begins an element, ends one, or does both, as <a/> does.
	name       []byte // without its prefix; valid until the next call
	attributes []byte // as they are written; valid until the next call
	begins     bool
	ends       bool
	// text is the decoded text before the tag. next appends to it until the caller cuts it.
	text []byte
	tag  []byte
}

// longestTag bounds a tag, in bytes.
const longestTag = 1 << 20

var errXML = errors.New("this is not XML in UTF-8")

func newXMLScanner(in io.Reader) *xmlScanner {
	return &xmlScanner{in: bufio.NewReaderSize(in, 1<<16)}
}

// next reads up to the next tag, and appends the text before it to text if keep is set. After the
// last tag it returns io.EOF.
func (x *xmlScanner) next(keep bool) error {
	for {
		if err := x.characters(keep); err != nil {
			return err
		}
		if err := x.readTag(); err != nil {
			return err
		}
		if len(x.tag) == 0 || x.tag[0] != '?' && x.tag[0] != '!' {
			return x.element()
		}
		if content, ok := bytes.CutPrefix(x.tag, []byte("![CDATA[")); ok && keep {
			x.text = append(x.text, bytes.TrimSuffix(content, []byte("]]"))...)
		}
	}
}

// characters reads the text before the next tag.
func (x *xmlScanner) characters(keep bool) error {
	from := len(x.text)
	for {
		some, err := x.in.ReadSlice('<')
		if keep {
			x.text = append(x.text, bytes.TrimSuffix(some, []byte("<"))...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return err
		}
		if keep {
			x.text, err = decoded(x.text, from)
		}
		return err
	}
}

// readTag reads a tag without its brackets. A > may stand in a comment, in CDATA and in quotes.
func (x *xmlScanner) readTag() error {
	x.tag = x.tag[:0]
	for {
		some, err := x.in.ReadSlice('>')
		x.tag = append(x.tag, some...)
		if len(x.tag) > longestTag {
			return errXML
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return errXML
		}
		if err == nil && x.whole() {
			x.tag = x.tag[:len(x.tag)-1]
			return nil
		}
	}
}

// whole reports whether the tag ends at the > that was read last.
func (x *xmlScanner) whole() bool {
	if x.tag[0] == '?' {
		return bytes.HasSuffix(x.tag, []byte("?>"))
	}
	if x.tag[0] == '!' {
		switch tag := x.tag; {
		case bytes.HasPrefix(tag, []byte("!--")):
			return len(tag) >= len("!---->") && bytes.HasSuffix(tag, []byte("-->"))
		case bytes.HasPrefix(tag, []byte("![CDATA[")):
			return bytes.HasSuffix(tag, []byte("]]>"))
		}
	}
	quote := byte(0)
	for _, c := range x.tag {
		switch {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		}
	}
	return quote == 0
}

// element takes name and attributes from the tag.
func (x *xmlScanner) element() error {
	tag := x.tag
	x.ends, x.begins = false, true
	if n := len(tag); n > 0 && tag[0] == '/' {
		tag, x.ends, x.begins = tag[1:], true, false
	} else if n > 0 && tag[n-1] == '/' {
		tag, x.ends = tag[:n-1], true
	}
	from, end := 0, 0
	for ; end < len(tag) && !isSpace(tag[end]); end++ {
		if tag[end] == ':' {
			from = end + 1
		}
	}
	x.name, x.attributes = tag[from:end], tag[end:]
	if len(x.name) == 0 {
		return errXML
	}
	return nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// attribute is the value of an attribute without prefix; nil if there is none. Only the values of
// names and numbers are read, in which no character has to be escaped.
func (x *xmlScanner) attribute(name string) []byte {
	rest := x.attributes
	for {
		for len(rest) > 0 && isSpace(rest[0]) {
			rest = rest[1:]
		}
		at := bytes.IndexByte(rest, '=')
		if at < 0 {
			return nil
		}
		key := rest[:at]
		for len(key) > 0 && isSpace(key[len(key)-1]) {
			key = key[:len(key)-1]
		}
		for at++; at < len(rest) && isSpace(rest[at]); at++ {
		}
		if at >= len(rest) {
			return nil
		}
		value := rest[at+1:]
		end := bytes.IndexByte(value, rest[at]) // the same quote
		if end < 0 {
			return nil
		}
		if string(key) == name {
			return value[:end]
		}
		rest = value[end+1:]
	}
}

// xmlEntities are those that XML itself has.
var xmlEntities = map[string]string{"amp": "&", "lt": "<", "gt": ">", "quot": `"`, "apos": "'"}

// decoded replaces the entities in text from a position on.
func decoded(text []byte, from int) ([]byte, error) {
	at := bytes.IndexByte(text[from:], '&')
	if at < 0 {
		return text, nil
	}
	rest := bytes.Clone(text[from+at:])
	text = text[:from+at]
	for len(rest) > 0 {
		plain, more, found := bytes.Cut(rest, []byte("&"))
		text = append(text, plain...)
		if !found {
			break
		}
		name, after, ok := bytes.Cut(more, []byte(";"))
		if !ok {
			return nil, errXML
		}
		if as, known := xmlEntities[string(name)]; known {
			text = append(text, as...)
		} else if code, err := codePoint(name); err == nil {
			text = utf8.AppendRune(text, code)
		} else {
			return nil, err
		}
		rest = after
	}
	return text, nil
}

// codePoint reads #13 or #x0D.
func codePoint(name []byte) (rune, error) {
	digits, ok := bytes.CutPrefix(name, []byte("#"))
	base := 10
	if hexadecimal, is := bytes.CutPrefix(digits, []byte("x")); is {
		digits, base = hexadecimal, 16
	}
	code, err := strconv.ParseInt(string(digits), base, 32)
	if !ok || err != nil {
		return 0, fmt.Errorf("%w: unknown entity", errXML)
	}
	return rune(code), nil
}
