package envelope

import (
	"bytes"
	"encoding/json"
)

// Control is a record of the control topic: what a producer wants done with one of its messages.
type Control struct {
	Cancel string `json:"cancel"` // the id of the message to end
	Author string `json:"author"` // who wants it; may be empty
	Reason string `json:"reason"` // why; may be empty
}

// maxControlText bounds author and reason, in characters.
const maxControlText = 256

// IsID reports whether a message may have this id.
func IsID(id string) bool { return printable(id, 1, maxWord) }

// DecodeControl reads a record of the control topic. A nil Problem means that it is valid.
func DecodeControl(raw []byte) (c Control, problem *Problem) {
	if len(raw) > MaxBytes {
		return c, &Problem{Code: TooLarge, Detail: tooLarge}
	}
	if !json.Valid(raw) {
		return c, &Problem{Code: BadJSON, Detail: "the record is not one JSON object"}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	switch {
	case d.Decode(&c) != nil: // the error may quote the content
		return Control{}, &Problem{
			Code: BadField, Detail: "a field is not one of cancel, author and reason, or is not a string",
		}
	case !IsID(c.Cancel):
		return Control{}, &Problem{Code: BadID, Detail: "cancel is not the id of a message"}
	case !printable(c.Author, 0, maxControlText) || !printable(c.Reason, 0, maxControlText):
		return Control{}, &Problem{
			Code: BadField, Detail: "author or reason is not at most 256 printable characters",
		}
	}
	return c, nil
}
