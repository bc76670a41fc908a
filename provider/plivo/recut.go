package plivo

import (
	"net/url"
	"regexp"
	"strings"

	"dispatcher/provider/web"
)

// V3 signs the names and values of a form one behind the other, with nothing between them, and then a point and the nonce.
// Whoever has captured a callback could cut the same text into other fields, or into another nonce, under the same
// signature. A nonce has no point, so that it begins behind the last one. What a form means is taken from the signed text
// alone, and a form that reads otherwise is refused.

var (
	// aNonce has no point.
	aNonce = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)
	// aName is what Plivo calls a field.
	aName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_]*$`)
	// aUUID names a message.
	aUUID = regexp.MustCompile(`^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

	parents  = regexp.MustCompile(`ParentMessageUUID[0-9A-Fa-f-]{36}`)
	messages = regexp.MustCompile(`MessageUUID([0-9A-Fa-f-]{36})`)
	statuses = regexp.MustCompile(`Status([a-z_-]+)`)
	failures = regexp.MustCompile(`ErrorCode([0-9]+)`)

	// afterFrom and afterTo are names that follow From and To.
	afterFrom = []string{"MCC", "MNC", "Media", "MessageIntent", "MessageTime", "MessageUUID"}
	afterTo   = []string{"TotalAmount", "TotalRate", "Type", "Units"}
)

// agrees reports whether a form is the one cut of its signed text that is believed.
//
// A message of a subscriber has, in the order of the names, From, MessageUUID, Text, To and what it cost. Only Text is
// written by a stranger. It begins at the first of that word behind the message's UUID and ends at the last To, because what
// stands before and behind has no other one. A status callback has no Text, and nothing in it that a stranger writes. Its
// sender, which stands before the UUID, may be called like a field, TextLocal for example: where the other fields are
// looked for, it is left out.
func agrees(form url.Values, signed string) bool {
	for name, values := range form {
		if len(values) != 1 || !aName.MatchString(name) {
			return false
		}
	}
	uuid := messages.FindStringIndex(signed) // the first one: ParentMessageUUID stands behind it
	if uuid == nil {
		return false
	}
	before, from, hasFrom := strings.Cut(signed[:uuid[0]], "From")
	behind, text, isInbound := strings.Cut(signed[uuid[1]:], "Text")
	if isInbound != form.Has("Text") {
		return false
	}
	if isInbound {
		end := lastTo(text)
		if end < 0 || !hasFrom || form.Get("Text") != text[:end] || form.Get("From") != web.LeadingValue(from, afterFrom) ||
			form.Get("To") != web.LeadingValue(text[end+len("To"):], afterTo) {
			return false
		}
	}
	fields := before + signed[uuid[0]:uuid[1]] + parents.ReplaceAllString(behind, "")
	for name, words := range map[string]*regexp.Regexp{"MessageUUID": messages, "Status": statuses, "ErrorCode": failures} {
		if value, ok := web.OnlyValue(words, fields); !ok || value != form.Get(name) {
			return false
		}
	}
	return true
}

// lastTo is where the last To of a text begins that is not the beginning of what a message cost; negative without one.
func lastTo(text string) int {
	for end := len(text); ; {
		end = strings.LastIndex(text[:end], "To")
		if end < 0 || !strings.HasPrefix(text[end:], "Total") {
			return end
		}
	}
}
