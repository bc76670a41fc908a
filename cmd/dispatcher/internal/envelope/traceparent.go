package envelope

import "bytes"

// traceparent is the name of the field.
const traceparent = "traceparent"

// WithTraceparent returns a copy of an envelope with a traceparent, which must be printable ASCII,
// before its other fields. It is stored so that later work on the message finds the trace. An
// envelope that would become too large is returned unchanged. raw must be a JSON object with at
// least one field and without a traceparent.
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
