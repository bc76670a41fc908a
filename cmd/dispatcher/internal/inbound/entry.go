package inbound

import (
	"crypto/rand"
	"strings"
	"time"
	"unicode/utf8"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// Bounds of what is stored. No message is longer: a text has at most 255 parts.
const (
	longestText  = 64 << 10 // bytes
	longestField = 256      // bytes of a number or a reference
)

// longestShortCode is the largest number of digits of a short code. A sender of that length is not
// the number of a subscriber.
const longestShortCode = 6

// subscriber is the number of a sender in the form that recipients have. Some providers give it in
// national form, which e164 converts. Short codes and names stay as they are.
func subscriber(from string, e164 func(string) string) string {
	if len(from) <= longestShortCode || strings.Trim(from, "+0123456789") != "" {
		return from
	}
	return e164(from)
}

// newInbound gives a message its id, and makes its texts storable.
func newInbound(
	channel string, in *provider.Inbound, e164 func(string) string, now time.Time,
) ledger.Inbound {
	at := in.At
	if at.IsZero() {
		at = now
	}
	return ledger.Inbound{
		ID: rand.Text(), Channel: channel, Reference: storable(in.Reference, longestField),
		From: subscriber(storable(in.From, longestField), e164), To: storable(in.To, longestField),
		Text:  storable(in.Text, longestText),
		Group: in.Group, Part: in.Part, Parts: in.Parts, At: at, SentAt: in.SentAt,
	}
}

// storable is a text that PostgreSQL takes: UTF-8 without zero bytes, of bounded length.
func storable(s string, longest int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if len(s) <= longest {
		return s
	}
	for longest > 0 && !utf8.RuneStart(s[longest]) {
		longest--
	}
	return s[:longest]
}

// entry holds the messages of one caller, which waits until they are recorded.
type entry struct {
	in   []ledger.Inbound
	done chan error // capacity 1: gets nil once all of it is durable
}
