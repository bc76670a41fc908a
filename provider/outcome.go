package provider

import "fmt"

// Outcome classifies an attempt by the one question that matters for the next
// step: may the message have been taken?
type Outcome uint8

const (
	// Unknown means that bytes may have left and no answer came. It is the zero
	// value on purpose: what nobody classified is never sent again by itself.
	Unknown Outcome = iota
	// Accepted means that the provider took the message and gave a reference.
	Accepted
	// Rejected means that the provider said no and the message is at fault; no
	// other channel would do better.
	Rejected
	// Refused means that the message was certainly not taken and the channel is at
	// fault: no connection, open breaker, "system error", or, as Result.Unfit says, a provider
	// that does not take this one message. Another channel may be tried.
	Refused
	// Throttled means that the provider asked to slow down. It says nothing about
	// the channel's health.
	Throttled
)

var outcomeNames = [...]string{
	Unknown: "unknown", Accepted: "accepted", Rejected: "rejected", Refused: "refused", Throttled: "throttled",
}

// String returns the word used in the database, in metrics and in reports.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// ParseOutcome is the inverse of String.
func ParseOutcome(s string) (Outcome, error) {
	for o, name := range outcomeNames {
		if name == s {
			return Outcome(o), nil
		}
	}
	return Unknown, fmt.Errorf("outcome %q is none of %v", s, outcomeNames)
}

// Combine folds the outcomes of the parts of one message into the outcome of the
// whole. Parts must not be empty.
//
// Any Unknown part makes the whole Unknown, because sending the rest again could
// repeat that part. Otherwise a Rejected part ends the message. Otherwise, as long
// as parts are missing, the whole is what the missing parts were: Throttled if any
// was, else Refused. Only when every part was Accepted is the whole Accepted.
func Combine(parts []Part) Outcome {
	var seen [Throttled + 1]bool
	for _, p := range parts {
		seen[p.Outcome] = true
	}
	switch {
	case seen[Unknown]:
		return Unknown
	case seen[Rejected]:
		return Rejected
	case seen[Throttled]:
		return Throttled
	case seen[Refused]:
		return Refused
	default:
		return Accepted
	}
}
