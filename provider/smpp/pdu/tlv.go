package pdu

import (
	"bytes"
	"encoding/binary"
)

// Tag names an optional parameter (section 5.3.2).
type Tag uint16

// The tags that the dispatcher reads or writes. Others pass through unchanged.
const (
	TagReceiptedMessageID Tag = 0x001E
	TagUserMessageRef     Tag = 0x0204
	TagSARMsgRefNum       Tag = 0x020C
	TagSARTotalSegments   Tag = 0x020E
	TagSARSegmentSeqnum   Tag = 0x020F
	TagSCInterfaceVersion Tag = 0x0210
	TagNetworkErrorCode   Tag = 0x0423
	TagMessagePayload     Tag = 0x0424
	TagMoreMessagesToSend Tag = 0x0426
	TagMessageState       Tag = 0x0427
	TagCongestionState    Tag = 0x0428 // of SMPP 5.0, section 4.8.4.18
)

// optionalParameter is the field of every error in the optional parameters.
const optionalParameter = "optional parameter"

// TLV is one optional parameter. Value may alias the frame that it was read from.
type TLV struct {
	Tag   Tag
	Value []byte
}

// TLVs are the optional parameters of a PDU in wire order.
type TLVs []TLV

// Get returns the value of the first parameter with that tag.
func (t TLVs) Get(tag Tag) ([]byte, bool) {
	for _, p := range t {
		if p.Tag == tag {
			return p.Value, true
		}
	}
	return nil, false
}

// Uint returns the value of a parameter of one or two octets as a number.
func (t TLVs) Uint(tag Tag) (uint16, bool) {
	v, ok := t.Get(tag)
	switch {
	case ok && len(v) == 1:
		return uint16(v[0]), true
	case ok && len(v) == 2:
		return binary.BigEndian.Uint16(v), true
	}
	return 0, false
}

// Uint8 returns a parameter of one octet.
func Uint8(tag Tag, v uint8) TLV { return TLV{Tag: tag, Value: []byte{v}} }

// Uint16 returns a parameter of two octets.
func Uint16(tag Tag, v uint16) TLV {
	return TLV{Tag: tag, Value: binary.BigEndian.AppendUint16(nil, v)}
}

// CString returns a parameter that holds a C-Octet String.
func CString(tag Tag, s string) TLV { return TLV{Tag: tag, Value: append([]byte(s), 0)} }

// Text returns the value of a parameter that holds a C-Octet String or an Octet String, up to the
// first NUL. It is empty if there is no such parameter.
func (t TLVs) Text(tag Tag) string {
	v, _ := t.Get(tag)
	if end := bytes.IndexByte(v, 0); end >= 0 {
		v = v[:end]
	}
	return string(v)
}

func (t TLVs) appendTo(dst []byte) ([]byte, error) {
	for _, p := range t {
		if len(p.Value) > 0xFFFF {
			return dst, &FieldError{optionalParameter, "is too long"}
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(p.Tag))
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(p.Value)))
		dst = append(dst, p.Value...)
	}
	return dst, nil
}

// tlvs reads the rest of the body as optional parameters into the storage of old.
func (c *cursor) tlvs(old TLVs) TLVs {
	list := old[:0]
	for len(c.rest) > 0 {
		if len(c.rest) < 4 {
			c.fail(optionalParameter, "is truncated")
			break
		}
		tag := Tag(binary.BigEndian.Uint16(c.rest))
		n := int(binary.BigEndian.Uint16(c.rest[2:]))
		c.rest = c.rest[4:]
		value := c.octets(optionalParameter, n)
		if c.err != nil {
			break
		}
		list = append(list, TLV{Tag: tag, Value: value})
	}
	if len(list) == 0 {
		return old[:0]
	}
	return list
}
