package envelope

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// Append writes the message as an envelope that Decode reads back. Empty fields are left out and
// the members of maps are sorted, so equal messages give equal bytes.
func (m Message) Append(dst []byte) []byte {
	o := object{buf: append(dst, '{'), open: true}
	o.text("id", m.ID)
	o.text("to", m.To)
	o.optional("from", m.From)
	o.text("text", m.Text)
	o.optional("tenant", m.Tenant)
	m.appendLabels(&o)
	m.appendSelectors(&o)
	o.instant("send_at", m.SendAt)
	o.instant("expires_at", m.ExpiresAt)
	if m.MaxPrice != nil {
		o.key("max_price")
		o.buf = append(appendMicros(append(o.buf, '"'), *m.MaxPrice), '"')
	}
	o.texts("metadata", m.Metadata)
	o.optional(traceparent, m.Traceparent)
	return append(o.buf, '}')
}

func (m Message) appendLabels(o *object) {
	if len(m.Labels) == 0 {
		return
	}
	o.begin("labels", '{')
	for _, key := range sortedKeys(nil, m.Labels) {
		o.key(key)
		o.value(m.Labels[key])
	}
	o.end('}')
}

func (m Message) appendSelectors(o *object) {
	if len(m.Selectors) == 0 {
		return
	}
	o.begin("selectors", '[')
	for _, s := range m.Selectors {
		o.comma()
		o.buf = append(o.buf, '{')
		o.open = true
		o.text("key", s.Key)
		o.text("operator", string(s.Operator))
		o.key("value")
		o.value(s.Value)
		if s.ExpiresAfter > 0 {
			o.key("expires_after")
			o.buf = appendSpan(o.buf, s.ExpiresAfter)
		}
		o.end('}')
	}
	o.end(']')
}

// object appends the members of a JSON object to buf.
type object struct {
	buf  []byte
	open bool // a bracket has just been opened, so no comma is due
}

func (o *object) comma() {
	if !o.open {
		o.buf = append(o.buf, ',')
	}
	o.open = false
}

func (o *object) key(name string) {
	o.comma()
	o.buf = append(appendString(o.buf, name), ':')
}

func (o *object) begin(name string, bracket byte) {
	o.key(name)
	o.buf = append(o.buf, bracket)
	o.open = true
}

func (o *object) end(bracket byte) {
	o.buf = append(o.buf, bracket)
	o.open = false
}

func (o *object) text(name, s string) {
	o.key(name)
	o.buf = appendString(o.buf, s)
}

// optional leaves out an empty text.
func (o *object) optional(name, s string) {
	if s != "" {
		o.text(name, s)
	}
}

// count leaves out a zero.
func (o *object) count(name string, n int) {
	if n != 0 {
		o.key(name)
		o.buf = strconv.AppendInt(o.buf, int64(n), 10)
	}
}

// instant leaves out the zero time.
func (o *object) instant(name string, t time.Time) {
	if !t.IsZero() {
		o.key(name)
		o.buf = append(t.AppendFormat(append(o.buf, '"'), time.RFC3339Nano), '"')
	}
}

func (o *object) value(v Value) {
	if v.IsNumber {
		o.buf = strconv.AppendFloat(o.buf, v.Number, 'g', -1, 64)
		return
	}
	o.buf = appendString(o.buf, v.Text)
}

// texts writes a map in the order of its keys, and leaves out an empty one. Up to sixteen keys are
// sorted on the stack.
func (o *object) texts(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	var space [16]string
	o.begin(name, '{')
	for _, key := range sortedKeys(space[:0], m) {
		o.text(key, m[key])
	}
	o.end('}')
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string (RFC 8259 section 7): quotes, backslashes and control
// characters escaped, bytes that are not UTF-8 replaced by U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = appendEscape(append(dst, s[done:i]...), c)
		i += size
		done = i
	}
	return append(append(dst, s[done:]...), '"')
}

// appendEscape writes one byte that may not stand in a JSON string as it is.
func appendEscape(dst []byte, c byte) []byte {
	switch {
	case c >= utf8.RuneSelf:
		return append(dst, `\ufffd`...)
	case c == '"', c == '\\':
		return append(dst, '\\', c)
	case c == '\n':
		return append(dst, `\n`...)
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
}
