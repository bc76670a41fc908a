package smpp

import (
	"encoding/hex"

	"dispatcher/provider/smpp/pdu"
)

// keyDigits is the length of Submission.Key.
const keyDigits = 32

// appendKey appends the parameter that carries Submission.Key, when the channel has one. Its octets live in c.
func (p *plan) appendKey(tlvs pdu.TLVs, c *call) pdu.TLVs {
	if p.keyTag == 0 || p.key == "" {
		return tlvs
	}
	c.key = append(c.key[:0], p.key...)
	if p.keyTag == pdu.TagUserMessageRef {
		n, err := hex.Decode(c.key, c.key[:min(4, len(c.key))])
		if err != nil || n != 2 {
			return tlvs // only tests have keys that are none
		}
		return append(tlvs, pdu.TLV{Tag: p.keyTag, Value: c.key[:2]})
	}
	c.key = append(c.key, 0)
	return append(tlvs, pdu.TLV{Tag: p.keyTag, Value: c.key})
}

// keyOf returns the key that a receipt carries in the parameter, in whatever case; empty when it has none that
// can be one of ours.
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
