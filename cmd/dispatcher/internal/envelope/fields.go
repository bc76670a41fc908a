package envelope

import (
	"strconv"
	"time"
	"unicode/utf8"

	"dispatcher/selector"
)

// Bounds of the fields; docs/schema/envelope.schema.json has the same numbers.
const (
	maxWord    = 64  // characters of an id, a tenant or a key
	maxSender  = 20  // characters of from: SMPP 3.4 section 5.2.8, source_addr without its NUL
	maxContent = 256 // characters of a label's or a selector's text and of a metadata value
	maxEntries = 32  // entries of labels, selectors and metadata each
)

// set reads one field of the envelope from the text of its value; null is excluded.
func (r *reader) set(f field, value string) {
	switch f {
	case fieldID:
		r.setID(value)
	case fieldTo:
		r.setTo(value)
	case fieldFrom:
		r.From = r.word(value, 0, maxSender, "from is not a string of at most 20 printable characters")
	case fieldText:
		r.setText(value)
	case fieldTenant:
		r.Tenant = r.word(value, 0, maxWord, "tenant is not a string of at most 64 printable characters")
	case fieldLabels:
		r.setLabels(value)
	case fieldSelectors:
		r.setSelectors(value)
	case fieldSendAt:
		r.SendAt = r.time(value, "send_at is not an RFC 3339 time such as 2026-11-21T10:00:00Z")
	case fieldExpiresAt:
		r.ExpiresAt = r.time(value, "expires_at is not an RFC 3339 time such as 2026-11-21T10:00:00Z")
	case fieldMaxPrice:
		r.setMaxPrice(value)
	case fieldMetadata:
		r.setMetadata(value)
	case fieldTraceparent:
		r.Traceparent = r.word(value, 0, maxWord,
			"traceparent is not a string of at most 64 printable characters")
	}
}

func (r *reader) setID(value string) {
	id, ok := str(value)
	if !ok || !printable(id, 1, maxWord) {
		r.fail(BadID, "id is not a string of 1 to 64 printable characters")
		return
	}
	r.ID = id
}

func (r *reader) setTo(value string) {
	to, ok := str(value)
	if !ok || !e164(to) {
		r.fail(BadNumber, "to is not an E.164 number: a plus and 8 to 15 digits, the first not 0")
		return
	}
	r.To = to
}

func (r *reader) setText(value string) {
	text, ok := str(value)
	switch {
	case !ok:
		r.fail(BadField, "text is not a string")
	case text == "":
		r.fail(NoText, "the field text is missing or empty")
	default:
		r.Text = text
	}
}

func (r *reader) setLabels(value string) {
	if value[0] != '{' {
		r.fail(BadField, "labels is not an object")
		return
	}
	for key, v := range members(value) {
		if !r.entry(key, len(r.Labels), "labels") {
			return
		}
		content, ok := content(v)
		if !ok {
			r.fail(BadField, "labels: a value is neither a number nor a string of at most 256 characters")
			return
		}
		if _, twice := r.Labels[key]; twice {
			r.fail(DuplicateField, "labels: a key stands there twice")
			return
		}
		if r.Labels == nil {
			r.Labels = make(map[string]Value, 4)
		}
		r.Labels[key] = content
	}
}

func (r *reader) setMetadata(value string) {
	if value[0] != '{' {
		r.fail(BadField, "metadata is not an object")
		return
	}
	for key, v := range members(value) {
		if !r.entry(key, len(r.Metadata), "metadata") {
			return
		}
		text, ok := str(v)
		if !ok || utf8.RuneCountInString(text) > maxContent {
			r.fail(BadField, "metadata: a value is not a string of at most 256 characters")
			return
		}
		if _, twice := r.Metadata[key]; twice {
			r.fail(DuplicateField, "metadata: a key stands there twice")
			return
		}
		if r.Metadata == nil {
			r.Metadata = make(map[string]string, 4)
		}
		r.Metadata[key] = text
	}
}

// entry checks the key of one more entry of an object that already has n.
func (r *reader) entry(key string, n int, object string) bool {
	switch {
	case n == maxEntries:
		r.fail(BadField, object+" has more than 32 entries")
	case !printable(key, 1, maxWord):
		r.fail(BadField, object+": a key is not 1 to 64 printable characters")
	default:
		return true
	}
	return false
}

// setMaxPrice reads an exact decimal with up to 12 digits before the point and 6 after it.
func (r *reader) setMaxPrice(value string) {
	text, ok := str(value)
	if ok {
		if micros, ok := parseMicros(text); ok {
			r.MaxPrice = &micros
			return
		}
	}
	r.fail(BadField, `max_price is not a decimal in quotes such as "0.05", with at most 6 decimals`)
}

func (r *reader) word(value string, least, most int, detail string) string {
	s, ok := str(value)
	if !ok || !printable(s, least, most) {
		r.fail(BadField, detail)
		return ""
	}
	return s
}

// time reads an RFC 3339 time.
func (r *reader) time(value, detail string) time.Time {
	if s, ok := str(value); ok {
		if t, ok := parseInstant(s); ok {
			return t
		}
	}
	r.fail(BadField, detail)
	return time.Time{}
}

// str is the content of a value that is a string.
func str(value string) (string, bool) {
	if value[0] != '"' {
		return "", false
	}
	return unquote(value), true
}

// content reads a Value: a string of bounded length or a number that a float64 can hold.
func content(value string) (Value, bool) {
	if text, ok := str(value); ok {
		return selector.TextValue(text), utf8.RuneCountInString(text) <= maxContent
	}
	if c := value[0]; c != '-' && (c < '0' || c > '9') {
		return Value{}, false
	}
	n, err := strconv.ParseFloat(value, 64)
	return selector.NumberValue(n), err == nil
}

// e164 checks only the form. ITU-T E.164 section 6 allows 15 digits, and no country code begins
// with 0. Below 8 digits, country code included, no number receives SMS. Whether the number exists
// is for the provider to find out.
func e164(s string) bool {
	if len(s) < 9 || len(s) > 16 || s[0] != '+' || s[1] == '0' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
