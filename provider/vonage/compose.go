package vonage

import (
	"errors"
	"regexp"
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/sms"
)

var errSender = errors.New("the message names no sender, and the channel has no from")

// outgoing is what both APIs send of a submission.
type outgoing struct {
	from, to string
	encoding string // text or unicode
}

// prepare refuses what neither API can send. Both want numbers without the plus. The encoding is named so that Vonage
// cuts and bills what package sms counts.
func (c *Config) prepare(s *provider.Submission) (outgoing, error) {
	o := outgoing{from: s.From, to: strings.TrimPrefix(s.To, "+"), encoding: "text"}
	if o.from == "" {
		o.from = c.From
	}
	if o.from == "" {
		return outgoing{}, errSender
	}
	if longNumber.MatchString(strings.TrimPrefix(o.from, "+")) {
		o.from = strings.TrimPrefix(o.from, "+")
	}
	if sms.Count(s.Text, sms.Reference8).Alphabet != sms.GSM7 {
		o.encoding = "unicode"
	}
	return o, nil
}

// longNumber is an international number without its plus; short codes have fewer digits.
var longNumber = regexp.MustCompile(`^[0-9]{7,15}$`)

// international puts the plus before a number that Vonage writes without one.
func international(number string) string {
	if longNumber.MatchString(number) {
		return "+" + number
	}
	return number
}

// ourKey is the form of provider.Submission.Key.
var ourKey = regexp.MustCompile(`^[0-9a-f]{32}$`)
