package smpp

import (
	"time"
	"unicode/utf8"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// maxSegments is the most that the one octet of a concatenation header can count
// (3GPP TS 23.040 section 9.2.3.24.1).
const maxSegments = 255

// plan is a submission ready to be encoded: what its parts have in common and
// which of them are sent.
type plan struct {
	common    pdu.Message // without text
	text      string      // the whole text; used when segments is nil
	segments  []string    // nil for a message that travels in one PDU
	payload   bool        // the one PDU carries it as message_payload
	indices   []int       // of the segments to send
	reference uint16
	way       LongMessages
	alphabet  textAlphabet
}

// parts is how many PDUs the plan sends.
func (p *plan) parts() int {
	if p.segments == nil {
		return 1
	}
	return len(p.indices)
}

// plan decides how s travels. Errors are faults.
func (c *Config) plan(s provider.Submission, now time.Time) (p plan, err error) {
	if p.common.Source, err = c.source(s.From); err != nil {
		return p, err
	}
	if p.common.Dest, err = c.destination(s.To); err != nil {
		return p, err
	}
	if p.common.ValidityPeriod, err = c.validityPeriod(s.Validity, now); err != nil {
		return p, err
	}
	p.common.ServiceType = c.ServiceType
	p.common.RegisteredDelivery = c.RegisteredDelivery
	p.text, p.reference, p.way = s.Text, s.Reference, c.LongMessages
	if p.way == MessagePayload && s.Parts != nil {
		// Segments that an earlier attempt got accepted must not be sent again, which
		// they would be inside of the whole text.
		p.way = UDH8
	}
	return p, p.cut(c.Alphabet, s.Parts)
}

// Segments counts the billed segments of a text as this channel sends it: like the
// adapter itself, and for message_payload like the SMSC that cuts the text.
func (c *Config) Segments(text string) int {
	reference := sms.Reference8
	if c.LongMessages == UDH16 {
		reference = sms.Reference16
	}
	size := sms.Count(text, reference)
	if size.Alphabet == sms.GSM7 && chooseAlphabet(c.Alphabet, size.Alphabet, text) == textUCS2 {
		return len(splitUCS2(text, reference))
	}
	return size.Segments
}

// cut chooses the alphabet and, for a long text, the segments.
func (p *plan) cut(behindZero Alphabet, parts []int) error {
	reference := sms.Reference8
	if p.way == UDH16 {
		reference = sms.Reference16
	}
	size := sms.Count(p.text, reference)
	p.alphabet = chooseAlphabet(behindZero, size.Alphabet, p.text)
	p.common.DataCoding = p.alphabet.coding()
	switch {
	case p.alphabet == textUCS2 && size.Alphabet == sms.GSM7:
		p.segments = splitUCS2(p.text, reference)
	case size.Segments > 1:
		p.segments = sms.Split(p.text, reference).Segments
	}
	p.payload = p.way == MessagePayload && len(p.segments) > 1
	if p.payload || len(p.segments) == 1 {
		p.segments = nil
	}
	if len(p.segments) > maxSegments {
		return faultTooLong
	}
	return p.choose(parts)
}

// choose holds that the parts asked for exist, ascending.
func (p *plan) choose(parts []int) error {
	if p.segments == nil {
		if len(parts) > 1 || len(parts) == 1 && parts[0] != 0 {
			return faultParts
		}
		return nil
	}
	if parts == nil {
		p.indices = make([]int, len(p.segments))
		for i := range p.indices {
			p.indices[i] = i
		}
		return nil
	}
	for i, index := range parts {
		if index < 0 || index >= len(p.segments) || i > 0 && index <= parts[i-1] {
			return faultParts
		}
	}
	if len(parts) == 0 {
		return faultParts
	}
	p.indices = parts
	return nil
}

// encode writes the i-th PDU of the plan into c, with a sequence_number of zero.
func (p *plan) encode(c *call, i int) (err error) {
	m := &c.submit.Message
	tlvs := m.TLVs[:0]
	*m = p.common
	m.TLVs = tlvs
	c.text = c.text[:0]
	if p.segments == nil {
		err = p.encodeWhole(c)
	} else {
		err = p.encodeSegment(c, p.indices[i])
	}
	if err != nil {
		return faultEncoding
	}
	if c.frame, err = pdu.Append(c.frame[:0], pdu.StatusOK, 0, &c.submit); err != nil {
		return faultTooLong
	}
	return nil
}

func (p *plan) encodeWhole(c *call) (err error) {
	if c.text, err = p.alphabet.append(c.text, p.text); err != nil {
		return err
	}
	m := &c.submit.Message
	if p.payload {
		m.TLVs = append(m.TLVs, pdu.TLV{Tag: pdu.TagMessagePayload, Value: c.text})
		return nil
	}
	m.ShortMessage = c.text
	return nil
}

func (p *plan) encodeSegment(c *call, index int) (err error) {
	m := &c.submit.Message
	total, number := byte(len(p.segments)), byte(index+1)
	switch p.way {
	case UDH16: // 3GPP TS 23.040 section 9.2.3.24.8
		m.ESMClass |= pdu.ESMClassUDHI
		c.text = append(c.text, 6, 8, 4, byte(p.reference>>8), byte(p.reference), total, number)
	case SAR: // section 5.3.2.22 to 24
		m.TLVs = append(m.TLVs, pdu.Uint16(pdu.TagSARMsgRefNum, p.reference),
			pdu.Uint8(pdu.TagSARTotalSegments, total), pdu.Uint8(pdu.TagSARSegmentSeqnum, number))
	case UDH8, MessagePayload: // 3GPP TS 23.040 section 9.2.3.24.1
		m.ESMClass |= pdu.ESMClassUDHI
		c.text = append(c.text, 5, 0, 3, byte(p.reference), total, number)
	}
	c.text, err = p.alphabet.append(c.text, p.segments[index])
	m.ShortMessage = c.text
	return err
}

// validityPeriod writes when the message loses its use; see Config.Validity.
func (c *Config) validityPeriod(until, now time.Time) (string, error) {
	switch {
	case until.IsZero() && c.Validity == 0:
		return "", nil
	case until.IsZero():
		until = now.Add(c.Validity)
	case !until.After(now):
		return "", faultExpired
	}
	if c.ValidityFormat == Relative {
		return pdu.FormatPeriod(until.Sub(now)), nil
	}
	return pdu.FormatTime(until), nil
}

// textAlphabet is what the octets of one message are written in.
type textAlphabet uint8

const (
	textGSM7  textAlphabet = iota
	textBytes              // Latin1 or ASCII, one octet for each character
	textUCS2
)

// chooseAlphabet keeps the alphabet that segments were counted in, unless the
// characters behind data_coding 0 at this SMSC lack some of the text's.
func chooseAlphabet(behindZero Alphabet, counted sms.Alphabet, text string) textAlphabet {
	switch {
	case counted == sms.UCS2:
		return textUCS2
	case behindZero == GSM7:
		return textGSM7
	case fits(text, behindZero):
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

func (a textAlphabet) coding() byte {
	if a == textUCS2 {
		return pdu.CodingUCS2
	}
	return pdu.CodingDefault
}

func (a textAlphabet) append(dst []byte, s string) ([]byte, error) {
	switch a {
	case textGSM7:
		return sms.AppendGSM7(dst, s)
	case textUCS2:
		return sms.AppendUCS2(dst, s), nil
	case textBytes:
		for _, r := range s {
			dst = append(dst, byte(r))
		}
	}
	return dst, nil
}

// splitUCS2 cuts a text of GSM-7 characters, each of which is one UCS-2 unit, for
// SMSCs that have no other way to take it.
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
