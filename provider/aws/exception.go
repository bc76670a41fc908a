package aws

import (
	"bytes"
	"encoding/json"
	"strings"

	"dispatcher/provider/web"
)

// exception is an answer that is no success, as far as it tells what to do. AWS's own words for people are not read:
// they may repeat the number.
type exception struct {
	name     string
	reason   reason
	fields   []string // those that are not valid; one whose name cannot be read is ""
	resource resource
}

// nameless is the name of an exception that says none.
const nameless = "UnknownError"

// readException reads an exception; false when the body is something else than JSON. An empty body is enough, because the header or
// the status may say it all.
func readException(a *web.Answer) (*exception, bool) {
	said := members{}
	if len(bytes.TrimSpace(a.Body)) > 0 {
		var ok bool
		if said, ok = readMembers(a.Body); !ok {
			return nil, false
		}
	}
	e := &exception{
		name: nameless, reason: reason(said.text("Reason")), fields: said.fields(), resource: resource(said.text("ResourceType")),
	}
	for _, shown := range []string{a.Header.Get("X-Amzn-Errortype"), said.text("__type"), said.text("code")} {
		if short := bare(shown); short != "" {
			e.name = short
			break
		}
	}
	return e, true
}

// bare is the name of an exception without the namespace before it and the address behind it:
// "com.amazonaws.pinpointsmsvoicev2#ConflictException:http://..." (AWS JSON 1.0 protocol, "Operation error serialization").
func bare(shown string) string {
	shown, _, _ = strings.Cut(shown, ":")
	if _, name, found := strings.Cut(shown, "#"); found {
		return name
	}
	return shown
}

// readID reads the id of a message that was taken; empty when there is none.
func readID(body []byte) string {
	said, _ := readMembers(body)
	return said.text("MessageId")
}

// members are those of a JSON object. Each is read by itself: one of another type than expected is empty, and does not take
// the others with it.
type members map[string]json.RawMessage

// readMembers reads a body that is a JSON object, or null, and nothing else.
func readMembers(body []byte) (members, bool) {
	var m members
	err := json.Unmarshal(body, &m)
	return m, err == nil
}

func (m members) text(name string) string {
	var text string
	_ = json.Unmarshal(m[name], &text) // what is no text stays empty
	return text
}

// fields are the names in the list of fields that are not valid.
func (m members) fields() []string {
	var list []json.RawMessage
	_ = json.Unmarshal(m["Fields"], &list) // what is no list stays empty
	names := make([]string, len(list))
	for i, field := range list {
		said, _ := readMembers(field)
		names[i] = said.text("Name")
	}
	return names
}
