package smpp

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// Validate reports every invalid setting, each under its key in the routing document. It never
// shows the password.
func (c Config) Validate() error {
	c = c.withDefaults()
	faults := []error{c.validateAddresses(), c.validateCredentials()}
	faults = append(faults,
		between("binds", c.Binds, 1, maxBinds),
		between("window", c.Window, 1, maxWindow),
		atLeast("enquire_link", c.EnquireLink, 10*time.Millisecond),
		atLeast("response_timeout", c.ResponseTimeout, 10*time.Millisecond),
		atLeast("connect_timeout", c.ConnectTimeout, 10*time.Millisecond),
		atLeast("reconnect_min", c.ReconnectMin, time.Millisecond),
		atLeast("reconnect_max", c.ReconnectMax, c.ReconnectMin),
		atLeast("longest_validity", c.LongestValidity, time.Second),
		atLeast("schedule", c.Schedule, 0),
		between("priority", int(c.Priority), 0, maxPriority),
		shorterThan("service_type", c.ServiceType, 6),
		shorterThan("address_range", c.AddressRange.Addr, 41),
		c.validateChoices(),
		c.validateCodings(),
		c.validateParameters(),
		c.validateRules(),
		c.validateQueries(),
		c.ReceiptID.validate(),
		c.ReceiptMeanings.validate(),
	)
	return errors.Join(faults...)
}

func (c Config) validateAddresses() error {
	if len(c.Addresses) == 0 {
		return errors.New("address: name at least one host:port")
	}
	for _, address := range c.Addresses {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return fmt.Errorf("address: %q is not host:port", address)
		}
	}
	return nil
}

// validateCredentials checks the lengths of section 4.1.1, except that of the password (see package
// pdu).
func (c Config) validateCredentials() error {
	if c.SystemID == "" {
		return errors.New("system_id: is missing")
	}
	if len(c.Password) > 64 || strings.ContainsRune(c.Password, 0) {
		return errors.New("password_file: the password is longer than 64 characters or holds a NUL")
	}
	return errors.Join(shorterThan("system_id", c.SystemID, 16),
		shorterThan("system_type", c.SystemType, 13))
}

func (c Config) validateChoices() error {
	switch c.InterfaceVersion {
	case pdu.Version33, pdu.Version34, pdu.Version50:
	default:
		return fmt.Errorf("interface_version: 0x%02x is none of 3.3, 3.4 and 5.0",
			c.InterfaceVersion)
	}
	if c.Bind > TransmitterReceiver {
		return fmt.Errorf("bind: unknown mode %d", c.Bind)
	}
	if c.InterfaceVersion == pdu.Version33 && c.Bind == Transceiver {
		return errors.New(
			"bind: 3.3 knows no transceiver; write transmitter_receiver, or leave it out")
	}
	if c.Alphabet > ASCII {
		return fmt.Errorf("alphabet: unknown alphabet %d", c.Alphabet)
	}
	if c.LongMessages > MessagePayload {
		return fmt.Errorf("long_messages: unknown way %d", c.LongMessages)
	}
	if c.ValidityFormat > Relative {
		return fmt.Errorf("validity_format: unknown format %d", c.ValidityFormat)
	}
	if c.From != "" {
		if _, err := c.source(c.From); err != nil {
			return fmt.Errorf("from: %w", err)
		}
	}
	for status, meaning := range c.Outcomes {
		if status == pdu.StatusOK || meaning.Outcome == provider.Accepted {
			return fmt.Errorf("outcomes: %s cannot be %v", status.Code(), meaning.Outcome)
		}
		if meaning.Unfit && meaning.Outcome != provider.Refused {
			return fmt.Errorf("outcomes: %s is %v, and only what is refused can be unfit",
				status.Code(), meaning.Outcome)
		}
	}
	return nil
}

// validateCodings checks that national tables and the message class fit Alphabet and the codings.
func (c Config) validateCodings() error {
	if !c.Tables.None() && c.Alphabet != GSM7 {
		return errors.New(
			"shift_locking, shift_single: national tables stand in for the alphabet gsm7 alone")
	}
	switch {
	case c.MessageClass == nil:
		return nil
	case *c.MessageClass > maxClass:
		return fmt.Errorf("message_class: %d is not between 0 and %d", *c.MessageClass, maxClass)
	case c.DefaultCoding != nil || c.UCS2Coding != nil:
		return errors.New(
			"message_class: is written into data_coding, which default_coding or ucs2_coding fix")
	case c.Alphabet != GSM7:
		return errors.New("message_class: has a data_coding for the alphabet gsm7 alone")
	}
	return nil
}

// validateParameters checks that the optional parameters to send conflict neither with each other
// nor with the version of the peer.
func (c Config) validateParameters() error {
	var faults []error
	seen := map[pdu.Tag]bool{}
	for _, t := range c.TLVs {
		if word := c.clash(t.Tag, seen); word != "" {
			faults = append(faults, fmt.Errorf("tlvs: 0x%04x %s", uint16(t.Tag), word))
		}
		seen[t.Tag] = true
	}
	if c.KeyTLV != 0 && c.KeyTLV != pdu.TagUserMessageRef && ownTags[c.KeyTLV] {
		faults = append(faults,
			fmt.Errorf("key_tlv: 0x%04x is written by the dispatcher itself", uint16(c.KeyTLV)))
	}
	switch {
	case c.ReceiptKeyTLV == 0:
	case c.KeyTLV == 0 || c.KeyTLV == pdu.TagUserMessageRef:
		faults = append(faults,
			errors.New(
				"receipt_key_tlv: nothing could come back in it unless key_tlv names a parameter that holds "+
					"the whole key"))
	case ownTags[c.ReceiptKeyTLV]:
		faults = append(faults,
			fmt.Errorf("receipt_key_tlv: 0x%04x holds something else", uint16(c.ReceiptKeyTLV)))
	}
	if c.InterfaceVersion == pdu.Version33 &&
		(len(c.TLVs) > 0 || c.KeyTLV != 0 || c.LongMessages == SAR ||
			c.LongMessages == MessagePayload) {
		faults = append(faults,
			errors.New(
				"interface_version: 3.3 has no optional parameters, which tlvs, key_tlv, sar and "+
					"message_payload need"))
	}
	return errors.Join(faults...)
}

// clash says why the setting tlvs may not contain a tag.
func (c Config) clash(tag pdu.Tag, seen map[pdu.Tag]bool) string {
	switch {
	case ownTags[tag]:
		return "is written by the dispatcher itself"
	case tag == c.KeyTLV:
		return "is the key_tlv"
	case seen[tag]:
		return "is there twice"
	}
	return ""
}

// ownTags are the parameters that this package writes or that do not belong in a submit_sm.
var ownTags = map[pdu.Tag]bool{
	pdu.TagSARMsgRefNum:       true,
	pdu.TagSARTotalSegments:   true,
	pdu.TagSARSegmentSeqnum:   true,
	pdu.TagMessagePayload:     true,
	pdu.TagUserMessageRef:     true,
	pdu.TagReceiptedMessageID: true,
	pdu.TagMessageState:       true,
	pdu.TagNetworkErrorCode:   true,
	pdu.TagSCInterfaceVersion: true,
	pdu.TagCongestionState:    true,
	pdu.TagMoreMessagesToSend: true,
}

func (c Config) validateQueries() error {
	if c.QueryAfter == 0 {
		if c.QueryRate != 0 {
			return errors.New("query_rate: is of no use without query_after")
		}
		return nil
	}
	return errors.Join(atLeast("query_after", c.QueryAfter, 10*time.Millisecond),
		between("query_rate", c.QueryRate, 0, maxRate))
}

func between(key string, v, low, high int) error {
	if v < low || v > high {
		return fmt.Errorf("%s: %d is not between %d and %d", key, v, low, high)
	}
	return nil
}

func atLeast(key string, v, low time.Duration) error {
	if v < low {
		return fmt.Errorf("%s: %v is below %v", key, v, low)
	}
	return nil
}

// shorterThan checks the length of a C-Octet String; limit counts the NUL.
func shorterThan(key, v string, limit int) error {
	if len(v) >= limit || strings.ContainsRune(v, 0) {
		return fmt.Errorf("%s: is longer than %d characters or holds a NUL", key, limit-1)
	}
	return nil
}
