package smpp

import (
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// ownAddress says what of a source address is the message's own, so that the next message may have another. What is not is the
// channel's: when the SMSC does not take it, it takes no message, and to spare the channel would let it swallow them all.
type ownAddress struct {
	sender   bool // the number or name
	ton, npi bool // its type and plan, derived from the message's own sender
}

// ownAddressOf says what is the message's own of a source address that was written by a rule, which may be nil. A sender that the
// channel has as its own, too, is the channel's.
func (c *Config) ownAddressOf(r *SourceRule, s *provider.Submission) ownAddress {
	if !s.OwnSender || s.From == "" || strings.TrimPrefix(s.From, "+") == strings.TrimPrefix(c.From, "+") || r != nil && r.From != "" {
		return ownAddress{}
	}
	return ownAddress{
		sender: true,
		ton:    c.SourceTON == nil && (r == nil || r.TON == nil),
		npi:    c.SourceNPI == nil && (r == nil || r.NPI == nil),
	}
}

// blamedBy reports whether a status says that what is the message's own is wrong: its sender, or what derives from it.
func (o ownAddress) blamedBy(s pdu.Status) bool {
	switch s {
	case pdu.StatusInvSrcAdr:
		return o.sender
	case pdu.StatusInvSrcTON:
		return o.ton
	case pdu.StatusInvSrcNPI:
		return o.npi
	default:
		return false
	}
}
