package smpp

import (
	"strings"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// StatusMeaning is what a status of submit_sm_resp means for the message.
type StatusMeaning struct {
	Outcome provider.Outcome
	// Unfit qualifies Refused: the SMSC refuses this one message, and the refusal does not count
	// for the bind or the channel.
	Unfit bool
}

// unfit is a refusal of one message: another channel may take it, and this one takes others.
var unfit = StatusMeaning{Outcome: provider.Refused, Unfit: true}

// statusMeaning is what a status means on this channel; source says which fields of the source
// address came from the message.
func (c *Config) statusMeaning(s pdu.Status, source messageAddress) StatusMeaning {
	if m, ok := c.Outcomes[s]; ok {
		return m
	}
	if source.blamedBy(s) {
		return unfit
	}
	return StatusMeaning{Outcome: outcomeOf(s)}
}

// outcome is the meaning of the status alone, whatever the source address.
func (c *Config) outcome(s pdu.Status) provider.Outcome {
	return c.statusMeaning(s, messageAddress{}).Outcome
}

// outcomeOf is the outcome of a status that Config.Outcomes does not list.
//
// Any status but zero says that the SMSC did not take the message (section 5.1.3), so nothing here
// is Unknown. The question is what was at fault:
//
//   - Throttled: the SMSC asks to slow down; the same channel can send later.
//   - Rejected: destination, length or content, or a refusal that the SMSC calls permanent.
//   - Refused: everything else. Faults of the bind, the account (an unregistered sender is one),
//     the SMSC, and the parameters that this channel is set to send (service_type, esm_class)
//     do not follow the message to another channel. The same holds for vendors' codes, which
//     Config.Outcomes can override. Whether a refused sender says something about the channel
//     depends on whose sender it is: see messageAddress.
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

// Error names the status, which is all that the answer contains.
func (e *StatusError) Error() string {
	if e.Status.Known() {
		return "smsc answered " + e.Status.String() + " (" + e.Status.Code() + ")"
	}
	return "smsc answered " + e.Status.Code()
}

// codeError explains a result without an answer. It is one of the bounded codes of this package.
type codeError string

// Error returns the code within a sentence.
func (e codeError) Error() string { return "submit_sm: " + string(e) }

// Words that Result.Code and Ready use, besides the codes of answers and the faults.
const (
	whyConnecting  = provider.Connecting     // not bound yet
	whyUnbound     = provider.Unbound        // was bound, is not now
	whyBindRefused = provider.BindRefused    // the SMSC refuses the bind
	whyClosed      = provider.Closed         // Close was called
	whyLate        = provider.Late           // Submission.Latest passed before it began
	whyExpired     = provider.DeadlinePassed // its deadline passed before it could leave
	whyWindow      = "window_full"           // no slot until the context ended
	// The context ended before an octet left, or it was cancelled.
	whyCancelled = "cancelled"
	// No answer came within the response timeout, or by the deadline of the context.
	whyTimeout = "timeout"
	whyLost    = "connection_lost" // the connection ended before the answer
	whySkipped = "skipped"         // an earlier part had failed
)

// messageAddress says which fields of a source address came from the message, so that other
// messages may have others. The other fields are the channel's. If the SMSC refuses those, it
// refuses every message. Such a refusal is not unfit, because the breaker would then never open.
type messageAddress struct {
	sender   bool // the number or name
	ton, npi bool // its type and plan, derived from the message's own sender
}

// messageAddressOf returns which fields of a source address came from the message, given the rule
// that wrote it (nil for none). A sender that is also the channel's default counts as the
// channel's.
func (c *Config) messageAddressOf(r *SourceRule, s *provider.Submission) messageAddress {
	if !s.OwnSender || s.From == "" ||
		strings.TrimPrefix(s.From, "+") == strings.TrimPrefix(c.From, "+") ||
		r != nil && r.From != "" {
		return messageAddress{}
	}
	return messageAddress{
		sender: true,
		ton:    c.SourceTON == nil && (r == nil || r.TON == nil),
		npi:    c.SourceNPI == nil && (r == nil || r.NPI == nil),
	}
}

// blamedBy reports whether a status refuses a field that came from the message.
func (o messageAddress) blamedBy(s pdu.Status) bool {
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
