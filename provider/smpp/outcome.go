package smpp

import (
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// StatusMeaning is what the status of a submit_sm_resp means for the message.
type StatusMeaning struct {
	Outcome provider.Outcome
	// Unfit qualifies Refused: the SMSC does not take this one message, and the refusal says
	// nothing about bind and channel.
	Unfit bool
}

// unfit is the verdict on a message for which another channel will do, while this one takes others.
var unfit = StatusMeaning{Outcome: provider.Refused, Unfit: true}

// statusMeaning is what a status means on this channel, for a message of whose source address so
// much is its own.
func (c *Config) statusMeaning(s pdu.Status, source ownAddress) StatusMeaning {
	if v, ok := c.Outcomes[s]; ok {
		return v
	}
	if source.blamedBy(s) {
		return unfit
	}
	return StatusMeaning{Outcome: outcomeOf(s)}
}

// outcome is that of the verdict, which goes by the status alone.
func (c *Config) outcome(s pdu.Status) provider.Outcome {
	return c.statusMeaning(s, ownAddress{}).Outcome
}

// outcomeOf says what a status means for the message where the channel says nothing else.
//
// Any status but zero says that the SMSC did not take the message (section 5.1.3), so nothing
// becomes Unknown here. The question is who is at fault:
//
//   - Throttled: the SMSC asks to slow down, and the same channel will do later.
//   - Rejected: destination, length or content are at fault, or the SMSC
//     calls its refusal permanent.
//   - Refused: everything else. Faults of the bind, of the account, which a sender
//     that is not registered for it is too, of the SMSC, and
//     of the dialect that this channel is set to speak (service_type, esm_class,
//     parameters) do not follow the message to another channel. So do vendors' codes,
//     which Config.Outcomes can sort otherwise. Whether a refusal of the sender says anything
//     about the channel depends on whose sender it is: see own.
func outcomeOf(s pdu.Status) provider.Outcome {
	switch s {
	case pdu.StatusOK:
		return provider.Accepted
	case pdu.StatusThrottled, pdu.StatusMsgQFul:
		return provider.Throttled
	case pdu.StatusInvMsgLen, // the text does not fit
		pdu.StatusInvDstAdr, // the number cannot exist
		pdu.StatusReceiverPermanent,
		pdu.StatusReceiverReject:
		return provider.Rejected
	default:
		return provider.Refused
	}
}

// StatusError is an answer of the SMSC other than ESME_ROK.
type StatusError struct{ Status pdu.Status }

// Error names the status, which is all that the answer says.
func (e *StatusError) Error() string {
	if e.Status.Known() {
		return "smsc answered " + e.Status.String() + " (" + e.Status.Code() + ")"
	}
	return "smsc answered " + e.Status.Code()
}

// codeError explains a result that no answer stands behind. It holds one of the
// bounded words of this package.
type codeError string

// Error returns the word within a sentence.
func (e codeError) Error() string { return "submit_sm: " + string(e) }

// Words that results and Ready use beside the codes of answers. faults are others.
const (
	whyConnecting  = provider.Connecting     // not bound yet
	whyUnbound     = provider.Unbound        // was bound, is not now
	whyBindRefused = provider.BindRefused    // the SMSC refuses the bind
	whyClosed      = provider.Closed         // Close was called
	whyLate        = provider.Late           // not begun when its latest moment came
	whyExpired     = provider.DeadlinePassed // its deadline came before it could leave
	whyWindow      = "window_full"           // no slot until the context ended
	// the context ended: before an octet left, or because it was called off
	whyCancelled = "cancelled"
	// no answer within the response timeout, or by the deadline of the context
	whyTimeout = "timeout"
	whyLost    = "connection_lost" // the connection ended before the answer
	whySkipped = "skipped"         // an earlier part had failed
)

// ownAddress says what of a source address is the message's own, so that the next message may have
// another. What is not is the channel's: when the SMSC does not take it, it takes no message, and
// to spare the channel would let it swallow them all.
type ownAddress struct {
	sender   bool // the number or name
	ton, npi bool // its type and plan, derived from the message's own sender
}

// ownAddressOf says what is the message's own of a source address that was written by a rule, which
// may be nil. A sender that the channel has as its own, too, is the channel's.
func (c *Config) ownAddressOf(r *SourceRule, s *provider.Submission) ownAddress {
	if !s.OwnSender || s.From == "" ||
		strings.TrimPrefix(s.From, "+") == strings.TrimPrefix(c.From, "+") ||
		r != nil && r.From != "" {
		return ownAddress{}
	}
	return ownAddress{
		sender: true,
		ton:    c.SourceTON == nil && (r == nil || r.TON == nil),
		npi:    c.SourceNPI == nil && (r == nil || r.NPI == nil),
	}
}

// blamedBy reports whether a status says that what is the message's own is wrong: its sender, or
// what derives from it.
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
