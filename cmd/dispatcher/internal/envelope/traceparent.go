package envelope

import "bytes"

// traceparent is the name of the field.
const traceparent = "traceparent"

// WithTraceparent is an envelope with a traceparent, which must be printable ASCII, in front of its
// other fields: it is stored so that whoever works on the message later finds the trace again. An
// envelope that would become too large is returned unchanged. It is a copy; raw must be a JSON
// object with at least one field and without a traceparent.
func WithTraceparent(raw []byte, text string) []byte {
	open := bytes.IndexByte(raw, '{')
	if open < 0 || len(raw)+len(text)+len(traceparent)+len(`"":"",`) > MaxBytes {
		return raw
	}
	out := make([]byte, 0, len(raw)+len(text)+len(traceparent)+len(`"":"",`))
	out = append(out, raw[:open+1]...)
	out = append(out, `"`+traceparent+`":"`...)
	out = append(out, text...)
	out = append(out, `",`...)
	return append(out, raw[open+1:]...)
}
