package smpp

import (
	"encoding/hex"
	"time"
	"unicode/utf8"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// textAlphabet is what the octets of one message are written in.
type textAlphabet uint8

const (
	textGSM7  textAlphabet = iota
	textBytes              // Latin1 or ASCII, one octet for each character
	textUCS2
)

// chooseAlphabet keeps the alphabet that segments were counted in, unless data_coding 0 at this
// SMSC lacks some characters of the text.
func chooseAlphabet(defaultAlphabet Alphabet, counted sms.Alphabet, text string) textAlphabet {
	switch {
	case counted == sms.UCS2:
		return textUCS2
	case defaultAlphabet == GSM7:
		return textGSM7
	case fits(text, defaultAlphabet):
		return textBytes
	default:
		return textUCS2
	}
}

func fits(text string, a Alphabet) bool {
	last := rune(0x7F)
	if a == Latin1 {
		last = 0xFF
	}
	for _, r := range text {
		if r > last {
			return false
		}
	}
	return true
}

// appendText writes a piece of the text in the octets of the plan.
func (p *plan) appendText(dst []byte, piece string) ([]byte, error) {
	switch p.alphabet {
	case textGSM7:
		return p.shift.Append(dst, piece)
	case textUCS2:
		return sms.AppendUCS2(dst, piece), nil
	case textBytes:
		for _, r := range piece {
			dst = append(dst, byte(r))
		}
	}
	return dst, nil
}

// splitUCS2 splits a text of GSM-7 characters, each of which is one UCS-2 unit, for SMSCs that
// accept it in no other encoding.
func splitUCS2(text string, reference sms.Reference) []string {
	single, each := sms.Capacity(sms.UCS2, reference)
	if utf8.RuneCountInString(text) <= single {
		return []string{text}
	}
	var segments []string
	start, units := 0, 0
	for i := range text {
		if units == each {
			segments = append(segments, text[start:i])
			start, units = i, 0
		}
		units++
	}
	return append(segments, text[start:])
}

// Codings that carry a message class (section 5.2.19, which points to 3GPP TS 23.038 section 4).
// For the default alphabet it is the group "message class", for UCS-2 one value of "general data
// coding".
const (
	codingGSMWithClass  byte = 0xF0
	codingUCS2WithClass byte = 0x18
)

// coding is the data_coding of a text; see Config.DefaultCoding.
func (c *Config) coding(a textAlphabet) byte {
	fixed, plain, classed := c.DefaultCoding, pdu.CodingDefault, codingGSMWithClass
	if a == textUCS2 {
		fixed, plain, classed = c.UCS2Coding, pdu.CodingUCS2, codingUCS2WithClass
	}
	switch {
	case fixed != nil:
		return *fixed
	case c.MessageClass != nil:
		return classed | *c.MessageClass
	}
	return plain
}

// keyDigits is the length of Submission.Key.
const keyDigits = 32

// appendKey appends the parameter that carries Submission.Key, if the channel has one. Its octets
// live in c.
func (p *plan) appendKey(tlvs pdu.TLVs, c *call) pdu.TLVs {
	if p.keyTag == 0 || p.key == "" {
		return tlvs
	}
	c.key = append(c.key[:0], p.key...)
	if p.keyTag == pdu.TagUserMessageRef {
		n, err := hex.Decode(c.key, c.key[:min(4, len(c.key))])
		if err != nil || n != 2 {
			return tlvs // only keys of tests are not hexadecimal
		}
		return append(tlvs, pdu.TLV{Tag: p.keyTag, Value: c.key[:2]})
	}
	c.key = append(c.key, 0)
	return append(tlvs, pdu.TLV{Tag: p.keyTag, Value: c.key})
}

// keyOf returns the key in the parameter of a receipt, in any case; empty if it cannot be one of
// ours.
func keyOf(tlvs pdu.TLVs, tag pdu.Tag) string {
	if tag == 0 {
		return ""
	}
	value := []byte(tlvs.Text(tag))
	if len(value) != keyDigits {
		return ""
	}
	for i, b := range value {
		switch {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'f':
		case b >= 'A' && b <= 'F':
			value[i] = b | 0x20
		default:
			return ""
		}
	}
	return string(value)
}

// validityPeriod writes when the message expires. An absolute time is the database's, a relative
// one counts on this process's clock.
func (c *Config) validityPeriod(s *provider.Submission, now time.Time) (string, error) {
	longest, ends := c.longestValidity(), s.Ends()
	if ends.IsZero() {
		return "", nil
	}
	left := ends.Sub(now)
	switch {
	case left <= c.Schedule:
		return "", faultExpired
	case left > longest:
		return c.moment(now.Add(longest), now), nil
	case c.ValidityFormat == Relative:
		return pdu.FormatPeriod(left), nil
	}
	if !s.Validity.IsZero() {
		ends = s.Validity
	}
	return c.moment(ends, now), nil
}

// renewValidity updates the relative validity in a frame that is about to leave, because the
// message may have waited since it was encoded.
func (c *call) renewValidity(cfg *Config, now time.Time) {
	if c.validityAt > 0 && !c.expires.IsZero() {
		copy(c.frame[c.validityAt:],
			pdu.FormatPeriod(min(c.expires.Sub(now), cfg.longestValidity())))
	}
}

// longestValidity bounds every validity_period.
func (c *Config) longestValidity() time.Duration {
	if c.LongestValidity > 0 {
		return c.LongestValidity
	}
	return DefaultLongestValidity
}

// scheduleTime writes schedule_delivery_time; empty for immediate delivery.
func (c *Config) scheduleTime(now time.Time) string {
	if c.Schedule == 0 {
		return ""
	}
	return c.moment(now.Add(c.Schedule), now)
}

// moment writes a time as the channel's ValidityFormat says.
func (c *Config) moment(at, now time.Time) string {
	if c.ValidityFormat == Relative {
		return pdu.FormatPeriod(at.Sub(now))
	}
	return pdu.FormatTime(at)
}
