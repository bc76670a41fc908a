package smpp

import (
	"cmp"
	"fmt"

	"dispatcher/provider/sms"
)

// DefaultKind is Config.Kind unless set.
const DefaultKind = "smpp"

// Cut is the fingerprint of a text as this channel would cut it to send some of its parts: the Result.Cut of an attempt
// that sent others of them, unless settings that decide it have changed in between.
func (c *Config) Cut(text string) string {
	p := plan{text: text, way: c.wayOfParts()}
	p.cut(c)
	return p.fingerprint(c)
}

// wayOfParts is how parts travel that are sent without the others. Segments that an earlier attempt got accepted
// must not be sent again, which they would be inside of the whole text.
func (c *Config) wayOfParts() LongMessages {
	if c.LongMessages == MessagePayload {
		return UDH8
	}
	return c.LongMessages
}

// fingerprint tells how the text of a plan was cut. data_coding and the like are left out: what a channel
// writes for an alphabet does not decide which words are in which part.
func (p *plan) fingerprint(c *Config) string {
	how := fmt.Sprintf("%s %s %s", cmp.Or(c.Kind, DefaultKind), p.alphabet, p.way)
	if p.shift != (sms.Shift{}) {
		how = fmt.Sprintf("%s %s %s", how, p.shift.Locking, p.shift.Single)
	}
	if p.segments == nil {
		return sms.Fingerprint(how, []string{p.text})
	}
	return sms.Fingerprint(how, p.segments)
}

var textAlphabetWords = [...]string{textGSM7: "gsm7", textBytes: "bytes", textUCS2: "ucs2"}

// String returns the word that fingerprints have.
func (a textAlphabet) String() string { return textAlphabetWords[a] }

var longMessagesWords = [...]string{UDH8: "udh8", UDH16: "udh16", SAR: "sar", MessagePayload: "message_payload"}

// String returns the word of the routing document.
func (l LongMessages) String() string {
	if int(l) < len(longMessagesWords) {
		return longMessagesWords[l]
	}
	return fmt.Sprintf("LongMessages(%d)", uint8(l))
}
