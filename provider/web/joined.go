package web

import (
	"net/url"
	"regexp"
	"strings"
)

// Some vendors sign the names and values of a form one behind the other, with nothing between them. The same text can be cut
// into other names and values then. These functions read single values from the text itself, so that a form that was
// cut otherwise is found out.

// OnlyValue returns what a pattern with one group finds in a text: nothing, or one value, however often; false for
// several.
func OnlyValue(pattern *regexp.Regexp, text string) (value string, ok bool) {
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		if value != "" && found[1] != value {
			return "", false
		}
		value = found[1]
	}
	return value, true
}

// joinedNumber is an E.164 number or a short code at the beginning of a text.
var joinedNumber = regexp.MustCompile(`^\+?[0-9]{3,15}`)

// LeadingValue returns the value of a field with which a text begins. A number ends where the next name begins, because names
// begin with a capital letter. What is no number ends at the first of the names that may follow.
func LeadingValue(text string, next []string) string {
	if at := joinedNumber.FindStringIndex(text); at != nil && (at[1] == len(text) || text[at[1]] >= 'A' && text[at[1]] <= 'Z') {
		return text[:at[1]]
	}
	end := len(text)
	for _, name := range next {
		if at := strings.Index(text, name); at >= 0 {
			end = min(end, at)
		}
	}
	return text[:end]
}

// IsCallbackURL reports whether an address is that of our callbacks: the one that is configured, with or without a key. The end of
// any other one could be something that was signed behind the address. Without a configured address, none has a query.
func IsCallbackURL(address, configured string) bool {
	if configured == "" {
		return !strings.Contains(address, "?")
	}
	given, err := url.Parse(address)
	if err != nil {
		return false
	}
	plain, err := url.Parse(configured)
	if err != nil || given.Path != plain.Path {
		return false
	}
	keyed, err := url.Parse(WithKey(configured, CallbackKey(address)))
	return err == nil && (given.RawQuery == plain.RawQuery || given.RawQuery == keyed.RawQuery)
}
