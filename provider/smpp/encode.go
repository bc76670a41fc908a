package smpp

import (
	"cmp"
	"fmt"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/sms"
)

// maxSegments is the most that one octet of a concatenation header can count (3GPP TS 23.040
// section 9.2.3.24.1).
const maxSegments = 255

// plan is a submission ready to be encoded: what its parts have in common, and which are sent.
type plan struct {
	common           pdu.Message // without text; TLVs are those of the channel
	text             string      // the whole text; used when segments is nil
	segments         []string    // nil for a message in one PDU
	payload          bool        // the one PDU carries it as message_payload
	indices          []int       // of the segments to send
	reference        uint16
	way              LongMessages
	alphabet         textAlphabet
	shift            sms.Shift      // the tables of a text in textGSM7
	expires          time.Time      // Submission.Deadline
	relativeValidity bool           // validity_period is relative, see FormatPeriod
	source           messageAddress // of common.Source
	key              string         // Submission.Key
	keyTag           pdu.Tag        // the parameter that carries it; zero for none
}

// parts is how many PDUs the plan sends.
func (p *plan) parts() int {
	if p.segments == nil {
		return 1
	}
	return len(p.indices)
}

// plan decides how s is sent. Its errors are faults.
func (c *Config) plan(s provider.Submission, now time.Time) (p plan, err error) {
	rule := c.sourceRule(s.From, s.To)
	if p.common.Source, err = c.sourceBy(rule, s.From); err != nil {
		return p, err
	}
	p.source = c.messageAddressOf(rule, &s)
	if p.common.Dest, err = c.destination(s.To); err != nil {
		return p, err
	}
	if p.common.ValidityPeriod, err = c.validityPeriod(&s, now); err != nil {
		return p, err
	}
	p.expires, p.relativeValidity = s.Deadline, c.ValidityFormat == Relative
	p.common.ScheduleDeliveryTime = c.scheduleTime(now)
	p.common.ServiceType, p.common.ProtocolID, p.common.PriorityFlag = c.ServiceType, c.ProtocolID,
		c.Priority
	p.common.RegisteredDelivery = c.RegisteredDelivery
	p.common.TLVs, p.key, p.keyTag = c.TLVs, s.Key, c.KeyTLV
	p.text, p.reference, p.way = s.Text, s.Reference, c.LongMessages
	if s.Parts != nil {
		p.way = c.wayOfParts()
	}
	p.cut(c)
	if s.Parts != nil && s.Cut != p.fingerprint(c) {
		return p, faultCut
	}
	if err = p.choose(s.Parts); err != nil {
		return p, err
	}
	p.common.DataCoding = c.coding(p.alphabet)
	return p, nil
}

// Segments counts the billed segments of a text on this channel: as the adapter splits it, or for
// message_payload as the SMSC does.
func (c *Config) Segments(text string) int {
	rules := c.rules(c.LongMessages)
	size := rules.Count(text)
	if size.Alphabet == sms.GSM7 && chooseAlphabet(c.Alphabet, size.Alphabet, text) == textUCS2 {
		return len(splitUCS2(text, rules.Reference))
	}
	return size.Segments
}

// rules are how texts are counted and cut when sent that way.
func (c *Config) rules(way LongMessages) sms.Rules {
	rules := sms.Rules{Tables: c.Tables}
	if way == UDH16 {
		rules.Reference = sms.Reference16
	}
	return rules
}

// cut chooses the alphabet, its tables and, for a long text, the segments.
func (p *plan) cut(c *Config) {
	rules := c.rules(p.way)
	size := rules.Count(p.text)
	p.alphabet, p.shift = chooseAlphabet(c.Alphabet, size.Alphabet, p.text), size.Shift
	if p.shift != (sms.Shift{}) && (p.way == SAR || p.way == MessagePayload) {
		// The tables need our header. An SMSC that writes its own would not merge the two.
		p.way = UDH8
	}
	switch {
	case p.alphabet == textUCS2 && size.Alphabet == sms.GSM7:
		p.segments = splitUCS2(p.text, rules.Reference)
	case size.Segments > 1:
		p.segments = rules.Split(p.text).Segments
	}
	p.payload = p.way == MessagePayload && len(p.segments) > 1
	if p.payload || len(p.segments) == 1 {
		p.segments = nil
	}
}

// choose checks that the requested parts exist, in ascending order, and that a header can count
// them.
func (p *plan) choose(parts []int) error {
	if len(p.segments) > maxSegments {
		return faultTooLong
	}
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
	tlvs := append(m.TLVs[:0], p.common.TLVs...)
	*m = p.common
	m.TLVs = p.appendKey(tlvs, c)
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
	if p.relativeValidity && m.ValidityPeriod != "" {
		c.validityAt = pdu.ValidityOffset(m)
	}
	return nil
}

func (p *plan) encodeWhole(c *call) (err error) {
	m := &c.submit.Message
	if p.shift != (sms.Shift{}) {
		c.text = p.appendHeader(c.text, m, 0)
	}
	if c.text, err = p.appendText(c.text, p.text); err != nil {
		return err
	}
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
	if p.way == SAR { // section 5.3.2.22 to 24
		// The SMSC writes a header with a wider number into parts that leave no room for it.
		m.TLVs = append(m.TLVs, pdu.Uint16(pdu.TagSARMsgRefNum, p.reference&0xFF),
			pdu.Uint8(pdu.TagSARTotalSegments, total), pdu.Uint8(pdu.TagSARSegmentSeqnum, number))
	} else {
		c.text = p.appendHeader(c.text, m, number)
	}
	c.text, err = p.appendText(c.text, p.segments[index])
	m.ShortMessage = c.text
	return err
}

// appendHeader writes the user data header of the part with that number, counted from 1; zero is a
// message of one part.
func (p *plan) appendHeader(dst []byte, m *pdu.Message, number byte) []byte {
	m.ESMClass |= pdu.ESMClassUDHI
	start, total := len(dst), byte(len(p.segments))
	dst = append(dst, 0)
	switch {
	case number == 0:
	case p.way == UDH16: // 3GPP TS 23.040 section 9.2.3.24.8
		dst = append(dst, concatenation16, 4, byte(p.reference>>8), byte(p.reference), total,
			number)
	default: // section 9.2.3.24.1
		dst = append(dst, concatenation8, 3, byte(p.reference), total, number)
	}
	dst = p.shift.AppendElements(dst)
	dst[start] = byte(len(dst) - start - 1)
	return dst
}

// DefaultKind is the default of Config.Kind.
const DefaultKind = "smpp"

// Cut is the fingerprint of a text as this channel would split it to send some of its parts. It
// equals the Result.Cut of an earlier attempt unless settings that affect the split have changed.
func (c *Config) Cut(text string) string {
	p := plan{text: text, way: c.wayOfParts()}
	p.cut(c)
	return p.fingerprint(c)
}

// wayOfParts is how the remaining parts are sent. It is never message_payload, which would send the
// accepted parts again.
func (c *Config) wayOfParts() LongMessages {
	if c.LongMessages == MessagePayload {
		return UDH8
	}
	return c.LongMessages
}

// fingerprint identifies how the text was split. data_coding and similar fields are left out: they
// do not affect which words are in which part.
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

// String returns the word used in fingerprints.
func (a textAlphabet) String() string { return textAlphabetWords[a] }

var longMessagesWords = [...]string{
	UDH8: "udh8", UDH16: "udh16", SAR: "sar", MessagePayload: "message_payload",
}

// String returns the word of the routing document.
func (l LongMessages) String() string {
	if int(l) < len(longMessagesWords) {
		return longMessagesWords[l]
	}
	return fmt.Sprintf("LongMessages(%d)", uint8(l))
}
