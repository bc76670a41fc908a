package telnyx

import (
	"strings"

	"dispatcher/provider/sms"
)

// foreign are the characters of GSM-7 that the GSM-7 of Telnyx lacks, by
// https://developers.telnyx.com/docs/messaging/messages/message-encoding: a text with one of them goes out, and is billed, in
// UTF-16. Of the section sign the versions of that page disagree.
const foreign = "Ç€§¤ΔΦΓΛΩΠΨΣΘΞ\f"

// Segments is how many parts Telnyx bills for a text as this package sends it.
func Segments(text string) int { return measure(text).Segments }

// measure counts a text in the alphabet that it is sent in.
func measure(text string) sms.Size {
	if strings.ContainsAny(text, foreign) {
		return sms.CountUCS2(text, sms.Reference8)
	}
	return sms.Count(text, sms.Reference8)
}
