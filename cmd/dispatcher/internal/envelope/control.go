package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Control is a record of the control topic: what a producer wants done with a message of its own.
type Control struct {
	Cancel string `json:"cancel"` // the id of the message to end
	Author string `json:"author"` // who wants it; may be empty
	Reason string `json:"reason"` // why; may be empty
}

// maxControlText bounds author and reason, in bytes.
const maxControlText = 256

// DecodeControl reads a record of the control topic. A nil Problem means that it keeps every rule.
func DecodeControl(raw []byte) (c Control, problem *Problem) {
	if len(raw) > MaxBytes {
		return c, &Problem{TooLarge, tooLarge}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(&c)
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		return Control{}, &Problem{BadJSON, "something stands behind the JSON object"}
	}
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Control{}, &Problem{BadJSON, "the record is not a JSON object"}
	case err != nil: // the error may quote what stands there
		return Control{}, &Problem{
			BadField, "a field is not one of cancel, author and reason, or is not a string",
		}
	case c.Cancel == "" || len(c.Cancel) > maxControlID:
		return Control{}, &Problem{BadID, "cancel is not the id of a message"}
	case len(c.Author) > maxControlText || len(c.Reason) > maxControlText:
		return Control{}, &Problem{BadField, "author or reason is longer than 256 bytes"}
	}
	return c, nil
}

// maxControlID is what an id of 64 characters takes in UTF-8, at most.
const maxControlID = 256
