package smpp

import (
	"errors"
	"fmt"

	"dispatcher/provider/smpp/pdu"
)

// Phase is the state of a bind.
type Phase uint8

const (
	// Connecting dials and binds, or pauses before it does so again.
	Connecting Phase = iota
	// Bound carries messages.
	Bound
	// Failed could not connect or bind; State.Err says why. It tries again.
	Failed
	// Lost was bound and no longer is; State.Err says why. It connects again.
	Lost
	// Closed has ended and does not connect again.
	Closed
)

var phaseNames = [...]string{
	Connecting: "connecting", Bound: "bound", Failed: "failed", Lost: "lost", Closed: "closed",
}

// String returns the word used in logs and metrics.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// BindState describes a bind.
type BindState struct {
	// Bind numbers the binds of a channel from zero. The transmitter and the receiver
	// of a pair have the same number.
	Bind int
	// Role is the bind operation: pdu.CommandBindTransceiver and its siblings.
	Role  pdu.Command
	Phase Phase
	// Err explains Failed and Lost to a person. With Bound it is ErrUnhealthy for a bind that
	// accepts no messages. It holds no secret and is often a *LinkError, whose Why is bounded.
	Err error
}

// ErrUnhealthy says that a bind refuses all messages or does not answer them. It gets only probes
// while other binds are up.
var ErrUnhealthy = errors.New("bound, but takes no messages")

// LinkError is why a connection could not be made or bound.
type LinkError struct {
	Why    string     // dial, tls, bind_refused, bind_timeout or bind_lost
	Status pdu.Status // of the bind_resp, when Why is bind_refused
	Err    error      // the cause, when Why is something else
}

// Words of LinkError.Why.
const (
	WhyDial        = "dial"
	WhyTLS         = "tls"
	WhyBindRefused = whyBindRefused
	WhyBindTimeout = "bind_timeout"
	WhyBindLost    = "bind_lost"
)

// Error names the step and its cause.
func (e *LinkError) Error() string {
	switch {
	case e.Why == WhyBindRefused:
		return "bind refused with " + e.Status.String() + " (" + e.Status.Code() + ")"
	case e.Err != nil:
		return e.Why + ": " + e.Err.Error()
	default:
		return e.Why
	}
}

// Unwrap returns the cause.
func (e *LinkError) Unwrap() error { return e.Err }

// refusedBy returns the status of a refused bind.
func refusedBy(err error) (pdu.Status, bool) {
	if link, ok := errors.AsType[*LinkError](err); ok && link.Why == WhyBindRefused {
		return link.Status, true
	}
	return 0, false
}
