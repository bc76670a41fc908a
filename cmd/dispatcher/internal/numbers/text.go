package numbers

import "regexp"

// inText finds a plus and eight digits, the fewest that a number in E.164 has. Spaces and marks may
// stand between the digits, as in +44 (0)7700-900.123.
var inText = regexp.MustCompile(`\+(?:[\s()./–-]*\d){8}`)

// In reports whether a text has a phone number with plus and country code.
func In(text string) bool { return inText.MatchString(text) }
