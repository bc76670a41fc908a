package envelope

// traceparent is the name of the field.
const traceparent = "traceparent"

// WithTraceparent returns an envelope with this traceparent, in place of an empty one or of null.
// It is stored so that later work on the message finds the trace. An envelope that would become too
// large is returned unchanged.
func WithTraceparent(raw []byte, text string) []byte {
	out, err := Edit(raw, Change{Field: traceparent, Value: text})
	if err != nil || len(out) > MaxBytes {
		return raw
	}
	return out
}
