package envelope

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Decode reads one envelope. A nil Problem means that the message follows every rule of the schema.
// Otherwise the Problem is the first one in the order of the document, and only the ID of the
// message is set, if it is valid, so that the producer can be told.
//
// Beyond the schema it refuses what a schema cannot express: more than MaxBytes, a field that
// occurs twice, and an expires_at that is not after send_at. Null counts as an absent field. The
// message's strings share one copy of raw; raw itself is neither kept nor changed.
func Decode(raw []byte, allowUnknown bool) (Message, *Problem) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		if len(raw) > MaxBytes {
			return Message{}, &Problem{Code: TooLarge, Detail: tooLarge}
		}
		return Message{}, &Problem{Code: BadJSON, Detail: "the record is not a JSON text in UTF-8"}
	}
	text := strings.TrimLeft(string(raw), " \n\t\r")
	if text[0] != '{' {
		return Message{}, &Problem{Code: BadJSON, Detail: "the record is not a JSON object"}
	}
	r := reader{allowUnknown: allowUnknown}
	if len(raw) > MaxBytes {
		r.fail(TooLarge, tooLarge)
	}
	r.envelope(text)
	if r.problem != nil {
		return Message{ID: r.ID}, r.problem
	}
	return r.Message, nil
}

const tooLarge = "the record is larger than 64 KiB"

// reader fills a Message from the members of an object and keeps the first problem.
type reader struct {
	Message
	allowUnknown bool
	seen         field
	at           string // the field being read
	problem      *Problem
}

// field is a set of the envelope's fields.
type field uint16

const (
	fieldID field = 1 << iota
	fieldTo
	fieldFrom
	fieldText
	fieldTenant
	fieldLabels
	fieldSelectors
	fieldSendAt
	fieldExpiresAt
	fieldMaxPrice
	fieldMetadata
	fieldTraceparent
)

func fieldNamed(name string) field {
	switch name {
	case "id":
		return fieldID
	case "to":
		return fieldTo
	case "from":
		return fieldFrom
	case "text":
		return fieldText
	case "tenant":
		return fieldTenant
	case "labels":
		return fieldLabels
	case "selectors":
		return fieldSelectors
	case "send_at":
		return fieldSendAt
	case "expires_at":
		return fieldExpiresAt
	case "max_price":
		return fieldMaxPrice
	case "metadata":
		return fieldMetadata
	case traceparent:
		return fieldTraceparent
	}
	return 0
}

// envelope reads the whole object. After a problem it only looks for the id.
func (r *reader) envelope(object string) {
	for name, value := range members(object) {
		f := fieldNamed(name)
		r.at = ""
		if f != 0 {
			r.at = name
		}
		switch {
		case f == 0:
			r.unknown(name)
		case r.seen&f != 0:
			r.fail(DuplicateField, "the field "+name+" stands there twice")
			r.forget(f)
		default:
			r.seen |= f
			if value != "null" && (r.problem == nil || f == fieldID) {
				r.set(f, value)
			}
		}
	}
	if r.problem == nil {
		r.require()
	}
}

// forget drops an id that occurs twice, because it is unknown which of the two is meant.
func (r *reader) forget(f field) {
	if f == fieldID {
		r.ID = ""
	}
}

// require checks the rules that need the whole object.
func (r *reader) require() {
	switch {
	case r.ID == "":
		r.at = "id"
		r.fail(BadID, "the field id is missing")
	case r.To == "":
		r.at = "to"
		r.fail(BadNumber, "the field to is missing")
	case r.Text == "":
		r.at = "text"
		r.fail(NoText, "the field text is missing or empty")
	case !r.SendAt.IsZero() && !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(r.SendAt):
		r.at = "expires_at"
		r.fail(BadField, "expires_at is not after send_at")
	}
}

// fail keeps the first problem.
func (r *reader) fail(code Code, detail string) {
	if r.problem == nil {
		r.problem = &Problem{code, detail, r.at}
	}
}

// unknown refuses a field that the envelope does not have. Its name helps a developer who mistyped
// it, but only a plain short word is repeated: anything else might be a number or a text of a
// message.
func (r *reader) unknown(name string) {
	switch {
	case r.allowUnknown:
	case plainWord(name):
		r.at = name
		r.fail(UnknownField, "the field "+name+" is not part of the envelope")
	default:
		r.fail(UnknownField, "a field is not part of the envelope")
	}
}

func plainWord(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (c < 'a' || c > 'z') && s[i] != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 24
}
