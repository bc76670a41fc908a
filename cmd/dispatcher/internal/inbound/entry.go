package inbound

import (
	"crypto/rand"
	"strings"
	"time"
	"unicode/utf8"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// Bounds of what is stored. No handset can send so much: a text has at most 255 parts.
const (
	longestText  = 64 << 10 // bytes
	longestField = 256      // bytes of a number or a reference
)

// longestShortCode is how many digits a short code has at most in common use: it is nobody's
// number.
const longestShortCode = 6

// subscriber is the number of a sender as messages to him have it: some peers give it as it is
// written within their country. e164 knows how; short codes and names stay as they are.
func subscriber(from string, e164 func(string) string) string {
	if len(from) <= longestShortCode || strings.Trim(from, "+0123456789") != "" {
		return from
	}
	return e164(from)
}

// newInbound gives a message its id and makes its texts fit to be stored.
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

// entry is what one caller wants to have booked together, and waits for.
type entry struct {
	in   []ledger.Inbound
	done chan error // capacity 1: gets nil once all of it is durable
}
